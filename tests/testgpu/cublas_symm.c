/* symm and hemm. */
#include "cublas_compute.h"
#include "cublas_cost.h"

static bool describe(struct blas_call *x)
{
    set_shape(&x->a, order_of_a(x), order_of_a(x), part_of(x->uplo));
    set_shape(&x->b, x->m, x->n, WHOLE);
    set_shape(&x->c, x->m, x->n, WHOLE);
    return true;
}

static const struct routine symm = {"symm", HAS_B | HAS_BETA, describe, compute_symm,
                                    operations_of_symm};
static const struct routine hemm = {"hemm", HAS_B | HAS_BETA | HERMITIAN, describe, compute_symm,
                                    operations_of_symm};

#define SYMM(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, INTEGER m, INTEGER n, \
        const ELEMENT *alpha, const ELEMENT *a, INTEGER lda, const ELEMENT *b, INTEGER ldb,        \
        const ELEMENT *beta, ELEMENT *c, INTEGER ldc)                                              \
    {                                                                                              \
        struct blas_call x = {                                                                     \
            .routine = &(ROUTINE),                                                                 \
            .precision = PRECISION,                                                                \
            .side = side,                                                                          \
            .uplo = uplo,                                                                          \
            .m = m,                                                                                \
            .n = n,                                                                                \
            .a = MATRIX(a, lda),                                                                   \
            .b = MATRIX(b, ldb),                                                                   \
            .c = MATRIX(c, ldc),                                                                   \
            .alpha_at = alpha,                                                                     \
            .beta_at = beta,                                                                       \
        };                                                                                         \
        BLAS_CALL(handle, x);                                                                      \
    }

ALL_TYPES(SYMM, symm, _v2, symm)
COMPLEX_TYPES(SYMM, hemm, _v2, hemm)
