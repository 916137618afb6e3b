/*
 * What the device computes: the cost of launches, and the peaks of products in the three types that
 * matter most.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Launches ---- */

/* In the driver's own assembly language, so that no compiler for the device is needed. */
static const char nothing[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                              ".visible .entry nothing()\n{\n    ret;\n}\n";

static double launch_ms(CUfunction kernel, CUstream stream, int launches, bool wait)
{
    double start = accel_now_ms();
    for (int i = 0; i < launches; i++)
        if (!CUDA_OK(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) ||
            (wait && !CUDA_OK(cuStreamSynchronize, stream)))
            return -1;
    if (!CUDA_OK(cuStreamSynchronize, stream))
        return -1;
    return (accel_now_ms() - start) / launches;
}

static void report_launch(const char *name, double ms)
{
    if (ms >= 0)
        report(name, ms * 1e3, "us");
    else
        report_missing(name, "");
}

static void measure_kernel(CUstream stream, int launches)
{
    CUmodule module;
    CUfunction kernel;
    if (!cuda.cuModuleLoadData || !cuda.cuModuleUnload || !cuda.cuModuleGetFunction ||
        !cuda.cuLaunchKernel) {
        report_missing("launch", "the driver has no cuModuleLoadData or cuLaunchKernel");
        return;
    }
    if (!CUDA_OK(cuModuleLoadData, &module, nothing)) {
        report_missing("launch", "");
        return;
    }
    if (CUDA_OK(cuModuleGetFunction, &kernel, module, "nothing") &&
        launch_ms(kernel, stream, launches, false) >= 0) {
        report_launch("launch", launch_ms(kernel, stream, launches, false));
        report_launch("launch_and_wait", launch_ms(kernel, stream, launches, true));
    } else {
        report_missing("launch", "");
    }
    CUDA_OK(cuModuleUnload, module);
}

static void measure_fill(CUstream stream, int launches)
{
    CUdeviceptr device = 0;
    double start = accel_now_ms();
    bool good = CUDA_OK(cuMemAlloc, &device, 4096);
    for (int i = 0; good && i <= launches; i++) {
        if (i == 1)
            start = accel_now_ms(); /* the first one warms up */
        good = CUDA_OK(cuMemsetD8Async, device, 1, 4096, stream) &&
               CUDA_OK(cuStreamSynchronize, stream);
    }
    report_launch("fill_and_wait", good ? (accel_now_ms() - start) / launches : -1);
    if (device)
        CUDA_OK(cuMemFree, device);
}

void measure_launches(bool quick)
{
    const int launches = quick ? 50 : 2000;
    CUstream stream;
    if (!CUDA_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING)) {
        report_missing("launch", "");
        return;
    }
    measure_kernel(stream, launches);
    measure_fill(stream, launches);
    CUDA_OK(cuStreamDestroy, stream);
}

/* ---- Products ---- */

enum { ATTEMPTS = 5 };

struct product {
    cublasHandle_t handle;
    CUstream stream;
    CUdeviceptr memory[3];
};

static bool multiply(const struct product *p, char type, int n)
{
    static const float s1 = 1, s0 = 0;
    static const double d1 = 1, d0 = 0;
    static const cuDoubleComplex z1 = {1, 0}, z0 = {0, 0};
    const CUdeviceptr *m = p->memory;
#define PRODUCT(letter, T, one, zero)                                                              \
    CUBLAS_OK(cublas##letter##gemm_v2, p->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,         \
              (const T *)m[0], n, (const T *)m[1], n, &zero, (T *)m[2], n)
    switch (type) {
    case 's':
        return PRODUCT(S, float, s1, s0);
    case 'd':
        return PRODUCT(D, double, d1, d0);
    default:
        return PRODUCT(Z, cuDoubleComplex, z1, z0);
    }
}

static bool is_double(char type)
{
    return type != 's';
}

/* Random numbers: with zeros a GPU draws less power, and is faster than with a program's data. */
static bool fill(CUdeviceptr device, size_t bytes, char type)
{
    size_t part = bytes < 16 << 20 ? bytes : 16 << 20, count = part / sizeof(double);
    double *values = malloc(part);
    float *singles = (float *)(void *)values;
    bool good = values != NULL;
    for (size_t i = 0; good && is_double(type) && i < count; i++)
        values[i] = 2.0 * rand() / RAND_MAX - 1;
    for (size_t i = 0; good && !is_double(type) && i < 2 * count; i++)
        singles[i] = (float)(2.0 * rand() / RAND_MAX - 1);
    for (size_t at = 0; good && at < bytes; at += part)
        good = CUDA_OK(cuMemcpyHtoD, device + at, values, at + part <= bytes ? part : bytes - at);
    free(values);
    return good;
}

/* Gflop/s of the best of some products; negative for a failure. */
static double product_rate(const struct product *p, char type, int n)
{
    double best = -1;
    for (int i = 0; i <= ATTEMPTS; i++) {
        double start = accel_now_ms();
        if (!multiply(p, type, n) || !CUDA_OK(cuStreamSynchronize, p->stream))
            return -1;
        double ms = accel_now_ms() - start;
        if (i > 0)
            best = measure_best(best, ms);
    }
    return (type == 'z' ? 8 : 2) * 1e-6 * n * (double)n * n / best;
}

static void measure_type(struct product *p, char type, int least, int most)
{
    const size_t item = type == 'z' ? 16 : type == 'd' ? 8 : 4;
    const size_t bytes = item * (size_t)most * (size_t)most;
    double peak = -1;
    char name[32];
    bool good = true;
    for (int i = 0; i < 3; i++) {
        p->memory[i] = 0;
        good = good && CUDA_OK(cuMemAlloc, &p->memory[i], bytes) && fill(p->memory[i], bytes, type);
    }
    for (int n = least; good && n <= most; n *= 2) {
        double rate = product_rate(p, type, n);
        snprintf(name, sizeof name, "%cgemm_%d", type, n);
        if (rate > 0)
            report(name, rate, "Gflop/s");
        else
            report_missing(name, "");
        peak = rate > peak ? rate : peak;
    }
    snprintf(name, sizeof name, "%cgemm_peak", type);
    if (peak > 0)
        report(name, peak, "Gflop/s");
    else
        report_missing(name, "");
    for (int i = 0; i < 3; i++)
        if (p->memory[i])
            CUDA_OK(cuMemFree, p->memory[i]);
}

void measure_products(bool quick)
{
    struct product p = {0};
    if (!cuda.cublasCreate_v2 || !CUBLAS_OK(cublasCreate_v2, &p.handle)) {
        report_missing("dgemm_peak", cuda.cublasCreate_v2 ? "" : "no cuBLAS");
        return;
    }
    if (CUDA_OK(cuStreamCreate, &p.stream, CU_STREAM_NON_BLOCKING) &&
        CUBLAS_OK(cublasSetStream_v2, p.handle, p.stream)) {
        for (const char *type = "sdz"; *type; type++)
            measure_type(&p, *type, quick ? 128 : 2048, quick ? 256 : *type == 'z' ? 8192 : 16384);
    } else {
        report_missing("dgemm_peak", "");
    }
    CUBLAS_OK(cublasDestroy_v2, p.handle);
    if (p.stream)
        CUDA_OK(cuStreamDestroy, p.stream);
}
