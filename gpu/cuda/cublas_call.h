/*
 * For the kernels' sources alone: one cuBLAS function over the four types, in the 64-bit form where this cuBLAS has
 * it, with our letters and scalars in its terms.
 */
#ifndef ACCEL_CUBLAS_CALL_H
#define ACCEL_CUBLAS_CALL_H

#include "device.h"
#include "gpu/kernels.h"

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

/* A scalar in both precisions; a real routine reads the first part. */
struct scalar {
    double as_double[2];
    float as_float[2];
};

static inline struct scalar make_scalar(struct accel_complex z)
{
    return (struct scalar){{z.re, z.im}, {(float)z.re, (float)z.im}};
}

/* Notes in the work whether a kernel may have run. */
enum gpu_status cublas_launched(struct gpu_work *work, cublasStatus_t result, const char *function);

/* For what cuBLAS itself allocates: frees what lies idle in our pool, once our own work is done. */
bool cublas_make_room(const struct gpu_work *work);

/* TRY(call, name) sets `status`; the call is an expression. */
#define TRY(call, name)                                                                            \
    do {                                                                                           \
        cublasStatus_t result;                                                                     \
        int attempt = 0;                                                                           \
        do                                                                                         \
            result = (call);                                                                       \
        while (result == CUBLAS_STATUS_ALLOC_FAILED && attempt++ == 0 && cublas_make_room(work));  \
        status = cublas_launched(work, result, name);                                              \
    } while (0)

/* Of the function's two widths. */
#define EITHER(function, ...)                                                                      \
    (cuda_api.function##_64_p ? cuda_api.function##_64_p(lane_cublas(work->lane), __VA_ARGS__)     \
                              : cuda_api.function##_p(lane_cublas(work->lane), __VA_ARGS__))

#define SINGLE(x) (const void *)(x).as_float
#define DOUBLE(x) (const void *)(x).as_double

/* One function of four: T is its element type; arguments(P) its arguments, P(x) the scalar x's address. */
#define CASE(dtype, function, arguments, type, scalar_at)                                          \
case dtype: {                                                                                      \
    typedef type T;                                                                                \
    TRY(EITHER(function, arguments(scalar_at)), #function);                                        \
    break;                                                                                         \
}
#define REAL_CASES(op, arguments)                                                                  \
    CASE(ACCEL_FLOAT32, cublasS##op, arguments, float, SINGLE)                                     \
    CASE(ACCEL_FLOAT64, cublasD##op, arguments, double, DOUBLE)
#define COMPLEX_CASES(op, arguments)                                                               \
    CASE(ACCEL_COMPLEX64, cublasC##op, arguments, cuComplex, SINGLE)                               \
    CASE(ACCEL_COMPLEX128, cublasZ##op, arguments, cuDoubleComplex, DOUBLE)

/* The body of a switch over the type. */
#define SWITCH(cases)                                                                              \
    switch (work->call->routine->dtype) {                                                          \
        cases default : break;                                                                     \
    }

#define IN(tile)  (const T *)(uintptr_t)(tile).ptr, (tile).ld
#define OUT(tile) (T *)(uintptr_t)(tile).ptr, (tile).ld

#endif
