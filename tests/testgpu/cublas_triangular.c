/* trmm, with a result of its own that may be B, and trsm, whose result is B. */
#include "cublas_compute.h"
#include "cublas_cost.h"

static bool describe_trsm(struct blas_call *x)
{
    set_shape(&x->a, order_of_a(x), order_of_a(x), part_of(x->uplo));
    set_shape(&x->c, x->m, x->n, WHOLE);
    return true;
}

static bool describe_trmm(struct blas_call *x)
{
    set_shape(&x->b, x->m, x->n, WHOLE);
    return describe_trsm(x);
}

static const struct routine trmm = {"trmm", HAS_B | IN_PLACE, describe_trmm, compute_trmm,
                                    operations_of_triangular};
static const struct routine trsm = {"trsm", 0, describe_trsm, compute_trsm,
                                    operations_of_triangular};

#define FIRST_PARAMETERS(INTEGER, ELEMENT)                                                         \
    cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,  \
        cublasDiagType_t diag, INTEGER m, INTEGER n, const ELEMENT *alpha, const ELEMENT *a,       \
        INTEGER lda
#define FIRST_FIELDS(PRECISION, ROUTINE)                                                           \
    .routine = &(ROUTINE), .precision = (PRECISION), .side = side, .uplo = uplo, .transa = trans,  \
    .diag = diag, .m = m, .n = n, .a = MATRIX(a, lda), .alpha_at = alpha

#define TRMM(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(FIRST_PARAMETERS(INTEGER, ELEMENT), const ELEMENT *b,         \
                                     INTEGER ldb, ELEMENT *c, INTEGER ldc)                         \
    {                                                                                              \
        struct blas_call x = {FIRST_FIELDS(PRECISION, ROUTINE), .b = MATRIX(b, ldb),               \
                              .c = MATRIX(c, ldc)};                                                \
        BLAS_CALL(handle, x);                                                                      \
    }

#define TRSM(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(FIRST_PARAMETERS(INTEGER, ELEMENT), ELEMENT *b, INTEGER ldb)  \
    {                                                                                              \
        struct blas_call x = {FIRST_FIELDS(PRECISION, ROUTINE), .c = MATRIX(b, ldb)};              \
        BLAS_CALL(handle, x);                                                                      \
    }

ALL_TYPES(TRMM, trmm, _v2, trmm)
ALL_TYPES(TRSM, trsm, _v2, trsm)
