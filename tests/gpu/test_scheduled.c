/*
 * Calls of Level 3 as their schedules see them: every routine is described, and the time that is
 * said without a schedule is that of the one that is made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "gpu/plan/plan_cache.h"
#include "gpu/plan/scheduled.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"
#include "tests/lib/rates.h"

static const struct schedule_rates rates = RATES(20, 15, 5e3, 128, 0.002, 0.005, 0.01);

static void large_call(struct accel_call *call, const struct accel_routine *routine)
{
    const int64_t size[ACCEL_DIMENSIONS] = {1100, 900, 700, 0};
    shape_typical(call, routine, size);
}

/* The time without the uploads of some factors, by a schedule that is made anew. */
static double simulated_ms(const struct scheduled *scheduled, int64_t memory, const bool *left_out)
{
    struct schedule s;
    assert_true(schedule_make(&s, &scheduled->call, &rates, memory));
    for (int x = SCHEDULE_A; x < SCHEDULE_C; x++)
        assert_true(!left_out[x] || schedule_leave_out(&s, x));
    const double ms = schedule_simulate(&s, &rates).ms;
    schedule_free(&s);
    return ms;
}

static void check_times(const struct accel_call *call, const struct scheduled *scheduled,
                        int64_t memory)
{
    for (unsigned kept = 0; kept < 4; kept++) {
        const bool left_out[] = {kept & 1, kept & 2 && scheduled->operand[SCHEDULE_B].x};
        unsigned spans = 0;
        for (int x = SCHEDULE_A; x < SCHEDULE_C; x++)
            if (left_out[x])
                spans |= 1u << (scheduled->operand[x].x - call->span);
        const double expected = simulated_ms(scheduled, memory, left_out);
        for (int times = 0; times < 2; times++) /* the second time is remembered */
            assert_true(scheduled_ms(scheduled, &rates, memory, spans) == expected);
        assert_true(scheduled_floor_ms(scheduled, &rates, spans) <= expected);
    }
}

static void every_routine_is_described(void **state)
{
    int described = 0;
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        const struct accel_span *c;
        struct accel_call call;
        struct scheduled scheduled;
        if (!accel_is_blas(routine) || accel_is_lapack(routine))
            continue;
        large_call(&call, routine);
        const bool is_level3 =
            accel_op_of(routine)->traits.group == ACCEL_LEVEL_3 || accel_is_batch(routine);
        assert_int_equal(scheduled_describe(&call, &scheduled), is_level3);
        if (!is_level3)
            continue;
        c = scheduled.operand[SCHEDULE_C].x;
        assert_true(c->access & ACCEL_WRITE);
        assert_true(scheduled.call.reads);
        assert_int_equal(scheduled.call.m * scheduled.call.n, c->rows * c->cols);
        assert_true(scheduled.operand[SCHEDULE_A].x->access == ACCEL_READ);
        /* One kernel of the whole has the call's operations; of a triangle, those without its
         * diagonal. */
        const double whole =
            schedule_compute(&scheduled.call, &(struct schedule_rates){0}, 1) * 1e6;
        assert_true(whole > 0.99 * accel_flops(&call) && whole < 1.01 * accel_flops(&call));
        check_times(&call, &scheduled, INT64_MAX);
        check_times(&call, &scheduled, 10 << 20);
        described++;
    }
    assert_true(described > 30);
}

/* Products number i use matrix number i / repeat % distinct, of those that a pattern of letters
 * names. */
static struct schedule_sharing sharing_of(const char *pattern)
{
    static char letters[256];
    void *array[64], *results[64];
    struct accel_call call;
    struct scheduled scheduled;
    large_call(&call, routine("dgemm_batch"));
    call.batch = (int64_t)strlen(pattern);
    for (int64_t i = 0; i < call.batch; i++) {
        array[i] = &letters[(unsigned char)pattern[i]];
        results[i] = &letters[i];
    }
    call.span[ACCEL_a].array = call.span[ACCEL_b].array = array;
    call.span[ACCEL_c].array = results;
    assert_true(scheduled_describe(&call, &scheduled));
    assert_int_equal(scheduled.call.products, call.batch);
    assert_int_equal(scheduled.call.sharing[SCHEDULE_C].distinct, call.batch);
    const struct schedule_sharing a = scheduled.call.sharing[SCHEDULE_A];
    /* Where no stride leads from matrix to matrix, their addresses need device memory. */
    assert_int_equal(scheduled.own_bytes[0] > 0,
                     a.repeat > 1 || (a.distinct > 1 && a.distinct < call.batch));
    return a;
}

static void products_share_matrices(void **state)
{
    static const struct {
        const char *pattern;
        int64_t repeat, distinct;
    } expected[] = {{"ab", 1, 2},      {"aa", 1, 1},    {"abcdefg", 1, 7},    {"aaaaaa", 1, 1},
                    {"aabbcc", 2, 3},  {"aabbc", 2, 3}, {"abcabcab", 1, 3},   {"aabbaabba", 2, 2},
                    {"aabbcca", 2, 3}, {"abac", 1, 4},  {"aabbbcc", 1, 7},    {"abb", 1, 3},
                    {"abcabd", 1, 6},  {"aab", 2, 2},   {"aaabbbaaabb", 3, 2}};
    struct accel_call call;
    struct scheduled scheduled;
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct schedule_sharing found = sharing_of(expected[i].pattern);
        assert_int_equal(found.repeat, expected[i].repeat);
        assert_int_equal(found.distinct, expected[i].distinct);
    }
    large_call(&call, routine("dgemm_batch_strided"));
    call.batch = 10;
    call.span[ACCEL_a].stride = 0;
    call.span[ACCEL_b].stride = 700 * 900;
    assert_true(scheduled_describe(&call, &scheduled));
    assert_int_equal(scheduled.call.sharing[SCHEDULE_A].distinct, 1);
    assert_int_equal(scheduled.call.sharing[SCHEDULE_B].distinct, 10);
    assert_int_equal(scheduled.own_bytes[0], 0);
}

/* The time of a batch is that of its schedule, or where that is less, of its products' own ones,
 * one after the other. */
static void times_of_batches(void **state)
{
    static const struct {
        int64_t products, order;
        bool alone;
    } batches[] = {{100, 300, false}, {20, 1500, false}, {2, 3000, true}};
    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const int64_t order = batches[i].order;
        const int64_t size[ACCEL_DIMENSIONS] = {order, order, order, 0};
        struct accel_call call, one;
        struct scheduled scheduled, single;
        struct schedule s;
        shape_typical(&call, routine("dgemm_batch_strided"), size);
        one = call;
        call.batch = batches[i].products;
        for (int x = 0; x < ACCEL_SPANS; x++)
            call.span[x].stride = order * order;
        assert_true(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled));
        assert_true(scheduled_describe(&one, &single));
        assert_true(schedule_make(&s, &scheduled.call, &rates, INT64_MAX));
        const double alone = (double)call.batch * plan_cache_ms(&single.call, &rates, INT64_MAX, 0);
        assert_int_equal(alone < s.ms, batches[i].alone);
        assert_int_equal(scheduled_runs_alone(&scheduled, &rates, INT64_MAX), batches[i].alone);
        assert_true(scheduled_ms(&scheduled, &rates, INT64_MAX, 0) ==
                    (batches[i].alone ? alone : s.ms));
        assert_true(scheduled_floor_ms(&scheduled, &rates, 0) <= s.ms);
        /* One kernel of the whole has the call's operations. */
        const double whole =
            schedule_compute(&scheduled.call, &(struct schedule_rates){0}, 1) * 1e6;
        assert_true(whole > 0.99 * accel_flops(&call) && whole < 1.01 * accel_flops(&call));
        assert_true(s.ms < 1.2 * schedule_floor(&scheduled.call, &rates) || batches[i].alone);
        schedule_free(&s);
    }
}

/* A call of less than 4 MB, one whose result is in place, and one without a result. */
static void some_calls_are_not_divided(void **state)
{
    const int64_t small[ACCEL_DIMENSIONS] = {400, 400, 400, 0};
    const struct accel_routine *dgemm = accel_sample_of(ACCEL_SAMPLE_PRODUCT, ACCEL_FLOAT64);
    struct accel_call call;
    struct scheduled scheduled;
    (void)state;
    large_call(&call, dgemm);
    assert_true(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled));
    call.span[ACCEL_c].place = ACCEL_MANAGED;
    assert_false(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled));
    call.span[ACCEL_c].place = ACCEL_HOST;
    call.span[ACCEL_c].rows = 0;
    assert_false(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled));
    shape_typical(&call, dgemm, small);
    assert_false(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled));
}

/* Sizes that no memory has, of calls that are decided all the same, before it is seen that their
 * operands do not exist. */
static void sizes_without_end(void **state)
{
    static const char *const names[] = {"dgemm", "dtrsm", "ztrmm", "dsyrk", "dsymm"};
    static const int64_t ends[] = {
        60000, (int64_t)1 << 29, (int64_t)1 << 33, (int64_t)1 << 60, (int64_t)1 << 61, INT64_MAX};
    enum { ENDS = 6 };
    (void)state;
    for (int i = 0; i < 5 * ENDS; i++) {
        const int64_t end = ends[i % ENDS];
        const int64_t size[ACCEL_DIMENSIONS] = {end, end, end, 0};
        struct accel_call call;
        struct scheduled scheduled;
        shape_typical(&call, routine(names[i / ENDS]), size);
        call.blas.flag[ACCEL_side] = 'R'; /* old values are kept in panels */
        if (scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled))
            for (int64_t memory = (int64_t)1 << 33; memory < (int64_t)1 << 50; memory *= 64)
                scheduled_ms(&scheduled, &rates, memory, 0);
        assert_int_equal(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled),
                         i % ENDS == 0);
    }
}

/* Of a matrix that is solved from the right, a panel's old values are kept: 64 MB of them, in
 * multiples of 64 columns, or one column. */
static void panels_with_old_values(void **state)
{
    static const struct {
        int64_t order, widest;
    } known[] = {{1000, 8384}, {8192, 1024}, {131071, 64}, {131072, 64},
                 {131073, 63}, {300000, 27}, {8388608, 1}, {10000000, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const int64_t size[ACCEL_DIMENSIONS] = {500, known[i].order, 0, 0};
        struct accel_call call;
        struct scheduled scheduled;
        shape_typical(&call, routine("dtrsm"), size);
        assert_true(scheduled_describe(&call, &scheduled));
        assert_false(scheduled.keeps_old);
        call.blas.flag[ACCEL_side] = 'R';
        call.span[ACCEL_a].rows = call.span[ACCEL_a].cols = call.span[ACCEL_a].ld = known[i].order;
        assert_true(scheduled_describe(&call, &scheduled));
        assert_true(scheduled.keeps_old && scheduled.call.m == known[i].order);
        assert_int_equal(scheduled.call.widest, known[i].widest);
        call.span[ACCEL_b].place = ACCEL_MANAGED;
        assert_true(scheduled_describe(&call, &scheduled) && !scheduled.keeps_old);
    }
}

/* Products that are one kernel each have no schedules of their own: without memory for a batch's,
 * there is none. */
static void small_products_together(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {300, 300, 300, 0};
    const int64_t one = 3 * INT64_C(304) * 300 * 8;
    struct accel_call call;
    struct scheduled scheduled;
    (void)state;
    shape_typical(&call, routine("dgemm_batch_strided"), size);
    call.batch = 40;
    for (int x = 0; x < ACCEL_SPANS; x++)
        call.span[x].stride = 300 * 300;
    assert_true(scheduled_describe(&call, &scheduled));
    assert_true(scheduled_ms(&scheduled, &rates, one, 0) < 0);
    assert_false(scheduled_runs_alone(&scheduled, &rates, one));
    assert_true(scheduled_ms(&scheduled, &rates, 2 * one, 0) > 0);
}

/* A rate says how long a kernel takes, and the time of a kernel which rate it has. */
static void rates_and_times(void **state)
{
    const struct schedule_call call = {
        .kind = SCHEDULE_PRODUCT, .m = 500, .n = 2000, .k = 300, .per_term = 2, .size = {8, 8, 8}};
    const double ms = schedule_compute(&call, &rates, rates.compute);
    (void)state;
    assert_true(ms > 2.0 * 500 * 2000 * 300 / rates.compute * 1e-6);
    const double rate = schedule_compute(&call, &rates, ms);
    assert_true(rate > rates.compute * (1 - 1e-9) && rate < rates.compute * (1 + 1e-9));
}

/* Matrices of a batch that are one matrix in memory: a stride apart, behind each other's pointers,
 * or one for all. */
static void matrices_side_by_side(void **state)
{
    enum { PRODUCTS = 6, ROWS = 3, COLS = 2, LD = 4, STEP = COLS * LD };
    static double memory[PRODUCTS * STEP + 1];
    void *array[PRODUCTS];
    const struct accel_span x = {.ptr = memory,
                                 .rows = ROWS,
                                 .cols = COLS,
                                 .ld = LD,
                                 .stride = STEP,
                                 .dtype = ACCEL_FLOAT64};
    struct accel_span all, other = x;
    (void)state;
    assert_true(scheduled_side_by_side(&x, PRODUCTS, &all));
    assert_true(all.ptr == memory && all.rows == ROWS && all.cols == PRODUCTS * COLS);
    assert_true(all.ld == LD && all.stride == 0 && !all.array);
    other.stride = 0;
    assert_true(scheduled_side_by_side(&other, PRODUCTS, &all) && all.cols == COLS);
    other.stride = STEP + 1;
    assert_false(scheduled_side_by_side(&other, PRODUCTS, &all));
    other.cols = INT64_MAX / 4;
    other.stride = other.cols * LD;
    assert_false(scheduled_side_by_side(&other, PRODUCTS, &all));
    other = x;
    other.array = array;
    for (int repeat = 1; repeat <= PRODUCTS; repeat++) {
        for (int i = 0; i < PRODUCTS; i++)
            array[i] = memory + i / repeat * STEP;
        other.ptr = array[0];
        assert_true(scheduled_side_by_side(&other, PRODUCTS, &all) && !all.array);
        assert_int_equal(all.cols, (PRODUCTS + repeat - 1) / repeat * COLS);
    }
    for (int i = 0; i < PRODUCTS; i++)
        array[i] = memory + i % 3 * STEP;
    assert_true(scheduled_side_by_side(&other, PRODUCTS, &all) && all.cols == 3 * COLS);
    for (int i = 0; i < PRODUCTS; i++)
        array[i] = memory + i * STEP + (i > 3);
    assert_false(scheduled_side_by_side(&other, PRODUCTS, &all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_routine_is_described),
        cmocka_unit_test(matrices_side_by_side),
        cmocka_unit_test(products_share_matrices),
        cmocka_unit_test(times_of_batches),
        cmocka_unit_test(some_calls_are_not_divided),
        cmocka_unit_test(sizes_without_end),
        cmocka_unit_test(panels_with_old_values),
        cmocka_unit_test(small_products_together),
        cmocka_unit_test(rates_and_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
