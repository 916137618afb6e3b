/*
 * gsl_linalg_cholesky_decomp1(A): L in the lower triangle of A by rows, the original's lower
 * triangle, transposed, above it. The function reads the lower triangle alone. By columns that is
 * potrf with uplo U.
 */
#include "cpu_ref/verify_test.h"
#include "gsl.h"

static bool parse_cholesky(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    return gsl_parse(call, a) && a->size1 == a->size2;
}

static double flops_of_cholesky(const struct accel_call *call)
{
    const double n = (double)call->own.integer[GSL_SIZES];
    return n * n * n / 3;
}

/* Copies the lower triangle by rows to the upper one, in blocks that fit in a cache. */
static void copy_triangle(const struct accel_span *a)
{
    enum { BLOCK = 32 };
    double *x = a->ptr;
    const int64_t n = a->rows, ld = a->ld;
    for (int64_t top = 0; top < n; top += BLOCK)
        for (int64_t left = 0; left <= top; left += BLOCK)
            for (int64_t row = top; row < n && row < top + BLOCK; row++)
                for (int64_t col = left; col < row && col < left + BLOCK; col++)
                    x[col * ld + row] = x[row * ld + col];
}

static void factor_by_potrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct array x = solver_upload_hermitian(s, a, 'U');
    solver_library(s)->potrf(s, 'U', x);
    solver_return(s, a, x, 'U');
}

/* GSL copies the triangle first, too, also of a matrix that turns out not to be definite: so this
 * needs no undoing. */
static enum gpu_status run_cholesky(struct gpu_work *work)
{
    copy_triangle(&work->call->span[ACCEL_a]);
    return solver_run(work, factor_by_potrf, NULL);
}

/* Whether the lower triangle by rows that was given is now above the diagonal, too. */
static bool is_kept(const struct view *given, const struct view *made)
{
    const double *from = given->ptr, *to = made->ptr;
    for (int64_t row = 1; row < made->rows; row++)
        for (int64_t col = 0; col < row; col++)
            if (memcmp(&to[col * made->ld + row], &from[row * given->ld + col], sizeof *to) != 0)
                return false;
    return true;
}

/* A = U^T U, U by columns. */
static void check_cholesky(struct test *t)
{
    const struct view a = view_shaped(test_input(t, ACCEL_a), SYMMETRIC, 'U'),
                      all = test_result(t, ACCEL_a), u = view_shaped(all, TRIANGULAR, 'U');
    const double *r = test_random_vector(t, a.cols);
    if (!test_takes(t, &a))
        return;
    double *y = test_times(t, &a, 'N', r);
    test_subtract(t, y, test_times(t, &u, 'T', test_times(t, &u, 'N', r)), a.rows);
    test_judge(t, y, a.rows, view_norm(&a));
    test_note(t, is_kept(&a, &all) ? 0 : INFINITY);
}

const struct accel_op op_gsl_cholesky =
    GSL_FUNCTION(0.1, 0.4, parse_cholesky, flops_of_cholesky, run_cholesky, check_cholesky);
