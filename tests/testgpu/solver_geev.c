/* Xgeev, which only the newer library has: VR is the call's B. */
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"
#include "solver_lapack.h"

#if TESTGPU_CUBLAS_MAJOR >= 13

typedef void real_routine(const char *jobvl, const char *jobvr, const int *n, void *a,
                          const int *lda, void *wr, void *wi, void *vl, const int *ldvl, void *vr,
                          const int *ldvr, void *work, const int *lwork, int *info, size_t, size_t);
typedef void complex_routine(const char *jobvl, const char *jobvr, const int *n, void *a,
                             const int *lda, void *w, void *vl, const int *ldvl, void *vr,
                             const int *ldvr, void *work, const int *lwork, void *rwork, int *info,
                             size_t, size_t);
real_routine REAL_ONES(geev);
complex_routine COMPLEX_ONES(geev);

static cudaDataType complex_type(const struct solver_call *x)
{
    return real_bytes(x) == sizeof(float) ? CUDA_C_32F : CUDA_C_64F;
}

/*
 * The values of a real matrix are 2 n reals, the real parts first, or n complex numbers; its
 * vectors are real either way, two columns for a conjugate pair.
 */
static bool describe(struct solver_call *x)
{
    bool vectors = x->jobz == CUSOLVER_EIG_MODE_VECTOR;
    set_operand(x, A, x->n, x->n);
    set_operand(x, B, vectors ? x->n : 0, vectors ? x->n : 0);
    set_list(x, VALUES, 2 * x->n, real_bytes(x));
    return (x->type_values == x->type || x->type_values == complex_type(x)) && x->type_b == x->type;
}

static int64_t room(const struct solver_call *x)
{
    return 64 * larger(1, x->n);
}

/* From the real parts and then the imaginary ones to one after the other. */
static void interleave(const struct solver_call *x, char *values)
{
    size_t real = real_bytes(x);
    char *parts = memory(2 * x->n, real);
    memcpy(parts, values, 2 * (size_t)x->n * real);
    for (int64_t i = 0; i < x->n; i++) {
        memcpy(values + 2 * (size_t)i * real, parts + (size_t)i * real, real);
        memcpy(values + (2 * (size_t)i + 1) * real, parts + (size_t)(x->n + i) * real, real);
    }
    free(parts);
}

static int compute(const struct solver_call *x, void *const *at)
{
    static real_routine *const reals[] = {REAL_ONES(geev)};
    static complex_routine *const complexes[] = {[COMPLEX] = COMPLEX_ONES(geev)};
    struct words w = words_of(x);
    const char none = 'N';
    const int one = 1;
    int info = 0, lwork = (int)room(x);
    if (gives_up(x, A, at, &info))
        return info;
    void *work = memory(lwork, element_bytes(x->precision));
    void *rwork = memory(2 * x->n, real_bytes(x));
    char *values = at[VALUES];
    if (is_complex(x))
        ALONE(complexes[x->precision], &none, &w.job, &w.n, at[A], &w.lda, values, NULL, &one,
              at[B], &w.ldb, work, &lwork, rwork, &info, 1, 1);
    else
        ALONE(reals[x->precision], &none, &w.job, &w.n, at[A], &w.lda, values,
              values + (size_t)x->n * real_bytes(x), NULL, &one, at[B], &w.ldb, work, &lwork, &info,
              1, 1);
    free(rwork);
    free(work);
    if (!is_complex(x) && x->type_values != x->type)
        interleave(x, values);
    destroy(&x->at[A], 0, at[A]);
    return info;
}

static const struct solver_routine geev = {
    .name = "geev",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = VALUES,
    .describe = describe,
    .room = room,
    .compute = compute,
    .operations = operations_of_geev,
};

#    define FIELDS                                                                                 \
        .routine = &geev, .params = params, .type = dataTypeA, .type_b = dataTypeVR,               \
        .type_values = dataTypeW, .compute_type = computeType, .jobz = jobvr, .n = n,              \
        OPERAND(A, a, lda), OPERAND(B, vr, ldvr), LIST(VALUES, w)

/* Left vectors are not supported. */
static bool fits(cusolverEigMode_t jobvl, cudaDataType type, cudaDataType type_vr, int64_t ldvl)
{
    return jobvl == CUSOLVER_EIG_MODE_NOVECTOR && type == type_vr && ldvl >= 1;
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgeev_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
    cusolverEigMode_t jobvr, int64_t n, cudaDataType dataTypeA, const void *a, int64_t lda,
    cudaDataType dataTypeW, const void *w, cudaDataType dataTypeVL, const void *vl, int64_t ldvl,
    cudaDataType dataTypeVR, const void *vr, int64_t ldvr, cudaDataType computeType, size_t *device,
    size_t *host)
{
    struct solver_call x = {FIELDS};
    (void)vl;
    ENTER_SOLVER_CALL(handle, x);
    if (!fits(jobvl, dataTypeVL, dataTypeVR, ldvl))
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    TESTGPU_RETURN(solver_sizes(handle, &x, device, host));
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgeev(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
    cusolverEigMode_t jobvr, int64_t n, cudaDataType dataTypeA, void *a, int64_t lda,
    cudaDataType dataTypeW, void *w, cudaDataType dataTypeVL, void *vl, int64_t ldvl,
    cudaDataType dataTypeVR, void *vr, int64_t ldvr, cudaDataType computeType, void *bufferOnDevice,
    size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {FIELDS, X_WORK};
    (void)vl;
    ENTER_SOLVER_CALL(handle, x);
    if (!fits(jobvl, dataTypeVL, dataTypeVR, ldvl))
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    TESTGPU_RETURN(solver_call(handle, &x));
}

#endif
