/*
 * When the steps of a call ran, by the device's clock, and where the driver lacks one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/lib/refusing_driver.h"

static struct gpu_step told[8];
static struct gpu_steps told_all;

static void tell_steps(void *context, const struct gpu_steps *steps)
{
    (void)context;
    told_all = *steps;
    memcpy(told, steps->step, sizeof *told * (size_t)accel_min(steps->count, 8));
}

static const struct gpu_step kernels = {.kind = GPU_STEP_COMPUTE};

/* A step of kernels on one stream; with `beside`, then on the other one, too. */
static void time_kernels(bool beside)
{
    struct stream_ctx *ctx = work.ctx;
    host.steps = tell_steps;
    timing_start(ctx);
    timing_end(ctx, ctx->stream, GPU_STEP_COMPUTE); /* there is none yet */
    timing_begin(ctx, ctx->stream, &kernels);
    if (beside) {
        assert_int_equal(stream_ctx_prepare_beside(ctx), GPU_OK);
        assert_int_equal(stream_ctx_go_beside(ctx), GPU_OK);
        timing_begin(ctx, ctx->stream, &kernels);
    }
    timing_wait(ctx);
    assert_int_equal(stream_ctx_go_back(ctx), GPU_OK);
    assert_int_equal(CUDA(cuStreamSynchronize)(ctx->stream), CUDA_SUCCESS);
    if (beside)
        assert_int_equal(CUDA(cuStreamSynchronize)(ctx->beside), CUDA_SUCCESS);
}

static CUresult no_record(CUevent event, CUstream stream)
{
    (void)event;
    (void)stream;
    return CUDA_ERROR_UNKNOWN;
}

static void without_a_clock_no_step_is_timed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            CUDA(cuEventElapsedTime) = NULL;
        else if (i == 1)
            CUDA(cuEventRecord) = no_record;
        else
            CUDA(cuEventSynchronize) = no_answer_of_events;
        time_kernels(false);
        cuda_api = real;
        timing_report(work.ctx, &host);
        assert_int_equal(told_all.count, 0);
        assert_int_equal(told_all.left_out, 0);
    }
    assert_int_equal(failure_noted()->kind, FAILURE_NONE);
}

static void a_step_without_events_is_left_out(void **state)
{
    struct stream_ctx *ctx = work.ctx;
    (void)state;
    host.steps = tell_steps;
    timing_start(ctx);
    CUDA(cuEventRecord) = no_record;
    timing_begin(ctx, ctx->stream, &kernels);
    timing_begin(ctx, ctx->stream, &kernels); /* more of it: it is one step */
    timing_end(ctx, ctx->stream, GPU_STEP_COMPUTE);
    timing_wait(ctx);
    CUDA(cuEventRecord) = real.cuEventRecord_p;
    timing_begin(ctx, ctx->stream, &kernels);
    timing_wait(ctx);
    timing_begin(ctx, ctx->stream, &kernels);
    CUDA(cuEventRecord) = no_record; /* its end is not known */
    timing_wait(ctx);
    CUDA(cuEventRecord) = real.cuEventRecord_p;
    assert_int_equal(CUDA(cuStreamSynchronize)(ctx->stream), CUDA_SUCCESS);
    timing_report(ctx, &host);
    assert_int_equal(told_all.count, 1);
    assert_int_equal(told_all.left_out, 2);
}

static float clock_ms[4]; /* that is read, in turn; < 0: it does not answer */
static int reads;

static CUresult read_ours(float *ms, CUevent from, CUevent to)
{
    (void)from;
    (void)to;
    *ms = clock_ms[reads];
    return clock_ms[reads++] < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static void a_step_on_two_streams_is_one(void **state)
{
    static const struct {
        float clock_ms[4]; /* begin and end on the one stream, and on the other */
        float lasted;      /* < 0: it is left out */
    } cases[] = {{{1, 9, 2, 5}, 8},   {{3, 6, 2, 7}, 5},   {{4, 9, 2, 7}, 7},
                 {{1, 5, 3, 8}, 7},   {{1, 9, -1, 5}, -1}, {{1, 9, 2, -1}, -1},
                 {{-1, 9, 2, 5}, -1}, {{1, -1, 2, 5}, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        time_kernels(true);
        memcpy(clock_ms, cases[i].clock_ms, sizeof clock_ms);
        reads = 0;
        work.ctx->timing.before_ms -= 1000; /* the call is longer than all of these */
        work.ctx->timing.after_ms = work.ctx->timing.before_ms;
        CUDA(cuEventElapsedTime) = read_ours;
        timing_report(work.ctx, &host);
        CUDA(cuEventElapsedTime) = real.cuEventElapsedTime_p;
        assert_int_equal(told_all.count, cases[i].lasted >= 0);
        assert_int_equal(told_all.left_out, cases[i].lasted < 0);
        if (cases[i].lasted >= 0) {
            const double lasted = told[0].end_ms - told[0].start_ms;
            assert_true(lasted > (double)cases[i].lasted - 1e-3 &&
                        lasted < (double)cases[i].lasted + 1e-3);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(without_a_clock_no_step_is_timed),
        TEST(a_step_without_events_is_left_out),
        TEST(a_step_on_two_streams_is_one),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
