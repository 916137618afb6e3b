/* Xgetrf, Xgetrs and laswp. */
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"
#include "solver_lapack.h"

typedef void getrf_routine(const int *m, const int *n, void *a, const int *lda, int *ipiv,
                           int *info);
typedef void getrs_routine(const char *trans, const int *n, const int *nrhs, const void *a,
                           const int *lda, const int *ipiv, void *b, const int *ldb, int *info,
                           size_t);
getrf_routine FOUR(getrf);
getrs_routine FOUR(getrs);

static bool describe_getrf(struct solver_call *x)
{
    set_operand(x, A, x->m, x->n);
    set_list(x, PIVOTS, smaller(x->m, x->n), sizeof(int64_t));
    return true;
}

static int64_t room_of_getrf(const struct solver_call *x)
{
    return 32 * larger(x->m, x->n);
}

static int compute_getrf(const struct solver_call *x, void *const *at)
{
    static getrf_routine *const routines[] = TABLE(getrf);
    struct words w = words_of(x);
    int info = 0;
    int *pivots = memory(x->at[PIVOTS].rows, sizeof *pivots);
    ALONE(routines[x->precision], &w.m, &w.n, at[A], &w.lda, pivots, &info);
    for (int64_t i = 0; i < x->at[PIVOTS].rows; i++)
        ((int64_t *)at[PIVOTS])[i] = pivots[i];
    free(pivots);
    return info;
}

/* The right-hand sides' columns are the call's k. */
static bool describe_getrs(struct solver_call *x)
{
    if (x->k < 0 || x->type_b != x->type)
        return false;
    set_operand(x, A, x->n, x->n);
    set_operand(x, B, x->n, x->k);
    set_list(x, PIVOTS, x->n, sizeof(int64_t));
    return true;
}

static bool read_pivots_of_getrs(struct solver_call *x, const void *pivots)
{
    for (int64_t i = 0; i < x->n; i++) {
        int64_t pivot = ((const int64_t *)pivots)[i];
        if (pivot < 1 || pivot > x->n)
            return false;
    }
    return true;
}

static int compute_getrs(const struct solver_call *x, void *const *at)
{
    static getrs_routine *const routines[] = TABLE(getrs);
    struct words w = words_of(x);
    int info = 0;
    int *pivots = narrow_pivots(at[PIVOTS], x->n);
    ALONE(routines[x->precision], &w.trans, &w.n, &w.k, at[A], &w.lda, pivots, at[B], &w.ldb, &info,
          1);
    free(pivots);
    return info;
}

/* Rows il to iu are exchanged, by pivots that are k apart. */
static bool describe_laswp(struct solver_call *x)
{
    if (x->il < 1 || x->iu < x->il || x->k == 0)
        return false;
    set_operand(x, A, x->iu, x->n);
    set_list(x, PIVOTS, x->il + (x->iu - x->il) * llabs(x->k), sizeof(int));
    return true;
}

static int pivot_of_row(const struct solver_call *x, const void *pivots, int64_t row)
{
    return ((const int *)pivots)[x->il - 1 + (row - x->il) * llabs(x->k)];
}

/* How many rows there are only the pivots tell. */
static bool read_pivots_of_laswp(struct solver_call *x, const void *pivots)
{
    for (int64_t row = x->il; row <= x->iu; row++) {
        int pivot = pivot_of_row(x, pivots, row);
        if (pivot < 1 || pivot > x->at[A].ld)
            return false;
        x->at[A].rows = larger(x->at[A].rows, pivot);
    }
    return true;
}

static void exchange(const struct matrix *matrix, char *bytes, int64_t one, int64_t other)
{
    unsigned char kept[16];
    for (int64_t j = 0; j < matrix->columns; j++) {
        char *column = bytes + (size_t)(j * matrix->ld) * matrix->element;
        char *x = column + (size_t)one * matrix->element;
        char *y = column + (size_t)other * matrix->element;
        memcpy(kept, x, matrix->element);
        memmove(x, y, matrix->element);
        memcpy(y, kept, matrix->element);
    }
}

static int compute_laswp(const struct solver_call *x, void *const *at)
{
    for (int64_t i = x->il; i <= x->iu; i++) {
        int64_t row = x->k > 0 ? i : x->iu - (i - x->il);
        exchange(&x->at[A], at[A], row - 1, pivot_of_row(x, at[PIVOTS], row) - 1);
    }
    return 0;
}

static const struct solver_routine getrf = {
    .name = "getrf",
    .traits = HAS_PARAMS,
    .result = A,
    .describe = describe_getrf,
    .room = room_of_getrf,
    .compute = compute_getrf,
    .pretend = set_diagonal,
    .operations = operations_of_getrf,
};
static const struct solver_routine getrs = {
    .name = "getrs",
    .traits = HAS_PARAMS,
    .result = B,
    .describe = describe_getrs,
    .read_pivots = read_pivots_of_getrs,
    .compute = compute_getrs,
    .operations = operations_of_right_sides,
};
static const struct solver_routine laswp = {
    .name = "laswp",
    .traits = NO_INFO,
    .result = A,
    .describe = describe_laswp,
    .read_pivots = read_pivots_of_laswp,
    .compute = compute_laswp,
};

#define GETRF_FIELDS                                                                               \
    .routine = &getrf, .params = params, .type = dataTypeA, .compute_type = computeType, .m = m,   \
    .n = n, OPERAND(A, a, lda)

cusolverStatus_t CUSOLVERAPI cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle,
                                                         cusolverDnParams_t params, int64_t m,
                                                         int64_t n, cudaDataType dataTypeA,
                                                         const void *a, int64_t lda,
                                                         cudaDataType computeType, size_t *device,
                                                         size_t *host)
{
    struct solver_call x = {GETRF_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              int64_t m, int64_t n, cudaDataType dataTypeA, void *a,
                                              int64_t lda, int64_t *ipiv, cudaDataType computeType,
                                              void *bufferOnDevice, size_t workspaceInBytesOnDevice,
                                              void *bufferOnHost, size_t workspaceInBytesOnHost,
                                              int *info)
{
    struct solver_call x = {GETRF_FIELDS, LIST(PIVOTS, ipiv), X_WORK};
    SOLVER_CALL(handle, x);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasOperation_t trans, int64_t n, int64_t nrhs,
                                              cudaDataType dataTypeA, const void *a, int64_t lda,
                                              const int64_t *ipiv, cudaDataType dataTypeB, void *b,
                                              int64_t ldb, int *info)
{
    struct solver_call x = {
        .routine = &getrs,
        .params = params,
        ONE_TYPE(dataTypeA),
        .type_b = dataTypeB,
        .trans = trans,
        .n = n,
        .k = nrhs,
        OPERAND(A, a, lda),
        OPERAND(B, b, ldb),
        LIST(PIVOTS, ipiv),
        LIST(INFO, info),
    };
    SOLVER_CALL(handle, x);
}

#define LASWP(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                                \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(cusolverDnHandle_t handle, int n, ELEMENT *a,    \
                                                  int lda, int k1, int k2, const int *devIpiv,     \
                                                  int incx)                                        \
    {                                                                                              \
        struct solver_call x = {                                                                   \
            .routine = &laswp,                                                                     \
            ONE_TYPE(TYPE),                                                                        \
            .n = n,                                                                                \
            .k = incx,                                                                             \
            .il = k1,                                                                              \
            .iu = k2,                                                                              \
            OPERAND(A, a, lda),                                                                    \
            LIST(PIVOTS, devIpiv),                                                                 \
        };                                                                                         \
        SOLVER_CALL(handle, x);                                                                    \
    }

ALL_TYPES(LASWP, laswp)
