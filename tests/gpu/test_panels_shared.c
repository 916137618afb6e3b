/*
 * Factorisations that several devices share, without devices: each panel is one device's; what a
 * device's steps read is there, whoever has finished it, and no slot is overwritten while it is
 * used; the devices never wait for each other for ever; the memory is enough; and in virtual time,
 * their rates add up where the links allow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "dispatch/cost/factorisation.h"
#include "gpu/pack/pack.h"
#include "ops/op.h"
#include "tests/lib/schedule_waits.h"
#include "tests/lib/split_cases.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* ---- The order ---- */

/* A device, and how far it is. Its steps run in an order that only their dependences restrict: the
 * engine that is tried first changes. */
struct device {
    struct panels part;
    int next[SCHEDULE_ENGINES], done[SCHEDULE_ENGINES];
    int panel[2]; /* by slot: what is there; -1: nothing */
    const struct schedule_step *block[2];
    int block_used[2];
    /* By own panel: it has the changes by the columns before this one */
    int64_t column[PANELS_MOST];
    bool list[PANELS_MOST], factored[PANELS_MOST];
};

static bool there[PANELS_MOST];

static int64_t bytes_of(const struct panels_call *call, struct schedule_tile tile)
{
    return (call->across ? pack_ld(tile.cols, call->size) * tile.rows
                         : pack_ld(tile.rows, call->size) * tile.cols) *
           call->size;
}

static void upload(struct device *d, const struct panels_shared *shared, int me,
                   const struct schedule_step *step)
{
    const struct panels *p = &d->part;
    if (step->operand == PANELS_PANEL) {
        assert_int_equal(step->slot, panels_shared_ordinal(shared, step->j) % p->buffers);
        assert_true(bytes_of(&p->call, panels_panel(p, step->j)) <= p->panel_bytes);
        const int before = d->panel[step->slot];
        assert_true(before < 0 || there[before]);
        d->panel[step->slot] = step->j;
    } else if (step->operand == PANELS_LIST) {
        assert_true(p->call.kind == PANELS_LU && shared->owner[step->i] != me);
        assert_true(there[step->i] && !d->list[step->i]);
        d->list[step->i] = true;
    } else {
        assert_true(there[step->i] && step->i < step->j);
        assert_true(bytes_of(&p->call, panels_block(p, step)) <= p->block_bytes);
        assert_true(d->done[COMPUTE] >= d->block_used[step->slot]);
        d->block[step->slot] = step;
    }
}

static void kernel(struct device *d, const struct panels_shared *shared, int me,
                   const struct schedule_step *step)
{
    const struct panels *p = &d->part;
    assert_int_equal(d->panel[panels_shared_ordinal(shared, step->j) % p->buffers], step->j);
    if (step->p < 0) {
        assert_true(d->column[step->j] ==
                    accel_min(p->first[step->j], accel_min(p->call.m, p->call.n)));
        assert_false(d->factored[step->j]);
        d->factored[step->j] = true;
        return;
    }
    const struct schedule_step *block = d->block[step->slot];
    const struct schedule_tile tile = panels_block(p, step);
    assert_true(block && block->i == step->i && block->j == step->j && block->p == step->p);
    assert_true(tile.col == d->column[step->j] && tile.cols > 0);
    assert_true(p->call.kind != PANELS_LU || shared->owner[step->i] == me || d->list[step->i]);
    d->column[step->j] += tile.cols;
    d->block_used[step->slot] = d->done[COMPUTE] + 1;
}

static void download(struct device *d, const struct schedule_step *step)
{
    assert_true(d->factored[step->j] || panels_factored(&d->part, step->j) == 0);
    if (step->operand == PANELS_INFO) {
        assert_false(there[step->j]);
        there[step->j] = true;
    }
}

/* Runs the engine's next step if it may. Tiles of other devices are waited for, as pipeline_job.h
 * does it. */
static bool advance(struct device *d, const struct panels_shared *shared, int me, int engine)
{
    const struct schedule *s = &d->part.schedule;
    int *next = &d->next[engine];
    while (*next < s->count && s->step[*next].engine != engine)
        ++*next;
    if (*next == s->count)
        return false;
    const struct schedule_step *step = &s->step[*next];
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        if (e != engine && step->after[e] > d->done[e])
            return false;
    if (engine == UP && step->operand != PANELS_PANEL && !there[step->i])
        return false;
    if (engine == UP)
        upload(d, shared, me, step);
    else if (engine == COMPUTE)
        kernel(d, shared, me, step);
    else
        download(d, step);
    ++*next;
    d->done[engine]++;
    return true;
}

static void run_all(const struct panels_shared *shared, const struct panels_device *given)
{
    struct device *device = calloc((size_t)shared->devices, sizeof *device);
    bool going = true;
    memset(there, 0, sizeof there);
    for (int d = 0; d < shared->devices; d++) {
        struct panels *p = &device[d].part;
        assert_true(panels_shared_part(p, shared, d, given[d].memory_bytes));
        assert_true(p->buffers * p->panel_bytes + 2 * p->block_bytes <=
                    given[d].memory_bytes + 128);
        last_download_waits_for_all(&p->schedule);
        device[d].panel[0] = device[d].panel[1] = -1;
    }
    while (going) {
        going = false;
        for (int d = 0; d < shared->devices; d++)
            for (int first = rand() % SCHEDULE_ENGINES, e = 0; e < SCHEDULE_ENGINES; e++)
                going |= advance(&device[d], shared, d, (first + e) % SCHEDULE_ENGINES);
    }
    for (int j = 0; j < shared->count; j++)
        assert_true(there[j]);
    for (int d = 0; d < shared->devices; d++)
        panels_free(&device[d].part);
    free(device);
}

static void in_order(void **state)
{
    int shared_by_all = 0, made = 0;
    (void)state;
    srand(3);
    for (int n = 0; n < 400; n++) {
        struct panels_device device[8];
        struct panels_shared shared;
        const int count = 2 + rand() % 7;
        struct panels_call call = {.kind = n % 2 ? PANELS_LU : PANELS_CHOLESKY,
                                   .across = n % 4 == 2,
                                   .m = 40 + rand() % 3000,
                                   .size = 8,
                                   .per_term = 2};
        call.n = n % 2 ? 40 + rand() % 3000 : call.m;
        for (int d = 0; d < count; d++) {
            const double share = 0.2 + rand() % 100 * 0.01;
            device[d].rates = schedule_nominal;
            device[d].rates.compute = 10 + rand() % 100;
            device[d].memory_bytes = (int64_t)(share * (double)(call.m * call.n * 8));
        }
        if (!panels_share(&shared, &call, device, count))
            continue;
        made++;
        assert_int_equal(shared.first[0], 0);
        assert_int_equal(shared.first[shared.count], call.n);
        bool owns[8] = {false};
        int owners = 0;
        for (int j = 0; j < shared.count; j++) {
            assert_true(shared.owner[j] < count && shared.first[j] < shared.first[j + 1]);
            owners += !owns[shared.owner[j]];
            owns[shared.owner[j]] = true;
        }
        shared_by_all += owners == count;
        run_all(&shared, device);
    }
    assert_true(made > 300 && shared_by_all > 100);
}

static void too_little_memory(void **state)
{
    const struct panels_call call = {
        .kind = PANELS_LU, .m = 5000, .n = 5000, .size = 8, .per_term = 2};
    struct panels_device device[] = {{schedule_nominal, INT64_C(1) << 30},
                                     {schedule_nominal, 5000 * 16 * 8}};
    struct panels_shared shared;
    struct panels part;
    (void)state;
    assert_false(panels_share(&shared, &call, device, 2));
    device[1].memory_bytes = INT64_C(1) << 30;
    assert_true(panels_share(&shared, &call, device, 2));
    assert_false(panels_shared_part(&part, &shared, 1, 5000 * 16 * 8));
}

/* A panel, and two blocks of the fewest columns: that is enough, and a byte less is not. */
static void just_enough_memory(void **state)
{
    const struct panels_call call = {
        .kind = PANELS_LU, .m = 5000, .n = 5000, .size = 8, .per_term = 2};
    const int64_t column = 5000 * 8, blocks = 2 * PANELS_LEAST_COLUMNS * column;
    /* The most panels are 16 for each of two devices, of whole lines. */
    const int64_t least = 192 * column + blocks;
    struct panels_device device[] = {{schedule_nominal, least}, {schedule_nominal, least}};
    struct panels_shared shared;
    (void)state;
    assert_true(panels_share(&shared, &call, device, 2));
    assert_int_equal(shared.buffers, 1);
    assert_int_equal(shared.first[1], 192);
    for (int d = 0; d < 2; d++) {
        assert_int_equal(shared.block_bytes[d], blocks / 2);
        device[d].memory_bytes--;
        assert_false(panels_share(&shared, &call, device, 2));
        device[d].memory_bytes++;
    }
    /* A part that has two panels at a time, if there is memory for both. */
    device[0].memory_bytes = device[1].memory_bytes = INT64_C(1) << 30;
    assert_true(panels_share(&shared, &call, device, 2));
    shared.buffers = 2;
    for (int buffers = 2; buffers > 0; buffers--)
        for (int less = 0; less < 2; less++) {
            struct panels part;
            assert_true(panels_shared_part(&part, &shared, 0, INT64_C(1) << 30));
            const int64_t memory = buffers * part.panel_bytes + blocks - less;
            panels_free(&part);
            const bool made = panels_shared_part(&part, &shared, 0, memory);
            assert_int_equal(made, buffers - less > 0);
            if (!made)
                continue;
            assert_int_equal(part.buffers, buffers - less);
            assert_true(less || part.block_bytes == blocks / 2);
            panels_free(&part);
        }
}

/* ---- The rates add up ---- */

static double upload_ms(const struct panels_shared *shared, int device,
                        const struct schedule_rates *rates)
{
    struct panels part;
    double bytes = 0;
    assert_true(panels_shared_part(&part, shared, device, INT64_C(15) << 30));
    for (int n = 0; n < part.schedule.count; n++) {
        const struct schedule_step *step = &part.schedule.step[n];
        const struct schedule_tile tile = step->operand == PANELS_BLOCK
                                              ? panels_block(&part, step)
                                              : panels_panel(&part, step->j);
        if (step->engine == UP && step->operand != PANELS_LIST)
            bytes += (double)(tile.rows * tile.cols * part.call.size);
    }
    panels_free(&part);
    return bytes / rates->up * 1e-6;
}

/* Of matrices of one and a half to three times a device's memory. Not where what goes up takes a
 * link longer than six tenths of the products: the first panels have nothing to hide behind. */
static void rates_add_up(void **state)
{
    static const char *const names[] = {"dgetrf", "dpotrf", "zgetrf", "spotrf"};
    int allowed = 0;
    (void)state;
    for (int i = 0; i < split_machine_count; i++)
        for (size_t r = 0; r < 2 * (sizeof names / sizeof *names); r++) {
            struct split_device device[SPLIT_MOST];
            const int count = split_devices_of(&split_machines[i], device);
            struct accel_call call;
            struct split split;
            struct panels_shared shared;
            double rates = 0;
            for (int d = 0; d < count; d++) {
                device[d].memory_bytes = INT64_C(16) << 30;
                rates += device[d].rates.compute;
            }
            const double times = r % 2 ? 3 : 1.5;
            assert_true(split_call_of(&call, names[r / 2], 1, 1, 1));
            const double size = (double)accel_dtype_size(call.routine->dtype);
            int64_t n = 64;
            while ((double)(n * n) * size < times * (double)device[0].memory_bytes)
                n += 64;
            assert_true(split_call_of(&call, names[r / 2], n, n, n));
            assert_true(factorisation_is_shared(&call));
            factorisation_make(&split, &shared, &call, device, count, SPLIT_NO_LIMIT);
            if (split.count == 1)
                continue;
            assert_true(split.ms < SPLIT_GAIN * split.whole_ms);
            const double flops = accel_flops(&call);
            const double sum_ms = flops / rates * 1e-6;
            double link_ms = 0;
            for (int d = 0; d < shared.devices; d++) {
                const double ms = upload_ms(&shared, d, &split.part[d].rates);
                link_ms = link_ms < ms ? ms : link_ms;
            }
            if (link_ms > 0.6 * sum_ms)
                continue;
            allowed++;
            if (sum_ms < 0.7 * split.ms)
                fail_msg("%s, %s of %.1f times the memory: %.0f ms, of the rates' sum %.3f",
                         split_machines[i].name, names[r / 2], times, split.ms, sum_ms / split.ms);
        }
    assert_true(allowed >= 20);
}

/* A faster device has more panels, a useless one none, and what follows a factorisation counts. */
static void unequal_parts(void **state)
{
    struct split_device device[] = {split_device_of(1, 25), split_device_of(3000, 25),
                                    split_device_of(6000, 25)};
    struct accel_call call;
    struct split split;
    struct panels_shared shared;
    int64_t columns[2] = {0};
    (void)state;
    for (int d = 0; d < 3; d++)
        device[d].memory_bytes = INT64_C(8) << 30;
    assert_true(split_call_of(&call, "dgetrf", 40000, 40000, 0));
    factorisation_make(&split, &shared, &call, device, 3, SPLIT_NO_LIMIT);
    assert_int_equal(split.count, 2);
    assert_int_equal(split.part[0].device, 2);
    assert_int_equal(split.part[1].device, 1);
    for (int j = shared.count / 4; j < shared.count; j++)
        columns[shared.owner[j]] += shared.first[j + 1] - shared.first[j];
    assert_true(columns[0] > columns[1] && columns[1] > 0);
    device[1].memory_bytes = 1 << 20; /* it has no room for its part */
    factorisation_make(&split, &shared, &call, device, 3, SPLIT_NO_LIMIT);
    assert_int_equal(split.count, 1);
    assert_true(split_call_of(&call, "dgemm", 4000, 4000, 4000));
    assert_false(factorisation_is_shared(&call));
    assert_true(split_call_of(&call, "dgeqrf", 4000, 4000, 4000));
    assert_false(factorisation_is_shared(&call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order), cmocka_unit_test(too_little_memory),
        cmocka_unit_test(just_enough_memory), cmocka_unit_test(rates_add_up),
        cmocka_unit_test(unequal_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
