/*
 * For the sources of LAPACK's operations alone: cuSOLVER's functions in the solver's terms. SOLVE() is for a function that
 * takes what it wants after the handle; LEGACY() for one of four by type, whose sizes are 32 bits; GENERIC() for those of
 * any type with their two workspaces. A function that this cuSOLVER lacks is GPU_UNSUPPORTED.
 */
#ifndef ACCEL_CUSOLVER_CALL_H
#define ACCEL_CUSOLVER_CALL_H

#include <limits.h>

#include "cublas_call.h"
#include "solver.h"

#define SOLVER_HANDLE(s) lane_cusolver((s)->work->lane)
#define SOLVER_PARAMS(s) (s)->work->lane->params
#define SOLVER_INFO(s)   (int *)(uintptr_t)(s)->info

/* Where an array is, for a generic function; its leading dimension follows. */
#define AT(x)     (void *)(uintptr_t)(x).ptr
#define MATRIX(x) (void *)(uintptr_t)(x).ptr, (x).ld
#define PIVOTS(x) (int64_t *)(uintptr_t)(x).ptr

/* A typed array, for a legacy one, where T and R are the routine's type and its real counterpart. */
#define TYPED(x)  (T *)(uintptr_t)(x).ptr, (int)(x).ld
#define VALUES(x) (T *)(uintptr_t)(x).ptr
#define REALS(x)  (R *)(uintptr_t)(x).ptr
#define INTS(x)   (int *)(uintptr_t)(x).ptr

#define SOLVE(s, function, ...)                                                                    \
    do {                                                                                           \
        if (!cuda_api.function##_p)                                                                \
            solver_note(s, GPU_UNSUPPORTED);                                                       \
        if (solver_is_well(s))                                                                     \
            solver_note(s, GPU_CHECK_CUSOLVER(function, SOLVER_HANDLE(s), __VA_ARGS__));           \
    } while (0)

/* A generic function with its workspaces: arguments up to them. */
#define GENERIC(s, function, ...)                                                                  \
    do {                                                                                           \
        size_t on_device = 0, on_host = 0;                                                         \
        SOLVE(s, function##_bufferSize, __VA_ARGS__, &on_device, &on_host);                        \
        struct array device_work = solver_work(s, on_device);                                      \
        void *host_work = solver_host_work(s, on_host);                                            \
        SOLVE(s, function, __VA_ARGS__, AT(device_work), on_device, host_work, on_host,            \
              SOLVER_INFO(s));                                                                     \
    } while (0)

#define LEGACY_CASE(s, dtype, function, type, real, ...)                                           \
case dtype: {                                                                                      \
    typedef type T;                                                                                \
    typedef real R;                                                                                \
    int lwork = 0;                                                                                 \
    (void)sizeof(R);                                                                               \
    SOLVE(s, function##_bufferSize, __VA_ARGS__, &lwork);                                          \
    struct array device_work = solver_work(s, (size_t)lwork * sizeof(T));                          \
    SOLVE(s, function, __VA_ARGS__, VALUES(device_work), lwork, SOLVER_INFO(s));                   \
    break;                                                                                         \
}

/* One function of four with its workspace; the arguments may use T and R. */
#define LEGACY(s, real_op, complex_op, ...)                                                        \
    do {                                                                                           \
        switch ((s)->dtype) {                                                                      \
            LEGACY_CASE(s, ACCEL_FLOAT32, cusolverDnS##real_op, float, float, __VA_ARGS__)         \
            LEGACY_CASE(s, ACCEL_FLOAT64, cusolverDnD##real_op, double, double, __VA_ARGS__)       \
            LEGACY_CASE(s, ACCEL_COMPLEX64, cusolverDnC##complex_op, cuComplex, float,             \
                        __VA_ARGS__)                                                               \
            LEGACY_CASE(s, ACCEL_COMPLEX128, cusolverDnZ##complex_op, cuDoubleComplex, double,     \
                        __VA_ARGS__)                                                               \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    } while (0)

/* Whether eigenvectors are wanted, of a job's letter. */
static inline cusolverEigMode_t solver_vectors(char job)
{
    return job == 'V' ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

/* Whether the sizes of a call can be passed as int; the call is the original's where not. */
static inline bool solver_fits_int(struct solver *s, int64_t a, int64_t b)
{
    return a <= INT_MAX && b <= INT_MAX ? solver_is_well(s) : solver_note(s, GPU_UNSUPPORTED);
}

#endif
