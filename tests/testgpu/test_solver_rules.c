/* What the stand-in for cuSOLVER refuses. */
#include <stdint.h>
#include "test_solver.h"

enum { N = 4, ENOUGH = 1 << 15 };

static const cudaDataType r64 = CUDA_R_64F, c64 = CUDA_C_64F, r32 = CUDA_R_32F, c32 = CUDA_C_32F;
static const cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR,
                               no_vectors = CUSOLVER_EIG_MODE_NOVECTOR;
static const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;

#define REFUSED_CALL(CALL) CHECK((CALL) == CUSOLVER_STATUS_INVALID_VALUE)

/* A solver with more workspace than any call of the tests needs. */
static int set_up_with_room(struct solver *s)
{
    static char host[ENOUGH];
    CHECK(solver_set_up(s) == 0);
    s->type = D;
    s->bytes = s->host_bytes = ENOUGH;
    s->host_work = host;
    OK(cuMemAlloc(&s->work, ENOUGH));
    return 0;
}

static int tear_down_with_room(struct solver *s)
{
    OK(cuStreamSynchronize(s->stream));
    OK(cuMemFree(s->work));
    return solver_tear_down(s);
}

#define X_WORK (void *)s.work, s.bytes, s.host_work, s.host_bytes, info
#define GETRF(M, N, TYPE, A, LDA, PIVOTS, COMPUTE)                                                 \
    cusolverDnXgetrf(s.handle, s.params, M, N, TYPE, A, LDA, PIVOTS, COMPUTE, X_WORK)
#define GETRS(OP, N, K, LDA, TYPE_B, LDB)                                                          \
    cusolverDnXgetrs(s.handle, s.params, OP, N, K, r64, a, LDA, b, TYPE_B, c, LDB, info)
#define POTRF(UPLO, N, LDA) cusolverDnXpotrf(s.handle, s.params, UPLO, N, r64, a, LDA, r64, X_WORK)
#define GEQRF(M, TYPE_TAU)                                                                         \
    cusolverDnXgeqrf(s.handle, s.params, M, N, c64, a, N, TYPE_TAU, b, c64, X_WORK)
#define TRTRI(UPLO, DIAG) cusolverDnXtrtri(s.handle, UPLO, DIAG, N, r64, a, N, X_WORK)
#define SYEVD(JOB, N, LDA, TYPE_W)                                                                 \
    cusolverDnXsyevd(s.handle, s.params, JOB, lower, N, c64, a, LDA, TYPE_W, b, c64, X_WORK)
#define SYEVDX(RANGE, VL, VU, IL, IU, MEIG)                                                        \
    cusolverDnXsyevdx(s.handle, s.params, vectors, RANGE, lower, N, r64, a, N, VL, VU, IL, IU,     \
                      MEIG, r64, b, r64, X_WORK)
#define GESVD(JOBU, JOBVT, M, N, LDU, LDVT)                                                        \
    cusolverDnXgesvd(s.handle, s.params, JOBU, JOBVT, M, N, r64, a, 8, r64, b, r64, c, LDU, r64,   \
                     d, LDVT, r64, X_WORK)
#define GEEV(JOBVL, JOBVR, TYPE, TYPE_W, TYPE_VR, LDVR)                                            \
    cusolverDnXgeev(s.handle, s.params, JOBVL, JOBVR, N, TYPE, a, N, TYPE_W, b, TYPE_VR, NULL, 1,  \
                    TYPE_VR, c, LDVR, TYPE, X_WORK)

static int refusals_of_x(void)
{
    struct solver s;
    CHECK(set_up_with_room(&s) == 0);
    void *a = (void *)s.slot[0], *b = (void *)s.slot[1], *c = (void *)s.slot[2],
         *d = (void *)s.slot[3];
    int *info = (int *)s.info;
    REFUSED_CALL(GETRF(-1, N, r64, a, N, b, r64));
    REFUSED_CALL(GETRF(N, -1, r64, a, N, b, r64));
    REFUSED_CALL(GETRF(N, N, r64, a, N - 1, b, r64));
    REFUSED_CALL(GETRF(0, N, r64, a, 0, b, r64));
    REFUSED_CALL(GETRF(N, N, r64, a, N, b, r32));
    REFUSED_CALL(GETRF(N, N, CUDA_R_16F, a, N, b, CUDA_R_16F));
    REFUSED_CALL(GETRF(N, N, r64, NULL, N, b, r64));
    CHECK(GETRF(0, N, r64, a, 1, b, r64) == CUSOLVER_STATUS_SUCCESS);
    REFUSED_CALL(GETRS((cublasOperation_t)3, N, 1, N, r64, N));
    REFUSED_CALL(GETRS(CUBLAS_OP_N, N, -1, N, r64, N));
    REFUSED_CALL(GETRS(CUBLAS_OP_N, N, 1, N - 1, r64, N));
    REFUSED_CALL(GETRS(CUBLAS_OP_N, N, 1, N, r64, N - 1));
    REFUSED_CALL(GETRS(CUBLAS_OP_N, N, 1, N, r32, N));
    REFUSED_CALL(POTRF((cublasFillMode_t)2, N, N));
    REFUSED_CALL(POTRF(lower, -1, N));
    REFUSED_CALL(POTRF(lower, N, N - 1));
    REFUSED_CALL(GEQRF(N, r64));
    REFUSED_CALL(GEQRF(N + 1, c64));
    REFUSED_CALL(TRTRI((cublasFillMode_t)2, CUBLAS_DIAG_UNIT));
    REFUSED_CALL(TRTRI(lower, (cublasDiagType_t)2));
    REFUSED_CALL(SYEVD((cusolverEigMode_t)2, N, N, r64));
    REFUSED_CALL(SYEVD(vectors, N, N - 1, r64));
    REFUSED_CALL(SYEVD(vectors, N, N, c64));
    REFUSED_CALL(SYEVD(vectors, N, N, r32));
    int64_t found = 0;
    double vl = 1, vu = 2;
    REFUSED_CALL(SYEVDX((cusolverEigRange_t)0, NULL, NULL, 1, N, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_I, NULL, NULL, 0, N, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_I, NULL, NULL, 1, N + 1, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_I, NULL, NULL, 3, 2, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_V, &vu, &vl, 1, N, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_V, NULL, &vu, 1, N, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_ALL, NULL, NULL, 1, N, NULL));
    REFUSED_CALL(GESVD('A', 'A', N, N + 1, 8, 8));
    REFUSED_CALL(GESVD('O', 'O', N, N, 8, 8));
    REFUSED_CALL(GESVD('X', 'A', N, N, 8, 8));
    REFUSED_CALL(GESVD('A', '\0', N, N, 8, 8));
    REFUSED_CALL(GESVD('S', 'A', N, N, N - 1, 8));
    REFUSED_CALL(GESVD('A', 'S', N, N, 8, N - 1));
    REFUSED_CALL(GESVD('N', 'N', N, N, N - 1, N));
    REFUSED_CALL(GESVD('N', 'N', N, N, N, N - 1));
    CHECK(GESVD('N', 'N', N, N, N, N) == CUSOLVER_STATUS_SUCCESS);
    REFUSED_CALL(GEEV(vectors, vectors, r64, r64, r64, N));
    REFUSED_CALL(GEEV(no_vectors, vectors, r64, r64, r64, N - 1));
    REFUSED_CALL(GEEV(no_vectors, vectors, r64, c64, c64, N));
    REFUSED_CALL(GEEV(no_vectors, vectors, r64, c32, r64, N));
    REFUSED_CALL(GEEV(no_vectors, vectors, c64, r64, c64, N));
    CHECK(GEEV(no_vectors, no_vectors, r64, c64, r64, 1) == CUSOLVER_STATUS_SUCCESS);
    return tear_down_with_room(&s);
}

static int refusals_by_type(void)
{
    struct solver s;
    CHECK(set_up_with_room(&s) == 0);
    double *a = (double *)s.slot[0], *b = (double *)s.slot[1], *c = (double *)s.slot[2];
    double *work = (double *)s.work;
    cuDoubleComplex *z = (cuDoubleComplex *)s.slot[0], *zwork = (cuDoubleComplex *)s.work;
    int *list = (int *)s.slot[3], *info = (int *)s.info, lwork = ENOUGH / 16, found;
    const cublasSideMode_t left = CUBLAS_SIDE_LEFT;
    REFUSED_CALL(cusolverDnDorgqr(s.handle, 3, 4, 3, a, 4, b, work, lwork, info));
    REFUSED_CALL(cusolverDnDorgqr(s.handle, 4, 3, 4, a, 4, b, work, lwork, info));
    REFUSED_CALL(cusolverDnDorgqr(s.handle, 4, 3, -1, a, 4, b, work, lwork, info));
    REFUSED_CALL(
        cusolverDnDormqr(s.handle, left, CUBLAS_OP_C, 4, 4, 2, a, 4, b, c, 4, work, lwork, info));
    REFUSED_CALL(
        cusolverDnZunmqr(s.handle, left, CUBLAS_OP_T, 4, 4, 2, z, 4, z, z, 4, zwork, lwork, info));
    REFUSED_CALL(
        cusolverDnDormqr(s.handle, left, CUBLAS_OP_T, 4, 4, 5, a, 5, b, c, 5, work, lwork, info));
    REFUSED_CALL(cusolverDnDpotri(s.handle, lower, 4, a, 3, work, lwork, info));
    REFUSED_CALL(cusolverDnDpotri(s.handle, lower, 4, a, 4, work, lwork, NULL));
    REFUSED_CALL(cusolverDnDlauum(s.handle, (cublasFillMode_t)2, 4, a, 4, work, lwork, info));
    REFUSED_CALL(cusolverDnDlaswp(s.handle, 4, a, 4, 0, 2, list, 1));
    REFUSED_CALL(cusolverDnDlaswp(s.handle, 4, a, 4, 2, 1, list, 1));
    REFUSED_CALL(cusolverDnDlaswp(s.handle, 4, a, 4, 1, 5, list, 1));
    REFUSED_CALL(cusolverDnDlaswp(s.handle, 4, a, 4, 1, 2, list, 0));
    REFUSED_CALL(cusolverDnDsytrf(s.handle, lower, -1, a, 4, list, work, lwork, info));
    REFUSED_CALL(cusolverDnDsytrd(s.handle, lower, 4, a, 3, b, b, c, work, lwork, info));
    REFUSED_CALL(cusolverDnDsytrd(s.handle, lower, 4, a, 4, b, NULL, c, work, lwork, info));
    REFUSED_CALL(
        cusolverDnDsygvd(s.handle, 0, vectors, lower, 4, a, 4, b, 4, c, work, lwork, info));
    REFUSED_CALL(
        cusolverDnDsygvd(s.handle, 4, vectors, lower, 4, a, 4, b, 4, c, work, lwork, info));
    REFUSED_CALL(
        cusolverDnDsygvd(s.handle, 1, vectors, lower, 4, a, 4, b, 3, c, work, lwork, info));
    REFUSED_CALL(cusolverDnDsygvdx(s.handle, 1, vectors, CUSOLVER_EIG_RANGE_I, lower, 4, a, 4, b, 4,
                                   0, 0, 1, 5, &found, c, work, lwork, info));
    REFUSED_CALL(cusolverDnDsygvdx(s.handle, 1, vectors, CUSOLVER_EIG_RANGE_ALL, lower, 4, a, 4, b,
                                   4, 0, 0, 1, 4, NULL, c, work, lwork, info));
    REFUSED_CALL(cusolverDnDpotri_bufferSize(s.handle, lower, 4, a, 3, &lwork));
    REFUSED_CALL(cusolverDnDpotri_bufferSize(s.handle, lower, 4, a, 4, NULL));
    size_t bytes;
    REFUSED_CALL(
        cusolverDnXpotrf_bufferSize(s.handle, s.params, lower, -1, r64, a, 4, r64, &bytes, &bytes));
    REFUSED_CALL(
        cusolverDnXpotrf_bufferSize(s.handle, s.params, lower, 4, r64, a, 4, r64, &bytes, NULL));
    return tear_down_with_room(&s);
}

/* An element or byte less than asked for; none at all. */
static int small_workspaces(void)
{
    struct solver s;
    size_t bytes, host_bytes;
    int elements;
    CHECK(set_up_with_room(&s) == 0);
    void *a = (void *)s.slot[0], *b = (void *)s.slot[1], *work = (void *)s.work;
    int *info = (int *)s.info;
    SOLVER_OK(cusolverDnXgeqrf_bufferSize(s.handle, s.params, N, N, r64, a, N, r64, b, r64, &bytes,
                                          &host_bytes));
    CHECK(bytes > 0 && host_bytes > 0);
#define WITH(WORK, BYTES, HOST, HOST_BYTES)                                                        \
    cusolverDnXgeqrf(s.handle, s.params, N, N, r64, a, N, r64, b, r64, WORK, BYTES, HOST,          \
                     HOST_BYTES, info)
    REFUSED_CALL(WITH(work, bytes - 1, s.host_work, host_bytes));
    REFUSED_CALL(WITH(work, bytes, s.host_work, host_bytes - 1));
    REFUSED_CALL(WITH(NULL, bytes, s.host_work, host_bytes));
    REFUSED_CALL(WITH(work, bytes, NULL, host_bytes));
    REFUSED_CALL(WITH(work, bytes, work, host_bytes));
    SOLVER_OK(cusolverDnDpotri_bufferSize(s.handle, lower, N, a, N, &elements));
    REFUSED_CALL(cusolverDnDpotri(s.handle, lower, N, a, N, work, elements - 1, info));
    REFUSED_CALL(cusolverDnDpotri(s.handle, lower, N, a, N, work, -1, info));
    SOLVER_OK(cusolverDnXpotrf_bufferSize(s.handle, s.params, lower, N, r64, a, N, r64, &bytes,
                                          &host_bytes));
    CHECK(host_bytes == 0); /* then it may be nowhere */
    SOLVER_OK(
        cusolverDnXpotrf(s.handle, s.params, lower, N, r64, a, N, r64, work, bytes, NULL, 0, info));
    return tear_down_with_room(&s);
}

/* A bound, a count or a workspace of the host that is on the device. */
static int device_for_host(void)
{
    struct solver s;
    CHECK(set_up_with_room(&s) == 0);
    void *a = (void *)s.slot[0], *b = (void *)s.slot[1];
    int *info = (int *)s.info;
    double bound = 3;
    int64_t found;
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_V, b, &bound, 1, N, &found));
    REFUSED_CALL(SYEVDX(CUSOLVER_EIG_RANGE_ALL, NULL, NULL, 1, N, (int64_t *)b));
    return tear_down_with_room(&s);
}

/* What the test GPU alone cannot do. */
static int unsupported(void)
{
    struct solver s;
    CHECK(set_up_with_room(&s) == 0);
    void *a = (void *)s.slot[0], *b = (void *)s.slot[1];
    int *info = (int *)s.info;
    CHECK(GETRF(N, N, r64, a, N, NULL, r64) == CUSOLVER_STATUS_NOT_SUPPORTED);
    CHECK(GETRF((int64_t)1 << 32, N, r64, a, (int64_t)1 << 32, b, r64) ==
          CUSOLVER_STATUS_NOT_SUPPORTED);
    return tear_down_with_room(&s);
}

const struct scenario solver_rule_scenarios[] = {
    {"solver_refusals_of_x", refusals_of_x, {0}, {"kernels gemm=0 gesvd=1 geev=1\n"}},
    {"solver_refusals_by_type", refusals_by_type, {0}, {"kernels gemm=0\n"}},
    {"solver_small_workspaces",
     small_workspaces,
     {0},
     {"fault what=workspace_too_small where=cusolverDnXgeqrf",
      "fault what=workspace_too_small where=cusolverDnDpotri", "fault what=device_pointer_as_host",
      "faults n=7\n"}},
    {"solver_device_for_host",
     device_for_host,
     {0},
     {"fault what=device_pointer_as_host where=cusolverDnXsyevdx", "faults n=2\n"}},
    {"solver_unsupported", unsupported, {0}, {"fault what=beyond_the_test_gpu", "faults n=2\n"}},
    {0},
};
