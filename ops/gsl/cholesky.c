/*
 * gsl_linalg_cholesky_decomp1(A): L in the lower triangle of A by rows, the original's lower triangle, transposed, above it. The
 * function reads the lower triangle alone. By columns that is potrf with uplo U.
 */
#include "gsl.h"

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    return gsl_parse(call, a) && a->size1 == a->size2;
}

static double flops(const struct accel_call *call)
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

static void factor(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct array x = solver_upload_hermitian(s, a, 'U');
    solver_potrf(s, 'U', x);
    solver_return(s, a, x, 'U');
}

/* GSL copies the triangle first, too, also of a matrix that turns out not to be definite: so this needs no undoing. */
static enum gpu_status run(struct gpu_work *work)
{
    copy_triangle(&work->call->span[ACCEL_a]);
    return solver_run(work, factor, NULL);
}

const struct accel_op op_gsl_cholesky = {GSL_FUNCTION(0.1, 0.4), .parse = parse, .flops = flops,
                                         .run = run};
