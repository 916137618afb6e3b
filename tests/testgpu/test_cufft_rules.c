/* What the stand-in for cuFFT refuses, and what plans are. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "test_cufft.h"

static cufftHandle handle; /* a plan that is not made */
static size_t bytes;

static cufftResult make(int rank, long long *n, long long batch)
{
    return cufftMakePlanMany64(handle, rank, n, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, batch, &bytes);
}

static cufftResult lay_out(long long *embed, long long stride, long long dist)
{
    long long n[] = {4, 6};
    return cufftMakePlanMany64(handle, 2, n, embed, stride, dist, embed, 1, 100, CUFFT_C2C, 2,
                               &bytes);
}

static int refused_parameters(void)
{
    long long n[] = {4, 4, 4, 4}, none[] = {4, 0}, embed[] = {0, 6}, small[] = {9, 5};
    begin();
    FFT_OK(cufftCreate(&handle));
    CHECK(cufftCreate(NULL) == CUFFT_INVALID_VALUE);
    CHECK(make(0, n, 1) == CUFFT_INVALID_VALUE && make(4, n, 1) == CUFFT_INVALID_VALUE);
    CHECK(make(2, NULL, 1) == CUFFT_INVALID_VALUE);
    CHECK(make(2, none, 1) == CUFFT_INVALID_SIZE && make(2, n, 0) == CUFFT_INVALID_SIZE);
    CHECK(make_rows(handle, 4, (cufftType)7, 1, &bytes) == CUFFT_INVALID_TYPE);
    CHECK(make_rows(handle, 4, CUFFT_C2C, 1, NULL) == CUFFT_INVALID_VALUE);
    CHECK(make_rows(handle, LLONG_MAX, CUFFT_C2C, 1, &bytes) == CUFFT_INVALID_SIZE);
    CHECK(make_rows(handle, 1ll << 40, CUFFT_C2C, 1ll << 40, &bytes) == CUFFT_INVALID_SIZE);
    CHECK(lay_out(small, 1, 100) == CUFFT_INVALID_VALUE);
    CHECK(lay_out(embed, 0, 100) == CUFFT_INVALID_VALUE);
    CHECK(lay_out(embed, 1, 0) == CUFFT_INVALID_VALUE);
    CHECK(lay_out(embed, LLONG_MAX, 100) == CUFFT_INVALID_VALUE);
    FFT_OK(lay_out(embed, 1, 24));
    FFT_OK(cufftDestroy(handle));
    return 0;
}

/* Where sizes or offsets need more than 31 bits. */
static int narrow_parameters(void)
{
    int n[] = {1 << 16, 1 << 15}, small[] = {2, 2}, embed[] = {0, 1 << 30};
    long long wide[] = {1 << 16, 1 << 15};
    begin();
    FFT_OK(cufftCreate(&handle));
    FFT_OK(cufftSetAutoAllocation(handle, 0));
    CHECK(cufftMakePlanMany(handle, 2, n, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes) ==
          CUFFT_INVALID_SIZE);
    CHECK(cufftMakePlanMany(handle, 2, small, embed, 2, 1, embed, 2, 1, CUFFT_C2C, 1, &bytes) ==
          CUFFT_INVALID_SIZE);
    FFT_OK(cufftGetSizeMany64(handle, 2, wide, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes));
    CHECK(bytes == (size_t)8 << 31);
    FFT_OK(cufftMakePlanMany(handle, 2, small, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 3, &bytes));
    CHECK(bytes == 3 * 4 * 8);
    FFT_OK(cufftDestroy(handle));
    return 0;
}

static int order_of_calls(void)
{
    struct fft f;
    size_t more = 0;
    CHECK(fft_set_up(&f) == 0);
    CHECK(f.area_bytes == POINTS * sizeof(cufftDoubleComplex));
    FFT_OK(cufftCreate(&handle));
    CHECK(cufftGetSize(handle, &more) == CUFFT_INVALID_PLAN);
    CHECK(cufftSetWorkArea(handle, (void *)f.in) == CUFFT_INVALID_PLAN);
    CHECK(cufftExecZ2Z(handle, (void *)f.in, (void *)f.out, CUFFT_FORWARD) == CUFFT_INVALID_PLAN);
    FFT_OK(cufftDestroy(handle));
    FFT_OK(cufftGetSize(f.plan, &more));
    CHECK(more == f.area_bytes && cufftGetSize(f.plan, NULL) == CUFFT_INVALID_VALUE);
    CHECK(make_rows(f.plan, 8, CUFFT_Z2Z, 1, &more) == CUFFT_INVALID_PLAN);
    CHECK(cufftSetAutoAllocation(f.plan, 0) == CUFFT_INVALID_PLAN);
    CHECK(cufftExecC2C(f.plan, (void *)f.in, (void *)f.out, CUFFT_FORWARD) == CUFFT_INVALID_TYPE);
    CHECK(cufftExecD2Z(f.plan, (void *)f.in, (void *)f.out) == CUFFT_INVALID_TYPE);
    CHECK(cufftExecZ2Z(f.plan, (void *)f.in, (void *)f.out, 0) == CUFFT_INVALID_VALUE);
    CHECK(run_between(&f, 0, f.out) == CUFFT_INVALID_VALUE);
    CHECK(run_between(&f, f.in, 0) == CUFFT_INVALID_VALUE);
    return fft_tear_down(&f);
}

/* None of its own, one that is given, and one of its own that is given back for it. */
static int work_areas(void)
{
    struct fft f;
    CUdeviceptr area;
    unsigned char back[POINTS * sizeof(cufftDoubleComplex)];
    CHECK(fft_set_up(&f) == 0);
    OK(cuMemAlloc(&area, sizeof back));
    OK(cuMemsetD8(area, 0, sizeof back));
    FFT_OK(cufftSetWorkArea(f.plan, (void *)area));
    FFT_OK(run_forward(&f));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(back, area, sizeof back));
    for (size_t i = 0; i < sizeof back; i++)
        CHECK(back[i] == 0xff);
    FFT_OK(cufftSetWorkArea(f.plan, NULL));
    CHECK(run_forward(&f) == CUFFT_NO_WORKSPACE);
    FFT_OK(cufftCreate(&handle));
    FFT_OK(cufftSetAutoAllocation(handle, 0));
    FFT_OK(make_rows(handle, POINTS, CUFFT_Z2Z, 1, &bytes));
    CHECK(cufftExecZ2Z(handle, (void *)f.in, (void *)f.out, CUFFT_FORWARD) == CUFFT_NO_WORKSPACE);
    FFT_OK(cufftSetWorkArea(handle, (void *)area));
    FFT_OK(cufftExecZ2Z(handle, (void *)f.in, (void *)f.out, CUFFT_FORWARD));
    FFT_OK(cufftDestroy(handle));
    OK(cuMemFree(area));
    return fft_tear_down(&f);
}

static int no_memory(void)
{
    begin();
    FFT_OK(cufftCreate(&handle));
    CHECK(make_rows(handle, 1 << 20, CUFFT_Z2Z, 1, &bytes) == CUFFT_ALLOC_FAILED);
    FFT_OK(make_rows(handle, 1 << 10, CUFFT_Z2Z, 1, &bytes));
    FFT_OK(cufftDestroy(handle));
    return 0;
}

static int wrong_plans(void)
{
    struct fft f;
    CUcontext other;
    CHECK(fft_set_up(&f) == 0);
    CHECK(cufftGetSize(0, &bytes) == CUFFT_INVALID_PLAN);
    CHECK(cufftGetSize(99, &bytes) == CUFFT_INVALID_PLAN);
    CHECK(cufftDestroy(CUFFT_PLAN_NULL) == CUFFT_INVALID_PLAN); /* no fault */
    OK(cuCtxCreate(&other, NULL, 0, 0));
    CHECK(run_forward(&f) == CUFFT_INVALID_DEVICE);
    OK(cuCtxDestroy(other));
    FFT_OK(cufftDestroy(f.plan));
    CHECK(run_forward(&f) == CUFFT_INVALID_PLAN);
    FFT_OK(cufftCreate(&handle));
    FFT_OK(make_rows(handle, POINTS, CUFFT_Z2Z, 1, &bytes));
    FFT_OK(cufftSetStream(handle, f.stream));
    OK(cuStreamDestroy(f.stream));
    CHECK(cufftExecZ2Z(handle, (void *)f.in, (void *)f.out, 1) == CUFFT_EXEC_FAILED);
    CHECK(cufftSetStream(handle, f.stream) == CUFFT_INVALID_VALUE);
    return 0;
}

static void *use_plan(void *context)
{
    cuCtxPushCurrent(context);
    for (int i = 0; i < 20000; i++)
        cufftSetStream(handle, NULL);
    return NULL;
}

static int in_two_threads(void)
{
    pthread_t threads[4];
    CUcontext context = begin();
    FFT_OK(cufftCreate(&handle));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_plan, context) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}

static int planted(void)
{
    struct fft f;
    begin();
    CHECK(cufftCreate(&handle) == CUFFT_ALLOC_FAILED);
    FFT_OK(cufftCreate(&handle));
    CHECK(make_rows(handle, POINTS, CUFFT_Z2Z, 1, &bytes) == CUFFT_INVALID_SIZE);
    FFT_OK(make_rows(handle, POINTS, CUFFT_Z2Z, 1, &bytes));
    FFT_OK(cufftDestroy(handle));
    CHECK(fft_set_up(&f) == 0);
    CHECK(run_forward(&f) == CUFFT_INTERNAL_ERROR);
    FFT_OK(run_forward(&f));
    OK(cuDevicePrimaryCtxRelease(0));
    return fft_tear_down(&f);
}

static int spoiled(void)
{
    struct fft f;
    double out[2];
    CHECK(fft_set_up(&f) == 0);
    for (int i = 0; i < 2; i++) {
        FFT_OK(run_forward(&f));
        OK(cuStreamSynchronize(f.stream));
        OK(cuMemcpyDtoH(out, f.out, sizeof out));
        CHECK(out[0] == i && out[1] == 0);
    }
    return fft_tear_down(&f);
}

static int facts(void)
{
    int value = 0;
    FFT_OK(cufftGetVersion(&value));
    CHECK(value == 12000);
    FFT_OK(cufftGetProperty(MAJOR_VERSION, &value));
    CHECK(value == 12 && cufftGetVersion(NULL) == CUFFT_INVALID_VALUE);
    CHECK(cufftGetProperty((libraryPropertyType)3, &value) == CUFFT_INVALID_VALUE);
    OK(cuInit(0));
    CHECK(cufftCreate(&handle) == CUFFT_SETUP_FAILED);
    return 0;
}

/* CUDA 12's, opened the way a program would, beside its own driver library. */
static int older_library(void)
{
    char path[4096];
    Dl_info own;
    int version = 0;
    CHECK(dladdr((void *)(uintptr_t)cufftCreate, &own) != 0);
    const char *end = strstr(own.dli_fname, "/testgpu/");
    CHECK(end != NULL);
    snprintf(path, sizeof path, "%.*s/testgpu-cuda12/libcufft.so.11", (int)(end - own.dli_fname),
             own.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    cufftResult (*get)(int *);
    *(void **)&get = dlsym(library, "cufftGetVersion");
    FFT_OK(get(&version));
    CHECK(version == 11400);
    return 0;
}

const struct scenario cufft_rule_scenarios[] = {
    {"cufft_refused_parameters", refused_parameters, {0}, {"leaked device_bytes=0 "}},
    {"cufft_narrow_parameters", narrow_parameters, {0}, {0}},
    {"cufft_order_of_calls", order_of_calls, {0}, {"!fft_c2c", "handles=0 contexts=0"}},
    {"cufft_work_areas", work_areas, {0}, {" fft_c2c=2", "leaked device_bytes=0 "}},
    {"cufft_no_memory", no_memory, {"TESTGPU_MEMORY=8M"}, {0}},
    {"cufft_wrong_plans",
     wrong_plans,
     {0},
     {"fault what=unknown_plan where=cufftGetSize", "fault what=plan_of_another_context",
      "fault what=destroyed_plan", "fault what=destroyed_stream where=cufftExecZ2Z",
      "faults n=6\n"}},
    {"cufft_in_two_threads",
     in_two_threads,
     {"TESTGPU_DELAY_US=1"},
     {"fault what=plan_in_two_threads"}},
    {"cufft_planted",
     planted,
     {"TESTGPU_FAIL=cufftCreate:1,cufftMakePlanMany64:1=CUFFT_INVALID_SIZE,cufftExecZ2Z:1"},
     {"call name=cufftCreate n=3 failed=1", "call name=cufftExecZ2Z n=2 failed=1",
      "handles=0 contexts=0"}},
    {"cufft_spoiled", spoiled, {"TESTGPU_WRONG=fft_c2c:2"}, {"fired=1"}},
    {"cufft_facts", facts, {0}, {"fault what=no_context", "faults n=1\n"}},
    {"cufft_older_library", older_library, {0}, {0}},
    {0},
};
