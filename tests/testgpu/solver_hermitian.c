/* Xhetrf and Xhetrs, which only the newer library has. */
#include <stdlib.h>
#include "solver_cost.h"
#include "solver_hermitian.h"
#include "solver_indefinite.h"
#include "solver_lapack.h"

#if TESTGPU_CUBLAS_MAJOR >= 13

typedef void hetrf_routine(const char *uplo, const int *n, void *a, const int *lda, int *ipiv,
                           void *work, const int *lwork, int *info, size_t);
typedef void hetrs_routine(const char *uplo, const int *n, const int *nrhs, const void *a,
                           const int *lda, const int *ipiv, void *b, const int *ldb, int *info,
                           size_t);
hetrf_routine COMPLEX_ONES(hetrf);
hetrs_routine COMPLEX_ONES(hetrs);

static bool describe_hetrf(struct solver_call *x)
{
    set_triangle(x, A, x->n);
    set_list(x, PIVOTS, x->n, sizeof(int64_t));
    return is_complex(x);
}

static int64_t room_of_hetrf(const struct solver_call *x)
{
    return 64 * larger(1, x->n);
}

/* LAPACK does not look at the imaginary parts of the diagonal; nothing says so of cuSOLVER. */
static bool is_real_on_diagonal(const struct solver_call *x, const char *a)
{
    for (int64_t i = 0; i < x->n; i++) {
        const char *at = a + (size_t)(i * (x->at[A].ld + 1)) * element_bytes(x->precision);
        if (real_bytes(x) == sizeof(float) ? ((const float *)at)[1] != 0
                                           : ((const double *)at)[1] != 0)
            return false;
    }
    return true;
}

static int compute_hetrf(const struct solver_call *x, void *const *at)
{
    static hetrf_routine *const routines[] = {NULL, NULL, COMPLEX_ONES(hetrf)};
    struct words w = words_of(x);
    int info = 0, lwork = (int)room_of_hetrf(x);
    int *pivots = memory(x->n, sizeof *pivots);
    void *work = memory(lwork, element_bytes(x->precision));
    if (!is_real_on_diagonal(x, at[A]))
        destroy(&x->at[A], 0, at[A]);
    ALONE(routines[x->precision], &w.uplo, &w.n, at[A], &w.lda, pivots, work, &lwork, &info, 1);
    for (int64_t i = 0; i < x->n; i++)
        ((int64_t *)at[PIVOTS])[i] = pivots[i];
    info = info_of_indefinite(x, at[A], pivots, info);
    free(work);
    free(pivots);
    destroy_other(&x->at[A], at[A]);
    return info;
}

static bool describe_hetrs(struct solver_call *x)
{
    return is_complex(x) && describe_indefinite_sides(x);
}

static int compute_hetrs(const struct solver_call *x, void *const *at)
{
    static hetrs_routine *const routines[] = {NULL, NULL, COMPLEX_ONES(hetrs)};
    struct words w = words_of(x);
    int info = 0;
    int *pivots = narrow_pivots(at[PIVOTS], x->n);
    ALONE(routines[x->precision], &w.uplo, &w.n, &w.k, at[A], &w.lda, pivots, at[B], &w.ldb, &info,
          1);
    free(pivots);
    return info;
}

static const struct solver_routine hetrf = {
    .name = "hetrf",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = A,
    .describe = describe_hetrf,
    .room = room_of_hetrf,
    .compute = compute_hetrf,
    .operations = operations_of_cholesky,
};
static const struct solver_routine hetrs = {
    .name = "hetrs",
    .traits = HAS_PARAMS | HOST_WORK | READS_PIVOTS_AT_ONCE, /* as Xsytrs does */
    .result = B,
    .describe = describe_hetrs,
    .room = room_of_indefinite_sides,
    .read_pivots = read_indefinite_pivots,
    .compute = compute_hetrs,
    .operations = operations_of_right_sides,
};

#    define HETRF_FIELDS                                                                           \
        .routine = &hetrf, .params = params, .type = dataTypeA, .compute_type = computeType,       \
        .uplo = uplo, .n = n, OPERAND(A, a, lda), LIST(PIVOTS, ipiv)

cusolverStatus_t CUSOLVERAPI cusolverDnXhetrf_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
    cudaDataType dataTypeA, const void *a, int64_t lda, const int64_t *ipiv,
    cudaDataType computeType, size_t *device, size_t *host)
{
    struct solver_call x = {HETRF_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXhetrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasFillMode_t uplo, int64_t n,
                                              cudaDataType dataTypeA, void *a, int64_t lda,
                                              int64_t *ipiv, cudaDataType computeType,
                                              void *bufferOnDevice, size_t workspaceInBytesOnDevice,
                                              void *bufferOnHost, size_t workspaceInBytesOnHost,
                                              int *info)
{
    struct solver_call x = {HETRF_FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}

#    define HETRS_FIELDS                                                                           \
        .routine = &hetrs, .params = params, ONE_TYPE(dataTypeA), .type_b = dataTypeB,             \
        .uplo = uplo, .n = n, .k = nrhs, OPERAND(A, a, lda), OPERAND(B, b, ldb),                   \
        LIST(PIVOTS, ipiv)

cusolverStatus_t CUSOLVERAPI cusolverDnXhetrs_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
    int64_t nrhs, cudaDataType dataTypeA, const void *a, int64_t lda, const int64_t *ipiv,
    cudaDataType dataTypeB, void *b, int64_t ldb, size_t *device, size_t *host)
{
    struct solver_call x = {HETRS_FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXhetrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasFillMode_t uplo, int64_t n, int64_t nrhs,
                                              cudaDataType dataTypeA, const void *a, int64_t lda,
                                              const int64_t *ipiv, cudaDataType dataTypeB, void *b,
                                              int64_t ldb, void *bufferOnDevice,
                                              size_t workspaceInBytesOnDevice, void *bufferOnHost,
                                              size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {HETRS_FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}

#endif
