/* What the stand-in for cuFFT does with streams, memory and time. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "test_cufft.h"

/* Nothing is there before what comes earlier in the stream, nor after what comes later. */
static int in_order(void)
{
    struct fft f;
    struct gate gate;
    double x[2 * POINTS] = {0};
    CHECK(fft_set_up(&f) == 0);
    OK(gate_close(&gate, f.stream));
    x[0] = 1;
    OK(cuMemcpyHtoDAsync(f.in, x, sizeof x, f.stream));
    FFT_OK(run_forward(&f));
    OK(cuMemcpyDtoDAsync(f.in, f.out, sizeof x, f.stream));
    OK(cuMemsetD8Async(f.out, 0, sizeof x, f.stream));
    CHECK(cuStreamQuery(f.stream) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(x, f.in, sizeof x));
    for (int i = 0; i < POINTS; i++)
        CHECK(x[2 * i] == 1 && x[2 * i + 1] == 0);
    return fft_tear_down(&f);
}

enum { ROW = SIDE_BYTES / 2 }; /* bytes */

static int ends(CUresult wanted, CUdeviceptr (*in)(struct fft *), CUdeviceptr (*out)(struct fft *))
{
    struct fft f;
    CHECK(fft_set_up(&f) == 0);
    FFT_OK(run_between(&f, f.in + ROW, f.out + ROW)); /* up to the end of the memory */
    OK(cuStreamSynchronize(f.stream));
    FFT_OK(run_between(&f, in(&f), out(&f)));
    CHECK(cuStreamSynchronize(f.stream) == wanted);
    CHECK(run_forward(&f) == CUFFT_EXEC_FAILED);
    return 0;
}

static CUdeviceptr whole_in(struct fft *f)
{
    return f->in;
}

static CUdeviceptr whole_out(struct fft *f)
{
    return f->out;
}

static CUdeviceptr late_in(struct fft *f)
{
    return f->in + ROW + sizeof(cufftDoubleComplex);
}

static CUdeviceptr late_out(struct fft *f)
{
    return f->out + ROW + sizeof(cufftDoubleComplex);
}

static CUdeviceptr between_elements(struct fft *f)
{
    return f->out + sizeof(double);
}

static CUdeviceptr on_the_host(struct fft *f)
{
    static cufftDoubleComplex host[POINTS];
    (void)f;
    return (CUdeviceptr)(uintptr_t)host;
}

static int input_out_of_bounds(void)
{
    return ends(CUDA_ERROR_ILLEGAL_ADDRESS, late_in, whole_out);
}

static int output_out_of_bounds(void)
{
    return ends(CUDA_ERROR_ILLEGAL_ADDRESS, whole_in, late_out);
}

static int misaligned(void)
{
    return ends(CUDA_ERROR_MISALIGNED_ADDRESS, whole_in, between_elements);
}

static int of_host_memory(void)
{
    return ends(CUDA_ERROR_ILLEGAL_ADDRESS, on_the_host, whole_out);
}

/* Real elements have to begin where a complex one could. */
static int misaligned_reals(void)
{
    struct fft f;
    cufftHandle plan;
    size_t bytes;
    CHECK(fft_set_up(&f) == 0);
    FFT_OK(cufftCreate(&plan));
    FFT_OK(make_rows(plan, 8, CUFFT_D2Z, 1, &bytes));
    FFT_OK(cufftExecD2Z(plan, (double *)f.in + 1, (void *)f.out));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_MISALIGNED_ADDRESS);
    return 0;
}

static int area_is_gone(void)
{
    struct fft f;
    CUdeviceptr area;
    CHECK(fft_set_up(&f) == 0);
    OK(cuMemAlloc(&area, f.area_bytes));
    FFT_OK(cufftSetWorkArea(f.plan, (void *)area));
    OK(cuMemFree(area));
    FFT_OK(run_forward(&f));
    CHECK(cuStreamSynchronize(f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int overlaps(void)
{
    struct fft f;
    CHECK(fft_set_up(&f) == 0);
    FFT_OK(run_between(&f, f.in, f.in + ROW));
    FFT_OK(run_between(&f, f.in, f.in));
    OK(cuStreamSynchronize(f.stream));
    FFT_OK(run_between(&f, f.in, f.in + ROW - sizeof(cufftDoubleComplex)));
    OK(cuStreamSynchronize(f.stream));
    FFT_OK(cufftSetWorkArea(f.plan, (void *)(f.out + ROW)));
    FFT_OK(run_forward(&f));
    FFT_OK(run_between(&f, f.in, f.out + ROW));
    return fft_tear_down(&f);
}

/* In place an array's elements are to stay in their rows. */
static int layouts_in_place(void)
{
    struct fft f;
    cufftHandle plan;
    size_t bytes;
    long long n[] = {8}, embed[] = {8};
    CHECK(fft_set_up(&f) == 0);
    FFT_OK(cufftCreate(&plan));
    FFT_OK(cufftMakePlanMany64(plan, 1, n, embed, 1, 8, embed, 2, 16, CUFFT_Z2Z, 1, &bytes));
    FFT_OK(cufftExecZ2Z(plan, (void *)f.in, (void *)f.out, CUFFT_FORWARD));
    OK(cuCtxSynchronize());
    FFT_OK(cufftExecZ2Z(plan, (void *)f.in, (void *)f.in, CUFFT_FORWARD));
    FFT_OK(cufftDestroy(plan));
    return fft_tear_down(&f);
}

/* ---- Two streams ---- */

static int on_two_streams(bool ordered)
{
    struct fft f;
    CUstream other;
    CUevent event;
    CHECK(fft_set_up(&f) == 0);
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    FFT_OK(run_forward(&f));
    OK(cuEventRecord(event, f.stream));
    if (ordered)
        OK(cuStreamWaitEvent(other, event, 0));
    FFT_OK(cufftSetStream(f.plan, other));
    FFT_OK(run_between(&f, f.in + ROW, f.out + ROW));
    OK(cuCtxSynchronize());
    OK(cuStreamDestroy(other));
    OK(cuEventDestroy(event));
    return fft_tear_down(&f);
}

static int area_in_order(void)
{
    return on_two_streams(true);
}

static int area_in_no_order(void)
{
    return on_two_streams(false);
}

/* Two plans, each with the even or the odd elements of the same memory: apart, unless one of them
 * has the other's. */
static int elements_of_two_streams(size_t second)
{
    struct fft f;
    CUstream other;
    cufftHandle plans[2];
    size_t bytes;
    long long n[] = {POINTS}, embed[] = {POINTS};
    CHECK(fft_set_up(&f) == 0);
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        FFT_OK(cufftCreate(&plans[i]));
        FFT_OK(cufftMakePlanMany64(plans[i], 1, n, embed, 2, 1, embed, 2, 1, CUFFT_Z2Z, 1, &bytes));
    }
    FFT_OK(cufftSetStream(plans[0], f.stream));
    FFT_OK(cufftSetStream(plans[1], other));
    cufftDoubleComplex *in = (void *)f.in, *out = (void *)f.out;
    FFT_OK(cufftExecZ2Z(plans[0], in, out, CUFFT_FORWARD));
    FFT_OK(cufftExecZ2Z(plans[1], in + 1, out + second, CUFFT_FORWARD));
    OK(cuCtxSynchronize());
    FFT_OK(cufftDestroy(plans[0]));
    FFT_OK(cufftDestroy(plans[1]));
    OK(cuStreamDestroy(other));
    return fft_tear_down(&f);
}

static int elements_apart(void)
{
    return elements_of_two_streams(1);
}

static int elements_in_common(void)
{
    return elements_of_two_streams(0);
}

/* ---- Time ---- */

/* 10^9 operations a second: of a row 5 n log2 n, if it is not read and written for longer. */
static int costs(void)
{
    enum { N = 1 << 14, PAIRS = 1 << 13 };
    CUdeviceptr at;
    cufftHandle plan, short_rows;
    size_t bytes;
    begin();
    OK(cuMemAlloc(&at, N * sizeof(cufftDoubleComplex)));
    FFT_OK(cufftCreate(&plan));
    FFT_OK(cufftCreate(&short_rows));
    FFT_OK(make_rows(plan, N, CUFFT_Z2Z, 1, &bytes));
    FFT_OK(make_rows(short_rows, 2, CUFFT_Z2Z, PAIRS, &bytes));
    OK(cuCtxSynchronize());
    double start = milliseconds();
    FFT_OK(cufftExecZ2Z(plan, (void *)at, (void *)at, CUFFT_FORWARD));
    OK(cuCtxSynchronize());
    CHECK(milliseconds() - start >= 5e-6 * N * 14);
    start = milliseconds();
    FFT_OK(cufftExecZ2Z(short_rows, (void *)at, (void *)at, CUFFT_FORWARD));
    OK(cuCtxSynchronize());
    CHECK(milliseconds() - start >= 4e-6 * 2 * 2 * PAIRS * sizeof(cufftDoubleComplex));
    FFT_OK(cufftDestroy(plan));
    FFT_OK(cufftDestroy(short_rows));
    OK(cuMemFree(at));
    return 0;
}

static int no_data(void)
{
    struct fft f;
    double x[2] = {1, 1}, out[2];
    CHECK(fft_set_up(&f) == 0);
    OK(cuMemcpyHtoD(f.in, x, sizeof x));
    FFT_OK(run_forward(&f));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(out, f.out, sizeof out));
    CHECK(out[0] == 0 && out[1] == 0);
    return fft_tear_down(&f);
}

static int not_in_a_capture(void)
{
    struct fft f;
    CUgraph graph;
    cufftHandle plan;
    CHECK(fft_set_up(&f) == 0);
    OK(cuStreamBeginCapture(f.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cufftCreate(&plan) == CUFFT_EXEC_FAILED);
    CHECK(cuStreamEndCapture(f.stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return fft_tear_down(&f);
}

#define ILLEGAL    "fault what=illegal_address where=fft_c2c"
#define MISALIGNED "fault what=misaligned_address where=fft_"
#define ORDER      "TESTGPU_ORDER=1"

const struct scenario cufft_stream_scenarios[] = {
    {"cufft_in_order", in_order, {0}, {" fft_c2c=1", "handles=0 contexts=0"}},
    {"cufft_input_out_of_bounds", input_out_of_bounds, {0}, {ILLEGAL, "faults n=1\n"}},
    {"cufft_output_out_of_bounds", output_out_of_bounds, {0}, {ILLEGAL, "faults n=1\n"}},
    {"cufft_misaligned", misaligned, {0}, {MISALIGNED "c2c", "faults n=1\n"}},
    {"cufft_misaligned_reals", misaligned_reals, {0}, {MISALIGNED "r2c", "faults n=1\n"}},
    {"cufft_of_host_memory", of_host_memory, {0}, {ILLEGAL, "faults n=1\n"}},
    {"cufft_area_is_gone", area_is_gone, {0}, {ILLEGAL, "faults n=1\n"}},
    {"cufft_overlaps",
     overlaps,
     {0},
     {"fault what=overlapping_operands where=fft_c2c", "faults n=2\n"}},
    {"cufft_layouts_that_differ_in_place",
     layouts_in_place,
     {0},
     {"fault what=layouts_in_place where=fft_c2c", "faults n=1\n"}},
    {"cufft_area_in_order", area_in_order, {ORDER}, {0}},
    {"cufft_area_in_no_order",
     area_in_no_order,
     {ORDER},
     {"fault what=unordered where=fft_c2c", "faults n=1\n"}},
    {"cufft_elements_apart", elements_apart, {ORDER}, {0}},
    {"cufft_elements_in_common",
     elements_in_common,
     {ORDER},
     {"fault what=unordered where=fft_c2c", "faults n=1\n"}},
    {"cufft_costs", costs, {"TESTGPU_GFLOPS=1"}, {0}},
    {"cufft_no_data", no_data, {"TESTGPU_DATA=0"}, {" fft_c2c=1"}},
    {"cufft_not_in_a_capture",
     not_in_a_capture,
     {0},
     {"fault what=unsafe_in_capture where=cufftCreate", "faults n=1\n"}},
    {0},
};
