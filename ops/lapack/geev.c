/*
 * geev: eigenvalues and eigenvectors of a matrix without symmetry. cuSOLVER does not have the left
 * vectors.
 */
#include "cpu_ref/verify_test.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"

/* ---- Rules ---- */

static struct accel_lengths geev_workspace(const struct lapack_sizes *x)
{
    return (struct accel_lengths){x->is_complex ? 2 * x->n
                                  : x->vectors  ? 4 * x->n
                                                : 3 * x->n,
                                  0, 0};
}

static bool geev_is_supported(const struct accel_call *call)
{
    return call->blas.flag[ACCEL_jobvl] == 'N';
}

/* ---- The GPU ---- */

/* w of a real matrix holds all real parts, then all imaginary parts. */
static void run_geev(struct solver *s)
{
    bool is_complex = accel_is_complex(s->call->routine->dtype);
    if (!solver_library(s)->has_geev())
        solver_note(s, GPU_UNSUPPORTED);
    struct array a = solver_upload(s, &s->call->span[ACCEL_a], 0);
    int64_t n = a.rows, wanted = s->call->blas.flag[ACCEL_jobvr] == 'V' ? n : 0;
    struct array w = solver_array(s, is_complex ? n : 2 * n, 1), vr = solver_array(s, n, wanted);
    solver_refuse_extremes(s);
    solver_library(s)->geev(s, s->call->blas.flag[ACCEL_jobvr], a, w, vr);
    solver_return(s, &s->call->span[ACCEL_x], solver_part(w, 0, 0, n, 1), 0);
    if (!is_complex)
        solver_return(s, &s->call->span[ACCEL_y], solver_part(w, n, 0, n, 1), 0);
    solver_return(s, &s->call->span[ACCEL_c], vr, 0);
}

/* ---- The check: A V = V W ---- */

/* Returns W r. In real types, a pair of conjugates has two columns: the real and the imaginary
 * part. */
static double *times_eigenvalues(struct test *t, const double *r, int64_t n)
{
    const struct accel_span *w = &t->call->span[ACCEL_x], *wi = &t->call->span[ACCEL_y];
    double *out = test_new_vector(t, n);
    for (int64_t i = 0; i < n; i++) {
        if (t->parts == 2) {
            value z =
                load_value(w->ptr, i, t->dtype) * (r[2 * i] + r[2 * i + 1] * (value)_Complex_I);
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

/* Each vector must have unit length; a pair's two columns together. */
static void judge_lengths(struct test *t, const struct view *v)
{
    const struct accel_span *wi = &t->call->span[ACCEL_y];
    for (int64_t i = 0; i < v->cols; i++) {
        bool pair = t->parts == 1 && operand_real(wi, i) != 0 && i + 1 < v->cols;
        const struct view column = view_part(v, 0, v->rows, i, pair ? 2 : 1);
        test_judge_number(t, sum_of_squares(&column) - 1, 1);
        i += pair;
    }
}

/* The eigenvalues and their squares must sum up to the traces of A and of its square. */
static void judge_traces(struct test *t, const struct view *a)
{
    const struct accel_span *w = &t->call->span[ACCEL_x], *wi = &t->call->span[ACCEL_y];
    const double square = sum_of_squares(a);
    value sums[2] = {0, 0};
    for (int64_t i = 0; i < a->rows; i++) {
        value z = load_value(w->ptr, i, t->dtype);
        if (t->parts == 1)
            z += operand_real(wi, i) * (value)_Complex_I;
        sums[0] += z - view_element(a, i, i);
        sums[1] += z * z;
        for (int64_t j = 0; j < a->rows; j++)
            sums[1] -= view_element(a, i, j) * view_element(a, j, i);
    }
    test_judge_number(t, (double)magnitude(sums[0]), test_root(square));
    test_judge_number(t, (double)magnitude(sums[1]), square);
}

/* The sums of the squares in column and row i of D^-1 A D, without its diagonal. */
static void squares_beside(const struct view *a, const double *d, int64_t i, double *column,
                           double *row)
{
    *column = *row = 0;
    for (int64_t j = 0; j < a->rows; j++) {
        if (j == i)
            continue;
        const double down = (double)magnitude(view_element(a, j, i)) * d[i] / d[j],
                     along = (double)magnitude(view_element(a, i, j)) * d[j] / d[i];
        *column += down * down;
        *row += along * along;
    }
}

/* Returns a diagonal matrix D of powers of 2 with which the rows and columns of D^-1 A D are about
 * as long, as ?gebal makes it. */
static double *balance(struct test *t, const struct view *a)
{
    enum { PASSES = 16, FACTOR_MOST = 400 };
    double *d = test_new_vector(t, a->rows);
    bool changed = true;
    for (int64_t i = 0; i < a->rows; i++)
        d[i] = 1;
    for (int pass = 0; pass < PASSES && changed; pass++) {
        changed = false;
        for (int64_t i = 0; i < a->rows; i++) {
            double column, row;
            squares_beside(a, d, i, &column, &row);
            if (!(column > 0 && row > 0) || !is_number(column + row))
                continue;
            for (int step = 0; step < FACTOR_MOST && column * 4 < row; step++, changed = true) {
                d[i] *= 2;
                column *= 4;
                row /= 4;
            }
            for (int step = 0; step < FACTOR_MOST && row * 4 < column; step++, changed = true) {
                d[i] /= 2;
                column /= 4;
                row *= 4;
            }
        }
    }
    return d;
}

/* LAPACK balances the matrix, whose eigenvalues are then exact for one that rounding has moved by
 * the size of D^-1 A D: by that of D F D^-1, if F is such a matrix. Of strongly graded matrices
 * that may be much more than the rounding of A. Returns the scale. */
static double balanced_scale(struct test *t, const struct view *a, const struct view *v)
{
    const double *d = balance(t, a);
    double most = 0, size = 0, vectors = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        most = greater_of(most, d[i]);
        for (int64_t j = 0; j < a->cols; j++) {
            const double of_a = (double)magnitude(view_element(a, i, j)) * d[j] / d[i];
            const double of_v = (double)magnitude(view_element(v, i, j)) / d[i];
            size += of_a * of_a;
            vectors += of_v * of_v;
        }
    }
    return most * test_root(size) * test_root(vectors);
}

/* y: A V r - V W r */
static void judge_vectors(struct test *t, const struct view *a, const struct view *v,
                          const double *y)
{
    double ratio = test_ratio_of(t, y, v->rows, view_norm(a) * view_norm(v));
    if (ratio > 1 && is_number(dot_self(y, v->rows * t->parts)) &&
        test_ratio_of(t, y, v->rows, balanced_scale(t, a, v)) <= 1)
        ratio = CPU_REF_NOT_JUDGED;
    test_note(t, ratio);
}

static void check_geev(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), v = test_result(t, ACCEL_c);
    judge_traces(t, &a);
    if (t->call->blas.flag[ACCEL_jobvr] != 'V')
        return;
    const double *r = test_random_vector(t, v.cols);
    double *y = test_times(t, &a, 'N', test_times(t, &v, 'N', r));
    test_subtract(t, y, test_times(t, &v, 'N', times_eigenvalues(t, r, v.cols)), v.rows);
    judge_vectors(t, &a, &v, y);
    judge_lengths(t, &v);
}

/* nominal: the Hessenberg form, and QR steps that hardly fill a GPU. */
const struct accel_op op_geev = {
    LAPACK_TRAITS(.iterates = true),
    OP_COST(.nominal = {.cpu_share = 0.15, .gpu_share = 0.01, .gpu_step_ms = 0.2}),
    OP_RULES(.workspace = geev_workspace, .check = check_geev),
    OP_GPU(.is_supported = geev_is_supported, .steps = run_geev, .whole = LAPACK_CONDENSES)};
