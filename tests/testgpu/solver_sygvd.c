/* sygvd and sygvdx, which are hegvd and hegvdx of complex numbers. */
#include "solver_cost.h"
#include "solver_eigen.h"

/* Which of the three problems is asked for is checked here: of none of them, B is not there. */
static bool describe(struct solver_call *x)
{
    return x->itype >= CUSOLVER_EIG_TYPE_1 && describe_eigen(x);
}

static bool describe_some(struct solver_call *x)
{
    return x->itype >= CUSOLVER_EIG_TYPE_1 && describe_some_eigen(x);
}

static const struct solver_routine sygvd = {
    .name = "sygvd",
    .result = VALUES,
    .describe = describe,
    .room = room_of_eigen,
    .compute = compute_eigen,
    .pretend = pretend_eigen_of_pair,
    .operations = operations_of_sygvd,
};
static const struct solver_routine sygvdx = {
    .name = "sygvdx",
    .result = VALUES,
    .describe = describe_some,
    .room = room_of_eigen,
    .compute = compute_some_eigen,
    .pretend = pretend_eigen_of_pair,
    .operations = operations_of_sygvd,
};

#define FIELDS(ROUTINE, TYPE, REAL_TYPE)                                                           \
    .routine = &(ROUTINE), ONE_TYPE(TYPE), .type_values = (REAL_TYPE), .itype = itype,             \
    .jobz = jobz, .uplo = uplo, .n = n, OPERAND(A, a, lda), OPERAND(B, b, ldb), LIST(VALUES, w)
#define RANGE_FIELDS .range = range, .vl = (double)vl, .vu = (double)vu, .il = il, .iu = iu

#define SYGVD(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                                \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz,                \
        cublasFillMode_t uplo, int n, const ELEMENT *a, int lda, const ELEMENT *b, int ldb,        \
        const REAL *w, int *lwork)                                                                 \
    {                                                                                              \
        struct solver_call x = {FIELDS(sygvd, TYPE, REAL_TYPE)};                                   \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(                                                 \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz,                \
        cublasFillMode_t uplo, int n, ELEMENT *a, int lda, ELEMENT *b, int ldb, REAL *w,           \
        ELEMENT *work, int lwork, int *info)                                                       \
    {                                                                                              \
        struct solver_call x = {FIELDS(sygvd, TYPE, REAL_TYPE), WORK(ELEMENT)};                    \
        SOLVER_CALL(handle, x);                                                                    \
    }

#define SYGVDX(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                               \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz,                \
        cusolverEigRange_t range, cublasFillMode_t uplo, int n, const ELEMENT *a, int lda,         \
        const ELEMENT *b, int ldb, REAL vl, REAL vu, int il, int iu, int *meig, const REAL *w,     \
        int *lwork)                                                                                \
    {                                                                                              \
        struct solver_call x = {FIELDS(sygvdx, TYPE, REAL_TYPE), RANGE_FIELDS};                    \
        (void)meig;                                                                                \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(                                                 \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz,                \
        cusolverEigRange_t range, cublasFillMode_t uplo, int n, ELEMENT *a, int lda, ELEMENT *b,   \
        int ldb, REAL vl, REAL vu, int il, int iu, int *meig, REAL *w, ELEMENT *work, int lwork,   \
        int *info)                                                                                 \
    {                                                                                              \
        struct solver_call x = {FIELDS(sygvdx, TYPE, REAL_TYPE), RANGE_FIELDS, .found = meig,      \
                                WORK(ELEMENT)};                                                    \
        ENTER_SOLVER_CALL(handle, x);                                                              \
        if (meig == NULL)                                                                          \
            TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);                                         \
        TESTGPU_RETURN(solver_call(handle, &x));                                                   \
    }

REAL_TYPES(SYGVD, sygvd)
COMPLEX_TYPES(SYGVD, hegvd)
REAL_TYPES(SYGVDX, sygvdx)
COMPLEX_TYPES(SYGVDX, hegvdx)
