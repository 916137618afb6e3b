/* The stand-in for cuBLAS. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "test_calls.h"

/* What a program's own BLAS looks like from a library in it. The stand-in must not come here. */
void dgemm_(void);
void dgemm_(void)
{
    abort();
}
void cblas_dgemm(void);
void cblas_dgemm(void)
{
    abort();
}

enum { M = 13, N = 9, K = 11, LD = 17, AREA = LD * LD };

static double complex element(const double complex *x, cublasOperation_t operation, int row,
                              int column)
{
    if (operation == CUBLAS_OP_N)
        return x[column * LD + row];
    double complex value = x[row * LD + column];
    return operation == CUBLAS_OP_C ? conj(value) : value;
}

static void naive(cublasOperation_t ta, cublasOperation_t tb, double complex alpha,
                  const double complex *a, const double complex *b, double complex beta,
                  double complex *c)
{
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
            double complex sum = 0;
            for (int l = 0; l < K; l++)
                sum += element(a, ta, i, l) * element(b, tb, l, j);
            c[j * LD + i] = alpha * sum + (beta != 0 ? beta * c[j * LD + i] : 0);
        }
}

/* gemm, or gemm3m, which only the complex types have. */
struct form {
    enum type type;
    bool wide, three;
};

static cublasStatus_t call_gemm(struct fixture *f, const struct form *t, cublasOperation_t ta,
                                cublasOperation_t tb, const void *alpha, const void *beta)
{
    void *a = (void *)f->a, *b = (void *)f->b, *c = (void *)f->c;
    if (t->three) {
        BY_WIDTH(COMPLEX_ONES, gemm3m, , f->handle, ta, tb, M, N, K, alpha, a, LD, b, LD, beta, c,
                 LD);
    }
    BY_WIDTH(ALL_ONES, gemm, _v2, f->handle, ta, tb, M, N, K, alpha, a, LD, b, LD, beta, c, LD);
}

static int one_gemm(struct fixture *f, const struct form *form, cublasOperation_t ta,
                    cublasOperation_t tb, double complex alpha, double complex beta)
{
    static double complex a[AREA], b[AREA], c[AREA];
    static double complex packed[AREA];
    double complex scalars[2];
    enum type type = form->type;
    for (int i = 0; i < AREA; i++) {
        a[i] = value(type);
        b[i] = value(type);
        c[i] = beta != 0 ? value(type) : (double complex)NAN;
    }
    OK(cuMemcpyHtoD(f->a, packed, narrow(type, a, packed, AREA)));
    OK(cuMemcpyHtoD(f->b, packed, narrow(type, b, packed, AREA)));
    OK(cuMemcpyHtoD(f->c, packed, narrow(type, c, packed, AREA)));
    narrow(type, &alpha, &scalars[0], 1);
    narrow(type, &beta, &scalars[1], 1);
    BLAS_OK(call_gemm(f, form, ta, tb, &scalars[0], &scalars[1]));
    memset(scalars, 0xff, sizeof scalars); /* read at the call */
    OK(cuStreamSynchronize(f->stream));
    naive(ta, tb, alpha, a, b, beta, c);
    OK(cuMemcpyDtoH(packed, f->c, narrow(type, c, packed, AREA)));
    double bound = 16 * K * rounding(type) * 4;
    for (int j = 0; j < LD; j++)
        for (int i = 0; i < LD; i++) {
            double complex got = widen(type, packed, (size_t)(j * LD + i));
            double complex want = c[j * LD + i];
            if (i < M && j < N)
                CHECK(cabs(got - want) <= bound);
            else if (beta == 0)
                CHECK(isnan(creal(got)));
            else
                CHECK(cabs(got - want) <= 1e-7);
        }
    return 0;
}

static int gemm_right(void)
{
    static const int bases[] = {4, 2, 2, 3, 3};
    int digits[5] = {0};
    struct fixture f;
    CHECK(set_up(&f) == 0);
    do {
        const struct form form = {(enum type)digits[0], digits[1], digits[2]};
        cublasOperation_t ta = (cublasOperation_t)digits[3], tb = (cublasOperation_t)digits[4];
        bool real = is_real(form.type);
        double complex alpha = 0.75 + (real ? 0 : 0.5 * I);
        double complex beta = -0.5 + (real ? 0 : 0.25 * I);
        if (real && form.three)
            continue;
        CHECK(one_gemm(&f, &form, ta, tb, alpha, beta) == 0);
        CHECK(one_gemm(&f, &form, ta, tb, alpha, 0) == 0);
        CHECK(one_gemm(&f, &form, ta, tb, 0, beta) == 0);
    } while (count_up(digits, bases, sizeof bases / sizeof *bases));
    return tear_down(&f);
}

/* A and B are nowhere; C has 1, 2, 3, 4. */
static int start_blind(struct fixture *f)
{
    const double c[4] = {1, 2, 3, 4};
    CHECK(set_up(f) == 0);
    OK(cuMemcpyHtoD(f->c, c, sizeof c));
    return 0;
}

/* With two columns. */
static int blind_gemm(struct fixture *f, int m, int k, double alpha, double beta)
{
    const int lda = m ? m : 1, ldb = k ? k : 1;
    BLAS_OK(cublasDgemm(f->handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 2, k, &alpha, NULL, lda, NULL, ldb,
                        &beta, m ? (double *)f->c : NULL, lda));
    return 0;
}

static int end_blind(struct fixture *f, double factor)
{
    double c[4];
    OK(cuStreamSynchronize(f->stream));
    OK(cuMemcpyDtoH(c, f->c, sizeof c));
    for (int i = 0; i < 4; i++)
        CHECK(c[i] == factor * (i + 1));
    return tear_down(f);
}

/* Unless it is asked for, nothing is scaled where nothing is added. */
static int gemm_need_not_scale(void)
{
    struct fixture f;
    const double one = 1, two = 2;
    CHECK(start_blind(&f) == 0);
    CHECK(blind_gemm(&f, 2, 5, 0, 2) == 0);
    CHECK(blind_gemm(&f, 2, 0, 1, 0) == 0);
    BLAS_OK(cublasDsyrk(f.handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, 2, 0, &one, NULL, 2, &two,
                        (double *)f.c, 2));
    return end_blind(&f, 1);
}

/* alpha zero or k zero: A and B are not looked at, wherever they point. */
static int gemm_reads_no_more(void)
{
    struct fixture f;
    CHECK(start_blind(&f) == 0);
    CHECK(blind_gemm(&f, 2, 5, 0, 2) == 0);
    CHECK(blind_gemm(&f, 2, 0, 1, 2) == 0);
    CHECK(blind_gemm(&f, 0, 5, 1, 2) == 0);
    return end_blind(&f, 4);
}

static int gemm_checks(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    double one = 1, *x = (double *)f.a;
    const cublasOperation_t n = CUBLAS_OP_N, t = CUBLAS_OP_T;
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    CHECK(cublasDgemm(f.handle, n, n, -1, 2, 2, &one, x, 2, x, 2, &one, x, 2) == invalid);
    CHECK(cublasDgemm(f.handle, n, n, 3, 2, 2, &one, x, 2, x, 2, &one, x, 3) == invalid);
    CHECK(cublasDgemm(f.handle, t, n, 3, 2, 2, &one, x, 1, x, 2, &one, x, 3) == invalid);
    CHECK(cublasDgemm(f.handle, n, t, 2, 3, 2, &one, x, 2, x, 2, &one, x, 2) == invalid);
    CHECK(cublasDgemm(f.handle, n, n, 3, 2, 2, &one, x, 3, x, 2, &one, x, 2) == invalid);
    CHECK(cublasDgemm(f.handle, n, n, 0, 0, 0, &one, x, 0, x, 1, &one, x, 1) == invalid);
    CHECK(cublasDgemm(f.handle, 7, n, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1) == invalid);
    CHECK(cublasDgemm(f.handle, n, n, 1, 1, 1, NULL, x, 1, x, 1, &one, x, 1) == invalid);
    CHECK(cublasDgemm(NULL, n, n, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1) ==
          CUBLAS_STATUS_NOT_INITIALIZED);
    return tear_down(&f);
}

static int gemm_out_of_bounds(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    CUdeviceptr small;
    double one = 1;
    OK(cuMemAlloc(&small, 5 * sizeof(double)));
    /* 2 by 2 with ld 3 ends at the fifth element, exactly the allocation's end. */
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 1, &one, (double *)f.a, 2,
                        (double *)f.b, 1, &one, (double *)small, 3));
    OK(cuStreamSynchronize(f.stream));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 1, &one, (double *)f.a, 2,
                        (double *)f.b, 1, &one, (double *)small, 4));
    CHECK(cuStreamSynchronize(f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cublasSetStream(f.handle, NULL) == CUBLAS_STATUS_EXECUTION_FAILED);
    return 0;
}

/* Host memory that CUDA does not know is no operand. */
static int gemm_of_host_memory(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    double one = 1, host = 1;
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &host, 1, (double *)f.b,
                        1, &one, (double *)f.c, 1));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* Unless the device uses the host's page tables: then kernels read it when they run, and where the
 * host has no page they fail. */
static int gemm_by_hosts_tables(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    struct gate gate;
    double one = 1, zero = 0, host = 1, back = 0;
    OK(gate_close(&gate, f.stream));
    OK(cuMemcpyHtoDAsync(f.b, &one, sizeof one, f.stream));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &host, 1, (double *)f.b,
                        1, &zero, (double *)f.c, 1));
    host = 7;
    gate_open(&gate);
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(&back, f.c, sizeof back));
    CHECK(back == 7);
    double *nowhere = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(nowhere != MAP_FAILED && munmap((char *)nowhere + 4096, 4096) == 0);
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, nowhere + 511, 1,
                        (double *)f.b, 1, &zero, (double *)f.c, 1));
    OK(cuStreamSynchronize(f.stream));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &one, nowhere + 511, 2,
                        (double *)f.b, 1, &zero, (double *)f.c, 2));
    CHECK(cuStreamSynchronize(f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int device_scalars(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    double in[3] = {3, 0, 5}, out, *x = (double *)f.a;
    struct gate gate;
    CHECK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, x, x, 1, x, 1, x, x, 1) ==
          CUBLAS_STATUS_INVALID_VALUE);
    BLAS_OK(cublasSetPointerMode(f.handle, CUBLAS_POINTER_MODE_DEVICE));
    OK(gate_close(&gate, f.stream));
    OK(cuMemcpyHtoDAsync(f.a, in, sizeof in, f.stream));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, x, x + 2, 1, x + 2, 1, x + 1,
                        (double *)f.c, 1));
    gate_open(&gate);
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(&out, f.c, sizeof out));
    CHECK(out == 75);
    return tear_down(&f);
}

static int spoiled(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    double one = 1, zero = 0, out[4], ones[4] = {1, 1, 1, 1};
    OK(cuMemcpyHtoD(f.a, ones, sizeof ones));
    for (int i = 0; i < 3; i++) {
        BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, (double *)f.a, 2,
                            (double *)f.a, 2, &zero, (double *)f.c, 2));
        OK(cuStreamSynchronize(f.stream));
        OK(cuMemcpyDtoH(out, f.c, sizeof out));
        CHECK(out[0] + out[1] + out[2] + out[3] == (i == 1 ? 9 : 8));
    }
    return tear_down(&f);
}

static int workspace_is_written(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    double one = 1;
    char back = 0;
    OK(cuMemsetD8Async(f.b, 0, 1024, f.stream));
    BLAS_OK(cublasSetWorkspace(f.handle, (void *)f.b, 1024));
    CHECK(cublasSetWorkspace(f.handle, (void *)(f.b + 8), 8) == CUBLAS_STATUS_INVALID_VALUE);
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, (double *)f.a, 1,
                        (double *)f.a, 1, &one, (double *)f.c, 1));
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(&back, f.b + 1023, 1));
    CHECK(back == (char)0xff);
    return tear_down(&f);
}

static int multiply_behind(struct fixture *f, struct gate *gate, CUstream stream,
                           CUdeviceptr workspace)
{
    const double one = 1;
    OK(gate_close(gate, stream));
    BLAS_OK(cublasSetStream(f->handle, stream));
    if (workspace != 0)
        BLAS_OK(cublasSetWorkspace(f->handle, (void *)workspace, 256));
    BLAS_OK(cublasDgemm(f->handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, (double *)f->a, 1,
                        (double *)f->a, 1, &one, (double *)f->c, 1));
    return 0;
}

/* Two products of a handle that are on two streams at the same time, by these workspaces; 0: the
 * handle's. */
static int on_two_streams(CUdeviceptr first, CUdeviceptr second)
{
    struct fixture f;
    struct gate gate[2];
    CUstream other;
    CHECK(set_up(&f) == 0);
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CHECK(multiply_behind(&f, &gate[0], f.stream, first != 0 ? f.b + first : 0) == 0);
    CHECK(multiply_behind(&f, &gate[1], other, second != 0 ? f.b + second : 0) == 0);
    gate_open(&gate[0]);
    gate_open(&gate[1]);
    OK(cuStreamSynchronize(f.stream));
    OK(cuStreamSynchronize(other));
    /* One after the other is well. */
    BLAS_OK(cublasSetStream(f.handle, f.stream));
    CHECK(multiply_behind(&f, &gate[0], f.stream, 0) == 0);
    gate_open(&gate[0]);
    OK(cuStreamSynchronize(f.stream));
    OK(cuStreamDestroy(other));
    return tear_down(&f);
}

static int a_workspace_for_each_stream(void)
{
    CHECK(on_two_streams(0, 256) == 0);
    return on_two_streams(256, 512);
}

static int workspace_in_two_streams(void)
{
    CHECK(on_two_streams(0, 0) == 0);
    return on_two_streams(256, 256);
}

static int wrong_handles(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    CUcontext other;
    cudaStream_t stream;
    OK(cuCtxCreate(&other, NULL, 0, 0));
    CHECK(cublasGetStream(f.handle, &stream) == CUBLAS_STATUS_EXECUTION_FAILED);
    OK(cuCtxDestroy(other));
    BLAS_OK(cublasGetStream(f.handle, &stream));
    CHECK(stream == f.stream);
    BLAS_OK(cublasDestroy(f.handle));
    CHECK(cublasGetStream(f.handle, &stream) == CUBLAS_STATUS_NOT_INITIALIZED);
    BLAS_OK(cublasCreate(&f.handle));
    BLAS_OK(cublasSetStream(f.handle, f.stream));
    OK(cuStreamDestroy(f.stream));
    double one = 1;
    CHECK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, (double *)f.a, 1,
                      (double *)f.a, 1, &one, (double *)f.c, 1) == CUBLAS_STATUS_EXECUTION_FAILED);
    return 0;
}

struct user {
    CUcontext context;
    cublasHandle_t handle;
};

static void *use_handle(void *data)
{
    struct user *user = data;
    cudaStream_t stream;
    cuCtxPushCurrent(user->context);
    for (int i = 0; i < 20000; i++)
        cublasGetStream(user->handle, &stream);
    return NULL;
}

static int handle_in_two_threads(void)
{
    struct user user = {.context = begin()};
    pthread_t threads[4];
    BLAS_OK(cublasCreate(&user.handle));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_handle, &user) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}

static int one_handle_per_thread(void)
{
    CUcontext context = begin();
    struct user users[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        users[i].context = context;
        BLAS_OK(cublasCreate(&users[i].handle));
        CHECK(pthread_create(&threads[i], NULL, use_handle, &users[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        BLAS_OK(cublasDestroy(users[i].handle));
    }
    return 0;
}

enum { TOGETHER = 4, ROUNDS = 25, SIDE = 24 };

/* Every thread has its streams and its handle: copies in on one, kernel on the other, and back. */
static int multiply_again_and_again(CUcontext context)
{
    static const double one = 1, zero = 0;
    double host[SIDE * SIDE], back[SIDE * SIDE];
    CUstream copies, kernels;
    CUevent copied, computed;
    CUdeviceptr a, c;
    cublasHandle_t handle;
    OK(cuCtxPushCurrent(context));
    OK(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&kernels, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&computed, CU_EVENT_DISABLE_TIMING));
    BLAS_OK(cublasCreate(&handle));
    BLAS_OK(cublasSetStream(handle, kernels));
    for (int round = 0; round < ROUNDS; round++) {
        OK(cuMemAlloc(&a, sizeof host));
        OK(cuMemAlloc(&c, sizeof host));
        for (int i = 0; i < SIDE * SIDE; i++)
            host[i] = round;
        OK(cuMemcpyHtoDAsync(a, host, sizeof host, copies));
        OK(cuEventRecord(copied, copies));
        OK(cuStreamWaitEvent(kernels, copied, 0));
        BLAS_OK(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, SIDE, SIDE, SIDE, &one, (double *)a,
                            SIDE, (double *)a, SIDE, &zero, (double *)c, SIDE));
        OK(cuEventRecord(computed, kernels));
        OK(cuStreamWaitEvent(copies, computed, 0));
        OK(cuMemcpyDtoHAsync(back, c, sizeof back, copies));
        OK(cuStreamSynchronize(copies));
        for (int i = 0; i < SIDE * SIDE; i++)
            CHECK(back[i] == (double)SIDE * round * round);
        OK(cuMemFree(a));
        OK(cuMemFree(c));
    }
    BLAS_OK(cublasDestroy(handle));
    OK(cuEventDestroy(copied));
    OK(cuEventDestroy(computed));
    OK(cuStreamDestroy(copies));
    OK(cuStreamDestroy(kernels));
    OK(cuCtxPopCurrent(NULL));
    return 0;
}

static void *multiply_in_thread(void *context)
{
    return (void *)(intptr_t)multiply_again_and_again(context);
}

static int threads_together(void)
{
    CUcontext context = begin();
    pthread_t threads[TOGETHER];
    for (int i = 0; i < TOGETHER; i++)
        CHECK(pthread_create(&threads[i], NULL, multiply_in_thread, context) == 0);
    for (int i = 0; i < TOGETHER; i++) {
        void *failed = NULL;
        CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
    }
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

static int facts(void)
{
    cublasHandle_t handle;
    int version;
    cublasMath_t math;
    begin();
    BLAS_OK(cublasCreate(&handle));
    BLAS_OK(cublasGetVersion(handle, &version));
    CHECK(version == 130100);
    BLAS_OK(cublasGetProperty(MAJOR_VERSION, &version));
    CHECK(version == 13);
    BLAS_OK(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
    BLAS_OK(cublasGetMathMode(handle, &math));
    CHECK(math == CUBLAS_PEDANTIC_MATH);
    BLAS_OK(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_ALLOWED));
    CHECK(strcmp(cublasGetStatusName(CUBLAS_STATUS_ALLOC_FAILED), "CUBLAS_STATUS_ALLOC_FAILED") ==
          0);
    CHECK(strlen(cublasGetStatusString(CUBLAS_STATUS_ALLOC_FAILED)) > 0);
    BLAS_OK(cublasDestroy(handle));
    return 0;
}

/* The other major version, opened the way a program would, beside its own driver library. */
static int older_library(void)
{
    char path[4096];
    Dl_info own;
    CHECK(dladdr((void *)(uintptr_t)cublasCreate, &own) != 0);
    const char *end = strstr(own.dli_fname, "/testgpu/");
    CHECK(end != NULL);
    snprintf(path, sizeof path, "%.*s/testgpu-cuda12/libcublas.so.12", (int)(end - own.dli_fname),
             own.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    int version = 0;
    cublasStatus_t (*property)(libraryPropertyType, int *);
    *(void **)&property = dlsym(library, "cublasGetProperty");
    BLAS_OK(property(MAJOR_VERSION, &version));
    CHECK(version == 12);
    static const char *const missing[] = {
        "cublasDgemm_v2_64",   "cublasChemm_v2_64",    "cublasSsyr2k_v2_64",
        "cublasDtrmm_v2_64",   "cublasDgeam_64",       "cublasDgemv_v2_64",
        "cublasDcopy_v2_64",   "cublasCgemm3m_64",     "cublasDgemmBatched_64",
        "cublasGemmEx_64",     "cublasDtrttp_64",      "cublasSetWorkspace_v2",
        "cublasGetStatusName", "cublasGetStatusString"};
    static const char *const present[] = {"cublasChemm_v2", "cublasDgeam",        "cublasChemv_v2",
                                          "cublasDcopy_v2", "cublasDgemmBatched", "cublasGemmEx",
                                          "cublasDtrttp"};
    for (size_t i = 0; i < sizeof present / sizeof *present; i++) {
        void *found = dlsym(library, present[i]);
        CHECK(found != NULL);
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        void *found = dlsym(library, missing[i]);
        CHECK(found == NULL);
    }
    return 0;
}

const struct scenario blas_scenarios[] = {
    {"gemm_right",
     gemm_right,
     {0},
     {"kernels gemm=216 gemm3m=108\n", "call name=cublasZgemm_v2_64 n=27 failed=0",
      "call name=cublasCgemm3m_64 n=27 failed=0",
      "leaked device_bytes=0 device_allocations=0 host_allocations=0 streams=0 events=0 "
      "handles=0 contexts=0"}},
    {"gemm_need_not_scale", gemm_need_not_scale, {"TESTGPU_SCALES=0"}, {0}},
    {"gemm_reads_no_more", gemm_reads_no_more, {0}, {"kernels gemm=2\n"}},
    {"gemm_checks", gemm_checks, {0}, {"fault what=unknown_handle", "faults n=1\n"}},
    {"gemm_out_of_bounds",
     gemm_out_of_bounds,
     {0},
     {"fault what=illegal_address where=gemm", "faults n=1\n"}},
    {"gemm_of_host_memory", gemm_of_host_memory, {0}, {"fault what=illegal_address where=gemm"}},
    {"gemm_by_hosts_tables",
     gemm_by_hosts_tables,
     {"TESTGPU_ATTRIBUTES=100=1"},
     {"fault what=illegal_address where=gemm", "faults n=1\n"}},
    {"device_scalars", device_scalars, {0}, {"fault what=device_pointer_as_host", "faults n=1\n"}},
    {"spoiled", spoiled, {"TESTGPU_WRONG=2"}, {"planted wrong=2 matched=3 fired=1"}},
    {"workspace_is_written", workspace_is_written, {0}, {0}},
    {"a_workspace_for_each_stream", a_workspace_for_each_stream, {0}, {0}},
    {"workspace_in_two_streams",
     workspace_in_two_streams,
     {0},
     {"fault what=workspace_in_two_streams", "faults n=2\n"}},
    {"wrong_handles",
     wrong_handles,
     {0},
     {"fault what=handle_of_another_context", "fault what=destroyed_handle",
      "fault what=destroyed_stream", "faults n=3\n"}},
    {"handle_in_two_threads",
     handle_in_two_threads,
     {"TESTGPU_DELAY_US=1"},
     {"fault what=handle_in_two_threads"}},
    {"one_handle_per_thread", one_handle_per_thread, {0}, {0}},
    {"threads_together", threads_together, {0}, {"kernels gemm=100\n", "handles=0 contexts=0"}},
    {"facts", facts, {0}, {0}},
    {"older_library", older_library, {0}, {0}},
    {0},
};
