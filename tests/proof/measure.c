/*
 * measure [--quick]: what this machine and its GPU do, beside libaccel: start-up, copies
 * (libaccel's own, too), launches, products, and whether the kernel can tell which pages were
 * written. A line for each figure on stdout: name, value, unit, separated by tabs; a value "-"
 * stands for one that cannot be had, and is followed by the reason. Exit status 1 where there is no
 * GPU. measure --name prints the GPU's name alone, measure --driver the driver's file.
 */
#define _GNU_SOURCE
#include "measure.h"

#include <argp.h>
#include <stdio.h>
#include <sys/mman.h>

#include "driver.h"
#include "base/thread/clock.h"

void report(const char *name, double value, const char *unit)
{
    printf("%s\t%.6g\t%s\n", name, value, unit);
    fflush(stdout);
}

void report_missing(const char *name, const char *why)
{
    const char *reason = *why ? why : driver_failure();
    printf("%s\t-\t%s\n", name, *reason ? reason : "no reason is known");
    fflush(stdout);
    driver_forget();
}

void report_rate(const char *name, double ms, size_t bytes)
{
    if (ms > 0)
        report(name, (double)bytes * 1e-6 / ms, "GB/s");
    else
        report_missing(name, "");
}

static void report_text(const char *name, const char *text)
{
    printf("%s\t%s\t\n", name, text);
    fflush(stdout);
}

enum { HUGE_PAGE = 2 << 20 };

void *touched_memory(size_t size, bool huge)
{
    char *all =
        mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_PAGE - (size_t)all % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(all, before);
    munmap(all + before + size, HUGE_PAGE - before);
    /* A kernel without huge pages refuses the advice, and has small ones. */
    madvise(all + before, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 512)
        all[before + i] = (char)(i >> 9 | 1);
    return all + before;
}

void touched_memory_free(void *memory, size_t size)
{
    munmap(memory, size);
}

/* ---- Start-up ---- */

static void describe(void)
{
    CUdevice device;
    char name[128];
    size_t bytes;
    int version;
    if (!CUDA_OK(cuDeviceGet, &device, 0) ||
        !CUDA_OK(cuDeviceGetName, name, (int)sizeof name, device) ||
        !CUDA_OK(cuDeviceTotalMem, &bytes, device) || !CUDA_OK(cuDriverGetVersion, &version)) {
        report_missing("gpu", "");
        return;
    }
    report_text("gpu", name);
    report("gpu_memory", (double)bytes * 1e-9, "GB");
    report("driver_cuda_version", version, "");
}

static void report_cublas_version(void)
{
    int part[3];
    char text[48];
    for (int i = 0; i < 3; i++)
        if (!CUBLAS_OK(cublasGetProperty, (libraryPropertyType)i, &part[i])) {
            report_missing("cublas_version", "");
            return;
        }
    snprintf(text, sizeof text, "%d.%d.%d", part[0], part[1], part[2]);
    report_text("cublas_version", text);
}

bool measure_start(void)
{
    double start = accel_now_ms();
    if (!driver_open() || !CUDA_OK(cuInit, 0)) {
        report_missing("gpu", "");
        return false;
    }
    double initialised = accel_now_ms();
    if (!driver_enter()) {
        report_missing("gpu", "");
        return false;
    }
    double entered = accel_now_ms();
    describe();
    report("start_driver", initialised - start, "ms");
    report("start_context", entered - initialised, "ms");

    double before = accel_now_ms();
    cublasHandle_t handle;
    if (!driver_open_cublas()) {
        report_missing("start_cublas_load", "");
        return true;
    }
    report("start_cublas_load", accel_now_ms() - before, "ms");
    before = accel_now_ms();
    if (CUBLAS_OK(cublasCreate_v2, &handle)) {
        report("start_cublas_handle", accel_now_ms() - before, "ms");
        report("start_all", accel_now_ms() - start, "ms");
        CUBLAS_OK(cublasDestroy_v2, handle);
    } else {
        report_missing("start_cublas_handle", "");
    }
    report_cublas_version();
    return true;
}

/* ---- Options ---- */

struct options {
    bool quick, name, driver, own;
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    struct options *options = state->input;
    (void)value;
    if (key == 'q')
        options->quick = true;
    else if (key == 'n')
        options->name = true;
    else if (key == 'd')
        options->driver = true;
    else if (key == 'o')
        options->own = true;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static int print_name(void)
{
    CUdevice device;
    char name[128];
    if (!driver_open() || !CUDA_OK(cuInit, 0) || !CUDA_OK(cuDeviceGet, &device, 0) ||
        !CUDA_OK(cuDeviceGetName, name, (int)sizeof name, device)) {
        fprintf(stderr, "%s\n", driver_failure());
        return 1;
    }
    printf("%s\n", name);
    return 0;
}

static int print_driver(void)
{
    if (!driver_open()) {
        fprintf(stderr, "%s\n", driver_failure());
        return 1;
    }
    printf("%s\n", driver_path());
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"quick", 'q', NULL, 0, "small sizes, for a machine without a GPU", 0},
        {"name", 'n', NULL, 0, "print the GPU's name alone", 0},
        {"driver", 'd', NULL, 0, "print the path of the driver's library alone", 0},
        {"own", 'o', NULL, 0, "measure libaccel's own copies alone", 0},
        {0}};
    static const struct argp argp = {
        .options = known, .parser = parse, .doc = "Measures this machine and its GPU."};
    struct options options = {0};
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0)
        return 2;
    if (options.name)
        return print_name();
    if (options.driver)
        return print_driver();
    if (options.own) {
        measure_own_copies(options.quick);
        return 0;
    }
    measure_tracking(options.quick);
    if (!measure_start())
        return 1;
    measure_copies(options.quick);
    measure_staged_copies(options.quick);
    measure_pieces(options.quick);
    measure_own_copies(options.quick);
    measure_pinning(options.quick);
    measure_peers(options.quick);
    measure_launches(options.quick);
    measure_products(options.quick);
    measure_blocks(options.quick);
    measure_solves(options.quick);
    measure_solver(options.quick);
    driver_stop();
    return 0;
}
