/*
 * How a pipeline of copies and kernels ends (gpu/device/pipeline_job.h) where the driver refuses,
 * memory is short, or those that it waits for fail: its status, what is written then, and who is
 * told. And what a call says that has ended so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "gpu/device/pipeline_job.h"
#include "tests/lib/device_work.h"
#include "tests/lib/products.h"
#include "tests/lib/rates.h"

/* ---- Host memory that is short: the linker sends calls here ---- */

static int allocations_left = -1; /* of this thread, until one fails; < 0: none does */

static bool is_refused(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return is_refused() ? NULL : __real_malloc(bytes);
}
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_refused() ? NULL : __real_calloc(count, bytes);
}

/* ---- A pipeline of our own ---- */

enum { ROWS = (9 << 20) / 8, FEW = 1000 }; /* of one column, which has three chunks, or one */

static struct schedule_step steps[2];
static struct schedule schedule;
static struct pipeline_job pipeline;
static char *sent, *there;
static int64_t rows;
static CUdeviceptr up_memory, down_memory;
static int came_up, arrived, waits, waits_left;
static bool is_here;

static void copy_of(void *context, const struct schedule_step *step, struct tile_copy *copy)
{
    (void)context;
    const bool is_up = step->engine == SCHEDULE_UP;
    *copy = (struct tile_copy){.host = host_whole(is_up ? sent : there, rows, 1, rows, 8),
                               .device = {is_up ? up_memory : down_memory, rows}};
}
static void note_arrived(void *context, const struct schedule_step *step)
{
    (void)context;
    (void)step;
    arrived++;
}
static void note_up(void *context, const struct schedule_step *step)
{
    (void)context;
    (void)step;
    came_up++;
}
static bool look(void *context, const struct schedule_step *step)
{
    (void)context;
    (void)step;
    return is_here;
}
static bool wait_some(void *context)
{
    (void)context;
    waits++;
    return waits_left-- > 0;
}

/* Of these engines' steps, none of which waits for another. */
static void make_pipeline(int64_t of_rows, int count, const enum schedule_engine engines[])
{
    const int64_t bytes = of_rows * 8;
    rows = of_rows;
    memset(steps, 0, sizeof steps);
    schedule = (struct schedule){.step = steps, .count = count};
    for (int i = 0; i < count; i++) {
        steps[i].engine = (uint8_t)engines[i];
        schedule.steps[engines[i]]++;
    }
    pipeline = (struct pipeline_job){
        .schedule = &schedule, .result_bytes = bytes, .copy_of = copy_of, .arrived = note_arrived};
    came_up = arrived = waits = 0;
    waits_left = 1 << 30;
    is_here = true;
    assert_int_equal(gpu_memory(&work)->take(&work, bytes, &up_memory), GPU_OK);
    assert_int_equal(gpu_memory(&work)->take(&work, bytes, &down_memory), GPU_OK);
    sent = malloc((size_t)bytes);
    there = malloc((size_t)bytes);
    assert_true(sent && there);
    memset(sent, 7, (size_t)bytes);
    memset(there, 1, (size_t)bytes);
}

static void end_pipeline(void)
{
    free(sent);
    free(there);
}

static const enum schedule_engine down_only[] = {SCHEDULE_DOWN};

/* The download waits for the upload, as in every schedule: when it has come, no copy is under way
 * any more. */
static void make_up_and_down(int64_t of_rows)
{
    make_pipeline(of_rows, 2, (const enum schedule_engine[]){SCHEDULE_UP, SCHEDULE_DOWN});
    steps[1].after[SCHEDULE_UP] = 1;
}

static CUresult no_block(CUdeviceptr *block, size_t bytes)
{
    (void)block;
    (void)bytes;
    return CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult no_event(CUevent *event, unsigned flags)
{
    (void)event;
    (void)flags;
    return CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult no_stream(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_wait(CUstream stream)
{
    (void)stream;
    return CUDA_ERROR_UNKNOWN;
}

/* Kernels go on one stream then. */
static void a_pipeline_without_memory_for_a_side_has_none(void **state)
{
    (void)state;
    make_pipeline(ROWS, 1, down_only);
    pipeline.has_sides = true;
    CUDA(cuMemAlloc) = no_block;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    assert_int_equal(work.ctx->workspace, 0);
    assert_int_equal(arrived, 1);
    end_pipeline();
}

static void host_memory_that_is_short_is_told(void **state)
{
    (void)state;
    make_pipeline(ROWS, 1, down_only);
    pipeline.has_sides = true;
    for (int i = 0; i < 2; i++) {
        pipeline.written = 5;
        allocations_left = i;
        assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_NO_MEMORY);
        assert_true(allocations_left < 0);
        assert_int_equal(pipeline.written, 0);
    }
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    end_pipeline();
}

/* A download that is larger than the rings needs some. */
static void a_whole_download_without_host_memory_is_none(void **state)
{
    static char untouched[4096];
    const struct host_rectangle to =
        host_whole(untouched, 8, LANDING_BYTES / 8, 8, 8); /* seven rows more than there are */
    (void)state;
    allocations_left = 0;
    assert_int_equal(stream_ctx_download_whole(work.ctx, &to, (struct dmat){0x1000, 8}),
                     GPU_NO_MEMORY);
    assert_true(allocations_left < 0);
}

static void what_a_pipeline_needs_and_does_not_get_is_told(void **state)
{
    (void)state;
    make_pipeline(ROWS, 1, down_only);
    pipeline.has_sides = true;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    memset(there, 1, (size_t)ROWS * 8);
    CUDA(cuEventDestroy)(work.ctx->wide.buffer[0].done);
    work.ctx->wide.buffer[0].done = NULL;
    CUDA(cuEventCreate) = no_event;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_NO_MEMORY);
    cuda_api = real;
    assert_int_equal(CUDA(cuEventCreate)(&work.ctx->wide.buffer[0].done, CU_EVENT_DISABLE_TIMING),
                     CUDA_SUCCESS);
    CUDA(cuStreamDestroy)(work.ctx->beside);
    work.ctx->beside = NULL;
    CUDA(cuStreamCreate) = no_stream;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_ERROR);
    cuda_api = real;
    work.ctx->quiet = false; /* kernels may run from before */
    CUDA(cuStreamSynchronize) = no_wait;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_ERROR);
    cuda_api = real;
    assert_int_equal(pipeline.written, 0);
    assert_int_equal(there[0], 1);
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    end_pipeline();
}

static int downs_left;
static CUresult some_chunks(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return downs_left-- > 0 ? real.cuMemcpyDtoHAsync_p(to, from, bytes, stream)
                            : CUDA_ERROR_INVALID_VALUE;
}

/* Of a column that is longer than a buffer, some rows have come. */
static void what_is_on_its_way_still_arrives(void **state)
{
    (void)state;
    make_pipeline(ROWS, 1, down_only);
    const struct host_rectangle from = host_whole(sent, ROWS, 1, ROWS, 8);
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){down_memory, ROWS}, &from), GPU_OK);
    CUDA(cuMemcpyDtoHAsync) = some_chunks;
    downs_left = 2;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_ERROR);
    assert_int_equal(pipeline.written, 0);
    assert_int_equal(arrived, 0);
    assert_int_equal(pipeline.done_cols, 0);
    assert_in_range(pipeline.done_rows, 1, ROWS - 1);
    assert_memory_equal(there, sent, (size_t)pipeline.done_rows * 8);
    for (int64_t i = pipeline.done_rows * 8; i < (int64_t)ROWS * 8; i += 1000)
        assert_int_equal(there[i], 1);
    end_pipeline();
}

/* ---- Pipelines whose uploads others wait for ---- */

static CUstream up_stream;
static int up_waits; /* for the stream of uploads */
static CUresult count_waits(CUstream stream)
{
    up_waits += stream == up_stream;
    return real.cuStreamSynchronize_p(stream);
}

static CUevent up_done[WIDE_RING_BUFFERS]; /* the events behind uploads */
static int ups;
static CUresult note_record(CUevent event, CUstream stream)
{
    if (stream == up_stream && ups < WIDE_RING_BUFFERS)
        up_done[ups++] = event;
    return real.cuEventRecord_p(event, stream);
}
static bool is_of_upload(CUevent event)
{
    for (int i = 0; i < ups; i++)
        if (up_done[i] == event)
            return true;
    return false;
}
static CUresult not_yet_up(CUevent event)
{
    return is_of_upload(event) ? CUDA_ERROR_NOT_READY : real.cuEventQuery_p(event);
}
static int questions;
static CUresult not_yet_then_fail(CUevent event)
{
    return !is_of_upload(event) || questions++ == 0 ? CUDA_ERROR_NOT_READY : CUDA_ERROR_UNKNOWN;
}

/* The upload's copies may still read lent memory: they are waited for. */
static void a_failure_waits_for_uploads(void **state)
{
    (void)state;
    make_up_and_down(FEW);
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    pipeline.came_up = note_up;
    pipeline.wait = wait_some;
    up_stream = work.ctx->up;
    ups = up_waits = questions = 0;
    CUDA(cuEventRecord) = note_record;
    CUDA(cuStreamSynchronize) = count_waits;
    CUDA(cuEventQuery) = not_yet_then_fail;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_ERROR);
    assert_int_equal(up_waits, 1);
    end_pipeline();
}

/* The one that lends a tile has ended. */
static void a_wait_in_vain_ends_a_pipeline(void **state)
{
    (void)state;
    make_up_and_down(ROWS);
    pipeline.came_up = note_up;
    pipeline.is_there = look;
    pipeline.wait = wait_some;
    is_here = false;
    waits_left = 3;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_UNSUPPORTED);
    assert_int_equal(waits, 4);
    assert_true(came_up == 0 && arrived == 0 && pipeline.written == 0);
    end_pipeline();
}

/* The driver has not said of an upload that it is done when the last download is: that is known,
 * then, all the same. */
static void all_uploads_are_told(void **state)
{
    (void)state;
    make_up_and_down(ROWS);
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    arrived = 0;
    pipeline.came_up = note_up;
    pipeline.wait = wait_some;
    up_stream = work.ctx->up;
    ups = 0;
    CUDA(cuEventRecord) = note_record;
    CUDA(cuEventQuery) = not_yet_up;
    assert_int_equal(stream_ctx_pipeline(work.ctx, &pipeline), GPU_OK);
    assert_true(ups > 0);
    assert_int_equal(came_up, 1);
    assert_int_equal(arrived, 1);
    end_pipeline();
}

/* ---- What a call says ---- */

static const struct schedule_rates balanced = RATES(2, 2, 120, 16, 1e-4, 1e-4, 1e-4);

/* It fails where the driver does: a call for which no stream context can be made would else wait
 * for ever for that of the test. */
static CUresult little_is_free(size_t *left, size_t *all)
{
    const CUresult result = real.cuMemGetInfo_p(left, all);
    *left = (size_t)1 << 20;
    *all = (size_t)1 << 30;
    return result;
}

static CUresult chunks_until_memory_is_short(void *to, CUdeviceptr from, size_t bytes,
                                             CUstream stream)
{
    return downs_left-- > 0 ? real.cuMemcpyDtoHAsync_p(to, from, bytes, stream)
                            : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool refuse(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

static int kernels_left;
static __typeof__(CUDA(cublasDgemm_v2_64)) multiply_wide;
#define GEMM_ARGUMENTS(I)                                                                          \
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, I k,              \
        const double *alpha, const double *a, I lda, const double *b, I ldb, const double *beta,   \
        double *c, I ldc
static cublasStatus_t multiply_some(GEMM_ARGUMENTS(int64_t))
{
    return kernels_left-- > 0
               ? multiply_wide(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
               : CUBLAS_STATUS_NOT_INITIALIZED;
}

/* Runs a product that fails on its way, when so much is done. */
static enum gpu_status run_some(struct product *p, int downs, int kernels)
{
    enum gpu_status status;
    downs_left = downs;
    kernels_left = kernels;
    p->host.rates = balanced;
    gpu_trim(&device->common);
    if (kernels >= 0)
        CUDA(cublasDgemm_v2_64) = multiply_some;
    else
        CUDA(cuMemcpyDtoHAsync) = chunks_until_memory_is_short;
    status = gpu_run(&device->common, &p->call, &p->host);
    cuda_api = real;
    return status;
}

/* The original does the rest. If the device's memory is short, cuBLAS may have lacked some: it is
 * not given up for that. */
static void a_call_that_ends_early_says_why(void **state)
{
    struct product p;
    (void)state;
    multiply_wide = real.cublasDgemm_v2_64_p;
    make_product(&p, ACCEL_FLOAT64, 'N', 'T', 448, 416, 480, 0.5);
    assert_int_equal(run_some(&p, 8, -1), GPU_SHORT_ELSE);
    assert_true(p.original_calls > 0);
    p.original_calls = 0;
    CUDA(cuMemGetInfo) = little_is_free;
    p.host.original = refuse;
    assert_int_equal(run_some(&p, 8, -1), GPU_LOST);
    assert_int_equal(p.host.blame, GPU_BLAME_DEVICE);
    destroy_product(&p);
}

static void a_library_that_lacks_memory_is_not_given_up(void **state)
{
    struct product p;
    enum gpu_status status = GPU_OK;
    (void)state;
    multiply_wide = real.cublasDgemm_v2_64_p;
    make_product(&p, ACCEL_FLOAT64, 'N', 'N', 1280, 1280, 16, 0);
    /* The more kernels go before, the surer is it that some of the result is down. */
    for (int kernels = 16; status != GPU_SHORT_ELSE && kernels < 4096; kernels *= 2) {
        p.original_calls = 0;
        CUDA(cuMemGetInfo) = little_is_free;
        status = run_some(&p, 0, kernels);
        if (status == GPU_OK) /* it has no more */
            break;
        assert_true(status == GPU_NO_MEMORY || status == GPU_SHORT_ELSE);
        assert_true(p.original_calls == 0 || status == GPU_SHORT_ELSE);
    }
    assert_int_equal(status, GPU_SHORT_ELSE);
    assert_false(gpu_has_failure(&device->common));
    destroy_product(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(a_pipeline_without_memory_for_a_side_has_none),
        TEST(host_memory_that_is_short_is_told),
        TEST(a_whole_download_without_host_memory_is_none),
        TEST(what_a_pipeline_needs_and_does_not_get_is_told),
        TEST(what_is_on_its_way_still_arrives),
        TEST(a_failure_waits_for_uploads),
        TEST(a_wait_in_vain_ends_a_pipeline),
        TEST(all_uploads_are_told),
        TEST(a_library_that_lacks_memory_is_not_given_up),
        TEST(a_call_that_ends_early_says_why), /* the last: the device is given up */
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
