/*
 * The groups of a batch, without a device: how long they are, which of their matrices stay on the
 * device, by a plain version; and how many the search tries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "gpu/pack/pack.h"
#include "gpu/plan/schedule_plan.h"
#include "tests/lib/draw.h"
#include "tests/lib/rates.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

static const struct schedule_rates rates = RATES(20, 15, 5e3, 128, 0.002, 0.005, 0.01);
static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct schedule_call any_batch(void)
{
    struct schedule_call call = {.kind = SCHEDULE_BATCH,
                                 .reads = below(2),
                                 .m = 1 + below(40),
                                 .n = 1 + below(40),
                                 .k = below(8) ? 1 + below(40) : 0,
                                 .per_term = 2,
                                 .size = {8, 4, 16},
                                 .products = 1 + below(below(2) ? 300 : 20)};
    for (int x = A; x < OPERANDS; x++) {
        const int64_t repeat = x == C || below(2) ? 1 : 1 + below(call.products);
        const int64_t runs = (call.products + repeat - 1) / repeat;
        call.sharing[x] =
            (struct schedule_sharing){repeat, x == C || below(2) ? runs : 1 + below(runs)};
        call.across[x] = below(2);
        call.in_place[x] = below(6) == 0;
    }
    return call;
}

/* Sets where groups begin: some at either end are a half, a quarter … of the others. Returns
 * their number; 0: the ends are all. */
static int groups_of(const struct schedule_call *call, const struct schedule_params *by,
                     int64_t *start)
{
    int64_t end = call->products, at = 0;
    int count = 0;
    for (int i = 0; i < by->share; i++)
        end -= by->cols >> (by->share - i) > 1 ? by->cols >> (by->share - i) : 1;
    for (int i = 0; i < by->share; i++) {
        start[count++] = at;
        at += by->cols >> (by->share - i) > 1 ? by->cols >> (by->share - i) : 1;
    }
    if (at >= end)
        return 0;
    for (; at < end; at = least(at + by->cols, end))
        start[count++] = at;
    for (int i = by->share; i-- > 0;) {
        start[count++] = at;
        at += by->cols >> (by->share - i) > 1 ? by->cols >> (by->share - i) : 1;
    }
    assert_int_equal(at, call->products);
    start[count] = at;
    return count;
}

static int64_t matrix_bytes(const struct schedule_call *call, int x)
{
    const int64_t rows = x == B ? call->k : call->m, cols = x == A ? call->k : call->n;
    return (call->across[x] ? pack_ld(cols, call->size[x]) * rows
                            : pack_ld(rows, call->size[x]) * cols) *
           call->size[x];
}

/* Returns the most matrices of an operand that so many products in a row use, wherever they
 * begin. */
static int64_t most_used(const struct schedule_sharing *x, int64_t products)
{
    int64_t most = 0;
    for (int64_t first = 0; first < x->repeat; first++) {
        const int64_t used = (first + products - 1) / x->repeat + 1;
        most = used > most ? used : most;
    }
    return least(most, x->distinct);
}

/* Returns the bytes if the operands of `stays` have all of their matrices on the device, and
 * others so many groups. */
static int64_t bytes_if(const struct schedule_call *call, int64_t group, int groups, unsigned stays,
                        int buffers)
{
    int64_t bytes = 0;
    for (int x = A; x < OPERANDS; x++) {
        const bool all = stays >> x & 1 || groups == 1;
        if (call->in_place[x] || (x != C && call->k == 0))
            continue;
        bytes += matrix_bytes(call, x) *
                 (all ? call->sharing[x].distinct
                      : least(buffers, groups) * most_used(&call->sharing[x], group));
    }
    return bytes;
}

static void groups_and_slots(void **state)
{
    int made = 0, refused = 0, stayed = 0;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        const struct schedule_call call = any_batch();
        const struct schedule_params by = {.cols = 1 + below(call.products),
                                           .share = (int)below(4)};
        int64_t start[400], memory = 0, expected = -1;
        const int groups = groups_of(&call, &by, start);
        unsigned shared = 0;
        struct schedule s;
        for (int x = A; x < C; x++)
            shared |= call.sharing[x].distinct < call.products ? 1u << x : 0;
        /* What some way needs, to the byte, or one byte less. */
        const unsigned ways[] = {1 << A | 1 << B, 1 << A, 1 << B, 0};
        memory = bytes_if(&call, by.cols, groups, ways[below(4)], 1 + (int)below(5)) - below(2);
        bool whole = false;
        for (int way = 0; way < 4 && expected < 0; way++)
            for (int buffers = 4; buffers >= 2 && expected < 0; buffers--) {
                const int64_t bytes = bytes_if(&call, by.cols, groups, ways[way], buffers);
                if (ways[way] & ~shared || bytes > memory)
                    continue;
                expected = bytes;
                whole = ways[way] == shared;
            }
        const bool is_made = schedule_make_by(&s, &by, &call, &rates, memory);
        assert_int_equal(is_made, groups > 0 && expected >= 0);
        refused += !is_made;
        if (!is_made)
            continue;
        made++;
        assert_int_equal(s.tiles[C].cols, groups);
        for (int g = 0; g <= groups; g++)
            assert_int_equal(schedule_group_start(&s, g), start[g]);
        assert_int_equal(s.bytes, expected);
        assert_int_equal(s.whole, whole);
        for (int x = A; x < OPERANDS; x++) {
            assert_int_equal(schedule_matrix_bytes(&call, x), matrix_bytes(&call, x));
            stayed += shared && groups > 4 && s.slots[x] == 1;
        }
        /* Its steps: each kernel once, each group of the result down once. */
        assert_int_equal(s.steps[SCHEDULE_COMPUTE], groups);
        assert_int_equal(s.steps[SCHEDULE_DOWN], call.in_place[C] ? 0 : groups);
        schedule_free(&s);
    }
    assert_true(made > 1000 && refused > 300 && stayed > 50);
}

/* A kernel takes its products' time, and bytes are those of all matrices that there are. */
static void times_of_groups(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct schedule_call call = any_batch();
        const struct schedule_params by = {.cols = 1 + below(call.products)};
        struct schedule s;
        call.k = 1 + below(50);
        assert_true(schedule_make_by(&s, &by, &call, &rates, INT64_MAX));
        for (int g = 0; g < s.tiles[C].cols; g++) {
            const double products = (double)least(by.cols, call.products - g * by.cols),
                         shortest = fmin(fmin((double)call.m, (double)call.n), (double)call.k),
                         operations = 2.0 * (double)(call.m * call.n * call.k) * products,
                         ms = 0.005 + operations / 5e9 * (shortest + 128) / shortest;
            assert_true(fabs(schedule_kernel_ms(&s, &rates, 0, g, 0) - ms) < 1e-9 * ms);
        }
        for (int x = A; x < OPERANDS; x++) {
            const int64_t rows = x == B ? call.k : call.m, cols = x == A ? call.k : call.n;
            assert_true(schedule_bytes(&call, x) ==
                        (double)(rows * cols * call.sharing[x].distinct * call.size[x]));
        }
        schedule_free(&s);
    }
}

static struct schedule_call large_batch(int64_t products)
{
    return (struct schedule_call){.kind = SCHEDULE_BATCH,
                                  .m = 200,
                                  .n = 200,
                                  .k = 200,
                                  .per_term = 2,
                                  .size = {8, 8, 8},
                                  .products = products,
                                  .sharing = {{1, products}, {1, products}, {1, products}}};
}

/* The search tries no more groups than it may, and no more than it has time for; a call that
 * stays whole is one. */
static void groups_that_are_tried(void **state)
{
    const struct schedule_rates light = RATES(20, 15, 5e3, 128, 0, 0, 0);
    struct schedule_call call = large_batch(64);
    struct schedule s;
    (void)state;
    for (int most = 1; most <= 16; most *= 2) {
        assert_true(schedule_make_batch(&s, &call, &light, INT64_MAX, most, 1e9));
        assert_true(s.by.cols >= 64 / most);
        assert_true(most == 1 || s.by.cols < 64);
        schedule_free(&s);
    }
    assert_true(schedule_make_batch(&s, &call, &light, INT64_MAX, 64, 1e9));
    assert_int_equal(s.by.cols, 1);
    schedule_free(&s);
    assert_true(schedule_make_batch(&s, &call, &light, INT64_MAX, 64, 0));
    assert_int_equal(s.by.cols, 64); /* the first one */
    schedule_free(&s);
    call.widest = 10;
    assert_true(schedule_make_batch(&s, &call, &light, INT64_MAX, 64, 0));
    assert_int_equal(s.by.cols, 10);
    schedule_free(&s);
    call.widest = 0;
    call.in_place[C] = true;
    assert_true(schedule_make_batch(&s, &call, &light, INT64_MAX, 64, 1e9));
    assert_int_equal(s.tiles[C].cols, 1);
    schedule_free(&s);
    /* Groups have whole runs of a shared matrix. */
    call = large_batch(60);
    call.sharing[B] = (struct schedule_sharing){7, 9};
    assert_true(schedule_make_batch(&s, &call, &light, 40 << 20, 4, 1e9));
    assert_true(s.by.cols % 7 == 0 || s.by.cols == 60);
    schedule_free(&s);
    /* Not even one product fits twice. */
    assert_false(schedule_make_batch(&s, &call, &light, 3 * 200 * 200 * 8, 64, 1e9));
}

/* ---- Sizes ---- */

/* Products of many rows have whole tiles of them, others whole lines. */
static void sizes_of_tiles(void **state)
{
    const struct schedule_call product = {.kind = SCHEDULE_PRODUCT},
                               triangle = {.kind = SCHEDULE_RANK_K},
                               solve = {.kind = SCHEDULE_SOLVE};
    (void)state;
    for (int64_t rows = 1; rows < 5000; rows += 7) {
        const int64_t line = (rows + 63) / 64 * 64, tile = (rows + 127) / 128 * 128;
        assert_int_equal(schedule_tile_cols(rows), line);
        assert_int_equal(schedule_tile_rows(&solve, rows), line);
        assert_int_equal(schedule_tile_rows(&product, rows), rows < 2048 ? line : tile);
        assert_int_equal(schedule_tile_rows(&triangle, rows), rows < 2048 ? line : tile);
    }
    assert_int_equal(schedule_tile_rows(&product, 2048), 2048);
}

/* Calls of less than 4 MB, unless devices lend each other something, and those whose result is
 * in place. */
static void calls_that_stay_whole(void **state)
{
    struct schedule_call call = {
        .kind = SCHEDULE_PRODUCT, .m = 500, .n = 500, .k = 250, .size = {8, 8, 8}};
    (void)state; /* 1 MB, 1 MB and 2 MB */
    assert_false(schedule_stays_whole(&call));
    for (int x = A; x < OPERANDS; x++) {
        call.in_place[x] = true;
        assert_true(schedule_stays_whole(&call));
        call.in_place[x] = false;
    }
    call.k = 249;
    assert_true(schedule_stays_whole(&call));
    for (int x = A; x < C; x++) {
        call.lent[x] = 0.5;
        assert_false(schedule_stays_whole(&call));
        call.lent[x] = 0;
    }
    call.k = 10000;
    call.in_place[C] = true;
    assert_true(schedule_stays_whole(&call));
    call = (struct schedule_call){
        .kind = SCHEDULE_RANK_K, .m = 500, .n = 500, .k = 500, .size = {8, 8, 8}};
    assert_false(schedule_stays_whole(&call)); /* 2 MB each of A and C */
    call.k = 499;
    assert_true(schedule_stays_whole(&call)); /* there is no B */
    call.two = true;
    assert_false(schedule_stays_whole(&call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_and_slots),      cmocka_unit_test(times_of_groups),
        cmocka_unit_test(groups_that_are_tried), cmocka_unit_test(sizes_of_tiles),
        cmocka_unit_test(calls_that_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
