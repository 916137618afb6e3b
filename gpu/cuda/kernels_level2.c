#include "cublas_call.h"

#define STEP(x)      (const T *)(uintptr_t)(x).ptr, (x).inc
#define STEP_OUT(x)  (T *)(uintptr_t)(x).ptr, (x).inc
#define MATRIX(tile) (T *)(uintptr_t)(tile).ptr, (tile).ld

static const struct accel_complex one = {1, 0};

/* A vector as a matrix of one row. Level 3 conjugates where Level 2 does not. */
static struct gpu_tile row_of(struct gpu_vector x)
{
    return (struct gpu_tile){x.ptr, x.inc};
}

enum gpu_status kernel_gemv(struct gpu_work *work, char trans, int64_t m, int64_t n,
                            struct accel_complex alpha, struct gpu_tile a, struct gpu_vector x,
                            struct accel_complex beta, struct gpu_vector y)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
    if (trans == 'R') /* y' := alpha x' A^H + beta y' */
        return kernel_gemm(work, 'N', 'C', 1, m, n, alpha, row_of(x), a, beta, row_of(y));
#define ARGUMENTS(P) operation(trans), m, n, P(al), IN(a), STEP(x), P(be), STEP_OUT(y)
    SWITCH(REAL_CASES(gemv_v2, ARGUMENTS) COMPLEX_CASES(gemv_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_ger(struct gpu_work *work, enum gpu_outer outer, int64_t m, int64_t n,
                           struct accel_complex alpha, struct gpu_vector x, struct gpu_vector y,
                           struct gpu_tile a)
{
    const struct scalar al = make_scalar(alpha);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) m, n, P(al), STEP(x), STEP(y), MATRIX(a)
    if (outer == GPU_CONJUGATED_X)
        return kernel_gemm(work, 'C', 'N', m, n, 1, alpha, row_of(x), row_of(y), one, a);
    if (outer == GPU_CONJUGATED_Y)
        SWITCH(COMPLEX_CASES(gerc_v2, ARGUMENTS))
    else
        SWITCH(REAL_CASES(ger_v2, ARGUMENTS) COMPLEX_CASES(geru_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_symv(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct gpu_tile a, struct gpu_vector x, struct accel_complex beta,
                            struct gpu_vector y)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), n, P(al), IN(a), STEP(x), P(be), STEP_OUT(y)
    if (work->call->blas.conjugated) /* y' := alpha x' A + beta y' */
        return kernel_symm(work, true, 'R', uplo, 1, n, alpha, a, row_of(x), beta, row_of(y));
    SWITCH(REAL_CASES(symv_v2, ARGUMENTS) COMPLEX_CASES(hemv_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_syr(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                           struct gpu_vector x, struct gpu_tile a)
{
    const struct scalar al = make_scalar(alpha);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), n, P(al), STEP(x), MATRIX(a)
    if (work->call->blas.conjugated)
        return kernel_syrk(work, true, uplo, 'C', n, 1, alpha, row_of(x), one, a);
    SWITCH(REAL_CASES(syr_v2, ARGUMENTS) COMPLEX_CASES(her_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_syr2(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct gpu_vector x, struct gpu_vector y, struct gpu_tile a)
{
    const struct scalar al = make_scalar(alpha);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), n, P(al), STEP(x), STEP(y), MATRIX(a)
    if (work->call->blas.conjugated)
        return kernel_syr2k(work, true, uplo, 'C', n, 1, alpha, row_of(y), row_of(x), one, a);
    SWITCH(REAL_CASES(syr2_v2, ARGUMENTS) COMPLEX_CASES(her2_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_trmv(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct gpu_tile a, struct gpu_vector x)
{
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), operation(trans), diagonal(diag), n, IN(a), STEP_OUT(x)
    if (trans == 'R')
        return kernel_trmm(work, 'R', uplo, 'C', diag, 1, n, one, a, row_of(x));
    SWITCH(REAL_CASES(trmv_v2, ARGUMENTS) COMPLEX_CASES(trmv_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_trsv(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct gpu_tile a, struct gpu_vector x)
{
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), operation(trans), diagonal(diag), n, IN(a), STEP_OUT(x)
    if (trans == 'R')
        return kernel_trsm(work, 'R', uplo, 'C', diag, 1, n, one, a, row_of(x));
    SWITCH(REAL_CASES(trsv_v2, ARGUMENTS) COMPLEX_CASES(trsv_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_copy(struct gpu_work *work, int64_t n, struct gpu_vector x,
                            struct gpu_vector y)
{
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) n, STEP(x), STEP_OUT(y)
    SWITCH(REAL_CASES(copy_v2, ARGUMENTS) COMPLEX_CASES(copy_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}
