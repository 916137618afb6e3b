#include "verify_test.h"

/* ---- Symmetric and Hermitian matrices ---- */

static int64_t found(const struct test *t)
{
    const struct accel_span *m = &t->call->span[ACCEL_found];
    int64_t n = t->call->blas.size[ACCEL_n];
    return m->ptr && t->call->blas.flag[ACCEL_range]
               ? accel_min(accel_max(accel_integer(m, 0), 0), n)
               : n;
}

static double trace_of(const struct view *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        sum += (double)creall(load(a->ptr, i * (a->ld + 1), a->dtype));
    return sum;
}

/* All eigenvalues, without vectors: checks their sum and the sum of their squares. */
static void judge_spectrum(struct test *t, const struct view *a)
{
    const struct accel_span *w = &t->call->span[ACCEL_x];
    const double square = sum_of_squares(a);
    double sum = 0, squares = 0;
    if (found(t) < a->rows)
        return;
    for (int64_t i = 0; i < a->rows; i++) {
        sum += operand_real(w, i);
        squares += operand_real(w, i) * operand_real(w, i);
    }
    test_judge_number(t, sum - trace_of(a), sqrt(square));
    test_judge_number(t, squares - square, square);
}

/* The vectors: in Z, or in A's place. */
static struct view vectors_of(const struct test *t)
{
    struct view z = test_result(t, t->call->blas.flag[ACCEL_range] ? ACCEL_c : ACCEL_a);
    z.cols = found(t);
    return z;
}

void check_syev(struct test *t)
{
    const struct view a = test_mirrored(t, test_input(t, ACCEL_a));
    if (t->call->blas.flag[ACCEL_jobz] != 'V') {
        judge_spectrum(t, &a);
        return;
    }
    const struct view z = vectors_of(t);
    const double *r = test_random_vector(t, z.cols);
    double *y = test_times(t, &a, 'N', test_times(t, &z, 'N', r));
    test_subtract(
        t, y, test_times(t, &z, 'N', test_times_values(t, &t->call->span[ACCEL_x], r, z.cols, 1)),
        z.rows);
    test_judge(t, y, z.rows, view_norm(&a));
    test_judge_columns(t, &z);
}

void check_sygv(struct test *t)
{
    const struct view a = test_mirrored(t, test_input(t, ACCEL_a)),
                      b = test_mirrored(t, test_input(t, ACCEL_b));
    const struct factored given = factored_plain(b);
    const int64_t itype = t->call->blas.size[ACCEL_itype];
    const double worst = t->worst;
    struct factored factor;
    factored_open_cholesky(t, &factor, test_result(t, ACCEL_b));
    factored_judge_same(t, &given, &factor);
    if (t->call->blas.flag[ACCEL_jobz] != 'V') {
        if (t->worst <= 1)
            t->worst = worst;
        return;
    }
    const struct view z = vectors_of(t);
    const struct accel_span *w = &t->call->span[ACCEL_x];
    const double size = view_norm(&z), *r = test_random_vector(t, z.cols),
                 *zr = test_times(t, &z, 'N', r),
                 *zw = test_times(t, &z, 'N', test_times_values(t, w, r, z.cols, 1));
    double *y, largest = 0;
    for (int64_t i = 0; i < z.cols; i++)
        largest = greater_of(largest, fabs(operand_real(w, i)));
    if (itype == 1) {
        y = test_times(t, &a, 'N', zr);
        test_subtract(t, y, test_times(t, &b, 'N', zw), z.rows);
        test_judge(t, y, z.rows, (view_norm(&a) + view_norm(&b) * largest) * size);
    } else {
        const struct view *first = itype == 2 ? &b : &a, *second = itype == 2 ? &a : &b;
        y = test_times(t, second, 'N', test_times(t, first, 'N', zr));
        test_subtract(t, y, zw, z.rows);
        test_judge(t, y, z.rows, (view_norm(&a) * view_norm(&b) + largest) * size);
    }
    if (itype != 3) {
        double *one = test_times(t, &z, 'C', test_times(t, &b, 'N', zr));
        test_subtract(t, one, r, z.cols);
        test_judge(t, one, z.cols, view_norm(&b) * size * size);
    } else if (z.cols == z.rows) {
        double *bz = test_times(t, &z, 'N', test_times(t, &z, 'C', r));
        test_subtract(t, bz, test_times(t, &b, 'N', r), z.rows);
        test_judge(t, bz, z.rows, view_norm(&b) + size * size);
    }
}
