/*
 * Copies of pageable memory through small pinned buffers, by 1 to 16 threads: each packs a chunk into a slot while its
 * last ones are on the bus (field notes, section 6: 1 MiB chunks, three slots a thread).
 */
#include "driver.h"
#include "base/clock.h"
#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 3, CHUNK = 1 << 20, MOST_THREADS = 16, PASSES = 3 };

/* One transfer, which threads share. */
struct transfer {
    CUdeviceptr device;
    char *host;
    size_t chunks;
    bool up;
    atomic_size_t next;
    atomic_bool failed;
};

struct slot {
    char *pinned;
    CUevent done;
    size_t chunk; /* on the bus; SIZE_MAX: none */
};

struct stager {
    pthread_t thread;
    struct transfer *transfer;
    pthread_barrier_t *barrier;
    CUstream stream;
    struct slot slot[SLOTS];
};

/* ---- One thread ---- */

static bool open_stager(struct stager *s)
{
    if (!CUDA_OK(cuStreamCreate, &s->stream, CU_STREAM_NON_BLOCKING))
        return false;
    for (int i = 0; i < SLOTS; i++) {
        void *pinned;
        if (!CUDA_OK(cuMemHostAlloc, &pinned, CHUNK, 0))
            return false;
        s->slot[i].pinned = pinned;
        memset(pinned, 1, CHUNK);
        if (!CUDA_OK(cuEventCreate, &s->slot[i].done, CU_EVENT_DISABLE_TIMING))
            return false;
    }
    return true;
}

static void close_stager(struct stager *s)
{
    for (int i = 0; i < SLOTS; i++) {
        if (s->slot[i].done)
            CUDA_OK(cuEventDestroy, s->slot[i].done);
        if (s->slot[i].pinned)
            CUDA_OK(cuMemFreeHost, s->slot[i].pinned);
    }
    if (s->stream)
        CUDA_OK(cuStreamDestroy, s->stream);
}

/* Waits for what is on the bus in a slot; what came down is brought to its place. */
static bool finish(struct stager *s, struct slot *slot)
{
    const struct transfer *t = s->transfer;
    if (slot->chunk == SIZE_MAX)
        return true;
    if (!CUDA_OK(cuEventSynchronize, slot->done))
        return false;
    if (!t->up)
        memcpy(t->host + slot->chunk * CHUNK, slot->pinned, CHUNK);
    slot->chunk = SIZE_MAX;
    return true;
}

static bool begin(struct stager *s, struct slot *slot, size_t chunk)
{
    const struct transfer *t = s->transfer;
    CUdeviceptr at = t->device + chunk * CHUNK;
    if (t->up)
        memcpy(slot->pinned, t->host + chunk * CHUNK, CHUNK);
    slot->chunk = chunk;
    return (t->up ? CUDA_OK(cuMemcpyHtoDAsync, at, slot->pinned, CHUNK, s->stream)
                  : CUDA_OK(cuMemcpyDtoHAsync, slot->pinned, at, CHUNK, s->stream)) &&
           CUDA_OK(cuEventRecord, slot->done, s->stream);
}

static bool stage(struct stager *s)
{
    int at = 0;
    for (int i = 0; i < SLOTS; i++)
        s->slot[i].chunk = SIZE_MAX;
    for (size_t chunk; (chunk = atomic_fetch_add(&s->transfer->next, 1)) < s->transfer->chunks;
         at = (at + 1) % SLOTS)
        if (!finish(s, &s->slot[at]) || !begin(s, &s->slot[at], chunk))
            return false;
    for (int i = 0; i < SLOTS; i++, at = (at + 1) % SLOTS)
        if (!finish(s, &s->slot[at]))
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
        pthread_barrier_wait(&barrier);
        double start = accel_now_ms();
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

void measure_staged_copies(bool quick)
{
    const size_t size = quick ? 16 << 20 : 512 << 20;
    struct transfer t = {.chunks = size / CHUNK, .host = touched_memory(size, false)};
    if (!t.host || !CUDA_OK(cuMemAlloc, &t.device, size)) {
        report_missing("staged", t.host ? "" : "no memory");
        if (t.host)
            touched_memory_free(t.host, size);
        return;
    }
    for (int up = 1; up >= 0; up--)
        for (int threads = 1; threads <= MOST_THREADS; threads *= 2) {
            char name[64];
            t.up = up;
            snprintf(name, sizeof name, "staged_%s_%d_threads", up ? "up" : "down", threads);
            double ms = transfer_ms(&t, threads);
            if (ms > 0)
                report(name, (double)size * 1e-6 / ms, "GB/s");
            else
                report_missing(name, "");
        }
    CUDA_OK(cuMemFree, t.device);
    touched_memory_free(t.host, size);
}
