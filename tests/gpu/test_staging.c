/*
 * Copies to the device and back: every byte comes to its place and none beside it, whatever the
 * shape, and however many threads help; what a failed copy says that it has written is written, and
 * nothing else. Each test runs in the child of a fork, which begins without threads.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/copy_pool.h"
#include "gpu/pack/matrix.h"
#include "gpu/cuda/device.h"
#include "tests/lib/devices.h"
#include "tests/lib/in_child.h"
#include "tests/lib/long.h"

/* ---- A copy up and down ---- */

static struct cuda_device *device;

static int64_t below(unsigned *seed, int64_t n)
{
    return (int64_t)(((uint64_t)(unsigned)rand_r(seed) << 31 | (unsigned)rand_r(seed)) %
                     (uint64_t)n);
}

static char *bytes_of(int64_t bytes, unsigned seed)
{
    uint32_t *x = malloc((size_t)bytes + 8);
    must(x);
    for (int64_t i = 0; i < bytes / 4 + 1; i++)
        x[i] = (uint32_t)i * 2654435761u + seed;
    return (char *)x;
}

struct shape {
    struct host_rectangle host;
    int64_t device_ld, bytes; /* of the host's memory */
};

/* Some are small, some just larger than what threads help with, some many buffers; columns shorter
 * than a chunk, and longer. */
static struct shape choose_shape(unsigned *seed)
{
    static const int64_t most[] = {1 << 10, 3 << 20, 40 << 20};
    struct shape s;
    const int64_t size = 4 << below(seed, 3), elements = most[below(seed, 3)] / size;
    const int64_t rows = 1 + below(seed, below(seed, 2) ? elements : 1 + below(seed, 3000));
    const int64_t cols = 1 + below(seed, elements / rows + 1), ld = rows + below(seed, 2) * 7;
    s.host = host_whole(NULL, rows, cols, ld, size);
    s.host.uplo = "\0\0UL"[below(seed, 4)];
    s.host.backwards = below(seed, 2);
    s.device_ld = rows + below(seed, 2) * below(seed, 40);
    s.bytes = (ld * (cols - 1) + rows) * size;
    s.host.trimmed = s.host.uplo && s.device_ld * size <= PINNED_BUFFER_BYTES && cols % 4 != 0;
    return s;
}

static bool belongs(const struct host_rectangle *r, int64_t row, int64_t col)
{
    return r->uplo == 'U' ? row <= col : r->uplo == 'L' ? row >= col : true;
}

/* Of the columns in the order of a download, `cols` and of the next one `rows` rows must have come,
 * and nothing else. */
static void check(const struct shape *s, const char *sent, const char *before, const char *there,
                  int64_t cols, int64_t rows)
{
    const struct host_rectangle *r = &s->host;
    const int64_t size = r->size;
    for (int64_t i = 0; i < r->cols; i++) {
        int64_t col = r->backwards ? r->cols - 1 - i : i, at = col * r->ld * size;
        int64_t written = i < cols ? r->rows : i == cols ? rows : 0;
        int64_t beside = at + r->ld * size < s->bytes ? r->ld : r->rows;
        int64_t first = 0, last = written;
        while (first < last && !belongs(r, first, col))
            first++;
        while (first < last && !belongs(r, last - 1, col))
            last--;
        must(memcmp(there + at, before + at, (size_t)(first * size)) == 0);
        must(memcmp(there + at + first * size, sent + at + first * size,
                    (size_t)((last - first) * size)) == 0);
        must(memcmp(there + at + last * size, before + at + last * size,
                    (size_t)((beside - last) * size)) == 0);
    }
}

/* The driver's answers. */
static __typeof__(cuda_api) real;
static atomic_int copies_left;

static CUresult fail_later(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (atomic_fetch_sub(&copies_left, 1) <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return real.cuMemcpyDtoHAsync_p(to, from, bytes, stream);
}

static CUresult fail_plane_later(const CUDA_MEMCPY2D *plane, CUstream stream)
{
    if (plane->dstMemoryType == CU_MEMORYTYPE_HOST && atomic_fetch_sub(&copies_left, 1) <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return real.cuMemcpy2DAsync_p(plane, stream);
}

/* Of a whole rectangle, it is that of the elements alone, wherever they are. */
static void check_digest(const struct host_rectangle *from, int64_t device_ld,
                         const struct gpu_key *went_up)
{
    const int64_t column = from->rows * from->size;
    struct host_rectangle other = *from;
    struct gpu_key digest = pack_matrix_digest(from, device_ld);
    must(memcmp(&digest, went_up, sizeof digest) == 0);
    other.host = malloc((size_t)(column * from->cols));
    other.ld = from->rows;
    must(other.host);
    for (int64_t j = 0; j < from->cols; j++)
        memcpy(other.host + j * column, from->host + j * from->ld * from->size, (size_t)column);
    digest = pack_matrix_digest(&other, device_ld);
    must(memcmp(&digest, went_up, sizeof digest) == 0);
    if (!from->uplo)
        other.host[column * from->cols - 1] ^= 1;
    digest = pack_matrix_digest(&other, device_ld);
    must(from->uplo || memcmp(&digest, went_up, sizeof digest) != 0);
    free(other.host);
}

static void go_up_and_down(struct stream_ctx *ctx, unsigned *seed, bool fails)
{
    const struct shape s = choose_shape(seed);
    struct host_rectangle from = s.host, to = s.host;
    CUdeviceptr memory;
    int64_t done_cols, done_rows;
    bool grew;
    char *sent = bytes_of(s.bytes, (unsigned)rand_r(seed)), *there = bytes_of(s.bytes, 5),
         *before = bytes_of(s.bytes, 5);
    struct gpu_key went_up;
    from.host = sent;
    from.digest = s.host.hermitian ? NULL : &went_up;
    to.host = there;
    must(pool_get(device, s.device_ld * from.cols * from.size, &memory, &grew) == GPU_OK);
    must(stream_ctx_upload(ctx, (struct dmat){memory, s.device_ld}, &from) == GPU_OK);
    if (from.digest)
        check_digest(&from, s.device_ld, &went_up);
    bool whole = below(seed, 3) == 0;
    struct gpu_key came_down = {{0, 0}};
    to.digest = whole || s.host.uplo ? NULL : &came_down;
    if (fails)
        copies_left = (int)below(seed, 40);
    enum gpu_status status =
        whole ? stream_ctx_download_whole(ctx, &to, (struct dmat){memory, s.device_ld})
              : stream_ctx_download(ctx, &to, (struct dmat){memory, s.device_ld}, &done_cols,
                                    &done_rows);
    if (whole) {
        done_cols = status == GPU_OK ? to.cols : 0;
        done_rows = 0;
    }
    must(fails || status == GPU_OK);
    must(status != GPU_OK || (done_cols == to.cols && done_rows == 0));
    must(status != GPU_OK || !to.digest || memcmp(&came_down, &went_up, sizeof went_up) == 0);
    check(&s, sent, before, there, done_cols, done_rows);
    must(stream_ctx_wait(ctx) == GPU_OK);
    pool_put(device, memory);
    free(sent);
    free(there);
    free(before);
}

/* A device of the child's own. The test GPU's copies come at any time later. */
static void begin_device(void)
{
    struct gpu_device *started =
        start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    must(started);
    device = cuda_device_of(started);
    real = cuda_api;
}

static void copy(unsigned seed, bool fails)
{
    struct gpu_scope scope;
    struct stream_ctx *ctx;
    must(gpu_enter(device, &scope) == GPU_OK);
    must(stream_ctx_acquire(device, true, &ctx) == GPU_OK);
    gpu_set_chunk(&device->common, gpu_chunk_sizes[seed % GPU_CHUNKS]);
    gpu_set_chunk(&device->common, 300 << 10); /* there is no such size */
    must(gpu_chunk(&device->common) == gpu_chunk_sizes[seed % GPU_CHUNKS]);
    const int rounds = test_is_long() ? 100 : 10;
    for (int i = 0; i < rounds; i++)
        go_up_and_down(ctx, &seed, fails);
    stream_ctx_release(ctx, false);
    gpu_leave(&scope);
}

static void (*tested)(void);

static void test_device(void)
{
    begin_device();
    tested();
    gpu_stop(&device->common);
}

static void with_device(void (*test)(void), int with_cpus, int with_threads)
{
    tested = test;
    in_child(test_device, with_cpus, with_threads);
}

/* ---- Tests ---- */

static void copy_shapes(void)
{
    copy((unsigned)cpus, false);
}

static void every_byte_comes_to_its_place(void **state)
{
    static const int numbers[] = {1, 2, 4, 8};
    (void)state;
    for (int i = 0; i < 4; i += test_is_long() ? 1 : 3)
        with_device(copy_shapes, numbers[i], 1000);
    with_device(copy_shapes, 8, 0); /* no thread can be started */
    with_device(copy_shapes, 8, 2);
}

static void fail_copies(void)
{
    CUDA(cuMemcpyDtoHAsync) = fail_later;
    CUDA(cuMemcpy2DAsync) = fail_plane_later;
    copy(7, true);
    cuda_api = real;
}

static void a_failure_leaves_whole_chunks(void **state)
{
    (void)state;
    with_device(fail_copies, 1, 1000);
    with_device(fail_copies, 8, 1000);
}

static CUresult no_wide_ring(void **memory, size_t bytes, unsigned flags)
{
    return bytes > NARROW_RING_BUFFERS * PINNED_BUFFER_BYTES
               ? CUDA_ERROR_OUT_OF_MEMORY
               : real.cuMemHostAlloc_p(memory, bytes, flags);
}

static void copy_without_memory(void)
{
    CUDA(cuMemHostAlloc) = no_wide_ring;
    copy(11, false);
    cuda_api = real;
}

static void little_pinned_memory_is_enough(void **state)
{
    (void)state;
    with_device(copy_without_memory, 4, 1000);
}

/* ---- The first chunk of an upload ---- */

enum { ROWS = 4000, COLUMNS = 2000 };

static struct {
    CUdeviceptr from;
    int64_t chunk, bytes; /* those of a whole chunk, and of all copies */
    int count;            /* copies */
    atomic_int early;     /* those of less than the first chunk, before it is whole */
    int fails_at;
} uploads;

/* A page of the first chunk, near its end. A helper that is to pack it waits until others' parts
 * are on their way: whichever thread the machine lets run when, one part is late then. The calling
 * thread does not wait for itself. */
static struct {
    char *page;
    size_t bytes;
    pthread_t caller;
} held;

static void wait_for_early(int number, siginfo_t *info, void *context)
{
    const uintptr_t at = (uintptr_t)info->si_addr, page = (uintptr_t)held.page;
    (void)context;
    if (at < page || at >= page + held.bytes) {
        signal(number, SIG_DFL);
        return;
    }
    for (int i = 0; i < 1000 && uploads.early == 0; i++) {
        if (pthread_equal(pthread_self(), held.caller))
            break;
        usleep(1000);
    }
    must(mprotect(held.page, held.bytes, PROT_READ | PROT_WRITE) == 0);
}

static void hold(char *sent, int64_t chunk)
{
    const struct sigaction action = {.sa_sigaction = wait_for_early, .sa_flags = SA_SIGINFO};
    held.bytes = (size_t)sysconf(_SC_PAGESIZE);
    held.page = (char *)((uintptr_t)(sent + chunk - held.bytes) / held.bytes * held.bytes);
    held.caller = pthread_self();
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    must(mprotect(held.page, held.bytes, PROT_NONE) == 0);
}

static CUresult count_upload(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    if (++uploads.count == uploads.fails_at)
        return CUDA_ERROR_INVALID_VALUE;
    uploads.early +=
        to < uploads.from + (CUdeviceptr)uploads.chunk && (int64_t)bytes < uploads.chunk;
    uploads.bytes += (int64_t)bytes;
    return real.cuMemcpyHtoDAsync_p(to, from, bytes, stream);
}

/* Returns the status of an upload; after a success, what is there is compared. late: a part of the
 * first chunk is. */
static enum gpu_status upload(struct stream_ctx *ctx, CUdeviceptr memory, char *sent, char *there,
                              bool late)
{
    const struct host_rectangle from = host_whole(sent, ROWS, COLUMNS, ROWS, 8),
                                to = host_whole(there, ROWS, COLUMNS, ROWS, 8);
    const int fails_at = uploads.fails_at;
    int64_t done_cols, done_rows;
    memset(&uploads, 0, sizeof uploads);
    uploads.fails_at = fails_at;
    uploads.from = memory;
    uploads.chunk = chunks_bytes(&from, ROWS, CHUNKS_OF_MATRIX, stream_ctx_least_chunk(ctx));
    if (late)
        hold(sent, uploads.chunk);
    const enum gpu_status status = stream_ctx_upload(ctx, (struct dmat){memory, ROWS}, &from);
    must(stream_ctx_wait(ctx) == GPU_OK);
    if (status != GPU_OK)
        return status;
    must(stream_ctx_download(ctx, &to, (struct dmat){memory, ROWS}, &done_cols, &done_rows) ==
         GPU_OK);
    must(memcmp(sent, there, (size_t)ROWS * COLUMNS * 8) == 0);
    must(uploads.bytes == (int64_t)ROWS * COLUMNS * 8);
    return GPU_OK;
}

/* Where the calling thread packs the part that is late, the next attempt tells. */
static void send_early(void)
{
    struct gpu_scope scope;
    struct stream_ctx *ctx;
    CUdeviceptr memory;
    bool grew;
    int attempts = 0, failures = 0;
    char *sent = bytes_of((int64_t)ROWS * COLUMNS * 8, 3),
         *there = bytes_of((int64_t)ROWS * COLUMNS * 8, 5);
    must(gpu_enter(device, &scope) == GPU_OK && stream_ctx_acquire(device, true, &ctx) == GPU_OK);
    must(pool_get(device, (int64_t)ROWS * COLUMNS * 8, &memory, &grew) == GPU_OK);
    gpu_set_chunk(&device->common, gpu_chunk_sizes[GPU_CHUNKS - 1]);
    CUDA(cuMemcpyHtoDAsync) = count_upload;
    do {
        if (attempts > 0)
            usleep(30000);
        must(upload(ctx, memory, sent, there, true) == GPU_OK);
    } while (uploads.early == 0 && ++attempts < 100);
    must(uploads.early > 0);
    /* Behind another upload, the link is busy: all chunks go up whole. */
    const struct host_rectangle from = host_whole(sent, ROWS, COLUMNS, ROWS, 8);
    must(stream_ctx_upload(ctx, (struct dmat){memory, ROWS}, &from) == GPU_OK);
    uploads.early = 0;
    must(stream_ctx_upload(ctx, (struct dmat){memory, ROWS}, &from) == GPU_OK &&
         uploads.early == 0);
    must(stream_ctx_wait(ctx) == GPU_OK);
    for (int n = 1; n < 12; n++) {
        uploads.fails_at = n;
        failures += upload(ctx, memory, sent, there, false) == GPU_ERROR;
        uploads.fails_at = 0;
        must(upload(ctx, memory, sent, there, false) == GPU_OK);
    }
    must(failures == 11);
    stream_ctx_release(ctx, false);
    gpu_leave(&scope);
    free(sent);
    free(there);
}

static void an_upload_begins_before_its_first_chunk_is_packed(void **state)
{
    (void)state;
    with_device(send_early, 8, 1000);
    with_device(send_early, 2, 1000);
}

static void *copy_in_thread(void *number)
{
    copy((unsigned)(uintptr_t)number, false);
    return NULL;
}

static void copy_at_once(void)
{
    pthread_t thread[4];
    int status;
    for (uintptr_t i = 0; i < 4; i++)
        must(pthread_create(&thread[i], NULL, copy_in_thread, (void *)(i + 1)) == 0);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 4; i++)
        must(pthread_join(thread[i], NULL) == 0);
}

static void threads_copy_at_once_beside_forks(void **state)
{
    (void)state;
    with_device(copy_at_once, 6, 1000);
}

/* LAPACK's numbers are looked at on their way, by whichever thread packs them. */
static void scan_numbers(void)
{
    enum { N = 1000 };
    struct gpu_scope scope;
    struct stream_ctx *ctx;
    CUdeviceptr memory;
    bool grew;
    double *x = calloc((size_t)N * N, sizeof *x);
    must(x && gpu_enter(device, &scope) == GPU_OK &&
         stream_ctx_acquire(device, true, &ctx) == GPU_OK);
    must(pool_get(device, (int64_t)N * N * 8, &memory, &grew) == GPU_OK);
    for (int i = 0; i < 60; i++) {
        struct gpu_scan scan = gpu_scan_begin(true);
        struct host_rectangle from = host_whole(x, N, N, N, 8);
        int at = i * (N * N / 60) + i;
        from.scan = &scan;
        x[at] = i % 2 ? -1.0 - i : (double)NAN;
        must(stream_ctx_upload(ctx, (struct dmat){memory, N}, &from) == GPU_OK);
        must(scan.finite == (i % 2 == 1) && scan.largest == (i % 2 ? 1.0 + i : 0));
        x[at] = 0;
    }
    must(stream_ctx_wait(ctx) == GPU_OK);
    pool_put(device, memory);
    stream_ctx_release(ctx, false);
    gpu_leave(&scope);
    free(x);
}

static void every_number_is_looked_at(void **state)
{
    (void)state;
    with_device(scan_numbers, 1, 1000);
    with_device(scan_numbers, 8, 1000);
}

/* ---- Digests by tiles ---- */

static struct gpu_key digest_of(struct host_rectangle from, char *host, int64_t ld,
                                struct gpu_tiles tiles)
{
    from.host = host;
    from.ld = ld;
    return pack_matrix_digest_tiles(&from, &tiles);
}

/* Threads unpack nothing before the calling thread has nothing else to do than to attend to them.
 * The linker sends calls here. */
static atomic_bool is_held;
void __real_pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const char *packed, int64_t packed_ld);
void __wrap_pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const char *packed, int64_t packed_ld);
void __wrap_pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const char *packed, int64_t packed_ld)
{
    while (atomic_load(&is_held))
        usleep(100);
    __real_pack_to_host(r, chunk, packed, packed_ld);
}
void __real_copy_pool_attend(struct copy_pool_job *job, int64_t done);
void __wrap_copy_pool_attend(struct copy_pool_job *job, int64_t done);
void __wrap_copy_pool_attend(struct copy_pool_job *job, int64_t done)
{
    atomic_store(&is_held, false);
    __real_copy_pool_attend(job, done);
}

static CUresult arrive_first(CUevent event)
{
    return real.cuEventSynchronize_p(event);
}

/* Twelve parts each of twelve chunks: more than a job may have open. */
static void copy_many_parts(void)
{
    enum { ROWS = 37500, COLS = 80 };
    const int64_t bytes = (int64_t)ROWS * COLS * 8;
    char *sent = bytes_of(bytes, 3), *there = bytes_of(bytes, 4);
    const struct host_rectangle from = host_whole(sent, ROWS, COLS, ROWS, 8),
                                to = host_whole(there, ROWS, COLS, ROWS, 8);
    struct gpu_scope scope;
    struct stream_ctx *ctx;
    CUdeviceptr memory;
    int64_t cols, rows;
    bool grew;
    undisturbed = true;
    must(gpu_enter(device, &scope) == GPU_OK);
    must(stream_ctx_acquire(device, true, &ctx) == GPU_OK);
    must(pool_get(device, bytes, &memory, &grew) == GPU_OK);
    gpu_set_chunk(&device->common, gpu_chunk_sizes[GPU_CHUNKS - 1]);
    must(stream_ctx_upload(ctx, (struct dmat){memory, ROWS}, &from) == GPU_OK);
    CUDA(cuEventQuery) = arrive_first;
    atomic_store(&is_held, true);
    must(stream_ctx_download(ctx, &to, (struct dmat){memory, ROWS}, &cols, &rows) == GPU_OK);
    cuda_api = real;
    must(!atomic_load(&is_held) && cols == COLS && rows == 0);
    must(memcmp(there, sent, (size_t)bytes) == 0);
    pool_put(device, memory);
    stream_ctx_release(ctx, false);
    gpu_leave(&scope);
    free(sent);
    free(there);
}

static void more_parts_than_tasks_are_copied(void **state)
{
    (void)state;
    with_device(copy_many_parts, 16, 1000);
}

static bool is_same(struct gpu_key x, struct gpu_key y)
{
    return gpu_key_is(&x, &y);
}

/* A digest says what the elements are, wherever they are, and nothing of what is beside them. */
static void digest_tiles(void)
{
    unsigned seed = (unsigned)cpus;
    for (int i = 0; i < 60; i++) {
        const int64_t size = 4 << below(&seed, 3), ld = 1 + below(&seed, 900);
        struct gpu_tiles by = {1 + below(&seed, 200), 1 + below(&seed, 200)};
        struct host_rectangle all = host_whole(NULL, 1 + below(&seed, ld), 1, ld, size);
        struct gpu_scan scan = gpu_scan_begin(true);
        all.cols = 1 + below(&seed, 900);
        all.uplo = "\0\0UL"[below(&seed, 4)];
        if (all.uplo)
            all.cols = all.rows, by.cols = by.rows;
        char *here = bytes_of(ld * all.cols * size, 3), *there = bytes_of(ld * all.cols * size, 4);
        for (int64_t col = 0; col < all.cols; col++)
            memcpy(there + col * all.rows * size, here + col * ld * size,
                   (size_t)(all.rows * size));
        const struct gpu_key key = digest_of(all, here, ld, by);
        must(is_same(key, digest_of(all, there, all.rows, by)));
        must(!is_same(key, digest_of(all, here, ld, (struct gpu_tiles){by.rows + 1, by.cols + 1})));
        const int64_t row = below(&seed, ld), col = below(&seed, all.cols);
        const bool counts = row < all.rows && belongs(&all, row, col);
        here[(row + col * ld) * size + below(&seed, size)] ^= 16;
        must(is_same(key, digest_of(all, here, ld, by)) == !counts);
        if (size == 8) {
            all.scan = &scan;
            for (int64_t j = 0; j < ld * all.cols; j++) /* what it was made of may be none */
                ((double *)here)[j] = j == row + col * ld ? (double)NAN : 1;
            digest_of(all, here, ld, by);
            must(scan.finite == !counts);
        }
        free(here);
        free(there);
    }
}

static void every_byte_of_a_tile_is_digested(void **state)
{
    (void)state;
    with_device(digest_tiles, 1, 1000);
    with_device(digest_tiles, 8, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_to_its_place),
        cmocka_unit_test(a_failure_leaves_whole_chunks),
        cmocka_unit_test(little_pinned_memory_is_enough),
        cmocka_unit_test(an_upload_begins_before_its_first_chunk_is_packed),
        cmocka_unit_test(threads_copy_at_once_beside_forks),
        cmocka_unit_test(more_parts_than_tasks_are_copied),
        cmocka_unit_test(every_number_is_looked_at),
        cmocka_unit_test(every_byte_of_a_tile_is_digested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
