/*
 * The measurements of a calibration on the GPU: of a call whose copies and kernels overlap, the
 * curve gets the kernel's time; and those for which there is always time. The test GPU takes known
 * times at least; a machine that has other work to do makes them longer, never shorter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/devices.h"
#include "tests/lib/routine.h"
#include "tool/measure/sections.h"
#include "tool/measure/bench_plan.h"

enum { N = 800, GFLOPS = 50 };
static const double gbps = 1, seconds = 2;

/* The file's section has the kernel's time, and by how much the call took longer than its schedule
 * says. */
static void check_section(const struct bench_plan *plan, double kernel_ms)
{
    struct sections sections = {.count = 0};
    assert_true(sections_add(&sections, plan, gpu_info(plan->device)));
    assert_int_equal(sections.count, 1);
    const struct calibration_section section = {sections.body[0], strlen(sections.body[0])};
    const double ratio = calibration_section_value(&section, calibration_schedule_ratio);
    assert_true(ratio > 0.99 * plan->schedule_ratio && ratio < 1.01 * plan->schedule_ratio);
    const char *line = strstr(sections.body[0], "800x800x800:");
    assert_non_null(line);
    const double ms = atof(strchr(line, ':') + 1);
    assert_true(ms > 0.99 * kernel_ms && ms < 1.01 * kernel_ms);
    sections_free(&sections);
}

/* 15 MB go up in 15 ms, the kernel takes 20 ms, 5 MB come down in 5. What the copies leave of the
 * whole is less than the kernel. */
static void a_kernel_counts_as_a_whole(void **state)
{
    const int64_t flops = (int64_t)2 * N * N * N;
    const double kernel_ms = (double)flops / GFLOPS * 1e-6;
    struct bench_track track = {
        .routine = routine("dgemm"),
        .gpu = true,
        .shape = {{.kind = BENCH_SQUARE, .size = {24, 24, 24, 0}, .flops = 2.0 * 24 * 24 * 24},
                  {.kind = BENCH_SQUARE, .size = {N, N, N, 0}, .flops = (double)flops}},
        .shapes = 2,
        .least = 2};
    struct bench_plan plan = {
        .device = *state, .gpu = true, .copies = {.up_gbps = gbps, .down_gbps = gbps}};
    plan.track = &track;
    plan.tracks = 1;
    plan.start = bench_now();
    plan.deadline = plan.start + seconds;
    assert_true(workload_memory_open(&plan.memory, (size_t)1 << 26));
    bench_plan_run(&plan);
    workload_memory_close(&plan.memory);
    const struct bench_shape *small = &track.shape[0], *large = &track.shape[1];
    assert_true(small->kernel_ms == 0 && small->model_ms > 0);
    assert_true(large->kernel_ms >= kernel_ms);
    assert_true(large->model_ms >= kernel_ms && large->model_ms <= large->ms);
    /* The kernel's time as it was measured, and what a small call takes. */
    assert_true(large->model_ms <= large->kernel_ms + small->model_ms);
    assert_true(large->model_ms >= large->kernel_ms || large->model_ms == large->ms);
    assert_true(plan.schedule_ratio > 0);
    check_section(&plan, large->model_ms);
}

static struct bench_track track_of(const char *name)
{
    return (struct bench_track){
        .routine = routine(name),
        .gpu = true,
        .shape = {{.kind = BENCH_SQUARE, .size = {24, 24, 0, 0}, .flops = 24.0 * 24 * 24},
                  {.kind = BENCH_SQUARE, .size = {192, 192, 0, 0}, .flops = 192.0 * 192 * 192}},
        .shapes = 2,
        .least = 1};
}

/* A machine with other work leaves no time at all: what only a square that is not small tells is
 * measured all the same, in double precision. */
static void growth_is_measured_without_time(void **state)
{
    struct bench_track track[] = {track_of("dsyevd"), track_of("ssyevd")};
    struct bench_plan plan = {
        .device = *state, .gpu = true, .copies = {.up_gbps = gbps, .down_gbps = gbps}};
    plan.track = track;
    plan.tracks = 2;
    plan.deadline = bench_now() - 1;
    plan.start = plan.deadline - 1e-6;
    assert_true(workload_memory_open(&plan.memory, (size_t)1 << 26));
    bench_plan_run(&plan);
    workload_memory_close(&plan.memory);
    assert_true(track[0].shape[0].ms > 0 && track[0].shape[1].ms > 0);
    assert_true(track[1].shape[0].ms > 0 && track[1].shape[1].ms == 0);
}

static int start(void **state)
{
    struct gpu_config config = {.memory_share = 0.5};
    *state = start_device(tested_gpu(), config);
    return *state ? 0 : -1;
}

int main(void)
{
    /* The library, which is not loaded yet, reads them as it comes. */
    setenv("TESTGPU_DELAY_US", "0", 1);
    setenv("TESTGPU_DATA", "0", 1);
    setenv("TESTGPU_UP_GBPS", "1", 1);
    setenv("TESTGPU_DOWN_GBPS", "1", 1);
    setenv("TESTGPU_GFLOPS", "50", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_kernel_counts_as_a_whole),
                                       cmocka_unit_test(growth_is_measured_without_time)};
    return cmocka_run_group_tests(tests, start, stop_device);
}
