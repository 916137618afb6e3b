/*
 * What each routine costs, at 10^9 operations a second. Each lasts at least as long as it should,
 * and all of them, by the report, no longer than they should: so each lasts just so long.
 */
#include "test_solver.h"

/* Sizes by which the routines compute for longer than they move, as far as they compute. */
enum { M = 96, N = 112, K = 80, AREA_BYTES = 4 << 20 };

static CUevent before, after;

/* Exactly, except for the rounding of CUDA's milliseconds. */
#define LASTS(NS, CALL)                                                                            \
    do {                                                                                           \
        float ms;                                                                                  \
        OK(cuEventRecord(before, f.stream));                                                       \
        BLAS_OK(CALL);                                                                             \
        OK(cuEventRecord(after, f.stream));                                                        \
        OK(cuStreamSynchronize(f.stream));                                                         \
        OK(cuEventElapsedTime(&ms, before, after));                                                \
        CHECK((double)ms * 1e6 >= (NS) * (1 - 1e-6));                                              \
    } while (0)

static int blas(void)
{
    struct fixture f;
    CUdeviceptr area;
    const double one = 1;
    const float single_one = 1;
    const cuDoubleComplex complex_one = {1, 0};
    CHECK(set_up(&f) == 0);
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    OK(cuMemAlloc(&area, 3 * AREA_BYTES));
    double *a = (double *)area, *b = (double *)(area + AREA_BYTES),
           *c = (double *)(area + 2 * AREA_BYTES);
    cuDoubleComplex *za = (void *)a, *zb = (void *)b, *zc = (void *)c;
    cublasHandle_t h = f.handle;
    const cublasOperation_t op = CUBLAS_OP_N;
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    const cublasSideMode_t left = CUBLAS_SIDE_LEFT, right = CUBLAS_SIDE_RIGHT;
    const cublasDiagType_t diag = CUBLAS_DIAG_NON_UNIT;
    LASTS(2 * M * N * K, cublasDgemm(h, op, op, M, N, K, &one, a, M, b, K, &one, c, M));
    LASTS(M * N * K, cublasSgemm(h, op, op, M, N, K, &single_one, (float *)a, M, (float *)b, K,
                                 &single_one, (float *)c, M));
    LASTS(8 * M * N * K,
          cublasZgemm(h, op, op, M, N, K, &complex_one, za, M, zb, K, &complex_one, zc, M));
    LASTS(2 * M * M * N, cublasDsymm(h, left, lower, M, N, &one, a, M, b, M, &one, c, M));
    LASTS(2 * M * N * N, cublasDsymm(h, right, lower, M, N, &one, a, N, b, M, &one, c, M));
    LASTS(M * (M + 1) * N, cublasDsyrk(h, lower, op, M, N, &one, a, M, &one, c, M));
    LASTS(2 * M * (M + 1) * N, cublasDsyr2k(h, lower, op, M, N, &one, a, M, b, M, &one, c, M));
    LASTS(M * N * N, cublasDtrsm(h, right, lower, op, diag, M, N, &one, a, N, c, M));
    LASTS(M * M * N, cublasDtrmm(h, left, lower, op, diag, M, N, &one, a, M, b, M, c, M));
    LASTS(3 * 2 * M * N * K, cublasDgemmStridedBatched(h, op, op, M, N, K, &one, a, M, M * K, b, K,
                                                       K * N, &one, c, M, M * N, 3));
    LASTS(4 * 8 * (M * N + M + N), cublasDgemv(h, op, M, N, &one, a, M, b, 1, &one, c, 1));
    LASTS(4 * 8 * 3 * M * N, cublasDgeam(h, op, op, M, N, &one, a, M, &one, b, M, c, M));
    LASTS(4 * 8 * 2 * 1000, cublasDcopy(h, 1000, a, 1, c, 1));
    OK(cuMemFree(area));
    OK(cuEventDestroy(before));
    OK(cuEventDestroy(after));
    return tear_down(&f);
}

/* Half of the rate for sizes of HALF, and the smallest counts. */
static int ramp(void)
{
    struct fixture f;
    CUdeviceptr area;
    const double one = 1;
    CHECK(set_up(&f) == 0);
    OK(cuMemAlloc(&area, 3 * AREA_BYTES));
    double *a = (double *)area, *b = (double *)(area + AREA_BYTES),
           *c = (double *)(area + 2 * AREA_BYTES);
    double start = milliseconds();
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, a, M, b, K, &one, c, M));
    OK(cuStreamSynchronize(f.stream));
    CHECK(milliseconds() - start >= 2 * 2e-6 * M * N * K);
    OK(cuMemFree(area));
    return tear_down(&f);
}

#define SOLVER_LASTS(NS, CALL)                                                                     \
    do {                                                                                           \
        double start = milliseconds();                                                             \
        CHECK((CALL) == 0);                                                                        \
        OK(cuStreamSynchronize(s.stream));                                                         \
        CHECK((milliseconds() - start) * 1e6 >= (NS));                                             \
    } while (0)

/* The large slots are the tests' own, given back before the rest. */
static int set_up_large(struct solver *s, CUdeviceptr *small)
{
    CHECK(solver_set_up(s) == 0);
    s->type = D;
    for (int i = 0; i < SLOTS; i++) {
        small[i] = s->slot[i];
        OK(cuMemAlloc(&s->slot[i], AREA_BYTES));
    }
    return 0;
}

static int tear_down_large(struct solver *s, const CUdeviceptr *small)
{
    for (int i = 0; i < SLOTS; i++) {
        OK(cuMemFree(s->slot[i]));
        s->slot[i] = small[i];
    }
    return solver_tear_down(s);
}

static int factors(void)
{
    enum { N3 = 192 * 192 * 192, SOLVE = 2 * 128 * 128 * 128 };
    const cublasFillMode_t uplo = CUBLAS_FILL_MODE_LOWER;
    struct solver s;
    CUdeviceptr small[SLOTS];
    CHECK(set_up_large(&s, small) == 0);
    SOLVER_LASTS(2446677, getrf(&s, 192, 128, 0, 192, 1));
    SOLVER_LASTS(SOLVE, getrs(&s, CUBLAS_OP_N, 128, 128, 0, 128, 1, 2, 128));
    SOLVER_LASTS(N3 / 3, potrf(&s, uplo, 192, 0, 192));
    SOLVER_LASTS(SOLVE, potrs(&s, uplo, 128, 128, 0, 128, 2, 128));
    SOLVER_LASTS(N3 / 3 * 2, potri(&s, uplo, 192, 0, 192));
    SOLVER_LASTS(N3 / 3, lauum(&s, uplo, 192, 0, 192));
    SOLVER_LASTS(N3 / 3, trtri(&s, uplo, CUBLAS_DIAG_NON_UNIT, 192, 0, 192));
    SOLVER_LASTS(4 * (8 * 128 * 128 + 4 * 128), laswp(&s, 128, 0, 128, 1, 128, 1, 1));
    SOLVER_LASTS(4893354, geqrf(&s, 192, 128, 0, 192, 1));
    SOLVER_LASTS(4893354, orgqr(&s, 192, 128, 128, 0, 192, 1));
    SOLVER_LASTS(5242880,
                 ormqr(&s, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, 192, 128, 64, 0, 192, 1, 2, 192));
    SOLVER_LASTS(N3 / 3, sytrf(&s, uplo, 192, 0, 192, 1));
    SOLVER_LASTS(SOLVE, sytrs(&s, uplo, 128, 128, 0, 128, 1, 2, 128));
    return tear_down_large(&s, small);
}

static int spectra(void)
{
    enum { N3 = 128 * 128 * 128 };
    struct solver s;
    CUdeviceptr small[SLOTS];
    struct eigen e = {
        .jobz = CUSOLVER_EIG_MODE_VECTOR, .n = 128, .lda = 128, .ldb = 128, .b = 1, .values = 2};
    CHECK(set_up_large(&s, small) == 0);
    SOLVER_LASTS(4 * N3, eigen(&s, &e));
    SOLVER_LASTS(N3 / 3 * 4, sytrd(&s, CUBLAS_FILL_MODE_LOWER, 128, 0, 128, 1, 2, 3));
    e.jobz = CUSOLVER_EIG_MODE_NOVECTOR;
    SOLVER_LASTS(N3 / 3 * 4, eigen(&s, &e));
    e.itype = CUSOLVER_EIG_TYPE_1;
    SOLVER_LASTS(N3 / 3 * 11, eigen(&s, &e));
    e.jobz = CUSOLVER_EIG_MODE_VECTOR;
    SOLVER_LASTS(N3 / 3 * 19, eigen(&s, &e));
    SOLVER_LASTS(58021205, gesvd(&s, 'S', 'S', 192, 128, 0, 192, 1, 2, 192, 3, 128));
    SOLVER_LASTS(9786709, gesvd(&s, 'N', 'N', 192, 128, 0, 192, 1, 2, 192, 3, 128));
    SOLVER_LASTS(25 * M * M * M, geev(&s, CUSOLVER_EIG_MODE_VECTOR, false, M, 0, M, 1, 2, M));
    SOLVER_LASTS(10 * M * M * M, geev(&s, CUSOLVER_EIG_MODE_NOVECTOR, false, M, 0, M, 1, 2, M));
    return tear_down_large(&s, small);
}

#define ONE_GFLOPS "TESTGPU_DATA=0", "TESTGPU_DELAY_US=0", "TESTGPU_GFLOPS=1"

const struct scenario cost_scenarios[] = {
    {"cost_of_blas", blas, {ONE_GFLOPS, "TESTGPU_HALF=0"}, {"kernels_us=25907 "}},
    {"cost_of_small_sizes", ramp, {ONE_GFLOPS, "TESTGPU_HALF=80"}, {"kernels_us=3440 "}},
    {"cost_of_factors", factors, {ONE_GFLOPS, "TESTGPU_HALF=0"}, {"kernels_us=44741 "}},
    {"cost_of_spectra", spectra, {ONE_GFLOPS, "TESTGPU_HALF=0"}, {"kernels_us=133726 "}},
    {0},
};
