/*
 * Copies of pageable memory through small pinned buffers, by 1 to 16 threads: each packs a chunk
 * into a buffer while its last ones are on the bus: 1 MiB chunks, three buffers a thread. By 8
 * threads also with chunks of other sizes, with stores that go past the caches, and with lines of
 * the pageable memory fetched for one use (PREFETCHNTA), which then leave the shared caches to the
 * buffers, and with buffers in huge pages, which the processor and the bus find sooner.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __x86_64__
#    include <emmintrin.h>
#endif

enum { HUGE_PAGE = 2 << 20 };
enum { AHEAD = 1024 }; /* bytes: as far ahead of a load its line is fetched */

enum { BUFFERS = 3, USUAL_CHUNK = 1 << 20, USUAL_THREADS = 8, MOST_THREADS = 16, PASSES = 3 };

/* One transfer, which threads share. */
struct transfer {
    CUdeviceptr device;
    char *host;
    size_t chunk, chunks; /* bytes of a chunk; how many */
    bool up, streamed, fetched, huge;
    atomic_size_t next;
    atomic_bool failed;
};

struct buffer {
    char *pinned;
    CUevent done;
    size_t chunk; /* on the bus; SIZE_MAX: none */
};

struct stager {
    pthread_t thread;
    struct transfer *transfer;
    pthread_barrier_t *barrier;
    CUstream stream;
    struct buffer buffer[BUFFERS];
};

/* ---- One thread ---- */

/* One chunk. Both addresses are those of whole lines. */
static void copy(const struct transfer *t, char *to, const char *from)
{
#ifdef __x86_64__
    for (size_t i = 0; t->streamed && i < t->chunk; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_load_si128((const __m128i *)(const void *)(from + i)));
    if (t->streamed) {
        _mm_sfence();
        return;
    }
#endif
#ifdef __x86_64__
    for (size_t i = 0; t->fetched && i < t->chunk; i += 64) {
        _mm_prefetch(from + i + AHEAD, _MM_HINT_NTA);
        for (size_t j = i; j < i + 64; j += 16)
            _mm_store_si128((__m128i *)(void *)(to + j),
                            _mm_load_si128((const __m128i *)(const void *)(from + j)));
    }
    if (t->fetched)
        return;
#endif
    memcpy(to, from, t->chunk);
}

/* Returns pinned memory of a chunk's size; NULL for a failure. */
static char *pinned_memory(const struct transfer *t)
{
    void *pinned;
    if (!t->huge)
        return CUDA_OK(cuMemHostAlloc, &pinned, t->chunk, 0) ? pinned : NULL;
    pinned = aligned_alloc(HUGE_PAGE, t->chunk);
    if (!pinned)
        return NULL;
    madvise(pinned, t->chunk, MADV_HUGEPAGE); /* no failure: the pages are small then */
    memset(pinned, 1, t->chunk);
    if (cuda.cuMemHostRegister && CUDA_OK(cuMemHostRegister, pinned, t->chunk, 0))
        return pinned;
    free(pinned);
    return NULL;
}

static void free_pinned(const struct transfer *t, char *pinned)
{
    if (!t->huge) {
        CUDA_OK(cuMemFreeHost, pinned);
    } else {
        CUDA_OK(cuMemHostUnregister, pinned);
        free(pinned);
    }
}

static bool open_stager(struct stager *s)
{
    if (!CUDA_OK(cuStreamCreate, &s->stream, CU_STREAM_NON_BLOCKING))
        return false;
    for (int i = 0; i < BUFFERS; i++) {
        s->buffer[i].pinned = pinned_memory(s->transfer);
        if (!s->buffer[i].pinned)
            return false;
        memset(s->buffer[i].pinned, 1, s->transfer->chunk);
        if (!CUDA_OK(cuEventCreate, &s->buffer[i].done, CU_EVENT_DISABLE_TIMING))
            return false;
    }
    return true;
}

static void close_stager(struct stager *s)
{
    for (int i = 0; i < BUFFERS; i++) {
        if (s->buffer[i].done)
            CUDA_OK(cuEventDestroy, s->buffer[i].done);
        if (s->buffer[i].pinned)
            free_pinned(s->transfer, s->buffer[i].pinned);
    }
    if (s->stream)
        CUDA_OK(cuStreamDestroy, s->stream);
}

/* Waits for what is on the bus in a buffer; what came down is brought to its place. */
static bool finish(struct stager *s, struct buffer *buffer)
{
    const struct transfer *t = s->transfer;
    if (buffer->chunk == SIZE_MAX)
        return true;
    if (!CUDA_OK(cuEventSynchronize, buffer->done))
        return false;
    if (!t->up)
        copy(t, t->host + buffer->chunk * t->chunk, buffer->pinned);
    buffer->chunk = SIZE_MAX;
    return true;
}

static bool begin(struct stager *s, struct buffer *buffer, size_t chunk)
{
    const struct transfer *t = s->transfer;
    CUdeviceptr at = t->device + chunk * t->chunk;
    if (t->up)
        copy(t, buffer->pinned, t->host + chunk * t->chunk);
    buffer->chunk = chunk;
    return (t->up ? CUDA_OK(cuMemcpyHtoDAsync, at, buffer->pinned, t->chunk, s->stream)
                  : CUDA_OK(cuMemcpyDtoHAsync, buffer->pinned, at, t->chunk, s->stream)) &&
           CUDA_OK(cuEventRecord, buffer->done, s->stream);
}

static bool stage(struct stager *s)
{
    int at = 0;
    for (int i = 0; i < BUFFERS; i++)
        s->buffer[i].chunk = SIZE_MAX;
    for (size_t chunk; (chunk = atomic_fetch_add(&s->transfer->next, 1)) < s->transfer->chunks;
         at = (at + 1) % BUFFERS)
        if (!finish(s, &s->buffer[at]) || !begin(s, &s->buffer[at], chunk))
            return false;
    for (int i = 0; i < BUFFERS; i++, at = (at + 1) % BUFFERS)
        if (!finish(s, &s->buffer[at]))
            return false;
    return true;
}

/* Every thread goes through every pass, so that none waits for one that has failed. */
static void *run(void *argument)
{
    struct stager *s = argument;
    bool good = driver_enter() && open_stager(s);
    for (int pass = 0; pass < PASSES; pass++) {
        pthread_barrier_wait(s->barrier);
        good = good && stage(s);
        pthread_barrier_wait(s->barrier);
    }
    if (!good)
        atomic_store(&s->transfer->failed, true);
    close_stager(s);
    return NULL;
}

/* ---- All threads ---- */

/* Milliseconds of the best pass; negative for a failure. */
static double transfer_ms(struct transfer *t, int threads)
{
    struct stager stagers[MOST_THREADS] = {0};
    pthread_barrier_t barrier;
    double best = -1;
    int started = 0;
    atomic_store(&t->failed, false);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (; started < threads; started++) {
        stagers[started].transfer = t;
        stagers[started].barrier = &barrier;
        if (pthread_create(&stagers[started].thread, NULL, run, &stagers[started]) != 0)
            break;
    }
    if (started < threads) {
        /* Those that run wait for this one; the process ends with the failure said. */
        report_missing("staged", "no thread can be started");
        _Exit(1);
    }
    for (int pass = 0; pass < PASSES; pass++) {
        atomic_store(&t->next, 0);
        double start = accel_now_ms();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        double ms = accel_now_ms() - start;
        if (pass > 0)
            best = measure_best(best, ms);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(stagers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    return atomic_load(&t->failed) ? -1 : best;
}

/* Both ways, by so many threads. kind: what is behind the name of the measurement. */
static void measure_staged(struct transfer *t, size_t size, int threads, const char *kind)
{
    char name[64];
    t->chunks = size / t->chunk;
    for (int up = 1; up >= (t->fetched ? 1 : 0); up--) {
        t->up = up;
        snprintf(name, sizeof name, "staged_%s_%d_threads%s", up ? "up" : "down", threads, kind);
        report_rate(name, transfer_ms(t, threads), size);
    }
}

void measure_staged_copies(bool quick)
{
    const size_t size = quick ? 16 << 20 : 512 << 20;
    struct transfer t = {.chunk = USUAL_CHUNK, .host = touched_memory(size, false)};
    if (!t.host || !CUDA_OK(cuMemAlloc, &t.device, size)) {
        report_missing("staged", t.host ? "" : "no memory");
        if (t.host)
            touched_memory_free(t.host, size);
        return;
    }
    for (int threads = 1; threads <= MOST_THREADS; threads *= 2)
        measure_staged(&t, size, threads, "");
#ifdef __x86_64__
    t.streamed = true;
    measure_staged(&t, size, USUAL_THREADS, "_streamed");
    t.streamed = false;
    t.fetched = true;
    measure_staged(&t, size, USUAL_THREADS, "_fetched");
    t.chunk = 2 * USUAL_CHUNK;
    measure_staged(&t, size, USUAL_THREADS, "_2048_kib_fetched");
    t.fetched = false;
#endif
    for (t.chunk = USUAL_CHUNK / 8; t.chunk <= 4 * USUAL_CHUNK; t.chunk *= 2) {
        char kind[32];
        snprintf(kind, sizeof kind, "_%zu_kib", t.chunk >> 10);
        if (t.chunk != USUAL_CHUNK)
            measure_staged(&t, size, USUAL_THREADS, kind);
    }
    t.chunk = HUGE_PAGE;
    t.huge = true;
    measure_staged(&t, size, USUAL_THREADS, "_2048_kib_huge");
    CUDA_OK(cuMemFree, t.device);
    touched_memory_free(t.host, size);
}
