/* gemv, symv and hemv: x is B, y the result. */
#include "cublas_compute.h"

/* An A without elements: as in BLAS, y is not even scaled. */
static bool describe_gemv(struct blas_call *x)
{
    bool empty = x->m == 0 || x->n == 0;
    bool turned = is_transposed(x->transa);
    set_shape(&x->a, x->m, x->n, WHOLE);
    set_vector(&x->b, turned ? x->m : x->n);
    set_vector(&x->c, empty ? 0 : turned ? x->n : x->m);
    return true;
}

static bool describe_symv(struct blas_call *x)
{
    set_shape(&x->a, x->n, x->n, part_of(x->uplo));
    set_vector(&x->b, x->n);
    set_vector(&x->c, x->n);
    return true;
}

static const struct routine gemv = {"gemv", HAS_B | HAS_BETA, describe_gemv, compute_gemv, NULL};
static const struct routine symv = {"symv", HAS_B | HAS_BETA, describe_symv, compute_symv, NULL};
static const struct routine hemv = {"hemv", HAS_B | HAS_BETA | HERMITIAN, describe_symv,
                                    compute_symv, NULL};

#define LAST_PARAMETERS(INTEGER, ELEMENT)                                                          \
    INTEGER n, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda, const ELEMENT *x,              \
        INTEGER incx, const ELEMENT *beta, ELEMENT *y, INTEGER incy
#define LAST_FIELDS(PRECISION, ROUTINE)                                                            \
    .routine = &(ROUTINE), .precision = (PRECISION), .n = n, .a = MATRIX(a, lda),                  \
    .b = MATRIX(x, incx), .c = MATRIX(y, incy), .alpha_at = alpha, .beta_at = beta

#define GEMV(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasOperation_t trans, INTEGER m,    \
                                     LAST_PARAMETERS(INTEGER, ELEMENT))                            \
    {                                                                                              \
        struct blas_call call = {.transa = trans, .m = m, LAST_FIELDS(PRECISION, ROUTINE)};        \
        BLAS_CALL(handle, call);                                                                   \
    }

#define SYMV(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo,                 \
                                     LAST_PARAMETERS(INTEGER, ELEMENT))                            \
    {                                                                                              \
        struct blas_call call = {.uplo = uplo, LAST_FIELDS(PRECISION, ROUTINE)};                   \
        BLAS_CALL(handle, call);                                                                   \
    }

ALL_TYPES(GEMV, gemv, _v2, gemv)
REAL_TYPES(SYMV, symv, _v2, symv)
COMPLEX_TYPES(SYMV, hemv, _v2, hemv)
