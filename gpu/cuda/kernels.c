#include "cublas_call.h"

#include "call/operation.h"

#include <limits.h>

static const struct accel_complex one = {1, 0};

static bool takes(int64_t size)
{
    return CUDA(cublasDgemm_v2_64) != NULL || size <= INT_MAX;
}

enum gpu_status cublas_launched(struct gpu_work *work, cublasStatus_t result, const char *function)
{
    timing_end(work->ctx, work->ctx->stream, GPU_STEP_COMPUTE);
    /* Other failures do not prove that nothing ran: a call may launch several kernels. */
    if (result != CUBLAS_STATUS_INVALID_VALUE && result != CUBLAS_STATUS_NOT_INITIALIZED &&
        result != CUBLAS_STATUS_ALLOC_FAILED && result != CUBLAS_STATUS_NOT_SUPPORTED &&
        result != CUBLAS_STATUS_ARCH_MISMATCH)
        work->launched = true;
    return gpu_check_cublas(result, function);
}

bool cublas_make_room(const struct gpu_work *work)
{
    if (stream_ctx_wait(work->ctx) != GPU_OK)
        return false;
    pool_trim(work->ctx->device);
    return true;
}

/* Devices before compute capability 8.0 refuse all products of bfloat16; others may refuse one
 * shape, which says nothing of the next. */
static bool has_bfloat16(const struct gpu_work *work)
{
    return CUDA(cublasGemmEx) && cuda_attribute(work->ctx->device->number,
                                                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 8;
}

static enum gpu_status gemm(struct gpu_work *work, char transa, char transb, int64_t m, int64_t n,
                            int64_t k, struct accel_complex alpha, struct dmat a, struct dmat b,
                            struct accel_complex beta, struct dmat c)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    bool by_three =
        work->call->op->traits.three_products && CUDA(cublasCgemm3m) && CUDA(cublasZgemm3m);
    if (work->call->span[ACCEL_a].dtype == ACCEL_BFLOAT16) { /* all else is in single precision */
#define TYPED(tile, type) (void *)(uintptr_t)(tile).ptr, type, (tile).ld
        RETURN_CALL(WIDEST(cublasGemmEx, operation(transa), operation(transb), m, n, k, SCALAR(al),
                           TYPED(a, CUDA_R_16BF), TYPED(b, CUDA_R_16BF), SCALAR(be),
                           TYPED(c, CUDA_R_32F), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                    "cublasGemmEx");
#undef TYPED
    }
    RETURN_BLAS_OR(by_three, gemm3m, gemm_v2, gemm_v2, operation(transa), operation(transb), m, n,
                   k, SCALAR(al), IN(a), IN(b), SCALAR(be), OUT(c));
}

/* The call's own products, or those of zeros that scale C. */
struct products {
    cublasOperation_t op_a, op_b;
    int64_t m, n, k;
    union scalar alpha, beta;
};

static struct products products_of(const struct gpu_work *work, bool scaling)
{
    const struct blas_arguments *x = &work->call->blas;
    struct products p = {.op_a = operation(x->flag[ACCEL_transa]),
                         .op_b = operation(x->flag[ACCEL_transb]),
                         .m = x->size[ACCEL_m],
                         .n = x->size[ACCEL_n],
                         .k = x->size[ACCEL_k],
                         .alpha = make_scalar(work, x->scalar[ACCEL_alpha]),
                         .beta = make_scalar(work, x->scalar[ACCEL_beta])};
    if (scaling) {
        p.op_a = p.op_b = CUBLAS_OP_N;
        p.k = 1;
        p.alpha = make_scalar(work, one);
    }
    return p;
}

static enum gpu_status gemm_strided(struct gpu_work *work, bool scaling, int64_t batch,
                                    struct dmat a, int64_t stride_a, struct dmat b,
                                    int64_t stride_b, struct dmat c, int64_t stride_c)
{
    const struct products p = products_of(work, scaling);
    RETURN_BLAS(gemmStridedBatched, gemmStridedBatched, p.op_a, p.op_b, p.m, p.n, p.k,
                SCALAR(p.alpha), IN(a), stride_a, IN(b), stride_b, SCALAR(p.beta), OUT(c), stride_c,
                batch);
}

static enum gpu_status gemm_array(struct gpu_work *work, bool scaling, int64_t batch, struct dmat a,
                                  struct dmat b, struct dmat c)
{
    const struct products p = products_of(work, scaling);
#define POINTERS(tile, type) (type *const *)(uintptr_t)(tile).ptr, (tile).ld
    RETURN_BLAS(gemmBatched, gemmBatched, p.op_a, p.op_b, p.m, p.n, p.k, SCALAR(p.alpha),
                POINTERS(a, const T), POINTERS(b, const T), SCALAR(p.beta), POINTERS(c, T), batch);
#undef POINTERS
}

static enum gpu_status symm(struct gpu_work *work, bool hermitian, char side, char uplo, int64_t m,
                            int64_t n, struct accel_complex alpha, struct dmat a, struct dmat b,
                            struct accel_complex beta, struct dmat c)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    RETURN_BLAS_OR(hermitian, hemm_v2, symm_v2, symm_v2, at_side(side), fill(uplo), m, n,
                   SCALAR(al), IN(a), IN(b), SCALAR(be), OUT(c));
}

static enum gpu_status syrk(struct gpu_work *work, bool hermitian, char uplo, char trans, int64_t n,
                            int64_t k, struct accel_complex alpha, struct dmat a,
                            struct accel_complex beta, struct dmat c)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    RETURN_BLAS_OR(hermitian, herk_v2, syrk_v2, syrk_v2, fill(uplo), operation(trans), n, k,
                   SCALAR(al), IN(a), SCALAR(be), OUT(c));
}

static enum gpu_status syr2k(struct gpu_work *work, bool hermitian, char uplo, char trans,
                             int64_t n, int64_t k, struct accel_complex alpha, struct dmat a,
                             struct dmat b, struct accel_complex beta, struct dmat c)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    RETURN_BLAS_OR(hermitian, her2k_v2, syr2k_v2, syr2k_v2, fill(uplo), operation(trans), n, k,
                   SCALAR(al), IN(a), IN(b), SCALAR(be), OUT(c));
}

static enum gpu_status transpose(struct gpu_work *work, char trans, int64_t m, int64_t n,
                                 struct dmat a, struct dmat b)
{
    const union scalar al = make_scalar(work, one),
                       none = make_scalar(work, (struct accel_complex){0, 0});
    RETURN_BLAS(geam, geam, operation(trans), CUBLAS_OP_N, m, n, SCALAR(al), IN(a), SCALAR(none),
                IN(b), OUT(b));
}

static enum gpu_status trmm(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct dmat a,
                            struct dmat b)
{
    const union scalar al = make_scalar(work, alpha);
    /* cuBLAS's trmm has a result of its own, which may be B (cuBLAS, cublas<t>trmm). */
    RETURN_BLAS(trmm_v2, trmm_v2, at_side(side), fill(uplo), operation(trans), diagonal(diag), m, n,
                SCALAR(al), IN(a), IN(b), OUT(b));
}

static enum gpu_status trsm(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct dmat a,
                            struct dmat b)
{
    const union scalar al = make_scalar(work, alpha);
    RETURN_BLAS(trsm_v2, trsm_v2, at_side(side), fill(uplo), operation(trans), diagonal(diag), m, n,
                SCALAR(al), IN(a), OUT(b));
}

/* These have no 64-bit form; the length of the packed storage must be an int, too. */
#define NARROW(function, ...) CUDA(function)(stream_ctx_cublas(work->ctx), __VA_ARGS__)

static enum gpu_status pack_triangle(struct gpu_work *work, char uplo, int64_t n, struct dmat a,
                                     gpu_address packed)
{
    if (a.ld > INT_MAX || n > GPU_PACKED_MOST)
        return GPU_UNSUPPORTED;
    RETURN_BY(NARROW, trttp, trttp, fill(uplo), (int)n, (const T *)(uintptr_t)a.ptr, (int)a.ld,
              (T *)(uintptr_t)packed);
}

static enum gpu_status unpack_triangle(struct gpu_work *work, char uplo, int64_t n,
                                       gpu_address packed, struct dmat a)
{
    if (a.ld > INT_MAX || n > GPU_PACKED_MOST)
        return GPU_UNSUPPORTED;
    RETURN_BY(NARROW, tpttr, tpttr, fill(uplo), (int)n, (const T *)(uintptr_t)packed,
              (T *)(uintptr_t)a.ptr, (int)a.ld);
}

/* ---- Level 2: Level 3 conjugates operands that Level 2 does not ---- */

static enum gpu_status gemv(struct gpu_work *work, char trans, int64_t m, int64_t n,
                            struct accel_complex alpha, struct dmat a, struct dmat x,
                            struct accel_complex beta, struct dmat y)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    if (trans == 'R') /* y' := alpha x' A^H + beta y' */
        return gemm(work, 'N', 'C', 1, m, n, alpha, x, a, beta, y);
    RETURN_BLAS(gemv_v2, gemv_v2, operation(trans), m, n, SCALAR(al), IN(a), IN(x), SCALAR(be),
                OUT(y));
}

static enum gpu_status ger(struct gpu_work *work, enum gpu_outer outer, int64_t m, int64_t n,
                           struct accel_complex alpha, struct dmat x, struct dmat y, struct dmat a)
{
    const union scalar al = make_scalar(work, alpha);
    if (outer == GPU_CONJUGATED_X)
        return gemm(work, 'C', 'N', m, n, 1, alpha, x, y, one, a);
    RETURN_BLAS_OR(outer == GPU_CONJUGATED_Y, gerc_v2, ger_v2, geru_v2, m, n, SCALAR(al), IN(x),
                   IN(y), OUT(a));
}

static enum gpu_status symv(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct dmat a, struct dmat x, struct accel_complex beta, struct dmat y)
{
    const union scalar al = make_scalar(work, alpha), be = make_scalar(work, beta);
    if (work->call->blas.conjugated) /* y' := alpha x' A + beta y' */
        return symm(work, true, 'R', uplo, 1, n, alpha, a, x, beta, y);
    RETURN_BLAS(symv_v2, hemv_v2, fill(uplo), n, SCALAR(al), IN(a), IN(x), SCALAR(be), OUT(y));
}

static enum gpu_status syr(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                           struct dmat x, struct dmat a)
{
    const union scalar al = make_scalar(work, alpha);
    if (work->call->blas.conjugated)
        return syrk(work, true, uplo, 'C', n, 1, alpha, x, one, a);
    RETURN_BLAS(syr_v2, her_v2, fill(uplo), n, SCALAR(al), IN(x), OUT(a));
}

static enum gpu_status syr2(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct dmat x, struct dmat y, struct dmat a)
{
    const union scalar al = make_scalar(work, alpha);
    if (work->call->blas.conjugated)
        return syr2k(work, true, uplo, 'C', n, 1, alpha, y, x, one, a);
    RETURN_BLAS(syr2_v2, her2_v2, fill(uplo), n, SCALAR(al), IN(x), IN(y), OUT(a));
}

static enum gpu_status trmv(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct dmat a, struct dmat x)
{
    if (trans == 'R')
        return trmm(work, 'R', uplo, 'C', diag, 1, n, one, a, x);
    RETURN_BLAS(trmv_v2, trmv_v2, fill(uplo), operation(trans), diagonal(diag), n, IN(a), OUT(x));
}

static enum gpu_status trsv(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct dmat a, struct dmat x)
{
    if (trans == 'R')
        return trsm(work, 'R', uplo, 'C', diag, 1, n, one, a, x);
    RETURN_BLAS(trsv_v2, trsv_v2, fill(uplo), operation(trans), diagonal(diag), n, IN(a), OUT(x));
}

static enum gpu_status copy(struct gpu_work *work, int64_t n, struct dmat x, struct dmat y)
{
    RETURN_BLAS(copy_v2, copy_v2, n, IN(x), OUT(y));
}

const struct gpu_kernels cuda_kernels = {.takes = takes,
                                         .has_bfloat16 = has_bfloat16,
                                         .gemm = gemm,
                                         .gemm_strided = gemm_strided,
                                         .gemm_array = gemm_array,
                                         .symm = symm,
                                         .syrk = syrk,
                                         .syr2k = syr2k,
                                         .transpose = transpose,
                                         .trmm = trmm,
                                         .trsm = trsm,
                                         .pack_triangle = pack_triangle,
                                         .unpack_triangle = unpack_triangle,
                                         .gemv = gemv,
                                         .ger = ger,
                                         .symv = symv,
                                         .syr = syr,
                                         .syr2 = syr2,
                                         .trmv = trmv,
                                         .trsv = trsv,
                                         .copy = copy};
