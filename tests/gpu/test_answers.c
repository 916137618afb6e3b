/*
 * What the steps of gpu/cuda/ say where the driver or a library refuses, lacks a function, or has
 * no memory; and what they do with shapes and sizes that few calls have. A step that fails leaves
 * the program's memory as its header says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/pipeline.h"
#include "gpu/pack/matrix.h"
#include "gpu/cuda/precision.h"
#include "gpu/exec/lapack/solver.h"
#include "gpu/plan/precision.h"
#include "ops/op.h"
#include "tests/lib/device_work.h"
#include "tests/lib/routine.h"

/* ---- The copies of a chunk's parts ---- */

static int copies;
static int64_t copied_bytes;

static CUresult copy_here(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    copies++;
    copied_bytes += (int64_t)bytes;
    return CUDA_SUCCESS;
}

/* Sends a chunk's parts, `step` more each time, whether there are so many or not. Each byte of it
 * comes to its place once. */
static void send_by(const struct host_rectangle *r, int64_t ld, int64_t chunk_bytes, int64_t number,
                    int64_t step)
{
    struct pipeline_copy copy = {.of = {.host = *r, .device.ld = ld}};
    struct pipeline_chunk chunk = {.pack = staged_chunk_at(&copy.of.host, ld, chunk_bytes, number),
                                   .copy = &copy};
    const int64_t bytes = pack_bytes(&chunk.pack.chunk, r, ld),
                  offset = pack_offset(&chunk.pack.chunk, r, ld),
                  parts = pack_parts(r, ld, chunk_bytes);
    char *buffer = malloc((size_t)bytes), *there = calloc(1, (size_t)(offset + bytes));
    chunk.pack.packed = buffer;
    chunk.pack.ld = ld;
    copy.of.device.ptr = (CUdeviceptr)(uintptr_t)there;
    assert_non_null(buffer);
    assert_non_null(there);
    for (int64_t i = 0; i < bytes; i++)
        buffer[i] = (char)(i % 127 + 1);
    copied_bytes = 0;
    for (int64_t done = 0; done < parts;) {
        done = accel_min(parts, done + step);
        assert_int_equal(send_parts(NULL, &chunk, done), GPU_OK);
        assert_int_equal(chunk.early, done);
    }
    assert_memory_equal(there + offset, buffer, (size_t)bytes);
    assert_int_equal(copied_bytes, bytes);
    free(buffer);
    free(there);
}

static void neighbouring_parts_go_as_one_copy(void **state)
{
    enum { COLUMN = 40000, COLS = 8 }; /* 320 KB: two parts each */
    struct host_rectangle r = host_whole(NULL, COLUMN, COLS, COLUMN, sizeof(double));
    const int64_t chunk_bytes = 3 * COLUMN * (int64_t)sizeof(double);
    (void)state;
    CUDA(cuMemcpyHtoDAsync) = copy_here;
    for (int64_t step = 1; step < 8; step++)
        for (int64_t number = 0; number < 3; number++) /* the last chunk has two columns */
            send_by(&r, COLUMN, chunk_bytes, number, step);
    copies = 0;
    send_by(&r, COLUMN, chunk_bytes, 0, 6);
    assert_int_equal(copies, 3); /* columns */
    r = host_whole(NULL, 1000, 700, 1000, sizeof(double));
    for (int64_t step = 1; step < 8; step++)
        for (int64_t number = 0; number < 3; number++)
            send_by(&r, 1000, 2 << 20, number, step);
    copies = 0;
    send_by(&r, 1000, 2 << 20, 0, 8);
    assert_int_equal(copies, 1);
}

/* ---- Copies through buffers ---- */

static CUdeviceptr memory_of(int64_t bytes)
{
    gpu_address memory;
    assert_int_equal(gpu_memory(&work)->take(&work, bytes, &memory), GPU_OK);
    return memory;
}

static char *filled(int64_t bytes, char value)
{
    char *x = malloc((size_t)bytes);
    assert_non_null(x);
    memset(x, value, (size_t)bytes);
    return x;
}

static CUresult pin_nothing(void **memory, size_t bytes, unsigned flags)
{
    (void)memory;
    (void)bytes;
    (void)flags;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult no_answer_of_events(CUevent event)
{
    (void)event;
    return CUDA_ERROR_UNKNOWN;
}

static void nothing_is_copied_of_nothing(void **state)
{
    char none;
    int64_t cols, rows;
    const CUdeviceptr memory = memory_of(4096);
    const struct host_rectangle shapes[] = {host_whole(&none, 0, 3, 1, 8),
                                            host_whole(&none, 3, 0, 3, 8)};
    (void)state;
    work.ctx->quiet = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, 3}, &shapes[i]), GPU_OK);
        assert_int_equal(
            stream_ctx_download(work.ctx, &shapes[i], (struct dmat){memory, 3}, &cols, &rows),
            GPU_OK);
        assert_true(cols == 0 && rows == 0);
        assert_int_equal(stream_ctx_download_whole(work.ctx, &shapes[i], (struct dmat){memory, 3}),
                         GPU_OK);
    }
    assert_true(work.ctx->quiet);
}

/* Up to the narrow ring's size, up to the wide one's, and beyond. */
static const int64_t whole_bytes[] = {1 << 20, 17 << 20, LANDING_BYTES + (1 << 20)};

static void large_downloads_come_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int wide = 1; wide >= (i == 1 ? 0 : 1); wide--) {
            const int64_t rows = 1024, cols = whole_bytes[i] / rows / 8;
            const CUdeviceptr memory = memory_of(whole_bytes[i]);
            char *sent = filled(whole_bytes[i], 7), *there = filled(whole_bytes[i], 1);
            const struct host_rectangle from = host_whole(sent, rows, cols, rows, 8);
            struct host_rectangle to = host_whole(there, rows, cols, rows, 8);
            struct gpu_key up, down;
            sent[whole_bytes[i] / 3] = 9;
            assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, rows}, &from),
                             GPU_OK);
            up = pack_matrix_digest(&from, rows);
            to.digest = &down;
            if (!wide) { /* there is no memory for the wide ring */
                assert_int_equal(stream_ctx_wait(work.ctx),
                                 GPU_OK); /* the upload still reads the ring */
                if (work.ctx->wide.memory)
                    CUDA(cuMemFreeHost)(work.ctx->wide.memory);
                work.ctx->wide.memory = NULL;
                CUDA(cuMemHostAlloc) = pin_nothing;
            }
            assert_int_equal(stream_ctx_download_whole(work.ctx, &to, (struct dmat){memory, rows}),
                             GPU_OK);
            CUDA(cuMemHostAlloc) = real.cuMemHostAlloc_p;
            assert_memory_equal(there, sent, (size_t)whole_bytes[i]);
            assert_true(gpu_key_is(&up, &down));
            gpu_memory(&work)->drop(&work);
            pool_trim(device);
            free(sent);
            free(there);
        }
}

static CUresult no_copy_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to;
    (void)from;
    (void)bytes;
    (void)stream;
    return CUDA_ERROR_INVALID_VALUE;
}

/* A triangle of a matrix that does not fit the rings; and then the copy fails. */
static void a_large_triangle_comes_whole_or_not_at_all(void **state)
{
    enum { N = 2520 }; /* more than the wide ring has */
    const int64_t bytes = (int64_t)N * N * 8;
    const CUdeviceptr memory = memory_of(bytes);
    char *sent = filled(bytes, 7), *there = filled(bytes, 1), *before = filled(bytes, 1);
    const struct host_rectangle from = host_whole(sent, N, N, N, 8);
    struct host_rectangle to = host_whole(there, N, N, N, 8);
    (void)state;
    to.uplo = 'L';
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, N}, &from), GPU_OK);
    CUDA(cuMemcpyDtoHAsync) = no_copy_down;
    assert_int_equal(stream_ctx_download_whole(work.ctx, &to, (struct dmat){memory, N}), GPU_ERROR);
    assert_memory_equal(there, before, (size_t)bytes);
    CUDA(cuMemcpyDtoHAsync) = real.cuMemcpyDtoHAsync_p;
    assert_int_equal(stream_ctx_download_whole(work.ctx, &to, (struct dmat){memory, N}), GPU_OK);
    for (int64_t j = 0; j < N; j += 100) {
        assert_memory_equal(there + j * N * 8, before, (size_t)(j * 8));
        assert_memory_equal(there + j * (N + 1) * 8, sent, (size_t)((N - j) * 8));
    }
    free(sent);
    free(there);
    free(before);
}

/* Without pinned memory nothing moves. */
static void no_pinned_memory_is_no_memory(void **state)
{
    char there[4096] = {5};
    int64_t cols, rows;
    const CUdeviceptr memory = memory_of(sizeof there);
    const struct host_rectangle to = host_whole(there, 8, 8, 8, 8);
    (void)state;
    stream_ctx_wait(work.ctx);
    CUDA(cuMemFreeHost)(work.ctx->narrow.memory);
    work.ctx->narrow.memory = NULL;
    CUDA(cuMemHostAlloc) = pin_nothing;
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, 8}, &to), GPU_NO_MEMORY);
    assert_int_equal(stream_ctx_download(work.ctx, &to, (struct dmat){memory, 8}, &cols, &rows),
                     GPU_NO_MEMORY);
    assert_true(cols == 0 && rows == 0);
    assert_int_equal(stream_ctx_download_whole(work.ctx, &to, (struct dmat){memory, 8}),
                     GPU_NO_MEMORY);
    assert_int_equal(there[0], 5);
    CUDA(cuMemHostAlloc) = real.cuMemHostAlloc_p;
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, 8}, &to), GPU_OK);
}

/* One column of many chunks. The program's memory has the chunks that came before the failure; the
 * others are as they were. */
static void an_event_that_does_not_answer_ends_a_copy(void **state)
{
    enum { BYTES = 24 << 20, ROWS = BYTES / 8 };
    const CUdeviceptr memory = memory_of(BYTES);
    char *sent = filled(BYTES, 7), *there = filled(BYTES, 1), *before = filled(BYTES, 1);
    const struct host_rectangle from = host_whole(sent, ROWS, 1, ROWS, 8),
                                to = host_whole(there, ROWS, 1, ROWS, 8);
    int64_t cols, rows;
    (void)state;
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, ROWS}, &from), GPU_OK);
    assert_int_equal(stream_ctx_wait(work.ctx), GPU_OK);
    CUDA(cuEventQuery) = no_answer_of_events;
    const enum gpu_status down =
        stream_ctx_download(work.ctx, &to, (struct dmat){memory, ROWS}, &cols, &rows);
    assert_int_equal(down, GPU_ERROR);
    assert_int_equal(cols, 0);
    assert_in_range(rows, 1, ROWS - 1);
    assert_memory_equal(there, sent, (size_t)rows * 8);
    assert_memory_equal(there + rows * 8, before, (size_t)(ROWS - rows) * 8);
    assert_int_equal(stream_ctx_wait(work.ctx), GPU_OK);
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory, ROWS}, &from), GPU_ERROR);
    assert_true(failure_noted()->kind == FAILURE_DEVICE);
    free(sent);
    free(there);
    free(before);
}

static void a_pitch_has_a_limit(void **state)
{
    const CUdeviceptr memory = memory_of(4096);
    const int64_t large = INT_MAX / 8;
    (void)state;
    assert_int_equal(stream_ctx_copy(work.ctx, (struct dmat){memory, large},
                                     (struct dmat){memory + 64, 8}, 1, 1, 8),
                     GPU_UNSUPPORTED);
    assert_int_equal(stream_ctx_copy(work.ctx, (struct dmat){memory, 8},
                                     (struct dmat){memory + 64, large}, 1, 1, 8),
                     GPU_UNSUPPORTED);
    assert_int_equal(
        stream_ctx_copy(work.ctx, (struct dmat){memory, 8}, (struct dmat){memory + 64, 8}, 1, 1, 8),
        GPU_OK);
}

/* ---- A call's blocks ---- */

static CUresult no_wait(CUstream stream)
{
    (void)stream;
    return CUDA_ERROR_LAUNCH_FAILED;
}

static void a_call_has_so_many_blocks(void **state)
{
    const struct gpu_key key = {{3, 4}};
    gpu_address memory;
    (void)state;
    const CUdeviceptr kept = memory_of(4096);
    assert_int_equal(gpu_memory(&work)->cache(&work, kept, &key), GPU_OK);
    while (work.blocks < WORK_BLOCKS)
        memory_of(4096);
    assert_int_equal(gpu_memory(&work)->take(&work, 4096, &memory), GPU_UNSUPPORTED);
    assert_false(gpu_memory(&work)->find(&work, &key, &memory));
    gpu_memory(&work)->drop(&work);
    assert_true(gpu_memory(&work)->find(&work, &key, &memory));
    assert_int_equal(memory, kept);
    gpu_memory(&work)->invalidate(&work, &key);
}

/* Nobody knows whether it holds what it should. */
static void a_block_that_cannot_be_waited_for_is_not_kept(void **state)
{
    const struct gpu_key key = {{5, 6}};
    (void)state;
    const CUdeviceptr memory = memory_of(4096);
    assert_int_equal(gpu_memory(&work)->zero(&work, memory, 4096), GPU_OK);
    CUDA(cuStreamSynchronize) = no_wait;
    assert_int_equal(gpu_memory(&work)->cache(&work, memory, &key), GPU_ERROR);
    CUDA(cuStreamSynchronize) = real.cuStreamSynchronize_p;
    assert_false(pool_has(device, &key));
}

static void a_function_without_steps_is_unsupported(void **state)
{
    int without = 0;
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        struct accel_call none = accel_call_of(&accel_routines[i]);
        struct gpu_host nobody = {0};
        if (none.op->gpu)
            continue;
        without++;
        assert_int_equal(gpu_run(&device->common, &none, &nobody), GPU_UNSUPPORTED);
    }
    if (without == 0)
        skip();
}

/* ---- The CPU's access to device memory ---- */

enum { ROWS = 5, COLS = 4, LD = 7 };

static CUresult another_captures(CUstream stream, CUstreamCaptureStatus *capture)
{
    (void)stream;
    (void)capture;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}
static CUresult no_stream(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_context(CUcontext context)
{
    (void)context;
    return CUDA_ERROR_UNKNOWN;
}
static int pushes_left;
static CUresult push_some(CUcontext context)
{
    return pushes_left-- > 0 ? real.cuCtxPushCurrent_p(context) : CUDA_ERROR_UNKNOWN;
}
static CUresult no_attributes(unsigned count, CUpointer_attribute *which, void **values,
                              CUdeviceptr address)
{
    (void)count;
    (void)which;
    (void)values;
    (void)address;
    return CUDA_ERROR_UNKNOWN;
}
/* As of memory of a pool. */
static CUresult no_owner(unsigned count, CUpointer_attribute *which, void **values,
                         CUdeviceptr address)
{
    const CUresult result = real.cuPointerGetAttributes_p(count, which, values, address);
    for (unsigned i = 0; i < count; i++)
        if (which[i] == CU_POINTER_ATTRIBUTE_CONTEXT)
            *(CUcontext *)values[i] = NULL;
    return result;
}
static int downs_left;
static CUresult some_columns(void *to, CUdeviceptr from, size_t bytes)
{
    return downs_left-- > 0 ? real.cuMemcpyDtoH_p(to, from, bytes) : CUDA_ERROR_UNKNOWN;
}

static struct accel_span span_of(CUdeviceptr memory)
{
    return (struct accel_span){.ptr = (void *)(uintptr_t)memory,
                               .rows = ROWS,
                               .cols = COLS,
                               .ld = LD,
                               .dtype = ACCEL_FLOAT64,
                               .place = ACCEL_DEVICE};
}

static void assert_fetches(const struct accel_span *x, const double *expected)
{
    double packed[ROWS * COLS] = {0};
    assert_true(gpu_fetch(&device->common, packed, x));
    assert_memory_equal(packed, expected, sizeof packed);
}

/* Stores a matrix, then its strict triangle, and reads them. */
static void store_and_fetch(CUdeviceptr memory)
{
    struct accel_span x = span_of(memory);
    double first[ROWS * COLS], second[ROWS * COLS], both[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        first[i] = i + 1;
        second[i] = -i - 1;
        both[i] = i % ROWS < i / ROWS ? second[i] : first[i];
    }
    assert_true(gpu_store(&device->common, &x, first));
    assert_fetches(&x, first);
    x.triangle = 'u';
    assert_true(gpu_store(&device->common, &x, second));
    assert_fetches(&x, both);
}

static void the_cpu_reaches_device_memory(void **state)
{
    const CUdeviceptr memory = memory_of(sizeof(double) * LD * COLS);
    (void)state;
    store_and_fetch(memory);
    CUDA(cuStreamIsCapturing) = another_captures; /* then on a stream of our own */
    store_and_fetch(memory);
    CUDA(cuStreamIsCapturing) = real.cuStreamIsCapturing_p;
    CUDA(cuPointerGetAttributes) = no_owner;
    store_and_fetch(memory);
}

static void assert_no_fetch(const struct accel_span *x)
{
    double packed[ROWS * COLS];
    struct failure before;
    failure_begin(&before);
    assert_false(gpu_fetch(&device->common, packed, x));
    assert_int_equal(failure_noted()->kind, FAILURE_DEVICE);
    failure_end(&before);
    cuda_api = real;
}

static void a_refused_access_is_told(void **state)
{
    const struct accel_span x = span_of(memory_of(sizeof(double) * LD * COLS));
    (void)state;
    CUDA(cuCtxPushCurrent) = no_context;
    assert_no_fetch(&x);
    CUDA(cuCtxPushCurrent) = push_some;
    pushes_left = 1;
    assert_no_fetch(&x);
    CUDA(cuPointerGetAttributes) = no_attributes;
    assert_no_fetch(&x);
    CUDA(cuMemcpyDtoH) = some_columns;
    downs_left = 2;
    assert_no_fetch(&x);
    CUDA(cuStreamIsCapturing) = another_captures;
    CUDA(cuStreamCreate) = no_stream;
    assert_no_fetch(&x);
    CUDA(cuStreamIsCapturing) = another_captures;
    CUDA(cuStreamSynchronize) = no_wait;
    assert_no_fetch(&x);
    CUDA(cuStreamIsCapturing) = another_captures;
    CUDA(cuMemcpyDtoHAsync) = no_copy_down;
    assert_no_fetch(&x);
}

/* ---- When a call's steps ran ---- */

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

/* ---- The solver's sizes ---- */

static struct solver solver_of(enum accel_dtype dtype)
{
    return (struct solver){
        .work = &work, .call = &call, .dtype = dtype, .real = accel_real_dtype(dtype)};
}

/* The first time, its functions come into the table. */
static void use_solver(void)
{
    assert_int_equal(stream_ctx_use_solver(work.ctx), GPU_OK);
    real = cuda_api;
}

static struct array shape(int64_t rows, int64_t cols)
{
    return (struct array){{0x1000, accel_max(1, rows)}, rows, cols, ACCEL_FLOAT64};
}

static void sizes_beyond_32_bits_are_unsupported(void **state)
{
    const int64_t large = (int64_t)INT_MAX + 1;
    const struct array one = shape(1, 1), tall = shape(large, 1);
    struct array sparse = one;
    struct solver s;
    (void)state;
    sparse.at.ld = large;
    use_solver();
    for (int i = 0; i < 3; i++) {
        s = solver_of(ACCEL_FLOAT64);
        if (i < 2)
            solver_library(&s)->potri(&s, 'L', i ? tall : sparse);
        else
            solver_library(&s)->sytrd(&s, 'L', shape(50000, 50000), one, one, one);
        assert_int_equal(s.status, GPU_UNSUPPORTED);
    }
    s = solver_of(ACCEL_FLOAT64);
    assert_false(solver_library(&s)->gesvdj(&s, false, true, sparse, one, one, one));
    assert_int_equal(s.status, GPU_UNSUPPORTED);
    /* Of nothing, there is nothing to do. */
    s = solver_of(ACCEL_FLOAT64);
    solver_library(&s)->ormqr(&s, 'L', 'N', tall, one, shape(0, 3));
    solver_library(&s)->ormqr(&s, 'L', 'N', tall, one, shape(3, 0));
    assert_int_equal(s.status, GPU_OK);
    solver_library(&s)->ormqr(&s, 'L', 'N', tall, one, shape(3, 3));
    assert_int_equal(s.status, GPU_UNSUPPORTED);
}

static void what_this_solver_lacks_is_unsupported(void **state)
{
    const struct array one = shape(1, 1);
    (void)state;
    use_solver();
    for (int i = 0; i < 2; i++) {
        struct solver s = solver_of(ACCEL_FLOAT64);
        if (i == 0)
            CUDA(cusolverDnCreateGesvdjInfo) = NULL;
        else
            CUDA(cusolverDnDestroyGesvdjInfo) = NULL;
        assert_false(solver_library(&s)->gesvdj(&s, false, true, one, one, one, one));
        assert_int_equal(s.status, GPU_UNSUPPORTED);
        cuda_api = real;
    }
    assert_true(cuda_solver.has_hetrf());
    CUDA(cusolverDnXhetrs) = NULL;
    assert_false(cuda_solver.has_hetrf());
}

/* ---- Products in another precision ---- */

static int capability[2];

static CUresult of_capability(int *value, CUdevice_attribute which, CUdevice number)
{
    if (which != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
        which != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        return real.cuDeviceGetAttribute_p(value, which, number);
    *value = capability[which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

static cublasStatus_t set_bits(cublasHandle_t handle, int *bits)
{
    (void)handle;
    (void)bits;
    return CUBLAS_STATUS_SUCCESS;
}

/* NVIDIA's release notes and manuals, as gpu/cuda/precision.c quotes them. */
static void each_version_has_its_precisions(void **state)
{
    enum { TF32 = 1 << GPU_TF32, BF16X9 = 1 << GPU_BF16X9, EMULATED = 1 << GPU_EMULATED };
    static const struct {
        int major, minor, version;
        unsigned gemm, rank_k;
    } cases[] = {{7, 5, 130300, 0, 0},
                 {9, 0, 130300, TF32 | EMULATED, TF32},
                 {10, 0, 120800, TF32 | EMULATED, TF32},
                 {10, 0, 120900, TF32 | BF16X9 | EMULATED, TF32},
                 {10, 3, 130100, TF32 | BF16X9 | EMULATED, TF32 | BF16X9},
                 {10, 0, 130300, TF32 | BF16X9 | EMULATED, TF32 | BF16X9 | EMULATED}};
    unsigned char all[GPU_PRODUCTS];
    (void)state;
    CUDA(cuDeviceGetAttribute) = of_capability;
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = set_bits;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capability[0] = cases[i].major;
        capability[1] = cases[i].minor;
        precision_all(all, device->number, cases[i].version);
        assert_int_equal(all[GPU_GEMM], 1 << GPU_NATIVE | cases[i].gemm);
        assert_int_equal(all[GPU_RANK_K], 1 << GPU_NATIVE | cases[i].rank_k);
    }
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = NULL;
    precision_all(all, device->number, 130300);
    assert_false(all[GPU_GEMM] & EMULATED || all[GPU_RANK_K] & EMULATED);
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = set_bits;
    CUDA(cublasSetWorkspace_v2) = NULL;
    precision_all(all, device->number, 130300);
    assert_false(all[GPU_GEMM] & EMULATED || all[GPU_RANK_K] & EMULATED);
    CUDA(cublasSetMathMode) = NULL;
    precision_all(all, device->number, 130300);
    assert_int_equal(all[GPU_GEMM], 1 << GPU_NATIVE);
}

static cublasMath_t mode; /* as cuBLAS has been told last */
static int workspaces;    /* that it has been given */

static cublasStatus_t set_mode(cublasHandle_t handle, cublasMath_t math)
{
    (void)handle;
    mode = math;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_workspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle;
    (void)workspace;
    workspaces += bytes > 0;
    return CUBLAS_STATUS_SUCCESS;
}

static CUresult no_fill(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)to;
    (void)value;
    (void)bytes;
    (void)stream;
    return CUDA_ERROR_UNKNOWN;
}

static CUresult no_block(CUdeviceptr *block, size_t bytes)
{
    (void)block;
    (void)bytes;
    return CUDA_ERROR_UNKNOWN;
}

static void emulate_here(void)
{
    CUDA(cublasSetMathMode) = set_mode;
    CUDA(cublasSetWorkspace_v2) = set_workspace;
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = set_bits;
    host.precision = GPU_EMULATED;
    workspaces = 0;
    mode = CUBLAS_DEFAULT_MATH;
    work.largest = INT64_MAX;
}

/* Begins a product of this size and ends it. Returns whether it would have been emulated. */
static bool begin_product(const char *name, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    struct call_precision precision;
    call.routine = routine(name);
    call.op = accel_op_of(call.routine);
    call.batch = batch;
    call.span[ACCEL_a].dtype = ACCEL_FLOAT64;
    call.blas.size[ACCEL_m] = m;
    call.blas.size[ACCEL_n] = n;
    call.blas.size[ACCEL_k] = k;
    emulate_here();
    assert_int_equal(precision_begin(&precision, &work), GPU_OK);
    const bool is_emulated = host.precision == GPU_EMULATED;
    assert_int_equal(workspaces, is_emulated);
    assert_int_equal(mode,
                     is_emulated ? CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH : CUBLAS_DEFAULT_MATH);
    precision_end(&precision, &work, false);
    if (precision.workspace)
        pool_put(device, precision.workspace);
    work.ctx->math = CUBLAS_DEFAULT_MATH;
    return is_emulated;
}

/* A product gets a workspace as large as all of it needs, or its tiles; else it is native. */
static void a_workspace_is_within_the_memory(void **state)
{
    const int64_t largest = INT64_C(1) << 17, memory = gpu_memory(&work)->available(&work) / 2;
    (void)state;
    assert_in_range(memory, gpu_emulation_bytes(1000, 1000, 1000, 1, false),
                    gpu_emulation_bytes(3000, 1000, 1000, 1, false) - 1);
    assert_true(begin_product("dgemm", 1000, 1000, 1000, 1));
    assert_int_equal(work.largest, INT64_MAX);
    assert_true(begin_product("dgemm", 3000, 1000, 1000, 1));
    assert_int_equal(work.largest, 1024);
    assert_true(begin_product("dgemm_batch_strided", 8, 8, 8, 1));
    assert_false(begin_product("dgemm_batch_strided", largest + 1, 1, 1, 1));
    assert_false(begin_product("dgemm_batch_strided", 1, largest + 1, 1, 1));
    assert_false(begin_product("dgemm_batch_strided", 1, 1, largest + 1, 1));
    assert_false(begin_product("dgemm_batch_strided", 8, 8, 8, 100)); /* 207 MB each */
    assert_false(begin_product("dgemm_batch_strided", 8, 8, 8, 100000));
}

static void a_workspace_that_fails_fails_the_call(void **state)
{
    struct call_precision precision;
    (void)state;
    for (int i = 0; i < 2; i++) {
        pool_trim(device);
        call.span[ACCEL_a].dtype = ACCEL_FLOAT64;
        call.blas.size[ACCEL_m] = call.blas.size[ACCEL_n] = call.blas.size[ACCEL_k] = 100;
        emulate_here();
        if (i == 0)
            CUDA(cuMemAlloc) = no_block;
        else
            CUDA(cuMemsetD8Async) = no_fill;
        assert_int_equal(precision_begin(&precision, &work), GPU_ERROR);
        assert_int_equal(workspaces, 0);
        precision_end(&precision, &work, false);
        if (precision.workspace)
            pool_put(device, precision.workspace);
        CUDA(cuMemAlloc) = real.cuMemAlloc_p;
        CUDA(cuMemsetD8Async) = real.cuMemsetD8Async_p;
    }
}

/* Of a driver's function that fails while the stream goes on. */
static void the_driver_s_failure_is_the_device_s(void **state)
{
    struct gpu_host own = {.precision = GPU_EMULATED};
    (void)state;
    call.span[ACCEL_a].dtype = ACCEL_FLOAT64;
    call.blas.size[ACCEL_m] = call.blas.size[ACCEL_n] = call.blas.size[ACCEL_k] = 100;
    emulate_here();
    CUDA(cuMemsetD8Async) = no_fill;
    assert_int_equal(gpu_run(&device->common, &call, &own), GPU_ERROR);
    assert_int_equal(own.blame, GPU_BLAME_DEVICE);
    assert_true(gpu_has_failure(&device->common));
    assert_non_null(strstr(gpu_failure(&device->common), "cuMemsetD8Async"));
}

int main(void)
{
    /* The library, which is not loaded yet, reads it as it comes: the CPU's access is to the
     * program's own memory. */
    setenv("TESTGPU_PAGEABLE", "1", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(neighbouring_parts_go_as_one_copy),
        TEST(nothing_is_copied_of_nothing),
        TEST(large_downloads_come_whole),
        TEST(a_large_triangle_comes_whole_or_not_at_all),
        TEST(no_pinned_memory_is_no_memory),
        TEST(an_event_that_does_not_answer_ends_a_copy),
        TEST(a_pitch_has_a_limit),
        TEST(a_call_has_so_many_blocks),
        TEST(a_block_that_cannot_be_waited_for_is_not_kept),
        TEST(a_function_without_steps_is_unsupported),
        TEST(the_cpu_reaches_device_memory),
        TEST(a_refused_access_is_told),
        TEST(without_a_clock_no_step_is_timed),
        TEST(a_step_without_events_is_left_out),
        TEST(a_step_on_two_streams_is_one),
        TEST(sizes_beyond_32_bits_are_unsupported),
        TEST(what_this_solver_lacks_is_unsupported),
        TEST(each_version_has_its_precisions),
        TEST(a_workspace_is_within_the_memory),
        TEST(a_workspace_that_fails_fails_the_call),
        TEST(the_driver_s_failure_is_the_device_s), /* the last: that stays */
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
