/* What cpu_ref/verify.h says of products near and beyond the range of their type, and of those that
 * can be judged in part. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/trial.h"

static struct trial *gemv(const char *name, double alpha, double a, double x, double y)
{
    struct trial *t = trial_open(name);
    t->call.blas.scalar[ACCEL_alpha].re = alpha;
    t->call.blas.scalar[ACCEL_beta].re = 0;
    trial_set(t, ACCEL_a, a, a);
    trial_set(t, ACCEL_x, x, x);
    trial_set(t, ACCEL_y, y, y);
    return t;
}

static void products_beyond_the_range_are_not_judged(void **state)
{
    (void)state;
    assert_right(trial_judged(gemv("sgemv", 1, 1e10, 1e10, N * 1e20)));
    assert_wrong(trial_judged(gemv("sgemv", 1, 1e10, 1e10, INFINITY)));
    assert_wrong(trial_judged(gemv("sgemv", 1, 1e10, 1e10, NAN)));
    assert_unknown(trial_judged(gemv("sgemv", 1, 1e19, 1e19, INFINITY)));
    assert_unknown(trial_judged(gemv("dgemv", 1e10, 1e150, 1e150, INFINITY)));
    assert_unknown(trial_judged(gemv("dgemv", 1e-20, 1e154, 1e153, INFINITY))); /* before alpha */
    struct trial *t = trial_open("strsv");
    trial_set(t, ACCEL_a, 1e-30, 0);
    trial_set_old(t, ACCEL_x, 1e10, 1e10);
    trial_set(t, ACCEL_x, INFINITY, INFINITY);
    assert_unknown(trial_judged(t));
    trial_set(t, ACCEL_a, 2, 0);
    assert_wrong(trial_judged(t));
    trial_set(t, ACCEL_x, 5e9, 5e9);
    assert_right(trial_judged(t));
}

/* alpha x, or a solution, is rounded to a multiple of the smallest number, and then multiplied with
 * large elements. */
static void factors_that_underflow(void **state)
{
    (void)state;
    const double exact = 47 * 0x1p-149; /* of the smallest number */
    struct trial *t = gemv("sgemv", 1e-22, 1e30, 6.6e-22, N * 1e30 * exact);
    assert_right(trial_judged(t));
    trial_put(t->now[ACCEL_y], 3, ACCEL_FLOAT32, N * 1e30 * exact * 2, 0);
    assert_wrong(trial_judged(t));
    t = gemv("sgemv", 1, 1e30, exact, N * 1e30 * exact); /* nothing is rounded here */
    assert_right(trial_judged(t));
    trial_put(t->now[ACCEL_y], 3, ACCEL_FLOAT32, N * 1e30 * exact * (1 + 1e-4), 0);
    assert_wrong(trial_judged(t));
    t = trial_open("strsv");
    trial_set(t, ACCEL_a, 1e30, 0);
    trial_set_old(t, ACCEL_x, 6.6e-14, 6.6e-14);
    trial_set(t, ACCEL_x, exact, exact);
    assert_right(trial_judged(t));
    trial_put(t->now[ACCEL_x], 3, ACCEL_FLOAT32, exact * 2, 0);
    assert_wrong(trial_judged(t));
}

static struct trial *gemm(double a, double b, double c)
{
    struct trial *t = trial_open("dgemm");
    t->call.blas.scalar[ACCEL_beta].re = 0;
    trial_set(t, ACCEL_a, a, a);
    trial_set(t, ACCEL_b, b, b);
    trial_set(t, ACCEL_c, c, c);
    return t;
}

/* Squares of rows underflow. */
static void tiny_rows_are_not_judged(void **state)
{
    (void)state;
    assert_unknown(trial_judged(gemm(1e-165, 1e40, N * 1e-125 * (1 + 1e-15))));
    assert_unknown(trial_judged(gemm(1e40, 1e-165, N * 1e-125 * (1 + 1e-15))));
    assert_right(trial_judged(gemm(1e-140, 1e-140, N * 1e-280 * (1 + 1e-15))));
    assert_wrong(trial_judged(gemm(1e-140, 1e-140, N * 1e-280 * (1 + 1e-9))));
    assert_wrong(trial_judged(gemm(1e-165, 1e40, INFINITY)));
    struct trial *t = gemm(1, 1, N);
    for (int64_t col = 0; col < N; col++) { /* row 2 */
        t->now[ACCEL_a][2 + col * N] = 1e-165;
        t->now[ACCEL_c][2 + col * N] = N * 1e-165;
    }
    assert_unknown(trial_judged(t));
    t->now[ACCEL_c][5] += 1;
    assert_wrong(trial_judged(t));
    t = gemm(1e-165, 1, N);
    t->call.blas.scalar[ACCEL_beta].re = 1; /* beside this, they do not count */
    trial_set_old(t, ACCEL_c, N, N);
    assert_right(trial_judged(t));
    t->now[ACCEL_c][5] += 1;
    assert_wrong(trial_judged(t));
}

/* A row of one product of a batch cannot be judged, and another row or product is wrong. */
static void each_product_of_a_batch_counts(void **state)
{
    enum { COUNT = 3 };
    static double x[3][COUNT][N * N];
    const void *const before[ACCEL_SPANS] = {NULL};
    (void)state;
    for (int nan = 0; nan < COUNT; nan++)
        for (int wrong = -1; wrong < COUNT; wrong++) {
            struct trial *t = trial_open("dgemm_batch_strided");
            t->call.batch = COUNT;
            t->call.blas.scalar[ACCEL_beta].re = 0;
            for (int i = ACCEL_a; i <= ACCEL_c; i++) {
                t->call.span[i].ptr = x[i];
                t->call.span[i].stride = N * N;
                for (int64_t k = 0; k < COUNT; k++)
                    trial_fill(x[i][k], &t->call, (enum accel_matrix)i, i == ACCEL_c ? N : 1,
                               i == ACCEL_c ? N : 1);
            }
            x[ACCEL_a][nan][0] = NAN;
            if (wrong >= 0)
                x[ACCEL_c][wrong][7] += 1;
            const double ratio = cpu_ref_verify(&t->call, before, 1, 0);
            if (wrong >= 0)
                assert_wrong(ratio);
            else
                assert_unknown(ratio);
        }
    assert_wrong(cpu_ref_worse_of(CPU_REF_NOT_JUDGED, 2));
    assert_unknown(cpu_ref_worse_of(0.5, CPU_REF_NOT_JUDGED));
    assert_right(cpu_ref_worse_of(0.5, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_beyond_the_range_are_not_judged),
        cmocka_unit_test(factors_that_underflow),
        cmocka_unit_test(tiny_rows_are_not_judged),
        cmocka_unit_test(each_product_of_a_batch_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
