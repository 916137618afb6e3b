/*
 * Copies through pinned buffers, and the blocks that a call has, where the driver refuses or has no
 * memory. A step that fails leaves the program's memory as its header says.
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
#include "tests/lib/refusing_driver.h"

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

static CUresult pin_nothing(void **memory, size_t bytes, unsigned flags)
{
    (void)memory;
    (void)bytes;
    (void)flags;
    return CUDA_ERROR_OUT_OF_MEMORY;
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
    assert_false(gpu_memory(&work)->find(&work, &key, 4096, &memory));
    gpu_memory(&work)->drop(&work);
    assert_true(gpu_memory(&work)->find(&work, &key, 4096, &memory));
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
    assert_false(pool_has(device, &key, 0));
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

int main(void)
{
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
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
