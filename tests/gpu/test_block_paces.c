/*
 * The paces of blocks, what measured times say of them, and what schedules do with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "gpu/plan/block_paces.h"
#include "gpu/plan/schedule_plan.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"
#include "tests/lib/rates.h"

static bool is_about(double x, double expected)
{
    return fabs(x - expected) <= 1e-6 * fabs(expected);
}

static int number_of(int rows)
{
    return (rows - PACE_LEAST) / PACE_STEP;
}

/* Sets the times of products that reach d / (d + half) of a rate, where d is their smallest size,
 * at the same pace. */
static void set_even_times(double ms[PACES], double half)
{
    for (int i = 0; i < PACES; i++) {
        const double rows = (double)pace_rows(i);
        ms[i] = 0;
        for (int k = 0; k < PACE_WIDTHS; k++) {
            const double cols = (double)pace_widths[k],
                         shortest = fmin(fmin(rows, cols), PACE_DEPTH);
            ms[i] += 1e-9 * rows * cols * PACE_DEPTH * (shortest + half) / shortest;
        }
    }
}

/* Products that are slower as smaller ones are, have the same pace. One that takes twice as long,
 * has half of it; all are over that of the usual size. */
static void times_tell_paces(void **state)
{
    struct block_paces x;
    double ms[PACES];
    (void)state;
    set_even_times(ms, 128);
    assert_true(block_paces_by(&x, ms, 128));
    for (int i = 0; i < PACES; i++)
        assert_true(is_about((double)x.of[i], 1));
    ms[number_of(2816)] *= 1.25;
    ms[number_of(1536)] /= 1.1;
    ms[number_of(2048)] *= 1.005; /* less than what tells */
    assert_true(block_paces_by(&x, ms, 128));
    assert_true(is_about(block_pace(&x, 2816), 0.8) && is_about(block_pace(&x, 1536), 1.1));
    assert_true(block_pace(&x, 2048) == 1 && is_about(block_pace_highest(&x), 1.1));
    assert_true(is_about(block_pace(&x, 6000), (PACES - 0.1) / PACES));
    ms[number_of(PACE_USUAL)] *= 2;
    assert_true(block_paces_by(&x, ms, 128));
    assert_true(is_about(block_pace(&x, PACE_USUAL), 1) && is_about(block_pace(&x, 1024), 2));
    ms[number_of(1024)] *= 1e3; /* a disturbed time */
    ms[number_of(4096)] /= 1e3;
    assert_true(block_paces_by(&x, ms, 128));
    assert_true(is_about(block_pace(&x, 1024), PACE_SLOWEST));
    assert_true(is_about(block_pace(&x, 4096), PACE_FASTEST));
}

static void a_time_that_is_missing(void **state)
{
    const struct block_paces none = {.highest = 0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct block_paces x;
        double ms[PACES];
        set_even_times(ms, 128);
        ms[number_of(i ? PACE_USUAL : 1024)] = 0;
        assert_false(block_paces_by(&x, ms, 128));
        assert_memory_equal(&x, &none, sizeof x);
    }
}

/* Rows between sizes have the next larger one's pace, whose tiles they fill in part. Beyond the
 * sizes, the smallest one's counts, and the mean. */
static void rows_between_sizes(void **state)
{
    struct block_paces x = {.highest = 0};
    (void)state;
    assert_true(block_pace(&x, 1000) == 1 && block_pace(&x, 9000) == 1);
    assert_true(block_pace_highest(&x) == 1);
    for (int i = 0; i < PACES; i++)
        x.of[i] = i % 2 ? 0.5F : 0.75F;
    block_paces_settle(&x);
    assert_true(is_about(block_pace(&x, PACE_LEAST), 0.75));
    assert_true(is_about(block_pace(&x, PACE_LEAST + 1), 0.5));
    assert_true(is_about(block_pace(&x, PACE_MOST), PACES % 2 ? 0.75 : 0.5));
    assert_true(block_pace(&x, 1) == block_pace(&x, PACE_LEAST));
    assert_true(fabs(block_pace(&x, 100000) - 0.625) < 0.01);
    assert_true(block_pace_highest(&x) == 1);
    x = (struct block_paces){.highest = 0};
    x.of[number_of(1024)] = 1.5F;
    block_paces_settle(&x);
    assert_true(block_pace(&x, 1024) == 1.5 && block_pace(&x, 1025) == 1);
    assert_true(block_pace(&x, 100000) == 1.5 && block_pace_highest(&x) == 1.5);
}

/* Half the pace doubles the time of a kernel's operations; what a kernel takes whatever its size
 * stays the same. A block on a diagonal has no pace, for its kernel is no product. At the right
 * side of a matrix, the columns of a tile are the rows that the device multiplies. */
static void kernels_have_the_pace_of_their_rows(void **state)
{
    struct schedule_rates rates = RATES(10, 10, 1e3, 0, 0, 0.25, 0), even = rates;
    struct schedule s = {.call = {.kind = SCHEDULE_MULTIPLY,
                                  .m = 2048,
                                  .n = 1024,
                                  .k = 2048,
                                  .per_term = 2,
                                  .size = {8, 8, 8}},
                         .by = {.rows = 1024, .cols = 1024, .depth = 1024}};
    (void)state;
    rates.paces.of[number_of(1024)] = 0.5F;
    rates.paces.of[number_of(768)] = 1;
    block_paces_settle(&rates.paces);
    schedule_set_tiles(&s);
    const double ms = schedule_kernel_ms(&s, &even, 1, 0, 0);
    assert_true(is_about(schedule_kernel_ms(&s, &rates, 1, 0, 0), 2 * (ms - 0.25) + 0.25));
    assert_true(is_about(schedule_kernel_ms(&s, &rates, 1, 0, 1), (ms - 0.25) / 2 + 0.25));
    s.by.cols = 768;
    s.call.n = 768;
    schedule_set_tiles(&s);
    s.call.across[SCHEDULE_C] = true;
    assert_true(is_about(schedule_kernel_ms(&s, &rates, 1, 0, 0), 0.75 * (ms - 0.25) + 0.25));
    /* What a kernel of the whole call took tells the usual pace. */
    s.call.kind = SCHEDULE_PRODUCT;
    s.call.across[SCHEDULE_C] = false;
    s.call.m = 1024;
    assert_true(
        is_about(schedule_compute(&s.call, &rates, 1), 2 * schedule_compute(&s.call, &even, 1)));
}

static struct schedule_call large_product(void)
{
    return (struct schedule_call){.kind = SCHEDULE_PRODUCT,
                                  .m = 12288,
                                  .n = 12288,
                                  .k = 12288,
                                  .per_term = 2,
                                  .size = {8, 8, 8}};
}

/* Makes a schedule by a device that multiplies blocks of one number of rows the fastest; `others`
 * is the pace of all others. */
static void make_with_fast(struct schedule *s, const struct schedule_call *call, double gflops,
                           int rows, float others)
{
    struct schedule_rates rates = schedule_nominal;
    rates.up = rates.down = 50;
    rates.compute = gflops;
    for (int i = 0; i < PACES; i++)
        rates.paces.of[i] = i == number_of(rows) ? 1 : others;
    block_paces_settle(&rates.paces);
    assert_true(schedule_make(s, call, &rates, INT64_C(60) << 30));
}

/* A large product's blocks have the number of rows that a device multiplies the fastest, whichever
 * that is. */
static void schedules_take_fast_blocks(void **state)
{
    static const int fast[] = {1408, 1536, 2048, 2560, 3072};
    const struct schedule_call call = large_product();
    (void)state;
    for (size_t f = 0; f < sizeof fast / sizeof *fast; f++) {
        struct schedule s;
        make_with_fast(&s, &call, 50e3, fast[f], 0.7F);
        assert_int_equal(s.by.rows, fast[f]);
        schedule_free(&s);
    }
}

/* Blocks of products have multiples of a tile's rows where these are many, else of a line's, as
 * their columns and depth. */
static void blocks_are_whole_tiles(void **state)
{
    static const enum schedule_kind kinds[] = {SCHEDULE_PRODUCT, SCHEDULE_RANK_K};
    struct schedule_rates rates = schedule_nominal;
    int large = 0;
    (void)state;
    rates.up = rates.down = 50;
    rates.compute = 50e3;
    for (int64_t n = 1010; n <= 20000; n += n < 4200 ? 70 : 890)
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            struct schedule_call call = large_product();
            struct schedule s;
            call.kind = kinds[kind];
            call.m = call.n = call.k = n;
            assert_true(schedule_make(&s, &call, &rates, INT64_C(60) << 30));
            const int64_t sizes[] = {s.by.rows, s.by.cols, s.by.depth};
            for (int i = 0; i < 3; i++)
                assert_true(sizes[i] == n ||
                            sizes[i] % (i == 0 && sizes[i] >= 2048 ? 128 : 64) == 0);
            large += s.by.rows >= 2048 && s.by.rows < n;
            schedule_free(&s);
        }
    assert_true(large >= 5);
}

/* At the right side of a triangle, the columns of a block are the rows that the device
 * multiplies. */
static void columns_at_the_right_are_fast(void **state)
{
    static const int fast[] = {1536, 2048, 3072};
    struct schedule_call call = large_product();
    (void)state;
    call.kind = SCHEDULE_MULTIPLY;
    call.across[SCHEDULE_C] = true;
    call.reads = true;
    for (size_t f = 0; f < sizeof fast / sizeof *fast; f++) {
        struct schedule s;
        make_with_fast(&s, &call, 20e3, fast[f], 0.6F);
        assert_int_equal(s.by.cols, fast[f]);
        schedule_free(&s);
    }
}

/* No schedule is below the floor, whatever the paces, where some blocks are faster than the usual
 * ones. */
static void the_floor_is_below_all(void **state)
{
    const struct schedule_call call = large_product();
    struct schedule_rates rates = schedule_nominal;
    struct schedule s;
    (void)state;
    rates.up = rates.down = 50;
    rates.compute = 20e3; /* takes longer than the copies */
    for (int i = 0; i < PACES; i++)
        rates.paces.of[i] = i % 3 == 0 ? 1.25F : 0.75F;
    block_paces_settle(&rates.paces);
    assert_true(schedule_make(&s, &call, &rates, INT64_C(60) << 30));
    assert_true(schedule_floor(&call, &rates) <= s.ms);
    assert_true(s.ms < 1.1 * schedule_floor(&call, &rates));
    schedule_free(&s);
}

/* ---- On a device ---- */

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.8});
    return *state ? 0 : -1;
}

/* All sizes are measured, unless products take long: those of complex doubles, on this test GPU.
 * What else the machine does may make others seem so, too. */
static void a_device_is_measured(void **state)
{
    static const enum accel_dtype types[] = {ACCEL_FLOAT32, ACCEL_FLOAT64, ACCEL_COMPLEX128};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct accel_routine *product = accel_sample_of(ACCEL_SAMPLE_PRODUCT, types[i]);
        const bool slow = types[i] == ACCEL_COMPLEX128 && !is_real_gpu();
        struct block_paces paces;
        struct accel_call call;
        bool measured = false;
        shape_of_order(&call, product, PACE_MOST);
        for (int attempt = 0; attempt < (slow ? 1 : 20) && !measured; attempt++)
            measured = gpu_measure_paces(*state, &call, 3000, &paces);
        assert_true(measured != slow || is_real_gpu()); /* which may be slow in any type */
        for (int k = 0; k < PACES; k++)
            assert_true(measured ? (double)paces.of[k] >= PACE_SLOWEST &&
                                       (double)paces.of[k] <= PACE_FASTEST
                                 : paces.of[k] == 0);
        assert_true(!measured || paces.of[number_of(PACE_USUAL)] == 1);
        assert_true(!measured == (paces.beyond == 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_tell_paces),
        cmocka_unit_test(a_time_that_is_missing),
        cmocka_unit_test(rows_between_sizes),
        cmocka_unit_test(kernels_have_the_pace_of_their_rows),
        cmocka_unit_test(schedules_take_fast_blocks),
        cmocka_unit_test(blocks_are_whole_tiles),
        cmocka_unit_test(columns_at_the_right_are_fast),
        cmocka_unit_test(the_floor_is_below_all),
        cmocka_unit_test_setup_teardown(a_device_is_measured, start, stop_device)};
    /* Kernels of a test GPU compute nothing, and take the time of 6 Tflop/s. */
    if (setenv("TESTGPU_DATA", "0", 1) != 0 || setenv("TESTGPU_GFLOPS", "6000", 1) != 0 ||
        setenv("TESTGPU_HALF", "128", 1) != 0 || setenv("TESTGPU_DELAY_US", "0", 1) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
