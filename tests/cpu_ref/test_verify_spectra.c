/* What cpu_ref/verify.h says of the order, the range and the number of eigenvalues and singular
 * values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/trial.h"

/* A = diag(1, 2 ...), whose vectors are those of the identity. */
static struct trial *spectrum(const char *name, enum accel_matrix vectors)
{
    struct trial *t = trial_open(name);
    trial_set_old(t, ACCEL_a, 0, 0);
    for (int64_t i = 0; i < N; i++) {
        trial_put(t->old[ACCEL_a], i * (N + 1), ACCEL_FLOAT64, (double)i + 1, 0);
        trial_put(t->now[ACCEL_x], i, ACCEL_FLOAT64, (double)i + 1, 0);
    }
    memcpy(t->now[ACCEL_a], t->old[ACCEL_a], sizeof t->old[0]);
    trial_set(t, vectors, 1, 0);
    return t;
}

static void exchange(double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double old = x[i];
        x[i] = y[i];
        y[i] = old;
    }
}

static void exchange_pairs(struct trial *t, enum accel_matrix vectors)
{
    exchange(t->now[ACCEL_x] + 2, t->now[ACCEL_x] + 5, 1);
    exchange(t->now[vectors] + 2 * N, t->now[vectors] + 5 * N, N);
}

static void eigenvalues_ascend(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsyevd", ACCEL_a);
    assert_right(trial_judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_wrong(trial_judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    assert_wrong(trial_judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_right(trial_judged(t));
    t = spectrum("dsygvd", ACCEL_a);
    trial_set(t, ACCEL_b, 1, 0);
    trial_set_old(t, ACCEL_b, 1, 0);
    assert_right(trial_judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_wrong(trial_judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    assert_wrong(trial_judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_unknown(trial_judged(t));
}

static void eigenvalues_are_in_their_range(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsyevr", ACCEL_c);
    int32_t found = N;
    t->call.span[ACCEL_found].ptr = &found;
    t->call.blas.flag[ACCEL_range] = 'V';
    t->call.blas.scalar[ACCEL_vl].re = 1 - 1e-3;
    t->call.blas.scalar[ACCEL_vu].re = INFINITY;
    assert_right(trial_judged(t));
    exchange_pairs(t, ACCEL_c);
    assert_wrong(trial_judged(t));
    exchange_pairs(t, ACCEL_c);
    t->call.blas.scalar[ACCEL_vl].re = 1.5;
    assert_wrong(trial_judged(t));
    t->call.blas.scalar[ACCEL_vl].re = 0;
    t->call.blas.scalar[ACCEL_vu].re = N - 1;
    assert_wrong(trial_judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    found = 3;
    assert_unknown(trial_judged(t));
    t->call.blas.scalar[ACCEL_vu].re = 2;
    assert_wrong(trial_judged(t));
}

static void all_eigenvalues_that_are_asked_for_are_found(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsyevr", ACCEL_c);
    int32_t found = N;
    t->call.span[ACCEL_found].ptr = &found;
    t->call.blas.flag[ACCEL_range] = 'A';
    assert_right(trial_judged(t));
    found = N - 1;
    assert_wrong(trial_judged(t));
    t->call.blas.flag[ACCEL_range] = 'I';
    t->call.blas.size[ACCEL_il] = 1;
    t->call.blas.size[ACCEL_iu] = N - 1;
    assert_right(trial_judged(t));
    t->call.blas.size[ACCEL_iu] = N - 2;
    assert_wrong(trial_judged(t));
    t->call.blas.size[ACCEL_iu] = N;
    assert_wrong(trial_judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    assert_wrong(trial_judged(t));
    t->call.blas.flag[ACCEL_range] = 'V';
    t->call.blas.scalar[ACCEL_vl].re = 0;
    t->call.blas.scalar[ACCEL_vu].re = N + 1;
    assert_unknown(trial_judged(t));
}

/* Of B = 1, no eigenvalue and no vector is huge; of a tiny B, they may be beyond the range. */
static void huge_generalised_eigenvalues(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsygvd", ACCEL_a);
    trial_set(t, ACCEL_b, 1, 0);
    trial_set_old(t, ACCEL_b, 1, 0);
    for (int k = 0; k < 3; k++) {
        t->now[ACCEL_a][3] = k == 0 ? 1e100 : k == 1 ? INFINITY : NAN;
        assert_wrong(trial_judged(t));
    }
    t = spectrum("dsygvd", ACCEL_a);
    trial_set(t, ACCEL_b, 1e-27, 0);
    trial_set_old(t, ACCEL_b, 1e-54, 0);
    trial_set(t, ACCEL_a, 1e27, 0);
    t->now[ACCEL_x][N - 1] = INFINITY;
    assert_unknown(trial_judged(t));
}

static void singular_values_descend(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct trial *t = spectrum("dgesdd", ACCEL_b);
        trial_set(t, ACCEL_c, 0, 0);
        trial_set(t, ACCEL_b, 0, 0);
        for (int64_t i = 0; i < N; i++) {
            t->now[ACCEL_x][i] = (double)(N - i);
            t->now[ACCEL_b][N - 1 - i + i * N] = 1;
            t->now[ACCEL_c][i + (N - 1 - i) * N] = 1;
        }
        if (k == 0)
            assert_right(trial_judged(t));
        if (k == 1) { /* out of order, with their vectors */
            exchange_pairs(t, ACCEL_b);
            for (int64_t col = 0; col < N; col++)
                exchange(&t->now[ACCEL_c][2 + col * N], &t->now[ACCEL_c][5 + col * N], 1);
            assert_wrong(trial_judged(t));
        }
        if (k >= 2) { /* negative, the last one or another */
            const int64_t i = k == 2 ? N - 1 : 3;
            t->now[ACCEL_x][i] *= -1;
            t->now[ACCEL_b][N - 1 - i + i * N] *= -1;
            assert_wrong(trial_judged(t));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigenvalues_ascend),
        cmocka_unit_test(eigenvalues_are_in_their_range),
        cmocka_unit_test(all_eigenvalues_that_are_asked_for_are_found),
        cmocka_unit_test(huge_generalised_eigenvalues),
        cmocka_unit_test(singular_values_descend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
