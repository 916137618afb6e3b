/* What gemmBatched and gemmStridedBatched refuse, touch and report. */
#include <stdint.h>
#include "test_batched.h"

static const double complex one = 1, zero = 0;

#define GIVES(STATUS, CHANGE)                                                                      \
    do {                                                                                           \
        struct trial t;                                                                            \
        CHECK(batch_trial(&t, pointers, Z, &batch) == 0);                                          \
        CHANGE;                                                                                    \
        CHECK(multiply_batch(batch.f.handle, &t) == (STATUS));                                     \
    } while (0)
#define REFUSED(CHANGE) GIVES(CUBLAS_STATUS_INVALID_VALUE, CHANGE)
#define NOTHING(CHANGE) GIVES(CUBLAS_STATUS_SUCCESS, (CHANGE, t.a = t.b = t.c = 0))

static int batched_checks(void)
{
    struct batch batch;
    CHECK(set_up_batch(&batch) == 0);
    for (int pointers = 0; pointers < 2; pointers++) {
        REFUSED(t.m = -1);
        REFUSED(t.n = -1);
        REFUSED(t.k = -1);
        REFUSED(t.count = -1);
        REFUSED(t.lda = M - 1);
        REFUSED(t.ldb = K - 1);
        REFUSED(t.ldc = M - 1);
        REFUSED((t.tb = CUBLAS_OP_T, t.ldb = N - 1));
        REFUSED((t.count = 0, t.ldc = M - 1));
        REFUSED(t.ta = 7);
        REFUSED(t.tb = CUBLAS_OP_CONJG);
        REFUSED(t.alpha = NULL);
        REFUSED(t.beta = NULL);
        REFUSED(t.alpha = (void *)batch.f.a);
        NOTHING(t.m = 0);
        NOTHING(t.n = 0);
        NOTHING(t.count = 0);
    }
    return tear_down_batch(&batch);
}

enum { MANY = 100, NONE = -1 };

/* Each matrix in memory of its own; one array too short, or one matrix behind its memory's end. */
static int far_apart(int short_array, int wrong_matrix)
{
    static CUdeviceptr matrices[3][MANY];
    CUdeviceptr arrays[3];
    CUcontext context;
    cublasHandle_t handle;
    double two = 2, out;
    OK(cuCtxCreate(&context, NULL, 0, 0));
    BLAS_OK(cublasCreate(&handle));
    for (int l = 0; l < 3; l++) {
        size_t bytes = sizeof *matrices - (l == short_array);
        for (int i = 0; i < MANY; i++) {
            OK(cuMemAlloc(&matrices[l][i], sizeof two));
            OK(cuMemcpyHtoD(matrices[l][i], &two, sizeof two));
        }
        if (l == wrong_matrix)
            matrices[l][MANY - 1] += sizeof two;
        OK(cuMemAlloc(&arrays[l], bytes));
        OK(cuMemcpyHtoD(arrays[l], matrices[l], bytes));
    }
    BLAS_OK(cublasDgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &two, (void *)arrays[0],
                               1, (void *)arrays[1], 1, &two, (void *)arrays[2], 1, MANY));
    bool wrong = short_array != NONE || wrong_matrix != NONE;
    CHECK(cuCtxSynchronize() == (wrong ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS));
    for (int i = 0; i < MANY && !wrong; i++) {
        OK(cuMemcpyDtoH(&out, matrices[2][i], sizeof out));
        CHECK(out == 12);
    }
    OK(cuCtxDestroy(context));
    return 0;
}

static int batched_far_apart(void)
{
    OK(cuInit(0));
    CHECK(far_apart(NONE, NONE) == 0);
    for (int l = 0; l < 3; l++) {
        CHECK(far_apart(l, NONE) == 0);
        CHECK(far_apart(NONE, l) == 0);
    }
    return 0;
}

/* The host's arrays are no use to the device. */
static int batched_host_arrays(void)
{
    struct batch batch;
    struct trial t;
    CHECK(set_up_batch(&batch) == 0);
    CUdeviceptr host[COUNT] = {batch.f.a, batch.f.a, batch.f.a, batch.f.a};
    CHECK(batch_trial(&t, true, D, &batch) == 0);
    t.a = (CUdeviceptr)(uintptr_t)host;
    BLAS_OK(multiply_batch(batch.f.handle, &t));
    CHECK(cuStreamSynchronize(batch.f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* One of the matrices; the arrays of their addresses are. */
static int batched_misaligned(void)
{
    struct batch batch;
    struct trial t;
    CHECK(set_up_batch(&batch) == 0);
    CHECK(batch_trial(&t, false, D, &batch) == 0);
    t.c += sizeof(float);
    BLAS_OK(multiply_batch(batch.f.handle, &t));
    CHECK(cuStreamSynchronize(batch.f.stream) == CUDA_ERROR_MISALIGNED_ADDRESS);
    return 0;
}

/* The memory ends with the third C. */
static int batched_strides_out_of_bounds(void)
{
    struct batch batch;
    struct trial t;
    CHECK(set_up_batch(&batch) == 0);
    CHECK(batch_trial(&t, false, D, &batch) == 0);
    OK(cuMemAlloc(&t.c, (2 * STRIDE + (N - 1) * LD + M) * sizeof(double)));
    t.count = 3;
    BLAS_OK(multiply_batch(batch.f.handle, &t));
    OK(cuStreamSynchronize(batch.f.stream));
    t.count = 4;
    BLAS_OK(multiply_batch(batch.f.handle, &t));
    CHECK(cuStreamSynchronize(batch.f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* Results of different entries meet, or one meets another's input; interleaved ones do not. */
static int batched_overlap(void)
{
    struct batch batch;
    struct trial t;
    CHECK(set_up_batch(&batch) == 0);
    for (int pointers = 0; pointers < 2; pointers++) {
        CHECK(batch_trial(&t, pointers, D, &batch) == 0);
        t.stride_c = M;
        t.ldc = COUNT * M;
        CHECK(point_at(batch.c, batch.f.c, t.stride_c, D) == 0);
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        OK(cuStreamSynchronize(batch.f.stream));
        t.stride_c = M - 1;
        CHECK(point_at(batch.c, batch.f.c, t.stride_c, D) == 0);
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        CHECK(batch_trial(&t, pointers, D, &batch) == 0);
        OK(cuStreamSynchronize(batch.f.stream));
        if (!pointers)
            t.b = t.c + (STRIDE + 1) * sizeof(double);
        CHECK(point_at(batch.b, batch.f.c + (STRIDE + 1) * sizeof(double), STRIDE, D) == 0);
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        OK(cuStreamSynchronize(batch.f.stream));
        t.alpha = &zero; /* then B is not read, nor is it here: */
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        OK(cuStreamSynchronize(batch.f.stream));
        t.alpha = &one;
        t.k = 0;
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        OK(cuStreamSynchronize(batch.f.stream));
    }
    return tear_down_batch(&batch);
}

/* A planted failure of a call, then one wrong element in all of a batch. */
static int batched_planted(void)
{
    static double host[AREA];
    struct batch batch;
    struct trial t;
    CHECK(set_up_batch(&batch) == 0);
    for (int pointers = 0; pointers < 2; pointers++) {
        CHECK(batch_trial(&t, pointers, D, &batch) == 0);
        t.alpha = t.beta = &zero;
        t.wide = true;
        CHECK(multiply_batch(batch.f.handle, &t) == CUBLAS_STATUS_EXECUTION_FAILED);
        OK(cuMemsetD8Async(batch.f.c, 0, sizeof host, batch.f.stream));
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        OK(cuStreamSynchronize(batch.f.stream));
        OK(cuMemcpyDtoH(host, batch.f.c, sizeof host));
        int wrong = 0;
        for (int i = 0; i < AREA; i++)
            if (host[i] != 0) {
                CHECK(host[i] == 1 && i % STRIDE % LD < M && i % STRIDE / LD < N);
                wrong++;
            }
        CHECK(wrong == 1);
    }
    return tear_down_batch(&batch);
}

/* Scalars in device memory, the same for all entries. */
static int batched_device_scalars(void)
{
    struct batch batch;
    struct trial t;
    CUdeviceptr scalars;
    const double in[2] = {3, 5}, ones[COUNT] = {1, 1, 1, 1};
    double out[COUNT];
    CHECK(set_up_batch(&batch) == 0);
    BLAS_OK(cublasSetPointerMode(batch.f.handle, CUBLAS_POINTER_MODE_DEVICE));
    CHECK(batch_trial(&t, false, D, &batch) == 0);
    OK(cuMemAlloc(&scalars, sizeof in));
    OK(cuMemcpyHtoD(scalars, in, sizeof in));
    OK(cuMemcpyHtoD(t.a, ones, sizeof ones));
    OK(cuMemcpyHtoD(t.b, ones, sizeof ones));
    OK(cuMemcpyHtoD(t.c, ones, sizeof ones));
    t.alpha = (void *)scalars;
    t.beta = (void *)(scalars + sizeof *in);
    t.m = t.n = t.k = 1;
    t.stride_a = t.stride_b = t.stride_c = 1;
    BLAS_OK(multiply_batch(batch.f.handle, &t));
    OK(cuStreamSynchronize(batch.f.stream));
    OK(cuMemcpyDtoH(out, t.c, sizeof out));
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == 8);
    OK(cuMemFree(scalars));
    return tear_down_batch(&batch);
}

/* More entries than a kernel's grid has are refused. */
static int batched_too_long(void)
{
    struct batch b;
    struct trial t;
    CHECK(set_up_batch(&b) == 0);
    for (int pointers = 0; pointers < 2; pointers++) {
        CHECK(batch_trial(&t, pointers, D, &b) == 0);
        t.count = 65536;
        CHECK(multiply_batch(b.f.handle, &t) == CUBLAS_STATUS_NOT_SUPPORTED);
    }
    return tear_down_batch(&b);
}

const struct scenario batched_rule_scenarios[] = {
    {"batched_too_long", batched_too_long, {0}, {"fault what=batch_too_long", "faults n=2\n"}},
    {"batched_checks",
     batched_checks,
     {0},
     {"kernels gemm=0\n", "fault what=device_pointer_as_host", "faults n=2\n"}},
    {"batched_far_apart",
     batched_far_apart,
     {0},
     {"fault what=illegal_address where=gemm_batched", "faults n=6\n"}},
    {"batched_host_arrays",
     batched_host_arrays,
     {0},
     {"fault what=illegal_address where=gemm_batched", "faults n=1\n"}},
    {"batched_misaligned",
     batched_misaligned,
     {0},
     {"fault what=misaligned_address where=gemm_strided_batched", "faults n=1\n"}},
    {"batched_strides_out_of_bounds",
     batched_strides_out_of_bounds,
     {0},
     {"fault what=illegal_address where=gemm_strided_batched", "faults n=1\n"}},
    {"batched_overlap",
     batched_overlap,
     {0},
     {"fault what=overlapping_matrices where=gemm_batched",
      "fault what=overlapping_matrices where=gemm_strided_batched", "faults n=4\n"}},
    {"batched_planted",
     batched_planted,
     {"TESTGPU_WRONG=1+", "TESTGPU_FAIL=cublasDgemmBatched:1,cublasDgemmStridedBatched:1"},
     {"planted wrong=1+ matched=2 fired=2",
      "planted function=cublasDgemmBatched nth=1 matched=2 fired=1"}},
    {"batched_device_scalars", batched_device_scalars, {0}, {0}},
    {0},
};
