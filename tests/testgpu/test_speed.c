/*
 * How long operations last. That they last long enough is checked by the clock, that they do not
 * last longer by the report: a machine may always be slow.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test_testgpu.h"

enum { LARGE = 64000000, TOO_LONG_S = 120 };

static int copies(void)
{
    CUdeviceptr device;
    void *pinned, *pageable = calloc(1, LARGE);
    begin();
    CHECK(pageable != NULL);
    OK(cuMemAlloc(&device, LARGE));
    OK(cuMemHostAlloc(&pinned, LARGE, 0));
    double start = milliseconds();
    OK(cuMemcpyHtoD(device, pageable, LARGE));
    CHECK(milliseconds() - start >= 64);
    start = milliseconds();
    OK(cuMemcpyHtoD(device, pinned, LARGE));
    CHECK(milliseconds() - start >= 64);
    start = milliseconds();
    OK(cuMemcpyDtoH(pinned, device, LARGE));
    CHECK(milliseconds() - start >= 32);
    free(pageable);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(device));
    return 0;
}

/* What lies between the rows of a plane is not copied. */
static int copy_of_a_plane(void)
{
    enum { WIDTH = 1000, ROWS = 1000, PITCH = 4096 };
    CUdeviceptr device;
    static char host[PITCH * ROWS];
    begin();
    OK(cuMemAlloc(&device, PITCH * ROWS));
    CUDA_MEMCPY2D plane = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcPitch = PITCH,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = device,
                           .dstPitch = PITCH,
                           .WidthInBytes = WIDTH,
                           .Height = ROWS};
    double start = milliseconds();
    OK(cuMemcpy2D(&plane));
    CHECK(milliseconds() - start >= 10);
    OK(cuMemFree(device));
    return 0;
}

static int launches(void)
{
    enum { ROUNDS = 10 };
    struct fixture f;
    char host[8] = {0};
    CHECK(set_up(&f) == 0);
    double start = milliseconds();
    for (int i = 0; i < ROUNDS; i++)
        BLAS_OK(cublasDcopy(f.handle, 1, (double *)f.a, 1, (double *)f.b, 1));
    OK(cuStreamSynchronize(f.stream));
    CHECK(milliseconds() - start >= 2.5 * ROUNDS);
    start = milliseconds();
    for (int i = 0; i < ROUNDS; i++)
        OK(cuMemcpyHtoDAsync(f.a, host, sizeof host, f.stream));
    OK(cuMemcpyDtoHAsync(host, f.a, sizeof host, f.stream));
    OK(cuMemcpyDtoDAsync(f.b, f.a, sizeof host, f.stream));
    OK(cuMemsetD8Async(f.a, 0, 8, f.stream));
    OK(cuStreamSynchronize(f.stream));
    CHECK(milliseconds() - start >= 2.5 * (ROUNDS + 3));
    return tear_down(&f);
}

/* A product whose result is right, of so many operations: 2 n^3. */
static int multiply(cublasHandle_t handle, int n)
{
    const double one = 1, zero = 0;
    size_t bytes = sizeof(double) * (size_t)n * (size_t)n;
    double *ones = malloc(bytes);
    CUdeviceptr a, c;
    CHECK(ones != NULL);
    for (int i = 0; i < n * n; i++)
        ones[i] = 1;
    OK(cuMemAlloc(&a, bytes));
    OK(cuMemAlloc(&c, bytes));
    OK(cuMemcpyHtoD(a, ones, bytes));
    double start = milliseconds();
    BLAS_OK(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, (double *)a, n,
                        (double *)a, n, &zero, (double *)c, n));
    OK(cuCtxSynchronize());
    CHECK(milliseconds() - start >= 2e-6 * n * n * n);
    OK(cuMemcpyDtoH(ones, c, bytes));
    CHECK(ones[0] == n && ones[n * n - 1] == n);
    OK(cuMemFree(a));
    OK(cuMemFree(c));
    free(ones);
    return 0;
}

static int kernels(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    CHECK(multiply(f.handle, 100) == 0);
    CHECK(multiply(f.handle, 200) == 0);
    return tear_down(&f);
}

/* By n = 96 operations are what it lasts for, not bytes: 1.769472 ms at 10^9 a second. */
static cublasStatus_t launch(cublasHandle_t handle, CUdeviceptr room)
{
    enum { N = 96 };
    const double one = 1;
    double *a = (double *)room;
    return cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, a + N * N, N, &one,
                       a + 2 * N * N, N);
}

static int set_up_launches(struct fixture *f, CUdeviceptr *room)
{
    CHECK(set_up(f) == 0);
    OK(cuMemAlloc(room, 3 * 96 * 96 * sizeof(double)));
    return 0;
}

static int tear_down_launches(struct fixture *f, CUdeviceptr room)
{
    OK(cuMemFree(room));
    return tear_down(f);
}

/* One after the other, whatever their streams; so are copies of one direction. */
static int one_device(void)
{
    enum { ROUNDS = 10 };
    struct fixture f;
    CUdeviceptr room;
    CUstream other;
    static char host[2000000];
    CHECK(set_up_launches(&f, &room) == 0);
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    double start = milliseconds();
    for (int i = 0; i < ROUNDS; i++) {
        BLAS_OK(cublasSetStream(f.handle, i % 2 ? other : f.stream));
        if (i % 2)
            BLAS_OK(cublasSetWorkspace(f.handle, (void *)f.b, 256));
        BLAS_OK(launch(f.handle, room));
    }
    OK(cuCtxSynchronize());
    CHECK(milliseconds() - start >= 1.769472 * ROUNDS);
    CUdeviceptr device;
    OK(cuMemAlloc(&device, sizeof host));
    start = milliseconds();
    for (int i = 0; i < ROUNDS; i++)
        OK(cuMemcpyHtoDAsync(device, host, sizeof host, i % 2 ? other : f.stream));
    OK(cuCtxSynchronize());
    CHECK(milliseconds() - start >= 2 * ROUNDS);
    OK(cuMemFree(device));
    OK(cuStreamDestroy(other));
    BLAS_OK(cublasSetStream(f.handle, f.stream));
    return tear_down_launches(&f, room);
}

/* Copies down and kernels need not wait for a copy up of ten minutes, nor does the end. */
static int engines(void)
{
    struct fixture f;
    CUdeviceptr room;
    CUstream up;
    static char host[64000], back[64000];
    alarm(TOO_LONG_S);
    CHECK(set_up_launches(&f, &room) == 0);
    OK(cuStreamCreate(&up, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyHtoDAsync(room, host, sizeof host, up));
    OK(cuMemcpyDtoHAsync(back, room, sizeof back, f.stream));
    BLAS_OK(launch(f.handle, room));
    OK(cuStreamSynchronize(f.stream));
    CHECK(cuStreamQuery(up) == CUDA_ERROR_NOT_READY);
    return 0;
}

static int end_in_a_kernel(void)
{
    struct fixture f;
    CUdeviceptr room;
    alarm(TOO_LONG_S);
    CHECK(set_up_launches(&f, &room) == 0);
    BLAS_OK(launch(f.handle, room));
    usleep(20000);
    CHECK(cuStreamQuery(f.stream) == CUDA_ERROR_NOT_READY);
    return 0;
}

/* Memory that a kernel uses is there until the kernel's end. */
static int memory_stays(void)
{
    struct fixture f;
    CUdeviceptr room;
    CHECK(set_up_launches(&f, &room) == 0);
    double start = milliseconds();
    BLAS_OK(launch(f.handle, room));
    usleep(500000);
    OK(cuMemFree(room));
    CHECK(milliseconds() - start >= 1769.472);
    return tear_down(&f);
}

static int busy(void)
{
    struct fixture f;
    CUdeviceptr room;
    CHECK(set_up_launches(&f, &room) == 0);
    double start = milliseconds();
    BLAS_OK(launch(f.handle, room));
    OK(cuStreamSynchronize(f.stream));
    CHECK(milliseconds() - start >= 4 * 1.769472);
    return tear_down_launches(&f, room);
}

/* Kernels that last for no time wait for half of 0.95 ms on average. */
static int busy_waits(void)
{
    enum { ROUNDS = 100 };
    struct fixture f;
    CHECK(set_up(&f) == 0);
    double start = milliseconds();
    for (int i = 0; i < ROUNDS; i++)
        BLAS_OK(cublasDcopy(f.handle, 1, (double *)f.a, 1, (double *)f.b, 1));
    OK(cuStreamSynchronize(f.stream));
    CHECK(milliseconds() - start >= 0.3 * ROUNDS);
    return tear_down(&f);
}

static int memory_costs(void)
{
    CUdeviceptr device, managed;
    size_t available, total;
    void *pinned, *registered = calloc(1, LARGE);
    begin();
    CHECK(registered != NULL);
    double start = milliseconds();
    OK(cuMemAlloc(&device, 4096));
    CHECK(milliseconds() - start >= 1.5);
    OK(cuMemFree(device));
    OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemFree(managed));
    start = milliseconds();
    OK(cuMemHostAlloc(&pinned, LARGE, 0));
    CHECK(milliseconds() - start >= 1.5 + 64);
    OK(cuMemFreeHost(pinned));
    OK(cuMemHostRegister(registered, LARGE / 2, 0));
    OK(cuMemHostUnregister(registered));
    for (int i = 0; i < 4; i++)
        OK(cuMemGetInfo(&available, &total));
    free(registered);
    return 0;
}

#define ONE_GFLOPS "TESTGPU_GFLOPS=1", "TESTGPU_HALF=0"

const struct scenario speed_scenarios[] = {
    {"copies_last",
     copies,
     {"TESTGPU_UP_GBPS=1", "TESTGPU_DOWN_GBPS=2"},
     {"lasted kernels_us=0 up_us=128000 down_us=32000\n"}},
    {"copies_last_by_a_fraction", copy_of_a_plane, {"TESTGPU_UP_GBPS=0.1"}, {"up_us=10000 "}},
    {"memory_costs",
     memory_costs,
     {"TESTGPU_MEMORY_US=1500", "TESTGPU_PIN_MS=1000", "TESTGPU_INFO_US=250.5"},
     {"testgpu cost memory_us=12000 pinning_us=96000 info_us=1002\n"}},
    {"launches_last", launches, {"TESTGPU_LAUNCH_US=2500"}, {"up_us=25000 down_us=2500\n"}},
    {"kernels_last", kernels, {ONE_GFLOPS}, {"testgpu lasted", "up_us=0 down_us=0"}},
    {"one_device", one_device, {ONE_GFLOPS, "TESTGPU_UP_GBPS=1"}, {"up_us=20000"}},
    {"engines",
     engines,
     {ONE_GFLOPS, "TESTGPU_UP_GBPS=0.0000001", "TESTGPU_DOWN_GBPS=1", "TESTGPU_DATA=0"},
     {"lasted kernels_us=1769 up_us=0 down_us=64\n"}},
    {"end_in_a_kernel", end_in_a_kernel, {"TESTGPU_GFLOPS=0.000001"}, {"pending operations=1\n"}},
    {"memory_stays_until_the_end",
     memory_stays,
     {"TESTGPU_GFLOPS=0.001", "TESTGPU_HALF=0", "TESTGPU_DELAY_US=0"},
     {0}},
    {"busy", busy, {ONE_GFLOPS, "TESTGPU_BUSY=75", "TESTGPU_DATA=0"}, {"kernels_us=7077 "}},
    {"busy_waits",
     busy_waits,
     {"TESTGPU_BUSY=95", "TESTGPU_SEED=1", "TESTGPU_DELAY_US=0", "TESTGPU_DATA=0"},
     {0}},
    {0},
};
