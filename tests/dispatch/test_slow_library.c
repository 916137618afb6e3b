/*
 * What a program's calls teach of a CPU library: one that is slower than its nominal rates is
 * found by a few calls; one that is not is not misjudged, however busy the machine is. The times
 * are given.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/thread/spent.h"
#include "dispatch/cost/cost.h"
#include "dispatch/cost/curves.h"
#include "dispatch/cost/slow_library.h"
#include "dispatch/decide.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"
#include "tests/lib/problem.h"

static struct accel_settings settings = {.on = true};

/* ---- Libraries of one thread: each test has its own ---- */

static double
    rate_of_run; /* of a product that the probe asks for, 10^9 a second; 0: there is none */

static int one_thread(const struct dispatch_library *library)
{
    (void)library;
    return 1;
}

/* Computes for the time that the product takes by that rate. */
static bool run_product(const struct dispatch_library *library, const struct accel_call *call)
{
    (void)library;
    if (!(rate_of_run > 0))
        return false;
    const double ms = accel_flops(call) * 1e-6 / rate_of_run;
    const struct spent begin = spent_begin();
    while (spent_end().cpu_ms - begin.cpu_ms < ms)
        ;
    return true;
}

/* One that stays, as a program's library does. */
static struct dispatch_library *new_library(enum cpu_kernels kernels)
{
    static struct dispatch_library libraries[64];
    static size_t used;
    assert_in_range(used, 0, sizeof libraries / sizeof *libraries - 1);
    struct dispatch_library *library = &libraries[used++];
    *library = (struct dispatch_library){
        .name = "library", .threads = one_thread, .run = run_product, .kernels = kernels};
    return library;
}

static struct accel_call call_of(const char *name, int64_t order)
{
    struct accel_call call;
    shape_of_order(&call, routine(name), order);
    return call;
}

static double estimate_by(const struct dispatch_library *library, int threads, const char *name,
                          int64_t order)
{
    const struct accel_call call = call_of(name, order);
    struct accel_machine machine;
    struct model_work work;
    accel_machine_init(&machine, NULL, NULL);
    cost_borrow(&machine, NULL, call.routine, library, threads);
    model_work_of(&call, false, &work);
    const double ms = model_ms(machine.cpu_curve, &work);
    cost_give_back();
    return ms;
}

static double estimate(const struct dispatch_library *library, const char *name, int64_t order)
{
    return estimate_by(library, 1, name, order);
}

static void learn(const struct dispatch_library *library, const char *name, int64_t order,
                  double ms, double sure_ms)
{
    const struct accel_call call = call_of(name, order);
    learn_cpu(&call, library, 1, &(struct cost_time){ms, sure_ms});
}

static void assert_near(double a, double b, double relative)
{
    if (!(fabs(a - b) <= relative * fabs(b)))
        fail_msg("%g is not near %g", a, b);
}

/* ---- The judgement ---- */

static void several_slow_calls_in_a_row(void **state)
{
    struct slow_library library = {0};
    (void)state;
    assert_true(slow_library_add(&library, 30) == 1);
    assert_true(slow_library_add(&library, 12) == 1);
    assert_near(slow_library_add(&library, 20), 12, 1e-12);
    /* By the new rates, calls take as long as they say. */
    for (int i = 0; i < 100; i++)
        assert_true(slow_library_add(&library, i % 3 ? 1 : 1.7) == 1);
    /* Slower again, and now by that. */
    slow_library_add(&library, 3);
    slow_library_add(&library, 4);
    assert_near(slow_library_add(&library, 5), 3, 1e-12);
}

/* Two of three calls are stopped, as on a machine with many more processes than CPUs: none of
 * that is the library's. */
static void noise_is_no_sign(void **state)
{
    struct slow_library library = {0};
    (void)state;
    for (int i = 0; i < 300; i++)
        assert_true(slow_library_add(&library, i % 3 == 2 ? 1.1 : 50 + i) == 1);
    assert_true(slow_library_add(&library, NAN) == 1);
    assert_true(slow_library_add(&library, 0) == 1);
    assert_true(slow_library_add(&library, -1) == 1);
}

/* A judgement that was wrong is taken back by one fast call, and never goes beyond the first
 * rates. */
static void one_fast_call_shows_what_can_be(void **state)
{
    struct slow_library library = {0};
    (void)state;
    assert_true(slow_library_add(&library, 0.1) == 1);
    for (int i = 0; i < SLOW_LIBRARY_CALLS - 1; i++)
        slow_library_add(&library, 10);
    assert_near(slow_library_add(&library, 10), 10, 1e-12);
    assert_near(slow_library_add(&library, 0.4), 0.4, 1e-12);
    assert_near(slow_library_add(&library, 0.01), 0.25, 1e-12);
    assert_true(slow_library_add(&library, 0.01) == 1);
}

/* ---- What becomes of the estimates ---- */

static void a_few_calls_teach_all_routines_and_sizes(void **state)
{
    struct dispatch_library *const library = new_library(KERNELS_TUNED);
    const double dsyrk = estimate(library, "dsyrk", 900), zgemm = estimate(library, "zgemm", 500),
                 potrf = estimate(library, "dpotrf", 1000);
    (void)state;
    for (int64_t n = 600; n <= 800; n += 100) {
        const double nominal = estimate(new_library(KERNELS_TUNED), "dgemm", n);
        learn(library, "dgemm", n, 28 * nominal, 28 * nominal);
    }
    assert_true(estimate(library, "dsyrk", 900) > 20 * dsyrk);
    assert_true(estimate(library, "zgemm", 500) > 20 * zgemm);
    assert_true(estimate(library, "dpotrf", 1000) > 10 * potrf);
    assert_true(estimate(library, "dgemm", 3000) >
                20 * estimate(new_library(KERNELS_TUNED), "dgemm", 3000));
    /* What was measured stays, however the rates change. */
    assert_near(estimate(library, "dgemm", 800),
                28 * estimate(new_library(KERNELS_TUNED), "dgemm", 800), 0.3);
}

/* The same library on a machine whose other processes have most of the CPUs' time. */
static void a_fast_library_on_a_busy_machine(void **state)
{
    struct dispatch_library *const library = new_library(KERNELS_TUNED);
    const double nominal = estimate(library, "dgemm", 600), syrk = estimate(library, "dsyrk", 600);
    (void)state;
    for (int i = 0; i < 50; i++)
        learn(library, "dgemm", 600, (10 + i % 7) * nominal, 0.9 * nominal);
    assert_true(estimate(library, "dgemm", 600) < 1.1 * nominal);
    assert_near(estimate(library, "dsyrk", 600), syrk, 1e-9);
    /* Nobody took the CPU: it was as slow, for once. */
    for (int i = 0; i < 50; i++)
        learn(library, "dgemm", 600, i % 3 ? 12 * nominal : nominal,
              i % 3 ? 12 * nominal : nominal);
    assert_near(estimate(library, "dsyrk", 600), syrk, 1e-9);
}

/* Factorisations and the like have nominal rates that are no more than guesses; short calls
 * mostly wait. */
static void calls_that_tell_nothing_of_a_library(void **state)
{
    struct dispatch_library *const library = new_library(KERNELS_TUNED);
    const double syrk = estimate(library, "dsyrk", 600);
    (void)state;
    for (int i = 0; i < 20; i++) {
        learn(library, "dgesdd", 500, 30 * estimate(library, "dgesdd", 500),
              30 * estimate(library, "dgesdd", 500));
        learn(library, "dgemm", 100, 3, 3);
        learn(library, "dgemv", 2000, 100, 100);
    }
    assert_near(estimate(library, "dsyrk", 600), syrk, 1e-9);
}

static void a_probe_is_the_last_word(void **state)
{
    struct dispatch_library *const library = new_library(KERNELS_TUNED);
    const double syrk = estimate(library, "dsyrk", 600), gemm = estimate(library, "dgemm", 600);
    (void)state;
    for (int i = 0; i < 3; i++)
        learn(library, "dgemm", 600, 20 * gemm, 20 * gemm);
    const double learned = estimate(library, "dgemm", 600);
    rate_of_run = 5;
    cost_probe(library, 1);
    rate_of_run = 0;
    /* A fifth of the nominal 25; busy or not, as the CPU's time counts. */
    assert_near(estimate(library, "dsyrk", 600), 5 * syrk, 0.3);
    assert_near(estimate(library, "dgemm", 600), learned, 0.1);
    assert_true(estimate(library, "dgemm", 2000) >
                4 * estimate(new_library(KERNELS_TUNED), "dgemm", 2000));
    /* From here on calls teach of themselves alone. */
    const double probed = estimate(library, "dsyrk", 600);
    for (int i = 0; i < 10; i++)
        learn(library, "dgemm", 600, 100 * gemm, 100 * gemm);
    assert_near(estimate(library, "dsyrk", 600), probed, 1e-9);
}

static void a_library_without_a_product_is_not_probed(void **state)
{
    struct dispatch_library *const library = new_library(KERNELS_TUNED);
    const double syrk = estimate(library, "dsyrk", 600), gemm = estimate(library, "dgemm", 600);
    (void)state;
    cost_probe(library, 1);
    assert_near(estimate(library, "dsyrk", 600), syrk, 1e-9);
    for (int i = 0; i < 3; i++)
        learn(library, "dgemm", 600, 20 * gemm, 20 * gemm);
    assert_true(estimate(library, "dsyrk", 600) > 15 * syrk);
}

/* ---- By what the library says of itself ---- */

static void kernels_by_the_names_of_cores(void **state)
{
    (void)state;
    assert_int_equal(kernels_of_core("CORE2"), KERNELS_SSE);
    assert_int_equal(kernels_of_core("Core2"), KERNELS_SSE);
    assert_int_equal(kernels_of_core("Katmai"), KERNELS_SSE);
    assert_int_equal(kernels_of_core("Barcelona"), KERNELS_SSE);
    assert_int_equal(kernels_of_core("Sandybridge"), KERNELS_AVX);
    assert_int_equal(kernels_of_core("Haswell"), KERNELS_TUNED);
    assert_int_equal(kernels_of_core("SkylakeX"), KERNELS_TUNED);
    assert_int_equal(kernels_of_core("neoversen1"), KERNELS_TUNED);
    assert_int_equal(kernels_of_core("GENERIC"), KERNELS_LOOPS);
    assert_int_equal(kernels_of_core("Core"), KERNELS_TUNED);
    assert_int_equal(kernels_of_core(""), KERNELS_TUNED);
}

static void slower_kernels_have_lower_rates(void **state)
{
    struct dispatch_library *libraries[KERNELS];
    (void)state;
    for (int kernels = KERNELS_TUNED; kernels < KERNELS; kernels++)
        libraries[kernels] = new_library((enum cpu_kernels)kernels);
    for (int threads = 1; threads <= 64; threads *= 8) {
        const char *const names[] = {"sgemm", "dgemm", "cgemm", "zgemm", "dsyrk", "dpotrf"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            double before = 0;
            for (int kernels = KERNELS_TUNED; kernels < KERNELS; kernels++) {
                const double now = estimate_by(
                    libraries[kernels], kernels == KERNELS_LOOPS ? 1 : threads, names[i], 600);
                assert_true(now >= before);
                if (threads == 1 && i < 4)
                    assert_true(now > 1.2 * before);
                before = now;
            }
        }
    }
    /* Reference BLAS: 2.6 and 4.6 Gflop/s were measured. */
    assert_in_range(estimate(new_library(KERNELS_LOOPS), "dgemm", 600), 100, 300);
    const struct model_rates tuned = model_cpu_rates(4),
                             same = model_kernels_rates(KERNELS_TUNED, 4);
    assert_memory_equal(&tuned, &same, sizeof same);
}

/* ---- The time that is sure ---- */

static void only_what_others_took_is_left_out(void **state)
{
    const struct spent begin = {100, 50, 7}, slept = {200, 60, 7}, taken = {200, 60, 8},
                       odd = {200, 500, 8};
    (void)state;
    assert_near(spent_surely(&begin, &slept), 100, 0);
    assert_near(spent_surely(&begin, &taken), 10, 0);
    assert_near(spent_surely(&begin, &odd), 100, 0);
    /* On this machine, busy or not. */
    const struct spent now = spent_begin();
    struct spent later = spent_end();
    while (later.cpu_ms - now.cpu_ms < 5)
        later = spent_end();
    assert_true(later.wall_ms - now.wall_ms > 4.9 && spent_surely(&now, &later) >= 4.9);
}

static int prepare(void **state)
{
    (void)state;
    cost_start(&settings, 64, true, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_slow_calls_in_a_row),
        cmocka_unit_test(noise_is_no_sign),
        cmocka_unit_test(one_fast_call_shows_what_can_be),
        cmocka_unit_test(a_few_calls_teach_all_routines_and_sizes),
        cmocka_unit_test(a_fast_library_on_a_busy_machine),
        cmocka_unit_test(calls_that_tell_nothing_of_a_library),
        cmocka_unit_test(a_probe_is_the_last_word),
        cmocka_unit_test(a_library_without_a_product_is_not_probed),
        cmocka_unit_test(kernels_by_the_names_of_cores),
        cmocka_unit_test(slower_kernels_have_lower_rates),
        cmocka_unit_test(only_what_others_took_is_left_out),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
