/* A device that takes its time, or none, and neither computes nor moves anything. */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "test_solver.h"

enum { SMALL_BLOCK = 256 << 10 };

static int copies(void)
{
    static unsigned char host[SMALL_BLOCK + 1], back[SMALL_BLOCK + 1];
    CUdeviceptr device;
    begin();
    OK(cuMemAlloc(&device, sizeof host));
    memset(host, 'x', sizeof host);
    OK(cuMemcpyHtoD(device, host, sizeof host));
    OK(cuMemcpyDtoH(back, device, SMALL_BLOCK));
    CHECK(back[0] == 0 && back[SMALL_BLOCK - 1] == 0);
    OK(cuMemcpyHtoD(device, host, SMALL_BLOCK));
    memset(back, 'y', sizeof back);
    OK(cuMemcpyDtoH(back, device, sizeof back));
    CHECK(back[0] == 'y' && back[SMALL_BLOCK] == 'y');
    OK(cuMemcpyDtoH(back, device, SMALL_BLOCK));
    CHECK(back[0] == 'x' && back[SMALL_BLOCK - 1] == 'x' && back[SMALL_BLOCK] == 'y');
    OK(cuMemsetD8(device, 'z', sizeof host));
    OK(cuMemcpyDtoH(back, device, SMALL_BLOCK));
    CHECK(back[0] == 'x');
    OK(cuMemFree(device));
    return 0;
}

static int kernels(void)
{
    enum { N = 16 };
    struct fixture f;
    double a[N * N], c[N * N];
    const double one = 1;
    CHECK(set_up(&f) == 0);
    for (int i = 0; i < N * N; i++)
        a[i] = i;
    OK(cuMemcpyHtoD(f.a, a, sizeof a));
    OK(cuMemcpyHtoD(f.c, a, sizeof a));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, (double *)f.a, N,
                        (double *)f.a, N, &one, (double *)f.c, N));
    BLAS_OK(cublasDgemv(f.handle, CUBLAS_OP_N, N, N, &one, (double *)f.a, N, (double *)f.a, 1, &one,
                        (double *)f.c, 1));
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(c, f.c, sizeof c));
    CHECK(memcmp(a, c, sizeof c) == 0);
    return tear_down(&f);
}

/* Their addresses are too many to have been copied. */
static int batch(void)
{
    enum { COUNT = 1000 };
    struct fixture f;
    static double *addresses[COUNT];
    const double one = 1;
    CUdeviceptr arrays;
    CHECK(set_up(&f) == 0);
    OK(cuMemAlloc(&arrays, sizeof addresses));
    OK(cuMemcpyHtoD(arrays, addresses, sizeof addresses));
    double **at = (double **)arrays;
    BLAS_OK(cublasDgemmBatched(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one,
                               (const double *const *)at, 2, (const double *const *)at, 2, &one, at,
                               2, COUNT));
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemFree(arrays));
    return tear_down(&f);
}

/* Operands that no kernel looks at are still to be there. */
static int illegal_operand(void)
{
    struct fixture f;
    const double one = 1;
    CHECK(set_up(&f) == 0);
    OK(cuMemFree(f.a));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, (double *)f.a, 8,
                        (double *)f.b, 8, &one, (double *)f.c, 8));
    CHECK(cuStreamSynchronize(f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* Of matrices of zeros, which have no factors, and with pivots that are none. */
static int success(struct solver *s)
{
    enum { N = 8 };
    double complex factor[N * N];
    const cublasFillMode_t uplo = CUBLAS_FILL_MODE_LOWER;
    struct eigen e = {.n = N, .lda = N, .b = 1, .ldb = N, .values = 2, .il = 3, .iu = 5, .vu = 1};
    CHECK(getrf(s, N, N, 0, N, 1) == 0);
    CHECK(get(s, 0, factor, N * N) == 0);
    for (int i = 0; i < N; i++)
        CHECK(creal(factor[i * (N + 1)]) > 0);
    CHECK(getrs(s, CUBLAS_OP_N, N, N, 0, N, 1, 2, N) == 0);
    CHECK(potrf(s, uplo, N, 0, N) == 0);
    CHECK(get(s, 0, factor, N * N) == 0 && creal(factor[N * N - 1]) > 0);
    CHECK(trtri(s, uplo, CUBLAS_DIAG_NON_UNIT, N, 0, N) == 0);
    CHECK(laswp(s, N, 0, N, 1, N, 1, 1) == 0);
    OK(cuStreamSynchronize(s->stream));
    CHECK(sytrs(s, uplo, N, N, 0, N, 1, 2, N) == 0);
    CHECK(eigen(s, &e) == 0);
    e.range = CUSOLVER_EIG_RANGE_ALL;
    CHECK(eigen(s, &e) == 0 && e.found == N);
    e.range = CUSOLVER_EIG_RANGE_V;
    CHECK(eigen(s, &e) == 0 && e.found == N);
    e.range = CUSOLVER_EIG_RANGE_I;
    CHECK(eigen(s, &e) == 0 && e.found == 3);
    e.itype = CUSOLVER_EIG_TYPE_1;
    CHECK(eigen(s, &e) == 0 && e.found == 3);
    return 0;
}

FOR_TYPES(success)

/* More than the machine has. */
static int large_memory(void)
{
    enum { N = 50000 };
    const size_t bytes = (size_t)N * N * sizeof(double), given = (size_t)1 << 30;
    const double one = 1;
    struct fixture f;
    CUdeviceptr area;
    struct rusage used;
    CHECK(set_up(&f) == 0);
    OK(cuMemAlloc(&area, 3 * bytes));
    double *a = (double *)area, *b = (double *)(area + bytes), *c = (double *)(area + 2 * bytes);
    void *unreadable =
        mmap(NULL, given, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(unreadable != MAP_FAILED);
    OK(cuMemcpyHtoD(area, unreadable, given));
    OK(cuMemsetD8(area, 1, 3 * bytes));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, b, N, &one, c, N));
    OK(cuCtxSynchronize());
    OK(cuMemFree(area));
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    CHECK((size_t)used.ru_maxrss * 1024 < given);
    return tear_down(&f);
}

#define NO_DATA "TESTGPU_DATA=0"

const struct scenario no_data_scenarios[] = {
    {"no_data_in_copies", copies, {NO_DATA}, {"h2d_bytes=524289 "}},
    {"no_data_in_kernels", kernels, {NO_DATA}, {"kernels gemm=1", " gemv=1"}},
    {"no_data_in_a_batch", batch, {NO_DATA}, {"gemm_batched=1"}},
    {"no_data_and_an_illegal_operand", illegal_operand, {NO_DATA}, {"fault what=illegal_address"}},
    {"no_data_and_success", success_right, {NO_DATA}, {0}},
    {"no_data_in_large_memory", large_memory, {NO_DATA, "TESTGPU_MEMORY=64G"}, {0}},
    {0},
};
