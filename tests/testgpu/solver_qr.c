/* Xgeqrf, orgqr and ormqr, which are ungqr and unmqr of complex numbers. */
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"
#include "solver_lapack.h"

typedef void geqrf_routine(const int *m, const int *n, void *a, const int *lda, void *tau,
                           void *work, const int *lwork, int *info);
typedef void orgqr_routine(const int *m, const int *n, const int *k, void *a, const int *lda,
                           const void *tau, void *work, const int *lwork, int *info);
typedef void ormqr_routine(const char *side, const char *trans, const int *m, const int *n,
                           const int *k, void *a, const int *lda, const void *tau, void *c,
                           const int *ldc, void *work, const int *lwork, int *info, size_t, size_t);
geqrf_routine FOUR(geqrf);
orgqr_routine REAL_ONES(orgqr), COMPLEX_ONES(ungqr);
ormqr_routine REAL_ONES(ormqr), COMPLEX_ONES(unmqr);

static bool describe_geqrf(struct solver_call *x)
{
    set_operand(x, A, x->m, x->n);
    set_list(x, VALUES, smaller(x->m, x->n), element_bytes(x->precision));
    return x->type_values == x->type;
}

static bool describe_orgqr(struct solver_call *x)
{
    set_operand(x, A, x->m, x->n);
    set_list(x, VALUES, x->k, element_bytes(x->precision));
    return x->m >= x->n && x->n >= x->k && x->k >= 0;
}

/* C is m by n, and Q's order is that of its side. */
static bool describe_ormqr(struct solver_call *x)
{
    int64_t order = x->side == CUBLAS_SIDE_LEFT ? x->m : x->n;
    cublasOperation_t other = is_complex(x) ? CUBLAS_OP_T : CUBLAS_OP_C;
    set_operand(x, A, order, x->k);
    set_operand(x, B, x->m, x->n);
    set_list(x, VALUES, x->k, element_bytes(x->precision));
    return x->trans != other && x->k >= 0 && x->k <= order;
}

static int64_t room(const struct solver_call *x)
{
    return 64 * larger(1, x->n);
}

/* LAPACK's own block reflector comes with it. */
static int64_t room_of_ormqr(const struct solver_call *x)
{
    return 64 * larger(x->m, x->n) + 65 * 64;
}

static int compute_geqrf(const struct solver_call *x, void *const *at)
{
    static geqrf_routine *const routines[] = TABLE(geqrf);
    struct words w = words_of(x);
    int info = 0, lwork = (int)room(x);
    void *work = memory(lwork, element_bytes(x->precision));
    ALONE(routines[x->precision], &w.m, &w.n, at[A], &w.lda, at[VALUES], work, &lwork, &info);
    free(work);
    return info;
}

static int compute_orgqr(const struct solver_call *x, void *const *at)
{
    static orgqr_routine *const routines[] = {REAL_ONES(orgqr), COMPLEX_ONES(ungqr)};
    struct words w = words_of(x);
    int info = 0, lwork = (int)room(x);
    void *work = memory(lwork, element_bytes(x->precision));
    ALONE(routines[x->precision], &w.m, &w.n, &w.k, at[A], &w.lda, at[VALUES], work, &lwork, &info);
    free(work);
    return info;
}

/* With a copy of A: LAPACK puts ones into it for a while. */
static int compute_ormqr(const struct solver_call *x, void *const *at)
{
    static ormqr_routine *const routines[] = {REAL_ONES(ormqr), COMPLEX_ONES(unmqr)};
    struct words w = words_of(x);
    int info = 0, lwork = (int)room_of_ormqr(x);
    void *work = memory(lwork, element_bytes(x->precision));
    size_t bytes = matrix_bytes(&x->at[A]);
    void *a = memory((int64_t)bytes, 1);
    if (bytes > 0)
        memcpy(a, at[A], bytes);
    ALONE(routines[x->precision], &w.side, &w.trans, &w.m, &w.n, &w.k, a, &w.lda, at[VALUES], at[B],
          &w.ldb, work, &lwork, &info, 1, 1);
    free(a);
    free(work);
    return info;
}

static const struct solver_routine geqrf = {
    .name = "geqrf",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = A,
    .describe = describe_geqrf,
    .room = room,
    .compute = compute_geqrf,
    .pretend = set_diagonal,
    .operations = operations_of_geqrf,
};
static const struct solver_routine orgqr = {
    .name = "orgqr",
    .result = A,
    .describe = describe_orgqr,
    .room = room,
    .compute = compute_orgqr,
    .operations = operations_of_orgqr,
};
static const struct solver_routine ormqr = {
    .name = "ormqr",
    .result = B,
    .describe = describe_ormqr,
    .room = room_of_ormqr,
    .compute = compute_ormqr,
    .operations = operations_of_ormqr,
};

#define GEQRF_FIELDS                                                                               \
    .routine = &geqrf, .params = params, .type = dataTypeA, .type_values = dataTypeTau,            \
    .compute_type = computeType, .m = m, .n = n, OPERAND(A, a, lda), LIST(VALUES, tau)

cusolverStatus_t CUSOLVERAPI cusolverDnXgeqrf_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
    cudaDataType dataTypeA, const void *a, int64_t lda, cudaDataType dataTypeTau, const void *tau,
    cudaDataType computeType, size_t *device, size_t *host)
{
    struct solver_call x = {GEQRF_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              int64_t m, int64_t n, cudaDataType dataTypeA, void *a,
                                              int64_t lda, cudaDataType dataTypeTau, void *tau,
                                              cudaDataType computeType, void *bufferOnDevice,
                                              size_t workspaceInBytesOnDevice, void *bufferOnHost,
                                              size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {GEQRF_FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}

#define ORGQR_FIELDS(TYPE)                                                                         \
    .routine = &orgqr, ONE_TYPE(TYPE), .m = m, .n = n, .k = k, OPERAND(A, a, lda), LIST(VALUES, tau)
#define ORGQR(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                                \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, int m, int n, int k, const ELEMENT *a, int lda,                 \
        const ELEMENT *tau, int *lwork)                                                            \
    {                                                                                              \
        struct solver_call x = {ORGQR_FIELDS(TYPE)};                                               \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(cusolverDnHandle_t handle, int m, int n, int k,  \
                                                  ELEMENT *a, int lda, const ELEMENT *tau,         \
                                                  ELEMENT *work, int lwork, int *info)             \
    {                                                                                              \
        struct solver_call x = {ORGQR_FIELDS(TYPE), WORK(ELEMENT)};                                \
        SOLVER_CALL(handle, x);                                                                    \
    }

#define ORMQR_FIELDS(TYPE)                                                                         \
    .routine = &ormqr, ONE_TYPE(TYPE), .side = side, .trans = trans, .m = m, .n = n, .k = k,       \
    OPERAND(A, a, lda), OPERAND(B, c, ldc), LIST(VALUES, tau)
#define ORMQR(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                                \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, int n,   \
        int k, const ELEMENT *a, int lda, const ELEMENT *tau, const ELEMENT *c, int ldc,           \
        int *lwork)                                                                                \
    {                                                                                              \
        struct solver_call x = {ORMQR_FIELDS(TYPE)};                                               \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(                                                 \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, int n,   \
        int k, const ELEMENT *a, int lda, const ELEMENT *tau, ELEMENT *c, int ldc, ELEMENT *work,  \
        int lwork, int *info)                                                                      \
    {                                                                                              \
        struct solver_call x = {ORMQR_FIELDS(TYPE), WORK(ELEMENT)};                                \
        SOLVER_CALL(handle, x);                                                                    \
    }

REAL_TYPES(ORGQR, orgqr)
COMPLEX_TYPES(ORGQR, ungqr)
REAL_TYPES(ORMQR, ormqr)
COMPLEX_TYPES(ORMQR, unmqr)
