/*
 * Xgesvdp and gesvdj: singular values by a polar decomposition and by Jacobi rotations. U is the
 * call's B, V its VT. The numbers are ?gesvd's; around them these are as hard to please as
 * documented, and as far from ?gesvd as they may be:
 *
 * Xgesvdp shifts the singular values of a matrix that has one close to zero, and says by how much
 * (h_err_sigma). gesvdj writes U and V also where no vectors are asked for; those columns are then
 * no vectors.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"
#include "solver_lapack.h"

/* U has all its columns, or as many as the matrix. Both want U and V whatever the job. */
static bool describe(struct solver_call *x)
{
    int64_t least = smaller(x->m, x->n);
    if (x->m < x->n) {
        testgpu_fault("beyond_the_test_gpu", "more columns than rows");
        return false;
    }
    set_operand(x, A, x->m, x->n);
    set_operand(x, B, x->m, x->economy ? least : x->m);
    set_operand(x, VT, x->n, x->economy ? least : x->n);
    set_list(x, VALUES, least, real_bytes(x));
    return x->type_values == real_type(x) && x->type_b == x->type && x->type_vt == x->type;
}

static int64_t room(const struct solver_call *x)
{
    return room_of_singular_values(x) + (x->m + x->n) * x->n;
}

/* V of V^H, element by element; the imaginary parts change their sign. */
static void put_adjoint(const struct solver_call *x, char *v, const char *vt)
{
    int64_t n = x->n, ld = x->at[VT].ld;
    size_t element = x->at[VT].element, part = real_bytes(x);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            char *to = v + (size_t)(j * ld + i) * element;
            memcpy(to, vt + (size_t)(i * n + j) * element, element);
            if (is_complex(x))
                to[2 * part - 1] = (char)(to[2 * part - 1] ^ 0x80);
        }
}

static int decompose(const struct solver_call *x, void *const *at)
{
    struct solver_call plain = *x;
    int info = 0;
    bool vectors = x->jobz == CUSOLVER_EIG_MODE_VECTOR;
    plain.jobu = vectors ? (x->economy ? 'S' : 'A') : 'N';
    plain.jobvt = vectors ? 'A' : 'N';
    char *vt = memory(x->n * x->n, element_bytes(x->precision));
    if (!gives_up(x, A, at, &info))
        info = singular_values(&plain, at, vt, (int)larger(1, x->n));
    if (vectors) {
        put_adjoint(x, at[VT], vt);
    } else {
        destroy(&x->at[B], 0, at[B]);
        destroy(&x->at[VT], 0, at[VT]);
    }
    destroy(&x->at[A], 0, at[A]);
    free(vt);
    return info;
}

static double value_at(const struct solver_call *x, const void *values, int64_t i)
{
    return real_bytes(x) == sizeof(float) ? ((const float *)values)[i]
                                          : ((const double *)values)[i];
}

static int compute_gesvdp(const struct solver_call *x, void *const *at)
{
    int info = decompose(x, at);
    double eps = real_bytes(x) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
    double largest = value_at(x, at[VALUES], 0), least = value_at(x, at[VALUES], x->n - 1);
    double shift =
        least < 10 * (double)x->n * eps * largest ? 100 * (double)x->n * eps * largest : 0;
    for (int64_t i = 0; info == 0 && i < x->n; i++)
        if (real_bytes(x) == sizeof(float))
            ((float *)at[VALUES])[i] += (float)shift;
        else
            ((double *)at[VALUES])[i] += shift;
    *x->perturbation = shift;
    return info;
}

/* What LAPACK's iteration does not end with, this one's does not either: n + 1. */
static int compute_gesvdj(const struct solver_call *x, void *const *at)
{
    return decompose(x, at) == 0 ? 0 : (int)x->n + 1;
}

static const struct solver_routine gesvdp = {
    .name = "gesvdp",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = VALUES,
    .describe = describe,
    .room = room,
    .compute = compute_gesvdp,
    .operations = operations_of_gesvdp,
};
static const struct solver_routine gesvdj = {
    .name = "gesvdj",
    .result = VALUES,
    .describe = describe,
    .room = room,
    .compute = compute_gesvdj,
    .operations = operations_of_gesvdj,
};

/* ---- Xgesvdp ---- */

#define GESVDP_FIELDS                                                                              \
    .routine = &gesvdp, .params = params, .type = dataTypeA, .type_b = dataTypeU,                  \
    .type_vt = dataTypeV, .type_values = dataTypeS, .compute_type = computeType, .jobz = jobz,     \
    .economy = econ != 0, .m = m, .n = n, OPERAND(A, a, lda), OPERAND(B, u, ldu),                  \
    OPERAND(VT, v, ldv), LIST(VALUES, s)

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvdp_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz, int econ,
    int64_t m, int64_t n, cudaDataType dataTypeA, const void *a, int64_t lda,
    cudaDataType dataTypeS, const void *s, cudaDataType dataTypeU, const void *u, int64_t ldu,
    cudaDataType dataTypeV, const void *v, int64_t ldv, cudaDataType computeType, size_t *device,
    size_t *host)
{
    struct solver_call x = {GESVDP_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvdp(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz, int econ,
    int64_t m, int64_t n, cudaDataType dataTypeA, void *a, int64_t lda, cudaDataType dataTypeS,
    void *s, cudaDataType dataTypeU, void *u, int64_t ldu, cudaDataType dataTypeV, void *v,
    int64_t ldv, cudaDataType computeType, void *bufferOnDevice, size_t workspaceInBytesOnDevice,
    void *bufferOnHost, size_t workspaceInBytesOnHost, int *info, double *h_err_sigma)
{
    struct solver_call x = {GESVDP_FIELDS, X_WORK, .perturbation = h_err_sigma};
    ENTER_SOLVER_CALL(handle, x);
    if (h_err_sigma == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    TESTGPU_RETURN(solver_call(handle, &x));
}

/* ---- gesvdj ---- */

struct gesvdjInfo {
    struct testgpu_object object;
};

static struct testgpu_pool settings = {.name = "handles", .size = sizeof(struct gesvdjInfo)};

cusolverStatus_t CUSOLVERAPI cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info)
{
    SOLVER_ENTER(TESTGPU_CONTEXT | TESTGPU_ALLOCATES, "info=%p", (void *)info);
    if (info == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    testgpu_lock();
    gesvdjInfo_t new = testgpu_object_new(&settings, testgpu_current());
    testgpu_unlock();
    if (new == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_ALLOC_FAILED);
    *info = new;
    TESTGPU_RETURN(CUSOLVER_STATUS_SUCCESS);
}

static bool is_known(gesvdjInfo_t info)
{
    testgpu_lock();
    bool known = testgpu_object_state(&settings, info) == TESTGPU_ALIVE;
    testgpu_unlock();
    if (!known)
        testgpu_fault("unknown_params", "params=%p", (void *)info);
    return known;
}

cusolverStatus_t CUSOLVERAPI cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info)
{
    SOLVER_ENTER(TESTGPU_ANYTIME, "info=%p", (void *)info);
    if (!is_known(info))
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    testgpu_lock();
    info->object.alive = false;
    testgpu_unlock();
    TESTGPU_RETURN(CUSOLVER_STATUS_SUCCESS);
}

#define GESVDJ_FIELDS(TYPE, REAL_TYPE)                                                             \
    .routine = &gesvdj, ONE_TYPE(TYPE), .type_b = (TYPE), .type_vt = (TYPE),                       \
    .type_values = (REAL_TYPE), .jobz = jobz, .economy = econ != 0, .m = m, .n = n,                \
    OPERAND(A, a, lda), OPERAND(B, u, ldu), OPERAND(VT, v, ldv), LIST(VALUES, s)
#define GESVDJ(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                               \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n,                 \
        const ELEMENT *a, int lda, const REAL *s, const ELEMENT *u, int ldu, const ELEMENT *v,     \
        int ldv, int *lwork, gesvdjInfo_t params)                                                  \
    {                                                                                              \
        struct solver_call x = {GESVDJ_FIELDS(TYPE, REAL_TYPE)};                                   \
        ENTER_SOLVER_CALL(handle, x);                                                              \
        if (!is_known(params))                                                                     \
            TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);                                         \
        TESTGPU_RETURN(solver_size(handle, &x, lwork));                                            \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(                                                 \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n, ELEMENT *a,     \
        int lda, REAL *s, ELEMENT *u, int ldu, ELEMENT *v, int ldv, ELEMENT *work, int lwork,      \
        int *info, gesvdjInfo_t params)                                                            \
    {                                                                                              \
        struct solver_call x = {GESVDJ_FIELDS(TYPE, REAL_TYPE), WORK(ELEMENT)};                    \
        ENTER_SOLVER_CALL(handle, x);                                                              \
        if (!is_known(params))                                                                     \
            TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);                                         \
        TESTGPU_RETURN(solver_call(handle, &x));                                                   \
    }

ALL_TYPES(GESVDJ, gesvdj)
