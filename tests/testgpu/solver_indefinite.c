/* sytrf and Xsytrs. */
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"
#include "solver_indefinite.h"
#include "solver_lapack.h"

typedef void sytrf_routine(const char *uplo, const int *n, void *a, const int *lda, int *ipiv,
                           void *work, const int *lwork, int *info, size_t);
typedef void sytrs_routine(const char *uplo, const int *n, const int *nrhs, const void *a,
                           const int *lda, const int *ipiv, void *b, const int *ldb, int *info,
                           size_t);
sytrf_routine FOUR(sytrf);
sytrs_routine FOUR(sytrs);

static bool describe_sytrf(struct solver_call *x)
{
    set_triangle(x, A, x->n);
    set_list(x, PIVOTS, x->n, sizeof(int));
    return true;
}

static int64_t room_of_sytrf(const struct solver_call *x)
{
    return 64 * larger(1, x->n);
}

int info_of_indefinite(const struct solver_call *x, const char *a, const int *pivots, int info)
{
    if (info != 1)
        return info;
    size_t bytes = element_bytes(x->precision);
    for (int64_t i = 1; x->uplo == CUBLAS_FILL_MODE_LOWER && i < x->n; i++) {
        static const char zero[16];
        if (pivots[i] > 0 && memcmp(a + (size_t)(i * (x->at[A].ld + 1)) * bytes, zero, bytes) == 0)
            return (int)i + 1;
    }
    return 0;
}

static int compute_sytrf(const struct solver_call *x, void *const *at)
{
    static sytrf_routine *const routines[] = TABLE(sytrf);
    struct words w = words_of(x);
    int info = 0, lwork = (int)room_of_sytrf(x);
    void *work = memory(lwork, element_bytes(x->precision));
    ALONE(routines[x->precision], &w.uplo, &w.n, at[A], &w.lda, at[PIVOTS], work, &lwork, &info, 1);
    free(work);
    destroy_other(&x->at[A], at[A]);
    return info_of_indefinite(x, at[A], at[PIVOTS], info);
}

bool describe_indefinite_sides(struct solver_call *x)
{
    if (x->k < 0 || x->type_b != x->type)
        return false;
    set_triangle(x, A, x->n);
    set_operand(x, B, x->n, x->k);
    set_list(x, PIVOTS, x->n, sizeof(int64_t));
    return true;
}

int64_t room_of_indefinite_sides(const struct solver_call *x)
{
    return x->n * larger(1, x->k);
}

/* A block of two by two has the same negative pivot twice. */
bool read_indefinite_pivots(struct solver_call *x, const void *pivots)
{
    const int64_t *pivot = pivots;
    for (int64_t i = 0; i < x->n; i++) {
        if (pivot[i] == 0 || llabs(pivot[i]) > x->n)
            return false;
        if (pivot[i] < 0 && (i + 1 == x->n || pivot[i] != pivot[i + 1]))
            return false;
        i += pivot[i] < 0;
    }
    return true;
}

static int compute_sytrs(const struct solver_call *x, void *const *at)
{
    static sytrs_routine *const routines[] = TABLE(sytrs);
    struct words w = words_of(x);
    int info = 0;
    int *pivots = narrow_pivots(at[PIVOTS], x->n);
    ALONE(routines[x->precision], &w.uplo, &w.n, &w.k, at[A], &w.lda, pivots, at[B], &w.ldb, &info,
          1);
    free(pivots);
    return info;
}

static const struct solver_routine sytrf = {
    .name = "sytrf",
    .result = A,
    .describe = describe_sytrf,
    .room = room_of_sytrf,
    .compute = compute_sytrf,
    .operations = operations_of_cholesky,
};
static const struct solver_routine sytrs = {
    .name = "sytrs",
    .traits = HOST_WORK | READS_PIVOTS_AT_ONCE, /* as cuSOLVER 12.0 was seen to do */
    .result = B,
    .describe = describe_indefinite_sides,
    .room = room_of_indefinite_sides,
    .read_pivots = read_indefinite_pivots,
    .compute = compute_sytrs,
    .operations = operations_of_right_sides,
};

#define SYTRF_FIELDS(TYPE) .routine = &sytrf, ONE_TYPE(TYPE), .n = n, OPERAND(A, a, lda)
#define SYTRF(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                                \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(cusolverDnHandle_t handle, int n,   \
                                                               ELEMENT *a, int lda, int *lwork)    \
    {                                                                                              \
        struct solver_call x = {SYTRF_FIELDS(TYPE)};                                               \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(                                                 \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, ELEMENT *a, int lda, int *ipiv,   \
        ELEMENT *work, int lwork, int *info)                                                       \
    {                                                                                              \
        struct solver_call x = {SYTRF_FIELDS(TYPE), .uplo = uplo, LIST(PIVOTS, ipiv),              \
                                WORK(ELEMENT)};                                                    \
        SOLVER_CALL(handle, x);                                                                    \
    }

ALL_TYPES(SYTRF, sytrf)

#define SYTRS_FIELDS                                                                               \
    .routine = &sytrs, ONE_TYPE(dataTypeA), .type_b = dataTypeB, .uplo = uplo, .n = n, .k = nrhs,  \
    OPERAND(A, a, lda), OPERAND(B, b, ldb), LIST(PIVOTS, ipiv)

cusolverStatus_t CUSOLVERAPI cusolverDnXsytrs_bufferSize(
    cusolverDnHandle_t handle, cublasFillMode_t uplo, int64_t n, int64_t nrhs,
    cudaDataType dataTypeA, const void *a, int64_t lda, const int64_t *ipiv, cudaDataType dataTypeB,
    void *b, int64_t ldb, size_t *device, size_t *host)
{
    struct solver_call x = {SYTRS_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsytrs(cusolverDnHandle_t handle, cublasFillMode_t uplo,
                                              int64_t n, int64_t nrhs, cudaDataType dataTypeA,
                                              const void *a, int64_t lda, const int64_t *ipiv,
                                              cudaDataType dataTypeB, void *b, int64_t ldb,
                                              void *bufferOnDevice, size_t workspaceInBytesOnDevice,
                                              void *bufferOnHost, size_t workspaceInBytesOnHost,
                                              int *info)
{
    struct solver_call x = {SYTRS_FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}
