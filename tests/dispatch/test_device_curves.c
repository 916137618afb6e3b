/*
 * What is known of a device: its attributes, the list of known GPUs, and a calibration that has
 * another GPU's section, too. The calibration's file is opened once, so all tests have the same.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/thread/copy_pool.h"
#include "dispatch/cost/calibration_file.h"
#include "dispatch/cost/curves.h"
#include "dispatch/cost/split.h"
#include "gpu/device/device.h"
#include "gpu/device/own.h"

static char path[] = "/tmp/accel-device-curves-XXXXXX";
static const char *const keys[] = {"[gpu \"Foo 1\" cuda=13.0 cublas=130100]",
                                   "[gpu \"Foo 2\" cuda=13.0 cublas=130100]"};
static const char *const bodies[] = {
    "up_gbps=0.5\ndown_gbps=7\nplace_gbps=300\npiece_kb=512\nkernels_ms=31.2\nsolver_ms=740\n"
    "schedule_ratio=1.25\ngain_tf32=3\nsvd_d_values 48:gesvdj\nsolve_d_blas_gbps=70\n"
    "solve_d_own_gbps=300\nsolve_d_own_nrhs=1024\npace_d 640:1.5\n",
    "up_gbps=6\n"};

static int begin(void **state)
{
    static struct accel_settings settings = {.on = true, .model = path, .model_given = true};
    const int fd = mkstemp(path);
    (void)state;
    if (fd < 0 || close(fd) != 0)
        return -1;
    if (calibration_put(path, keys, bodies, NULL, 2, true))
        return -1;
    cost_start(&settings, 8, true, true);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return unlink(path);
}

/* A device of a kind that nobody knows but by its attributes. */
static void set_device(struct gpu_device *gpu, const char *name)
{
    *gpu = (struct gpu_device){.info = {.cuda_version = 13000, .cublas_version = 130100}};
    snprintf(gpu->info.name, sizeof gpu->info.name, "%s", name);
    gpu->info.nominal = (struct nominal_rates){.gflops = {2000, 1000},
                                               .memory_gbps = 500,
                                               .gain = {1, 2.5, 4, 1},
                                               .copy_gbps = 0.25,
                                               .link_gbps = 0.375,
                                               .place_gbps = 450};
}

/* Returns whether the device runs as the calibration of the first GPU says; false: as usual. */
static bool is_set(const struct gpu_device *gpu)
{
    const bool chunk = gpu_chunk(gpu) == 512 << 10,
               svd = gpu_svd_chosen(gpu, ACCEL_FLOAT64, false, 48) == GPU_SVD_GESVDJ,
               own = atomic_load(&gpu->own_solves[ACCEL_FLOAT64]) == 1024;
    assert_true(chunk == svd && (own == chunk || !gpu_own_is_built()));
    assert_true(chunk || gpu_chunk(gpu) == GPU_CHUNK_USUAL);
    assert_true(gpu_svd_chosen(gpu, ACCEL_FLOAT32, false, 48) == GPU_SVD_GESVD);
    assert_true(gpu_svd_chosen(gpu, ACCEL_FLOAT64, true, 48) == GPU_SVD_GESVD);
    return chunk;
}

static bool has_measured(const struct cost_curves *p)
{
    const bool ratio = p->schedule_ratio == 1.25;
    assert_true(ratio ||
                (p->schedule_ratio == 1 && p->first.kernels_ms == 50 && p->first.solver_ms == 500 &&
                 p->solving[ACCEL_FLOAT64][0].gbps == 0 && p->own_nrhs[ACCEL_FLOAT64] == 0 &&
                 block_pace(&p->paces[ACCEL_FLOAT64], 640) == 1));
    return ratio;
}

/* One that neither the list nor the calibration has: its threads stage no more than its link takes,
 * but a single thread's rate at least. */
static void by_its_attributes(void **state)
{
    struct gpu_device gpu;
    (void)state;
    set_device(&gpu, "Bar 1");
    struct cost_curves *p = cost_curves_of(&gpu);
    assert_true(p && p->device && !p->measured && !is_set(&gpu) && !has_measured(p));
    assert_true(p->up_gbps == 0.375 && p->down_gbps == 0.375 && p->place_gbps == 450);
    assert_true(!p->one_memory && p->gain[GPU_NATIVE] == 1 && p->gain[GPU_EMULATED] == 2.5 &&
                p->gain[GPU_TF32] == 4 && p->gain[GPU_BF16X9] == 1);
    gpu.info.integrated = true;
    gpu.info.nominal.link_gbps = 0.125;
    p = cost_curves_of(&gpu);
    assert_true(p && p->one_memory && p->up_gbps == 0.25 && p->down_gbps == 0.25);
    gpu.info.nominal.link_gbps = 1e9;
    p = cost_curves_of(&gpu);
    assert_true(p && p->up_gbps == split_host_gbps(1 + copy_pool_size()));
}

/* The list says what the kernels of a known GPU reach; what its copies do is the machine's. */
static void by_the_list(void **state)
{
    struct gpu_device gpu;
    (void)state;
    set_device(&gpu, "NVIDIA H100 80GB HBM3");
    struct cost_curves *const p = cost_curves_of(&gpu);
    assert_true(p && !p->measured && !is_set(&gpu) && !has_measured(p));
    assert_true(p->up_gbps == 0.375 && p->place_gbps == 450 && p->rates.gbps == 3350);
    assert_true(fabs(p->gain[GPU_TF32] - 494 / 67.0) < 1e-9 && p->gain[GPU_BF16X9] == 1);
}

static void by_the_calibration(void **state)
{
    struct gpu_device gpu;
    (void)state;
    set_device(&gpu, "Foo 1");
    struct cost_curves *p = cost_curves_of(&gpu);
    assert_true(p && p->measured && is_set(&gpu) && has_measured(p));
    assert_true(p->up_gbps == 0.5 && p->down_gbps == 7 && p->place_gbps == 300);
    assert_true(p->first.kernels_ms == 31.2 && p->first.solver_ms == 740);
    assert_true(p->gain[GPU_EMULATED] == 2.5 && p->gain[GPU_TF32] == 3);
    assert_true(block_pace(&p->paces[ACCEL_FLOAT64], 640) == 1.5);
    /* A kernel that cannot reach the host's memory is not measured there. */
    set_device(&gpu, "Foo 1");
    gpu.info.nominal.place_gbps = 0;
    p = cost_curves_of(&gpu);
    assert_true(p && p->measured && p->place_gbps == 0);
    /* What its section lacks is what its attributes say. */
    set_device(&gpu, "Foo 2");
    p = cost_curves_of(&gpu);
    assert_true(p && p->measured && !is_set(&gpu) && !has_measured(p));
    assert_true(p->up_gbps == 6 && p->down_gbps == 0.375 && p->gain[GPU_TF32] == 4);
    set_device(&gpu, "Foo 1"); /* of other libraries, it is another one */
    gpu.info.cublas_version = 130200;
    p = cost_curves_of(&gpu);
    assert_true(p && !p->measured && !is_set(&gpu) && !has_measured(p));
}

/* By the name alone: one of the list that is not in the calibration has nothing of another's there,
 * and one that is in the calibration alone gains nothing by a precision that it does not name. */
static void by_the_name(void **state)
{
    int64_t bytes = -1;
    (void)state;
    struct cost_curves *p = cost_curves_named("H100", &bytes);
    assert_true(p && !p->measured && !has_measured(p) && bytes == 80000000000);
    assert_true(p->up_gbps == 10 && p->down_gbps == 10 && p->place_gbps == 0);
    p = cost_curves_named("Foo 1", &bytes);
    assert_true(p && p->measured && has_measured(p) && bytes == 0);
    assert_true(p->up_gbps == 0.5 && p->down_gbps == 7 && p->place_gbps == 0);
    assert_true(p->gain[GPU_NATIVE] == 1 && p->gain[GPU_EMULATED] == 1 && p->gain[GPU_TF32] == 3 &&
                p->gain[GPU_BF16X9] == 1);
    p = cost_curves_named("Foo 2", &bytes);
    assert_true(p && p->measured && !has_measured(p) && p->up_gbps == 6 &&
                p->down_gbps == MODEL_COPY_GBPS);
    assert_null(cost_curves_named("Bar 1", &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_its_attributes),
        cmocka_unit_test(by_the_list),
        cmocka_unit_test(by_the_calibration),
        cmocka_unit_test(by_the_name),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
