/*
 * Host memory that is short while schedules are made: whoever makes one says so, keeps nothing,
 * and makes the same one as ever when there is memory again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "gpu/plan/plan_cache.h"
#include "gpu/plan/upload_order.h"
#include "gpu/plan/panels.h"
#include "gpu/plan/panels_shared.h"
#include "gpu/plan/schedule.h"
#include "tests/lib/rates.h"

/* The linker sends the allocations of the sources here. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static long until_failure = -1, blocks; /* allocations that succeed; negative: all do */

static long gone_after = -1; /* the same, but none behind them does */

static bool fails(void)
{
    if (gone_after >= 0)
        return gone_after == 0 || gone_after-- == 0;
    return until_failure >= 0 && until_failure-- == 0;
}

static void *counted(void *memory)
{
    blocks += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (fails())
        return NULL;
    void *grown = __real_realloc(memory, bytes);
    blocks += !memory && grown;
    return grown;
}

void __wrap_free(void *memory)
{
    blocks -= memory != NULL;
    __real_free(memory);
}

static const struct schedule_rates rates = RATES_WITH(0.001, 0, 2, 2, 900, 128, 0.002, 0.005, 0.01);

/* Something that may fail for want of memory. Returns whether it did not, having given all of it
 * back. */
typedef bool attempt(void *context);

/* Lets each allocation fail that an attempt makes, one after the other. Returns how many there
 * are. */
static long fail_each(attempt *try, void *context, bool must_fail)
{
    for (long n = 0;; n++) {
        const long before = blocks;
        until_failure = n;
        const bool done = try(context);
        const bool none_failed = until_failure >= 0;
        until_failure = -1;
        assert_int_equal(blocks, before);
        assert_true(!none_failed || done);
        assert_true(none_failed || !must_fail || !done);
        if (none_failed)
            return n;
    }
}

/* ---- Schedules ---- */

static const struct schedule_call calls[] = {
    {.kind = SCHEDULE_PRODUCT, .m = 900, .n = 800, .k = 700, .per_term = 2, .size = {8, 8, 8}},
    {.kind = SCHEDULE_SOLVE,
     .reads = true,
     .m = 900,
     .n = 800,
     .k = 900,
     .per_term = 2,
     .size = {8, 8, 8}},
    {.kind = SCHEDULE_RANK_K,
     .reads = true,
     .m = 900,
     .n = 900,
     .k = 700,
     .per_term = 2,
     .size = {8, 8, 8}},
    {.kind = SCHEDULE_BATCH,
     .m = 64,
     .n = 64,
     .k = 64,
     .products = 90,
     .sharing = {{1, 90}, {1, 1}, {1, 90}},
     .per_term = 2,
     .size = {8, 8, 8}},
};
enum { CALLS = sizeof calls / sizeof *calls };

struct given {
    const struct schedule_call *call;
    int64_t memory;
};

static bool make_by_choice(void *context)
{
    const struct given *given = context;
    const struct schedule_params by = {.rows = 256,
                                       .cols = given->call->kind == SCHEDULE_BATCH ? 20 : 256,
                                       .depth = 256,
                                       .buffers = 2};
    struct schedule s;
    if (!schedule_make_by(&s, &by, given->call, &rates, given->memory))
        return false;
    schedule_free(&s);
    return true;
}

static bool make(void *context)
{
    const struct given *given = context;
    struct schedule s;
    if (!schedule_make(&s, given->call, &rates, given->memory))
        return false;
    assert_true(s.count > 0 && s.ms > 0);
    schedule_free(&s);
    return true;
}

static void schedules(void **state)
{
    (void)state;
    for (int c = 0; c < CALLS; c++)
        for (int part = 0; part < 2; part++) {
            struct given given = {&calls[c], part ? 6 << 20 : INT64_MAX};
            assert_true(fail_each(make_by_choice, &given, true) > 0);
        }
}

/* Another schedule may take the place of one for which there was no memory; where there is none
 * at all, there is none. */
static void the_search(void **state)
{
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct given given = {&calls[c], INT64_MAX};
        if (calls[c].kind == SCHEDULE_BATCH)
            fail_each(make, &given, false);
        else
            for (int n = 0; n < 40; n++) {
                const long before = blocks;
                until_failure = n;
                make(&given);
                until_failure = -1;
                assert_int_equal(blocks, before);
            }
    }
}

/* Of a call whose parameters are remembered, but not its time without a factor: that is said, or
 * that it is not known, and the next time it is. */
static void times(void **state)
{
    int unknown = 0;
    (void)state;
    for (int c = 0; c < CALLS; c++)
        for (int n = 0; n < 30; n++) {
            const unsigned left_out = 1u << (n % 2 ? SCHEDULE_A : SCHEDULE_B);
            struct schedule_call call = calls[c];
            struct schedule s;
            call.most = (1 << 20) + 64 * n; /* a call of its own */
            assert_true(plan_cache_make(&s, &call, &rates, INT64_MAX));
            assert_true(schedule_leave_out(&s, n % 2 ? SCHEDULE_A : SCHEDULE_B));
            const double expected = schedule_simulate(&s, &rates).ms;
            schedule_free(&s);
            const long before = blocks;
            until_failure = n / 2;
            const double ms = plan_cache_ms(&call, &rates, INT64_MAX, left_out);
            until_failure = -1;
            assert_int_equal(blocks, before);
            assert_true(ms == -1 || ms == expected);
            unknown += ms < 0;
            for (int again = 0; again < 2; again++)
                assert_true(plan_cache_ms(&call, &rates, INT64_MAX, left_out) == expected);
        }
    assert_true(unknown >= 2 * CALLS);
}

static bool is_same_step(const struct schedule_step *x, const struct schedule_step *y)
{
    return x->engine == y->engine && x->operand == y->operand && x->i == y->i && x->j == y->j;
}

/* Without memory nothing changes. */
static void changes(void **state)
{
    const struct schedule_params by = {.rows = 256, .cols = 256, .depth = 256, .buffers = 2};
    struct schedule s, same;
    (void)state;
    assert_true(schedule_make_by(&s, &by, &calls[0], &rates, INT64_MAX));
    assert_true(schedule_make_by(&same, &by, &calls[0], &rates, INT64_MAX));
    struct upload_order *tile = malloc((size_t)s.steps[SCHEDULE_UP] * sizeof *tile);
    assert_non_null(tile);
    for (int n = 0; n < s.steps[SCHEDULE_UP]; n++)
        tile[n] = (struct upload_order){n, n % 3 == 0};
    for (int n = 0; n < 5; n++) {
        const long before = blocks;
        until_failure = n;
        assert_false(upload_order_make(&s, tile, 2));
        until_failure = 0;
        assert_false(schedule_leave_out(&s, SCHEDULE_A));
        /* Nor is there a time, whether devices lend each other something or not. */
        s.call.lent[SCHEDULE_B] = n % 2 * 0.5;
        until_failure = 0;
        const struct schedule_times none = schedule_simulate(&s, &rates);
        until_failure = -1;
        assert_true(none.first < 0 && none.ms == 0 && none.lent_bytes == 0);
        s.call.lent[SCHEDULE_B] = 0;
        assert_int_equal(blocks, before);
        assert_true(s.count == same.count && s.bytes == same.bytes);
        for (int k = 0; k < s.count; k++)
            assert_true(is_same_step(&s.step[k], &same.step[k]));
    }
    const long before = blocks;
    assert_true(upload_order_make(&s, tile, 2) && schedule_leave_out(&s, SCHEDULE_A));
    assert_int_equal(blocks, before);
    assert_true(s.bytes == same.bytes - same.slots[0] * same.slot_bytes[0]);
    schedule_free(&s);
    schedule_free(&same);
    free(tile);
}

/* ---- Panels ---- */

static const struct panels_call factorisations[] = {
    {.kind = PANELS_CHOLESKY, .m = 1500, .n = 1500, .size = 8, .per_term = 2},
    {.kind = PANELS_LU, .m = 1500, .n = 1200, .size = 8, .per_term = 2},
    {.kind = PANELS_QR, .m = 1500, .n = 1200, .size = 8, .per_term = 2},
    {.kind = PANELS_APPLY,
     .m = 1500,
     .n = 1000,
     .order = 1200,
     .sweeps = 2,
     .sweep = {{.reflects = true}, {.backwards = true}},
     .size = 8,
     .per_term = 2}};

/* What was found is remembered: each time, the memory of the device, or its rates, are others. */
static void panels(void **state)
{
    int refused = 0;
    (void)state;
    for (int c = 0; c < 4; c++)
        for (int n = 0; n < 60; n++) {
            const long before = blocks;
            struct schedule_rates of_device = rates;
            struct panels p;
            of_device.kernel_ms += n * 1e-9;
            until_failure = n / 2;
            const bool made = n % 2 ? panels_make(&p, &factorisations[c], &of_device, 3 << 20)
                                    : panels_make_in_core(&p, &factorisations[c], &of_device);
            until_failure = -1;
            if (made) {
                assert_true(p.schedule.count > 0 && p.times.ms > 0 && p.schedule.step);
                panels_free(&p);
            }
            refused += !made;
            assert_int_equal(blocks, before);
        }
    assert_true(refused >= 30);
}

/* All memory is gone: no schedule is made by halves. */
static void panels_without_memory(void **state)
{
    (void)state;
    for (int c = 0; c < 4; c++)
        for (int n = 0; n < 30; n++) {
            struct schedule_rates of_device = rates;
            struct panels p;
            const long before = blocks;
            of_device.wait_ms += n * 1e-9;
            /* So many allocations, and none behind them. */
            gone_after = n;
            const bool made = panels_make(&p, &factorisations[c], &of_device, 3 << 20);
            gone_after = -1;
            if (made)
                panels_free(&p);
            assert_int_equal(blocks, before);
            assert_true(n > 1 || !made);
        }
}

struct shared_by {
    struct panels_shared shared;
    int device;
};

static const struct panels_device devices[] = {
    {RATES_WITH(0.001, 0, 2, 2, 900, 128, 0.002, 0.005, 0.01), 40 << 20},
    {RATES_WITH(0.001, 0, 2, 2, 700, 128, 0.002, 0.005, 0.01), 40 << 20}};

static bool share(void *context)
{
    struct shared_by *by = context;
    return panels_share(&by->shared, &factorisations[1], devices, 2);
}

static bool make_part(void *context)
{
    struct shared_by *by = context;
    struct panels part;
    if (!panels_shared_part(&part, &by->shared, by->device, devices[by->device].memory_bytes)) {
        assert_null(part.schedule.step);
        return false;
    }
    panels_free(&part);
    return true;
}

static void shared_panels(void **state)
{
    struct shared_by by;
    (void)state;
    assert_true(fail_each(share, &by, true) > 0);
    for (by.device = 0; by.device < 2; by.device++)
        assert_true(fail_each(make_part, &by, true) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules),     cmocka_unit_test(the_search),
        cmocka_unit_test(times),         cmocka_unit_test(changes),
        cmocka_unit_test(panels),        cmocka_unit_test(panels_without_memory),
        cmocka_unit_test(shared_panels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
