/*
 * sytrf, sytrs, sysv: the Bunch-Kaufman factorisation of a symmetric matrix, of complex ones too. cuSOLVER has none of
 * Hermitian matrices.
 */
#include "gpu/cuda/cusolver_call.h"

#include <stdlib.h>

/* The pivots as the solver wants them: cuSOLVER's factorisation writes int, its solver reads int64. */
static struct array widen(struct solver *s, struct array pivots)
{
    struct array wide = solver_vector(s, pivots.rows, ACCEL_INT64);
    int32_t *narrow = malloc((size_t)pivots.rows * sizeof *narrow + 1);
    int64_t *values = malloc((size_t)pivots.rows * sizeof *values + 1);
    if (narrow && values) {
        solver_get(s, narrow, pivots);
        for (int64_t i = 0; solver_is_well(s) && i < pivots.rows; i++)
            values[i] = narrow[i];
        solver_put(s, wide, values);
    } else {
        solver_note(s, GPU_NO_MEMORY);
    }
    free(narrow);
    free(values);
    return wide;
}

/* Its workspace depends on the size alone. */
#define SYTRF(dtype, letter, type)                                                                 \
    case dtype: {                                                                                  \
        typedef type T;                                                                            \
        int lwork = 0;                                                                             \
        SOLVE(s, cusolverDn##letter##sytrf_bufferSize, (int)a.rows, TYPED(a), &lwork);             \
        struct array work = solver_work(s, (size_t)lwork * sizeof(T));                             \
        SOLVE(s, cusolverDn##letter##sytrf, fill(uplo), (int)a.rows, TYPED(a), INTS(pivots),       \
              VALUES(work), lwork, SOLVER_INFO(s));                                                \
        break;                                                                                     \
    }

static struct array factor(struct solver *s, char uplo, struct array a)
{
    struct array pivots = solver_vector(s, a.rows, ACCEL_INT32);
    if (solver_fits_int(s, a.rows, a.ld)) {
        switch (s->dtype) {
            SYTRF(ACCEL_FLOAT32, S, float)
            SYTRF(ACCEL_FLOAT64, D, double)
            SYTRF(ACCEL_COMPLEX64, C, cuComplex)
            SYTRF(ACCEL_COMPLEX128, Z, cuDoubleComplex)
        default:
            break;
        }
    }
    solver_require_success(s);
    return widen(s, pivots);
}

static void solve(struct solver *s, char uplo, struct array a, struct array pivots, struct array b)
{
    if (b.cols == 0)
        return;
    GENERIC(s, cusolverDnXsytrs, fill(uplo), a.rows, b.cols, s->type, MATRIX(a), PIVOTS(pivots),
            s->type, MATRIX(b));
    solver_require_success(s);
}

enum gpu_status gpu_indefinite(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a], *b = &call->operand[ACCEL_b],
                               *ipiv = &call->operand[ACCEL_x];
    enum accel_family family = call->routine->family;
    char uplo = call->flag[ACCEL_uplo];
    struct solver s;
    solver_begin(&s, work);
    struct array ldl = solver_upload(&s, a, uplo);
    struct array pivots = family == ACCEL_SYTRS
                              ? solver_upload_pivots(&s, ipiv, call->size[ACCEL_n], true)
                              : factor(&s, uplo, ldl);
    if (family != ACCEL_SYTRS) {
        solver_return(&s, a, ldl, uplo);
        solver_return_pivots(&s, ipiv, pivots);
    }
    if (family != ACCEL_SYTRF) {
        struct array x = solver_upload(&s, b, 0);
        solve(&s, uplo, ldl, pivots, x);
        solver_return(&s, b, x, 0);
    }
    return solver_end(&s);
}
