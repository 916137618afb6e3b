/* Xpotrf, Xpotrs, potri and lauum. */
#include <math.h>
#include "solver_cost.h"
#include "solver_lapack.h"

typedef void potrf_routine(const char *uplo, const int *n, void *a, const int *lda, int *info,
                           size_t);
typedef void potrs_routine(const char *uplo, const int *n, const int *nrhs, const void *a,
                           const int *lda, void *b, const int *ldb, int *info, size_t);
potrf_routine FOUR(potrf), FOUR(potri), FOUR(lauum);
potrs_routine FOUR(potrs);

static bool describe(struct solver_call *x)
{
    set_triangle(x, A, x->n);
    return true;
}

static int64_t room(const struct solver_call *x)
{
    return 32 * larger(1, x->n);
}

static int call_routine(const struct solver_call *x, void *const *at, potrf_routine *routine)
{
    struct words w = words_of(x);
    int info = 0;
    ALONE(routine, &w.uplo, &w.n, at[A], &w.lda, &info, 1);
    destroy_other(&x->at[A], at[A]);
    return info;
}

static int leave(const struct solver_call *x, void *const *at, int info)
{
    if (info != 0)
        destroy(&x->at[A], 0, at[A]);
    return info;
}

static int compute_potrf(const struct solver_call *x, void *const *at)
{
    static potrf_routine *const routines[] = TABLE(potrf);
    const int info = call_routine(x, at, routines[x->precision]);
    if (!misses_pivot(x, 1, info))
        return leave(x, at, info);
    if (info < x->n)
        return leave(x, at, info + 1);
    set_last_pivot(x, A, at, NAN);
    return 0;
}

#define COMPUTE(NAME)                                                                              \
    static int compute_##NAME(const struct solver_call *x, void *const *at)                        \
    {                                                                                              \
        static potrf_routine *const routines[] = TABLE(NAME);                                      \
        return leave(x, at, call_routine(x, at, routines[x->precision]));                          \
    }

COMPUTE(potri)
COMPUTE(lauum)

static void pretend_potrf(const struct solver_call *x, void *const *at)
{
    set_last_pivot(x, A, at, 1);
}

/* The right-hand sides' columns are the call's k. */
static bool describe_potrs(struct solver_call *x)
{
    if (x->k < 0 || x->type_b != x->type)
        return false;
    set_triangle(x, A, x->n);
    set_operand(x, B, x->n, x->k);
    return true;
}

static int compute_potrs(const struct solver_call *x, void *const *at)
{
    static potrs_routine *const routines[] = TABLE(potrs);
    struct words w = words_of(x);
    int info = 0;
    ALONE(routines[x->precision], &w.uplo, &w.n, &w.k, at[A], &w.lda, at[B], &w.ldb, &info, 1);
    return info;
}

#define IN_PLACE(NAME, TRAITS, OPERATIONS, ...)                                                    \
    static const struct solver_routine NAME = {.name = #NAME,                                      \
                                               .traits = (TRAITS),                                 \
                                               .result = A,                                        \
                                               .describe = describe,                               \
                                               .room = room,                                       \
                                               .compute = compute_##NAME,                          \
                                               .operations = (OPERATIONS),                         \
                                               __VA_ARGS__}

IN_PLACE(potrf, HAS_PARAMS, operations_of_cholesky, .pretend = pretend_potrf);
IN_PLACE(potri, 0, operations_of_potri, .pretend = NULL);
IN_PLACE(lauum, 0, operations_of_cholesky, .pretend = NULL);
static const struct solver_routine potrs = {
    .name = "potrs",
    .traits = HAS_PARAMS,
    .result = B,
    .describe = describe_potrs,
    .compute = compute_potrs,
    .operations = operations_of_right_sides,
};

#define POTRF_FIELDS                                                                               \
    .routine = &potrf, .params = params, .type = dataTypeA, .compute_type = computeType,           \
    .uplo = uplo, .n = n, OPERAND(A, a, lda)

cusolverStatus_t CUSOLVERAPI cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle,
                                                         cusolverDnParams_t params,
                                                         cublasFillMode_t uplo, int64_t n,
                                                         cudaDataType dataTypeA, const void *a,
                                                         int64_t lda, cudaDataType computeType,
                                                         size_t *device, size_t *host)
{
    struct solver_call x = {POTRF_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasFillMode_t uplo, int64_t n,
                                              cudaDataType dataTypeA, void *a, int64_t lda,
                                              cudaDataType computeType, void *bufferOnDevice,
                                              size_t workspaceInBytesOnDevice, void *bufferOnHost,
                                              size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {POTRF_FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasFillMode_t uplo, int64_t n, int64_t nrhs,
                                              cudaDataType dataTypeA, const void *a, int64_t lda,
                                              cudaDataType dataTypeB, void *b, int64_t ldb,
                                              int *info)
{
    struct solver_call x = {
        .routine = &potrs,
        .params = params,
        ONE_TYPE(dataTypeA),
        .type_b = dataTypeB,
        .uplo = uplo,
        .n = n,
        .k = nrhs,
        OPERAND(A, a, lda),
        OPERAND(B, b, ldb),
        LIST(INFO, info),
    };
    SOLVER_CALL(handle, x);
}

#define FIELDS(ROUTINE, TYPE)                                                                      \
    .routine = &(ROUTINE), ONE_TYPE(TYPE), .uplo = uplo, .n = n, OPERAND(A, a, lda)
#define FUNCTIONS(NAME, ELEMENT, TYPE, ROUTINE)                                                    \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, ELEMENT *a, int lda, int *lwork)  \
    {                                                                                              \
        struct solver_call x = {FIELDS(ROUTINE, TYPE)};                                            \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(cusolverDnHandle_t handle,                       \
                                                  cublasFillMode_t uplo, int n, ELEMENT *a,        \
                                                  int lda, ELEMENT *work, int lwork, int *info)    \
    {                                                                                              \
        struct solver_call x = {FIELDS(ROUTINE, TYPE), WORK(ELEMENT)};                             \
        SOLVER_CALL(handle, x);                                                                    \
    }
#define POTRI(NAME, ELEMENT, REAL, TYPE, REAL_TYPE) FUNCTIONS(NAME, ELEMENT, TYPE, potri)
#define LAUUM(NAME, ELEMENT, REAL, TYPE, REAL_TYPE) FUNCTIONS(NAME, ELEMENT, TYPE, lauum)

ALL_TYPES(POTRI, potri)
ALL_TYPES(LAUUM, lauum)
