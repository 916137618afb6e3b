#include "cublas_call.h"

#define STEP(x)     (const T *)(uintptr_t)(x).ptr, (x).inc
#define STEP_OUT(x) (T *)(uintptr_t)(x).ptr, (x).inc

static const struct accel_complex one = {1, 0};

/* Returns a vector as a matrix of one row, for Level 3, which conjugates operands that Level 2 does
 * not. */
static struct gpu_tile row_of(struct gpu_vector x)
{
    return (struct gpu_tile){x.ptr, x.inc};
}

enum gpu_status kernel_gemv(struct gpu_work *work, char trans, int64_t m, int64_t n,
                            struct accel_complex alpha, struct gpu_tile a, struct gpu_vector x,
                            struct accel_complex beta, struct gpu_vector y)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    if (trans == 'R') /* y' := alpha x' A^H + beta y' */
        return kernel_gemm(work, 'N', 'C', 1, m, n, alpha, row_of(x), a, beta, row_of(y));
    RETURN_BLAS(gemv_v2, gemv_v2, operation(trans), m, n, SCALAR(al), IN(a), STEP(x), SCALAR(be),
                STEP_OUT(y));
}

enum gpu_status kernel_ger(struct gpu_work *work, enum gpu_outer outer, int64_t m, int64_t n,
                           struct accel_complex alpha, struct gpu_vector x, struct gpu_vector y,
                           struct gpu_tile a)
{
    const union scalar al = make_scalar(work, alpha);
    if (outer == GPU_CONJUGATED_X)
        return kernel_gemm(work, 'C', 'N', m, n, 1, alpha, row_of(x), row_of(y), one, a);
    RETURN_BLAS_OR(outer == GPU_CONJUGATED_Y, gerc_v2, ger_v2, geru_v2, m, n, SCALAR(al), STEP(x),
                   STEP(y), OUT(a));
}

enum gpu_status kernel_symv(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct gpu_tile a, struct gpu_vector x, struct accel_complex beta,
                            struct gpu_vector y)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    if (work->call->blas.conjugated) /* y' := alpha x' A + beta y' */
        return kernel_symm(work, true, 'R', uplo, 1, n, alpha, a, row_of(x), beta, row_of(y));
    RETURN_BLAS(symv_v2, hemv_v2, fill(uplo), n, SCALAR(al), IN(a), STEP(x), SCALAR(be),
                STEP_OUT(y));
}

enum gpu_status kernel_syr(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                           struct gpu_vector x, struct gpu_tile a)
{
    const union scalar al = make_scalar(work, alpha);
    if (work->call->blas.conjugated)
        return kernel_syrk(work, true, uplo, 'C', n, 1, alpha, row_of(x), one, a);
    RETURN_BLAS(syr_v2, her_v2, fill(uplo), n, SCALAR(al), STEP(x), OUT(a));
}

enum gpu_status kernel_syr2(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct gpu_vector x, struct gpu_vector y, struct gpu_tile a)
{
    const union scalar al = make_scalar(work, alpha);
    if (work->call->blas.conjugated)
        return kernel_syr2k(work, true, uplo, 'C', n, 1, alpha, row_of(y), row_of(x), one, a);
    RETURN_BLAS(syr2_v2, her2_v2, fill(uplo), n, SCALAR(al), STEP(x), STEP(y), OUT(a));
}

enum gpu_status kernel_trmv(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct gpu_tile a, struct gpu_vector x)
{
    if (trans == 'R')
        return kernel_trmm(work, 'R', uplo, 'C', diag, 1, n, one, a, row_of(x));
    RETURN_BLAS(trmv_v2, trmv_v2, fill(uplo), operation(trans), diagonal(diag), n, IN(a),
                STEP_OUT(x));
}

enum gpu_status kernel_trsv(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct gpu_tile a, struct gpu_vector x)
{
    if (trans == 'R')
        return kernel_trsm(work, 'R', uplo, 'C', diag, 1, n, one, a, row_of(x));
    RETURN_BLAS(trsv_v2, trsv_v2, fill(uplo), operation(trans), diagonal(diag), n, IN(a),
                STEP_OUT(x));
}

enum gpu_status kernel_copy(struct gpu_work *work, int64_t n, struct gpu_vector x,
                            struct gpu_vector y)
{
    RETURN_BLAS(copy_v2, copy_v2, n, STEP(x), STEP_OUT(y));
}
