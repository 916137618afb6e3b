#include "kernels.h"

#include <limits.h>

bool kernels_fit(int64_t size)
{
    return CUDA(cublasDgemm_v2_64) != NULL || size <= INT_MAX;
}

bool kernels_fit_call(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SIZES; i++)
        if (!kernels_fit(call->size[i]))
            return false;
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (gpu_in_place(&call->operand[i]) && !kernels_fit(call->operand[i].ld))
            return false;
    return true;
}

static cublasOperation_t operation(char flag)
{
    return flag == 'N' ? CUBLAS_OP_N : flag == 'T' ? CUBLAS_OP_T : CUBLAS_OP_C;
}

static cublasFillMode_t fill(char uplo)
{
    return uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

static cublasSideMode_t at_side(char side)
{
    return side == 'L' ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}

static cublasDiagType_t diagonal(char diag)
{
    return diag == 'U' ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

/* A scalar in both precisions; a real routine reads the first part. */
struct scalar {
    double as_double[2];
    float as_float[2];
};

static struct scalar make_scalar(struct accel_complex z)
{
    return (struct scalar){{z.re, z.im}, {(float)z.re, (float)z.im}};
}

static enum gpu_status launched(struct gpu_work *work, cublasStatus_t result, const char *function)
{
    /* The other failures do not prove that nothing ran: a call may launch several kernels. */
    if (result != CUBLAS_STATUS_INVALID_VALUE && result != CUBLAS_STATUS_NOT_INITIALIZED &&
        result != CUBLAS_STATUS_ALLOC_FAILED && result != CUBLAS_STATUS_NOT_SUPPORTED &&
        result != CUBLAS_STATUS_ARCH_MISMATCH)
        work->launched = true;
    return gpu_check_cublas(result, function);
}

/* For what cuBLAS itself allocates: what lies idle in our pool, once our own work is done. */
static bool make_room(const struct gpu_work *work)
{
    if (CUDA(cuStreamSynchronize)(work->lane->stream) != CUDA_SUCCESS)
        return false;
    pool_trim();
    return true;
}

/* One cuBLAS function of four: T is its element type, P(x) the scalar x's address. */
#define TRY(function, ...)                                                                         \
    do {                                                                                           \
        cublasStatus_t result;                                                                     \
        int attempt = 0;                                                                           \
        do                                                                                         \
            result = cuda_api.function##_64_p                                                      \
                         ? cuda_api.function##_64_p(work->lane->cublas, __VA_ARGS__)               \
                         : cuda_api.function##_p(work->lane->cublas, __VA_ARGS__);                 \
        while (result == CUBLAS_STATUS_ALLOC_FAILED && attempt++ == 0 && make_room(work));         \
        status = launched(work, result, #function);                                                \
    } while (0)
#define SINGLE(x) (const void *)(x).as_float
#define DOUBLE(x) (const void *)(x).as_double

#define CASE(dtype, function, arguments, type, scalar_at)                                          \
    case dtype: {                                                                                  \
        typedef type T;                                                                            \
        TRY(function, arguments(scalar_at));                                                       \
        break;                                                                                     \
    }
#define REAL_CASES(op, arguments)                                                                  \
    CASE(ACCEL_FLOAT32, cublasS##op##_v2, arguments, float, SINGLE)                                \
    CASE(ACCEL_FLOAT64, cublasD##op##_v2, arguments, double, DOUBLE)
#define COMPLEX_CASES(op, arguments)                                                               \
    CASE(ACCEL_COMPLEX64, cublasC##op##_v2, arguments, cuComplex, SINGLE)                          \
    CASE(ACCEL_COMPLEX128, cublasZ##op##_v2, arguments, cuDoubleComplex, DOUBLE)

#define IN(tile)  (const T *)(uintptr_t)(tile).ptr, (tile).ld
#define OUT(tile) (T *)(uintptr_t)(tile).ptr, (tile).ld

#define DTYPE(work) ((work)->call->routine->dtype)

enum gpu_status kernel_gemm(struct gpu_work *work, char transa, char transb, int64_t m, int64_t n,
                            int64_t k, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b, struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P)                                                                               \
    operation(transa), operation(transb), m, n, k, P(al), IN(a), IN(b), P(be), OUT(c)
    switch (DTYPE(work)) {
        REAL_CASES(gemm, ARGUMENTS)
        COMPLEX_CASES(gemm, ARGUMENTS)
    case ACCEL_DTYPES:
        break;
    }
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_symm(struct gpu_work *work, char side, char uplo, int64_t m, int64_t n,
                            struct accel_complex alpha, struct gpu_tile a, struct gpu_tile b,
                            struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) at_side(side), fill(uplo), m, n, P(al), IN(a), IN(b), P(be), OUT(c)
    if (work->call->routine->family == ACCEL_HEMM) {
        switch (DTYPE(work)) {
            COMPLEX_CASES(hemm, ARGUMENTS)
        default:
            break;
        }
    } else {
        switch (DTYPE(work)) {
            REAL_CASES(symm, ARGUMENTS)
            COMPLEX_CASES(symm, ARGUMENTS)
        case ACCEL_DTYPES:
            break;
        }
    }
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_syrk(struct gpu_work *work, char uplo, char trans, int64_t n, int64_t k,
                            struct accel_complex alpha, struct gpu_tile a,
                            struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), operation(trans), n, k, P(al), IN(a), P(be), OUT(c)
    if (work->call->routine->family == ACCEL_HERK) {
        switch (DTYPE(work)) {
            COMPLEX_CASES(herk, ARGUMENTS)
        default:
            break;
        }
    } else {
        switch (DTYPE(work)) {
            REAL_CASES(syrk, ARGUMENTS)
            COMPLEX_CASES(syrk, ARGUMENTS)
        case ACCEL_DTYPES:
            break;
        }
    }
#undef ARGUMENTS
    return status;
}

enum gpu_status kernel_syr2k(struct gpu_work *work, char uplo, char trans, int64_t n, int64_t k,
                             struct accel_complex alpha, struct gpu_tile a, struct gpu_tile b,
                             struct accel_complex beta, struct gpu_tile c)
{
    const struct scalar al = make_scalar(alpha), be = make_scalar(beta);
    enum gpu_status status = GPU_ERROR;
#define ARGUMENTS(P) fill(uplo), operation(trans), n, k, P(al), IN(a), IN(b), P(be), OUT(c)
    if (work->call->routine->family == ACCEL_HER2K) {
        switch (DTYPE(work)) {
            COMPLEX_CASES(her2k, ARGUMENTS)
        default:
            break;
        }
    } else {
        switch (DTYPE(work)) {
            REAL_CASES(syr2k, ARGUMENTS)
            COMPLEX_CASES(syr2k, ARGUMENTS)
        case ACCEL_DTYPES:
            break;
        }
    }
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
    switch (DTYPE(work)) {
        REAL_CASES(trmm, ARGUMENTS)
        COMPLEX_CASES(trmm, ARGUMENTS)
    case ACCEL_DTYPES:
        break;
    }
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
    switch (DTYPE(work)) {
        REAL_CASES(trsm, ARGUMENTS)
        COMPLEX_CASES(trsm, ARGUMENTS)
    case ACCEL_DTYPES:
        break;
    }
#undef ARGUMENTS
    return status;
}
