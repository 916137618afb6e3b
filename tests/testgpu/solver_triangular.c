/* Xtrtri. */
#include "solver_cost.h"
#include "solver_lapack.h"

typedef void trtri_routine(const char *uplo, const char *diag, const int *n, void *a,
                           const int *lda, int *info, size_t, size_t);
trtri_routine FOUR(trtri);

static bool describe(struct solver_call *x)
{
    set_triangle(x, A, x->n);
    return true;
}

static int64_t room(const struct solver_call *x)
{
    return 32 * larger(1, x->n);
}

static int compute(const struct solver_call *x, void *const *at)
{
    static trtri_routine *const routines[] = TABLE(trtri);
    struct words w = words_of(x);
    int info = 0;
    ALONE(routines[x->precision], &w.uplo, &w.diag, &w.n, at[A], &w.lda, &info, 1, 1);
    destroy_other(&x->at[A], at[A]);
    if (info != 0)
        destroy(&x->at[A], 0, at[A]);
    return info;
}

static const struct solver_routine trtri = {
    .name = "trtri",
    .traits = HOST_WORK,
    .result = A,
    .describe = describe,
    .room = room,
    .compute = compute,
    .operations = operations_of_cholesky,
};

#define FIELDS                                                                                     \
    .routine = &trtri, ONE_TYPE(dataTypeA), .uplo = uplo, .diag = diag, .n = n, OPERAND(A, a, lda)

cusolverStatus_t CUSOLVERAPI cusolverDnXtrtri_bufferSize(cusolverDnHandle_t handle,
                                                         cublasFillMode_t uplo,
                                                         cublasDiagType_t diag, int64_t n,
                                                         cudaDataType dataTypeA, void *a,
                                                         int64_t lda, size_t *device, size_t *host)
{
    struct solver_call x = {FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXtrtri(cusolverDnHandle_t handle, cublasFillMode_t uplo,
                                              cublasDiagType_t diag, int64_t n,
                                              cudaDataType dataTypeA, void *a, int64_t lda,
                                              void *bufferOnDevice, size_t workspaceInBytesOnDevice,
                                              void *bufferOnHost, size_t workspaceInBytesOnHost,
                                              int *info)
{
    struct solver_call x = {FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}
