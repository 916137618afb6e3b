/* Each hint comes when the sums call for it, once, with their numbers; not when the advice is
 * followed, nor for trifles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "report/hints.h"

static char said[2000];

static void note(void *context, const char *sentence)
{
    assert_ptr_equal(context, said);
    assert_true(strlen(sentence) < HINT_BYTES - 1);
    strcat(said, sentence);
    strcat(said, "\n");
}

static double starting; /* seconds */

/* What is said of a run of ten seconds with these rows. */
static const char *hints(const struct totals_row *row, int count, double outside, unsigned facts)
{
    const struct hints_of of = {row, count, 10, outside, starting, facts, ~0u, NULL};
    *said = 0;
    hints_make(&of, note, said);
    return said;
}

static struct totals_row on_cpu(enum accel_why why, double seconds, double instead)
{
    return (struct totals_row){.name = "dgemm",
                               .ran = "cpu",
                               .why = why,
                               .calls = 12,
                               .seconds = seconds,
                               .estimated = seconds,
                               .instead = instead};
}

static void calls_while_the_gpu_starts(void **state)
{
    struct totals_row row[] = {on_cpu(ACCEL_WARMING, 3.6, 0.4), on_cpu(ACCEL_WARMING, 1, 0.05)};
    (void)state;
    starting = 1.2;
    assert_string_equal(
        hints(row, 2, 0, TOTALS_CALIBRATED),
        "24 calls ran on the CPU while the GPU was starting, in 4.60 s in place of about 0.45 s: "
        "ACCEL_START=wait makes calls wait for it, which took 1.20 s, and would save about 2.95 "
        "s\n");
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED | TOTALS_WAITS), "");
    starting = 4.1; /* waiting would bring a trifle */
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED), "");
    starting = -1; /* it is not known */
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED), "");
    starting = 0;
    row[0].inner = row[1].inner = true;
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED), "");
    row[0] = on_cpu(ACCEL_WARMING, 0.1, 0.01); /* a trifle */
    assert_string_equal(hints(row, 1, 0, 0), "");
    row[0] = on_cpu(ACCEL_WARMING, 3, 3.5); /* nothing is lost */
    assert_string_equal(hints(row, 1, 0, 0), "");
}

static void reasons_to_stay_on_the_cpu(void **state)
{
    static const struct {
        enum accel_why why;
        const char *words;
    } cases[] = {{ACCEL_NO_MEMORY, "ACCEL_MEMORY"},
                 {ACCEL_BUSY, "ACCEL_DEVICES"},
                 {ACCEL_FORKED, "spawn"},
                 {ACCEL_NO_GPU, "accel doctor"},
                 {ACCEL_ERROR, "accel doctor"}};
    static const enum accel_why none[] = {ACCEL_SMALL, ACCEL_SLOWER, ACCEL_USER, ACCEL_EMPTY,
                                          ACCEL_UNSUPPORTED};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct totals_row row = on_cpu(cases[i].why, 2, 0.5);
        assert_non_null(strstr(hints(&row, 1, 0, 0), cases[i].words));
        assert_non_null(strstr(said, "12 calls ran on the CPU "));
        assert_non_null(strstr(said, ", in 2.00 s in place of about 0.50 s: "));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
        row.estimated = row.instead = 0;
        assert_non_null(strstr(hints(&row, 1, 0, 0), ", in 2.00 s: "));
    }
    struct totals_row held = on_cpu(ACCEL_NO_GPU, 2, 0.5);
    hints(&held, 1, 0, TOTALS_HELD);
    assert_non_null(strstr(said, "has loaded CUDA, and children"));
    assert_non_null(strstr(said, ": if none does, ACCEL_START=background "));
    assert_null(strstr(said, "accel doctor"));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct totals_row row = on_cpu(none[i], 2, 0.5);
        assert_string_equal(hints(&row, 1, 0, 0), "");
    }
}

static void calls_that_a_setting_sends_to_the_gpu(void **state)
{
    struct totals_row row[] = {on_cpu(ACCEL_FORCED, 3, 0.5), on_cpu(ACCEL_FORCED, 1, 4)};
    (void)state;
    strcpy(row[0].ran, "gpu0");
    strcpy(row[1].ran, "gpu0"); /* that one gains */
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED),
                        "calls that a setting sent to the GPU took 2.50 s more than the CPU's "
                        "estimate: without ACCEL_POLICY=gpu and ACCEL_GPU, calls go where they are "
                        "faster\n");
    row[0].estimated = row[0].instead = 0; /* as of XGBoost's trainings */
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED), "");
    row[0] = row[1];
    row[0].instead = 0.95; /* a trifle */
    assert_string_equal(hints(row, 2, 0, TOTALS_CALIBRATED), "");
}

static void a_short_run(void **state)
{
    struct totals_row row = on_cpu(ACCEL_NO_GPU, 0.11, 0.02);
    const struct hints_of of = {&row, 1, 0.15, -1, 0, 0, ~0u, NULL};
    (void)state;
    *said = 0;
    /* It would save most of the run, but no time that one would miss */
    hints_make(&of, note, said);
    assert_string_equal(said, "");
    row.instead = 0.005;
    hints_make(&of, note, said);
    assert_non_null(strstr(said, "12 calls ran on the CPU because no GPU is there"));
}

static void matrices_that_go_up_again(void **state)
{
    struct totals_row row = {.name = "dgemm",
                             .ran = "gpu0",
                             .why = ACCEL_FASTER,
                             .calls = 100,
                             .seconds = 4,
                             .estimated = 4,
                             .instead = 20,
                             .up = 8000000000,
                             .again = 6500000000};
    (void)state;
    assert_string_equal(hints(&row, 1, 0, TOTALS_CALIBRATED),
                        "6.5 GB of the 8.0 GB that went up to the GPU were matrices from places "
                        "that had been sent before: ACCEL_RESIDENT=auto keeps there what has not "
                        "changed\n");
    assert_string_equal(hints(&row, 1, 0, TOTALS_CALIBRATED | TOTALS_KEEPS), "");
    row.again = 500000000;
    assert_string_equal(hints(&row, 1, 0, TOTALS_CALIBRATED), "");
}

static void a_calibration(void **state)
{
    struct totals_row row = {
        .ran = "gpu0", .why = ACCEL_FASTER, .calls = 9, .seconds = 4, .estimated = 4, .instead = 8};
    (void)state;
    assert_non_null(strstr(hints(&row, 1, 0, 0), "figures are not measured: accel calibrate"));
    assert_string_equal(hints(&row, 1, 0, TOTALS_CALIBRATED), "");
    row.seconds = 0.9; /* measures would change little */
    assert_string_equal(hints(&row, 1, 0, 0), "");
    row.instead = 3;
    assert_non_null(strstr(hints(&row, 1, 0, 0), "took 1.00 s more than the CPU's estimate"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static void ranks_that_take_turns(void **state)
{
    struct totals_row row = {
        .ran = "gpu0", .why = ACCEL_FASTER, .calls = 9, .seconds = 4, .estimated = 4, .instead = 8};
    (void)state;
    assert_string_equal(
        hints(&row, 1, 0, TOTALS_CALIBRATED | TOTALS_TURNS),
        "ranks took turns on one GPU, whose calls took 4.00 s: NVIDIA's MPS lets them use it at "
        "the same time (nvidia-cuda-mps-control -d, before the job)\n");
    row.seconds = 0.05; /* a trifle */
    assert_string_equal(hints(&row, 1, 0, TOTALS_CALIBRATED | TOTALS_TURNS), "");
}

static void a_faster_precision(void **state)
{
    struct totals_row row = {.ran = "gpu0",
                             .why = ACCEL_FASTER,
                             .calls = 14,
                             .seconds = 4,
                             .estimated = 4,
                             .instead = 8};
    struct totals_precision precision[GPU_PRECISIONS] = {
        [GPU_EMULATED] = {.native_gflops = 1200, .gflops = 9040, .calls = 14, .saved = 3.2},
        [GPU_BF16X9] = {.native_gflops = 903.4, .gflops = 112500, .calls = 1, .saved = 0.3}};
    const struct hints_of of = {&row, 1, 10, -1, 0, TOTALS_CALIBRATED, ~0u, precision};
    (void)state;
    *said = 0;
    hints_make(&of, note, said);
    assert_string_equal(
        said,
        "dgemm on this card: native 1.20 TF/s, emulated 9.04; ACCEL_PRECISION=emulated would save "
        "about 3.20 s in 14 calls (docs/precision.md says how accurate it is)\n"
        "sgemm on this card: native 0.903 TF/s, bf16x9 113; ACCEL_PRECISION=bf16x9 would save "
        "about 0.30 s in 1 call (docs/precision.md says how accurate it is)\n");
    precision[GPU_EMULATED].saved = precision[GPU_BF16X9].saved = 0.15; /* a trifle */
    *said = 0;
    hints_make(&of, note, said);
    assert_string_equal(said, "");
}

static void what_is_outside(void **state)
{
    struct totals_row row = on_cpu(ACCEL_SMALL, 3.8, 0);
    const unsigned facts = hints_library("/usr/lib/R/site-library/ranger/libs/ranger.so") |
                           hints_library("/x/site-packages/xgboost/lib/libxgboost.so");
    (void)state;
    assert_string_equal(hints(&row, 1, 6.2, 0),
                        "62 % of the time is outside these calls: no setting will help there\n");
    assert_string_equal(hints(&row, 1, -1, 0), "");
    assert_string_equal(hints(&row, 1, 4.9, facts), "");
    assert_non_null(strstr(hints(&row, 1, 6.2, facts), "\nR's ranger, which the program has "
                                                       "loaded, compute"));
    assert_non_null(strstr(said, "\nXGBoost, which the program has loaded, computes without BLAS: "
                                 "ACCEL_ML=1,xgboost"));
    assert_int_equal(hints_library("/usr/lib/libopenblas.so.0"), 0);
}

/* A log does not tell which settings were in force. */
static void what_is_not_known_is_not_said(void **state)
{
    struct totals_row row = {
        .ran = "gpu0", .why = ACCEL_FASTER, .calls = 1, .up = 4000000000, .again = 4000000000};
    const struct hints_of of = {&row, 1, -1, -1, 0, 0, 0, NULL};
    (void)state;
    *said = 0;
    hints_make(&of, note, said);
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_while_the_gpu_starts),
        cmocka_unit_test(reasons_to_stay_on_the_cpu),
        cmocka_unit_test(calls_that_a_setting_sends_to_the_gpu),
        cmocka_unit_test(a_short_run),
        cmocka_unit_test(matrices_that_go_up_again),
        cmocka_unit_test(a_calibration),
        cmocka_unit_test(ranks_that_take_turns),
        cmocka_unit_test(a_faster_precision),
        cmocka_unit_test(what_is_outside),
        cmocka_unit_test(what_is_not_known_is_not_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
