#include "verify_test.h"

/* ---- Symmetric and Hermitian matrices ---- */

static int64_t found(const struct test *t)
{
    const struct accel_operand *m = &t->call->operand[ACCEL_found];
    int64_t n = t->call->size[ACCEL_n];
    return m->ptr && t->call->flag[ACCEL_range] ? accel_min(accel_max(accel_integer(m, 0), 0), n)
                                                : n;
}

static double trace_of(const struct view *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        sum += (double)creall(load(a->ptr, i * (a->ld + 1), a->dtype));
    return sum;
}

/* All of them, without vectors: their sum, and that of their squares. */
static void judge_spectrum(struct test *t, const struct view *a)
{
    const struct accel_operand *w = &t->call->operand[ACCEL_x];
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

/* The vectors: in a matrix of their own, or in A's place. */
static struct view vectors_of(const struct test *t)
{
    struct view z = test_result(t, t->call->flag[ACCEL_range] ? ACCEL_c : ACCEL_a);
    z.cols = found(t);
    return z;
}

void eigen_judge(struct test *t)
{
    const struct view a = test_mirrored(t, test_input(t, ACCEL_a));
    if (t->call->flag[ACCEL_jobz] != 'V') {
        judge_spectrum(t, &a);
        return;
    }
    const struct view z = vectors_of(t);
    const double *r = test_random_vector(t, z.cols);
    double *y = test_times(t, &a, 'N', test_times(t, &z, 'N', r));
    test_subtract(
        t, y,
        test_times(t, &z, 'N', test_times_values(t, &t->call->operand[ACCEL_x], r, z.cols, 1)),
        z.rows);
    test_judge(t, y, z.rows, view_norm(&a));
    test_judge_columns(t, &z);
}

void eigen_judge_generalized(struct test *t)
{
    const struct view a = test_mirrored(t, test_input(t, ACCEL_a)),
                      b = test_mirrored(t, test_input(t, ACCEL_b));
    const struct factored given = factored_plain(b);
    const int64_t itype = t->call->size[ACCEL_itype];
    const double worst = t->worst;
    struct factored factor;
    factored_open_cholesky(t, &factor, test_result(t, ACCEL_b));
    factored_judge_same(t, &given, &factor);
    if (t->call->flag[ACCEL_jobz] != 'V') {
        if (t->worst <= 1)
            t->worst = worst;
        return;
    }
    const struct view z = vectors_of(t);
    const struct accel_operand *w = &t->call->operand[ACCEL_x];
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

/* ---- Other square matrices ---- */

/* V W r: of the real types, a pair of conjugates stands in two columns, as its real and its imaginary part. */
static double *times_eigenvalues(struct test *t, const double *r, int64_t n)
{
    const struct accel_operand *w = &t->call->operand[ACCEL_x], *wi = &t->call->operand[ACCEL_y];
    double *out = test_new_vector(t, n);
    for (int64_t i = 0; i < n; i++) {
        if (t->parts == 2) {
            value z = load(w->ptr, i, t->dtype) * (r[2 * i] + r[2 * i + 1] * (value)_Complex_I);
            out[2 * i] = (double)creall(z);
            out[2 * i + 1] = (double)cimagl(z);
        } else if (operand_real(wi, i) == 0 || i + 1 == n) {
            out[i] = operand_real(w, i) * r[i];
        } else {
            double re = operand_real(w, i), im = operand_real(wi, i);
            out[i] = re * r[i] + im * r[i + 1];
            out[i + 1] = re * r[i + 1] - im * r[i];
            i++;
        }
    }
    return out;
}

/* The vectors have unit length; a pair of columns together. */
static void judge_lengths(struct test *t, const struct view *v)
{
    const struct accel_operand *wi = &t->call->operand[ACCEL_y];
    for (int64_t i = 0; i < v->cols; i++) {
        bool pair = t->parts == 1 && operand_real(wi, i) != 0 && i + 1 < v->cols;
        const struct view column = view_part(v, 0, v->rows, i, pair ? 2 : 1);
        test_judge_number(t, sum_of_squares(&column) - 1, 1);
        i += pair;
    }
}

/* The sum of the eigenvalues and of their squares: the traces of A and of its square. */
static void judge_traces(struct test *t, const struct view *a)
{
    const struct accel_operand *w = &t->call->operand[ACCEL_x], *wi = &t->call->operand[ACCEL_y];
    const double square = sum_of_squares(a);
    value sums[2] = {0, 0};
    for (int64_t i = 0; i < a->rows; i++) {
        value z = load(w->ptr, i, t->dtype);
        if (t->parts == 1)
            z += operand_real(wi, i) * (value)_Complex_I;
        sums[0] += z - load(a->ptr, i * (a->ld + 1), a->dtype);
        sums[1] += z * z;
        for (int64_t j = 0; j < a->rows; j++)
            sums[1] -=
                load(a->ptr, i + j * a->ld, a->dtype) * load(a->ptr, j + i * a->ld, a->dtype);
    }
    test_judge_number(t, (double)magnitude(sums[0]), sqrt(square));
    test_judge_number(t, (double)magnitude(sums[1]), square);
}

void eigen_judge_nonsymmetric(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), v = test_result(t, ACCEL_c);
    judge_traces(t, &a);
    if (t->call->flag[ACCEL_jobvr] != 'V')
        return;
    const double *r = test_random_vector(t, v.cols);
    double *y = test_times(t, &a, 'N', test_times(t, &v, 'N', r));
    test_subtract(t, y, test_times(t, &v, 'N', times_eigenvalues(t, r, v.cols)), v.rows);
    test_judge(t, y, v.rows, view_norm(&a) * view_norm(&v));
    judge_lengths(t, &v);
}
