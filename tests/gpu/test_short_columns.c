/*
 * What short columns take besides, and what measured ones say of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "gpu/plan/schedule_plan.h"
#include "gpu/plan/short_columns.h"
#include "tests/lib/rates.h"

static bool is_about(double x, double expected)
{
    return fabs(x - expected) <= 1e-9 * fabs(expected);
}

static const double bytes[2] = {2000, 5000};

/* Measured at two lengths, the same comes out there again; between and beyond them it is on the
 * line. */
static void what_was_measured_comes_out(void **state)
{
    const double ms[2] = {4e-5, 1e-5};
    const struct short_columns x = short_columns_by(bytes, ms);
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_true(is_about(short_columns_ms(&x, bytes[i]), ms[i]));
    assert_true(is_about(x.bytes, 6000) && is_about(x.ms, 6e-5));
    assert_true(is_about(short_columns_ms(&x, 3000), 3e-5));
    assert_true(short_columns_ms(&x, 6000) == 0 && short_columns_ms(&x, 1e9) == 0);
}

/* However little the longer columns gain, the line counts as far as 64 KB. */
static void a_line_that_falls_slowly(void **state)
{
    const double ms[2] = {4e-5, 3.7e-5};
    const struct short_columns x = short_columns_by(bytes, ms);
    (void)state;
    assert_true(is_about(x.bytes, 42000));
    assert_true(is_about(short_columns_ms(&x, 22000), 2e-5));
}

/* Longer columns that seem to take less than nothing, take nothing; nor do those between, then,
 * that are as long. */
static void no_column_takes_less_than_nothing(void **state)
{
    const double longer[2] = {3e-5, -2e-6}, none[2] = {-1e-6, 5e-6}, zero[2] = {0, 0};
    struct short_columns x = short_columns_by(bytes, longer);
    (void)state;
    assert_true(is_about(short_columns_ms(&x, 2000), 3e-5));
    assert_true(is_about(x.bytes, 5000) && short_columns_ms(&x, 5000) == 0);
    for (int i = 0; i < 2; i++) {
        x = short_columns_by(bytes, i ? zero : none);
        assert_true(x.bytes == 1 && short_columns_ms(&x, 8) == 0);
    }
}

/* Where threads pack more slowly than the link takes it, each column takes about the same, up to 64
 * KB. */
static void columns_that_all_take_the_same(void **state)
{
    const double same[2] = {3e-5, 3e-5}, more[2] = {3e-5, 4e-5};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct short_columns x = short_columns_by(bytes, i ? more : same);
        assert_true(is_about(short_columns_ms(&x, 2000), 3e-5));
        assert_true(x.bytes == 65536 && short_columns_ms(&x, 20000) > 2e-5);
    }
}

/* Of a call's copies: tiles of 250 rows and 100 columns of a matrix of 1000 rows take 100 short
 * columns besides, each way by its own figure. Tiles with all rows do not, nor do those of a batch.
 * A matrix that is stored transposed has its columns along the tile's rows. */
static void tiles_have_short_columns(void **state)
{
    struct schedule_rates rates = RATES(10, 20, 1e3, 0, 0, 0, 0);
    struct schedule s = {.call = {.kind = SCHEDULE_PRODUCT,
                                  .m = 1000,
                                  .n = 1000,
                                  .k = 1000,
                                  .per_term = 2,
                                  .size = {8, 8, 8}},
                         .by = {.rows = 250, .cols = 100, .depth = 100}};
    const double up_ms = 250 * 100 * 8 / 10e6, down_ms = 250 * 100 * 8 / 20e6;
    (void)state;
    rates.short_up = (struct short_columns){4000, 8e-5};
    rates.short_down = (struct short_columns){8000, 8e-5};
    schedule_set_tiles(&s);
    assert_true(
        is_about(schedule_copy_ms(&s, &rates, SCHEDULE_UP, SCHEDULE_A, 0, 0), up_ms + 100 * 4e-5));
    assert_true(is_about(schedule_copy_ms(&s, &rates, SCHEDULE_DOWN, SCHEDULE_C, 0, 0),
                         down_ms + 100 * 6e-5));
    s.call.across[SCHEDULE_A] = true; /* columns of 100 elements, 250 of them */
    assert_true(is_about(schedule_copy_ms(&s, &rates, SCHEDULE_UP, SCHEDULE_A, 0, 0),
                         up_ms + 250 * 8e-5 * (1 - 800.0 / 4000)));
    s.call.across[SCHEDULE_A] = false;
    s.by.rows = 1000;
    schedule_set_tiles(&s);
    assert_true(is_about(schedule_copy_ms(&s, &rates, SCHEDULE_UP, SCHEDULE_A, 0, 0), 4 * up_ms));
    s.call.across[SCHEDULE_A] = true; /* 100 elements of rows that have 1000 */
    assert_true(is_about(schedule_copy_ms(&s, &rates, SCHEDULE_UP, SCHEDULE_A, 0, 0),
                         4 * up_ms + 1000 * 8e-5 * (1 - 800.0 / 4000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_measured_comes_out),
                                       cmocka_unit_test(a_line_that_falls_slowly),
                                       cmocka_unit_test(no_column_takes_less_than_nothing),
                                       cmocka_unit_test(columns_that_all_take_the_same),
                                       cmocka_unit_test(tiles_have_short_columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
