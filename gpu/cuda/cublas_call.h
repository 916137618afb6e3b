/*
 * For kernels*.c and cusolver.c: our letters and scalars in cuBLAS's terms, and calls of one cuBLAS
 * function over the four types.
 */
#ifndef ACCEL_CUBLAS_CALL_H
#define ACCEL_CUBLAS_CALL_H

#include "device.h"
#include "gpu/device/kernels.h"

static inline cublasOperation_t operation(char flag)
{
    return flag == 'N' ? CUBLAS_OP_N : flag == 'T' ? CUBLAS_OP_T : CUBLAS_OP_C;
}

static inline cublasFillMode_t fill(char uplo)
{
    return uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

static inline cublasSideMode_t at_side(char side)
{
    return side == 'L' ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}

static inline cublasDiagType_t diagonal(char diag)
{
    return diag == 'U' ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

/* A scalar in the precision of the call's type; a real routine reads the first part alone. */
union scalar {
    double in_double[2];
    float in_float[2];
};

static inline union scalar make_scalar(const struct gpu_work *work, struct accel_complex z)
{
    if (accel_is_double(work->call->routine->dtype))
        return (union scalar){.in_double = {z.re, z.im}};
    return (union scalar){.in_float = {(float)z.re, (float)z.im}};
}

/* Takes the result of a call: notes in the work whether a kernel may have run. */
enum gpu_status cublas_launched(struct gpu_work *work, cublasStatus_t result, const char *function);

/* Makes room for memory that cuBLAS itself allocates: waits for our own work and frees what lies
 * idle in our pool. */
bool cublas_make_room(const struct gpu_work *work);

/* The arguments of the functions below. T is the element type. */
#define SCALAR(x) (const void *)&(x)
#define IN(tile)  (const T *)(uintptr_t)(tile).ptr, (tile).ld
#define OUT(tile) (T *)(uintptr_t)(tile).ptr, (tile).ld

/* Calls a cuBLAS function: the 64-bit form if this cuBLAS has it. */
#define WIDEST(function, ...)                                                                      \
    (cuda_api.function##_64_p                                                                      \
         ? cuda_api.function##_64_p(stream_ctx_cublas(work->ctx), __VA_ARGS__)                     \
         : cuda_api.function##_p(stream_ctx_cublas(work->ctx), __VA_ARGS__))

/* Returns from the kernel the status of a call, which is made once more if cuBLAS lacked memory. */
#define RETURN_CALL(call, name)                                                                    \
    do {                                                                                           \
        cublasStatus_t result;                                                                     \
        int attempt = 0;                                                                           \
        do                                                                                         \
            result = (call);                                                                       \
        while (result == CUBLAS_STATUS_ALLOC_FAILED && attempt++ == 0 && cublas_make_room(work));  \
        return cublas_launched(work, result, name);                                                \
    } while (0)

#define CASE(dtype, type, width, function, ...)                                                    \
case dtype: {                                                                                      \
    typedef type T;                                                                                \
    RETURN_CALL(width(function, __VA_ARGS__), #function);                                          \
}
#define REAL_CASES(width, op, ...)                                                                 \
    CASE(ACCEL_FLOAT32, float, width, cublasS##op, __VA_ARGS__)                                    \
    CASE(ACCEL_FLOAT64, double, width, cublasD##op, __VA_ARGS__)
#define COMPLEX_CASES(width, op, ...)                                                              \
    CASE(ACCEL_COMPLEX64, cuComplex, width, cublasC##op, __VA_ARGS__)                              \
    CASE(ACCEL_COMPLEX128, cuDoubleComplex, width, cublasZ##op, __VA_ARGS__)

/* Return from the kernel the status of the function for the call's type: `real` or `complex` is its
 * name without the type's letter. */
#define RETURN_BY(width, real, complex, ...)                                                       \
    switch (work->call->routine->dtype) {                                                          \
        REAL_CASES(width, real, __VA_ARGS__)                                                       \
        COMPLEX_CASES(width, complex, __VA_ARGS__)                                                 \
    default:                                                                                       \
        return GPU_ERROR;                                                                          \
    }
#define RETURN_BLAS(real, complex, ...) RETURN_BY(WIDEST, real, complex, __VA_ARGS__)

/* The same, if `condition` with the complex function `op`, else with `real` or `complex`. */
#define RETURN_BLAS_OR(condition, op, real, complex, ...)                                          \
    if (condition)                                                                                 \
        switch (work->call->routine->dtype) {                                                      \
            COMPLEX_CASES(WIDEST, op, __VA_ARGS__)                                                 \
        default:                                                                                   \
            return GPU_ERROR;                                                                      \
        }                                                                                          \
    RETURN_BLAS(real, complex, __VA_ARGS__)

#endif
