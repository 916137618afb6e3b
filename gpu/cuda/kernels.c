#include "cublas_call.h"

#include "ops/op.h"

#include <limits.h>

static const struct accel_complex one = {1, 0};

bool kernels_fit(int64_t size)
{
    return CUDA(cublasDgemm_v2_64) != NULL || size <= INT_MAX;
}

bool kernels_fit_call(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if (!kernels_fit(call->blas.size[i]))
            return false;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (gpu_in_place(&call->span[i]) && !kernels_fit(call->span[i].ld))
            return false;
    return true;
}

enum gpu_status cublas_launched(struct gpu_work *work, cublasStatus_t result, const char *function)
{
    /* The other failures do not prove that nothing ran: a call may launch several kernels. */
    if (result != CUBLAS_STATUS_INVALID_VALUE && result != CUBLAS_STATUS_NOT_INITIALIZED &&
        result != CUBLAS_STATUS_ALLOC_FAILED && result != CUBLAS_STATUS_NOT_SUPPORTED &&
        result != CUBLAS_STATUS_ARCH_MISMATCH)
        work->launched = true;
    return gpu_check_cublas(result, function);
}

bool cublas_make_room(const struct gpu_work *work)
{
    if (lane_wait(work->lane) != GPU_OK)
        return false;
    pool_trim(work->lane->device);
    return true;
}

/* Devices before compute capability 8.0 refuse all products of bfloat16; others may refuse one shape, which says nothing
 * of the next. */
bool kernels_have_bfloat16(const struct gpu_work *work)
{
    int major = 0;
    return CUDA(cublasGemmEx) &&
           CUDA(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                      work->lane->device->number) == CUDA_SUCCESS &&
           major >= 8;
}

/* bfloat16 factors, and all else in single precision. */
static enum gpu_status gemm_of_bfloat16(struct gpu_work *work, char transa, char transb, int64_t m,
                                        int64_t n, int64_t k, struct scalar alpha,
                                        struct gpu_tile a, struct gpu_tile b, struct scalar beta,
                                        struct gpu_tile c)
{
    typedef void T;
    enum gpu_status status;
#define TYPED(tile, type) (T *)(uintptr_t)(tile).ptr, type, (tile).ld
    TRY(EITHER(cublasGemmEx, operation(transa), operation(transb), m, n, k, alpha.as_float,
               TYPED(a, CUDA_R_16BF), TYPED(b, CUDA_R_16BF), beta.as_float, TYPED(c, CUDA_R_32F),
               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
#undef TYPED
    return status;
}

enum gpu_status kernel_gemm(struct gpu_work *work, char transa, char transb, int64_t m, int64_t n,
                            int64_t k, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b, struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P)                                                                               \
    operation(transa), operation(transb), m, n, k, P(al), IN(a), IN(b), P(be), OUT(c)
    if (work->call->span[ACCEL_a].dtype == ACCEL_BFLOAT16)
        return gemm_of_bfloat16(work, transa, transb, m, n, k, al, a, b, be, c);
    if (accel_op_of(work->call->routine)->three_products && CUDA(cublasCgemm3m) &&
        CUDA(cublasZgemm3m))
        SWITCH(COMPLEX_CASES(gemm3m, ARGUMENTS))
    else
        SWITCH(REAL_CASES(gemm_v2, ARGUMENTS) COMPLEX_CASES(gemm_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

/* The factors of a batch's products: op(A), op(B), what is between them, and alpha. */
struct factors {
    cublasOperation_t op_a, op_b;
    int64_t k;
    struct scalar alpha;
};

static struct factors factors_of(const struct accel_call *call, bool scaling)
{
    if (scaling)
        return (struct factors){CUBLAS_OP_N, CUBLAS_OP_N, 1, make_scalar(one)};
    return (struct factors){operation(call->blas.flag[ACCEL_transa]),
                            operation(call->blas.flag[ACCEL_transb]), call->blas.size[ACCEL_k],
                            make_scalar(call->blas.scalar[ACCEL_alpha])};
}

enum gpu_status kernel_gemm_strided(struct gpu_work *work, bool scaling, int64_t batch,
                                    struct gpu_tile a, int64_t stride_a, struct gpu_tile b,
                                    int64_t stride_b, struct gpu_tile c, int64_t stride_c)
{
    const struct accel_call *call = work->call;
    const struct factors f = factors_of(call, scaling);
    const struct scalar be = make_scalar(call->blas.scalar[ACCEL_beta]);
    int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P)                                                                               \
    f.op_a, f.op_b, m, n, f.k, P(f.alpha), IN(a), stride_a, IN(b), stride_b, P(be), OUT(c),        \
        stride_c, batch
    SWITCH(REAL_CASES(gemmStridedBatched, ARGUMENTS) COMPLEX_CASES(gemmStridedBatched, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_gemm_array(struct gpu_work *work, bool scaling, int64_t batch,
                                  struct gpu_tile a, struct gpu_tile b, struct gpu_tile c)
{
    const struct accel_call *call = work->call;
    const struct factors f = factors_of(call, scaling);
    const struct scalar be = make_scalar(call->blas.scalar[ACCEL_beta]);
    int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    enum gpu_status status = GPU_ERROR;
#define POINTERS_IN(tile)  (const T *const *)(uintptr_t)(tile).ptr, (tile).ld
#define POINTERS_OUT(tile) (T *const *)(uintptr_t)(tile).ptr, (tile).ld
#define ARGUMENTS(P)                                                                               \
    f.op_a, f.op_b, m, n, f.k, P(f.alpha), POINTERS_IN(a), POINTERS_IN(b), P(be), POINTERS_OUT(c), \
        batch
    SWITCH(REAL_CASES(gemmBatched, ARGUMENTS) COMPLEX_CASES(gemmBatched, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

/* ---- Scaling ---- */

enum gpu_status kernel_zeros(struct gpu_work *work, int64_t count, gpu_address *zeros)
{
    const int64_t bytes = count * (int64_t)accel_dtype_size(work->call->routine->dtype);
    bool grew;
    enum gpu_status status = pool_get(work->lane->device, bytes, zeros, &grew);
    if (status != GPU_OK)
        return status;
    work->block[work->blocks++] = *zeros;
    return gpu_work_zero(work, *zeros, bytes);
}

enum gpu_status kernel_scale(struct gpu_work *work, int64_t m, int64_t n, struct accel_complex beta,
                             gpu_address zeros, struct gpu_tile c)
{
    const struct scalar al = make_scalar(one), be = make_scalar(beta);
    const struct gpu_tile column = {zeros, m}, row = {zeros, 1};
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) CUBLAS_OP_N, CUBLAS_OP_N, m, n, 1, P(al), IN(column), IN(row), P(be), OUT(c)
    SWITCH(REAL_CASES(gemm_v2, ARGUMENTS) COMPLEX_CASES(gemm_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_scale_triangle(struct gpu_work *work, bool hermitian, char uplo, int64_t n,
                                      struct accel_complex beta, gpu_address zeros,
                                      struct gpu_tile c)
{
    const struct gpu_tile column = {zeros, n};
    return kernel_syrk(work, hermitian, uplo, 'N', n, 1, one, column, beta, c);
}

enum gpu_status kernel_symm(struct gpu_work *work, bool hermitian, char side, char uplo, int64_t m,
                            int64_t n, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b, struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) at_side(side), fill(uplo), m, n, P(al), IN(a), IN(b), P(be), OUT(c)
    if (hermitian)
        SWITCH(COMPLEX_CASES(hemm_v2, ARGUMENTS))
    else
        SWITCH(REAL_CASES(symm_v2, ARGUMENTS) COMPLEX_CASES(symm_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_syrk(struct gpu_work *work, bool hermitian, char uplo, char trans, int64_t n,
                            int64_t k, struct accel_complex alpha, struct gpu_tile a,
                            struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), operation(trans), n, k, P(al), IN(a), P(be), OUT(c)
    if (hermitian)
        SWITCH(COMPLEX_CASES(herk_v2, ARGUMENTS))
    else
        SWITCH(REAL_CASES(syrk_v2, ARGUMENTS) COMPLEX_CASES(syrk_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_syr2k(struct gpu_work *work, bool hermitian, char uplo, char trans,
                             int64_t n, int64_t k, struct accel_complex alpha, struct gpu_tile a,
                             struct gpu_tile b, struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), operation(trans), n, k, P(al), IN(a), IN(b), P(be), OUT(c)
    if (hermitian)
        SWITCH(COMPLEX_CASES(her2k_v2, ARGUMENTS))
    else
        SWITCH(REAL_CASES(syr2k_v2, ARGUMENTS) COMPLEX_CASES(syr2k_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_transpose(struct gpu_work *work, char trans, int64_t m, int64_t n,
                                 struct gpu_tile a, struct gpu_tile b)
{
    const struct scalar al = make_scalar(one), none = make_scalar((struct accel_complex){0, 0});
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) operation(trans), CUBLAS_OP_N, m, n, P(al), IN(a), P(none), IN(b), OUT(b)
    SWITCH(REAL_CASES(geam, ARGUMENTS) COMPLEX_CASES(geam, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_trmm(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b)
{
    const struct scalar al = make_scalar(alpha);
    enum gpu_status status = GPU_ERROR;
/* cuBLAS's trmm has a result of its own, which may be B (cuBLAS, cublas<t>trmm). */
#define ARGUMENTS(P)                                                                               \
    at_side(side), fill(uplo), operation(trans), diagonal(diag), m, n, P(al), IN(a), IN(b), OUT(b)
    SWITCH(REAL_CASES(trmm_v2, ARGUMENTS) COMPLEX_CASES(trmm_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_trsm(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b)
{
    const struct scalar al = make_scalar(alpha);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P)                                                                               \
    at_side(side), fill(uplo), operation(trans), diagonal(diag), m, n, P(al), IN(a), OUT(b)
    SWITCH(REAL_CASES(trsm_v2, ARGUMENTS) COMPLEX_CASES(trsm_v2, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

/* These have no 64-bit form, and no scalars; the length of what they pack must be an int, too. */
#define PACK_CASE(dtype, function, arguments, type)                                                \
    case dtype: {                                                                                  \
        typedef type T;                                                                            \
        TRY(CUDA(function)(lane_cublas(work->lane), fill(uplo), (int)n, arguments()), #function);  \
        break;                                                                                     \
    }
#define PACK_CASES(op, arguments)                                                                  \
    PACK_CASE(ACCEL_FLOAT32, cublasS##op, arguments, float)                                        \
    PACK_CASE(ACCEL_FLOAT64, cublasD##op, arguments, double)                                       \
    PACK_CASE(ACCEL_COMPLEX64, cublasC##op, arguments, cuComplex)                                  \
    PACK_CASE(ACCEL_COMPLEX128, cublasZ##op, arguments, cuDoubleComplex)

#define PACKED_MOST 65535 /* n (n + 1) / 2 < 2^31 */

enum gpu_status kernel_pack_triangle(struct gpu_work *work, char uplo, int64_t n, struct gpu_tile a,
                                     gpu_address packed)
{
    enum gpu_status status = GPU_ERROR;
    if (a.ld > INT_MAX || n > PACKED_MOST)
        return GPU_UNSUPPORTED;
#define ARGUMENTS() (const T *)(uintptr_t)a.ptr, (int)a.ld, (T *)(uintptr_t)packed
    SWITCH(PACK_CASES(trttp, ARGUMENTS))
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_unpack_triangle(struct gpu_work *work, char uplo, int64_t n,
                                       gpu_address packed, struct gpu_tile a)
{
    enum gpu_status status = GPU_ERROR;
    if (a.ld > INT_MAX || n > PACKED_MOST)
        return GPU_UNSUPPORTED;
#define ARGUMENTS() (const T *)(uintptr_t)packed, (T *)(uintptr_t)a.ptr, (int)a.ld
    SWITCH(PACK_CASES(tpttr, ARGUMENTS))
#undef ARGUMENTS
    return status;
}
