/*
 * What keeps copies through buffers from the link's rate? Pinned buffers go up or down piece by
 * piece, as libaccel's do, each with an event behind it, by one stream and by two in turn, and
 * nothing is packed: what the link gives to pieces of such a size. The same beside threads that
 * copy pageable memory to buffers of their own, or back: what the link loses to their use of the
 * memory. And what these threads copy by themselves, and beside the link: what there is to send.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { BUFFERS = 12, PIECE = 4 << 20, STREAMS = 2, ATTEMPTS = 4, MOST_THREADS = 11 };

struct link {
    CUdeviceptr device;
    char *buffer[BUFFERS]; /* PIECE bytes each, pinned */
    CUstream stream[STREAMS];
    CUevent done[BUFFERS];
    size_t bytes;   /* of all pieces */
    double call_us; /* the calling thread's time for a piece, in the last transfer */
};

/* ---- The link ---- */

static bool open_link(struct link *l, size_t bytes)
{
    *l = (struct link){.bytes = bytes};
    bool good = CUDA_OK(cuMemAlloc, &l->device, bytes);
    for (int i = 0; good && i < STREAMS; i++)
        good = CUDA_OK(cuStreamCreate, &l->stream[i], CU_STREAM_NON_BLOCKING);
    for (int i = 0; good && i < BUFFERS; i++) {
        void *buffer = NULL;
        good = CUDA_OK(cuMemHostAlloc, &buffer, PIECE, 0) &&
               CUDA_OK(cuEventCreate, &l->done[i], CU_EVENT_DISABLE_TIMING);
        l->buffer[i] = buffer;
        if (buffer)
            memset(buffer, 1, PIECE);
    }
    return good;
}

static void close_link(struct link *l)
{
    for (int i = 0; i < BUFFERS; i++) {
        if (l->done[i])
            CUDA_OK(cuEventDestroy, l->done[i]);
        if (l->buffer[i])
            CUDA_OK(cuMemFreeHost, l->buffer[i]);
    }
    for (int i = 0; i < STREAMS; i++)
        if (l->stream[i])
            CUDA_OK(cuStreamDestroy, l->stream[i]);
    if (l->device)
        CUDA_OK(cuMemFree, l->device);
}

/* Sends all pieces, and waits. Returns the milliseconds; negative for a failure. */
static double transfer_ms(struct link *l, bool up, size_t piece, int streams)
{
    const size_t pieces = l->bytes / piece;
    const double start = accel_now_ms();
    for (size_t i = 0; i < pieces; i++) {
        char *buffer = l->buffer[i % BUFFERS];
        const CUstream stream = l->stream[i % (size_t)streams];
        const CUdeviceptr at = l->device + i * piece;
        if (!(up ? CUDA_OK(cuMemcpyHtoDAsync, at, buffer, piece, stream)
                 : CUDA_OK(cuMemcpyDtoHAsync, buffer, at, piece, stream)) ||
            !CUDA_OK(cuEventRecord, l->done[i % BUFFERS], stream))
            return -1;
    }
    l->call_us = (accel_now_ms() - start) * 1e3 / (double)pieces;
    for (int i = 0; i < streams; i++)
        if (!CUDA_OK(cuStreamSynchronize, l->stream[i]))
            return -1;
    return accel_now_ms() - start;
}

static double best_transfer_ms(struct link *l, bool up, size_t piece, int streams)
{
    double best = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        const double ms = transfer_ms(l, up, piece, streams);
        if (ms < 0)
            return -1;
        if (i > 0)
            best = measure_best(best, ms);
    }
    return best;
}

static void measure_alone(struct link *l)
{
    char name[64];
    for (int up = 1; up >= 0; up--)
        for (size_t piece = PIECE / 4; piece <= PIECE; piece *= 2)
            for (int streams = 1; streams <= STREAMS; streams++) {
                const double ms = best_transfer_ms(l, up, piece, streams);
                snprintf(name, sizeof name, "pieces_%s_%zu_kib%s", up ? "up" : "down", piece >> 10,
                         streams > 1 ? "_2_streams" : "");
                report_rate(name, ms, l->bytes);
                if (ms > 0 && piece == PIECE && streams == 1) {
                    snprintf(name, sizeof name, "pieces_%s_call", up ? "up" : "down");
                    report(name, l->call_us, "us");
                }
            }
}

/* ---- Threads that copy ---- */

struct crowd {
    char *host; /* pageable, a part for each thread */
    size_t part;
    bool pack; /* from pageable memory to pinned; else back */
    atomic_bool stop;
    atomic_size_t copied; /* bytes */
    atomic_int ready;
};

struct member {
    struct crowd *crowd;
    pthread_t thread;
    char *part, *buffer;
    bool started;
};

static void *copy_on(void *argument)
{
    struct member *m = argument;
    struct crowd *c = m->crowd;
    size_t at = 0;
    atomic_fetch_add(&c->ready, 1);
    while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        if (c->pack)
            memcpy(m->buffer, m->part + at, PIECE);
        else
            memcpy(m->part + at, m->buffer, PIECE);
        atomic_fetch_add_explicit(&c->copied, PIECE, memory_order_relaxed);
        at = at + 2 * PIECE <= c->part ? at + PIECE : 0;
    }
    return NULL;
}

/* Starts so many threads, and returns when all of them copy. */
static bool start_crowd(struct crowd *c, struct member *member, int threads)
{
    bool good = true;
    atomic_store(&c->stop, false);
    atomic_store(&c->copied, 0);
    atomic_store(&c->ready, 0);
    for (int i = 0; good && i < threads; i++) {
        member[i].crowd = c;
        member[i].part = c->host + (size_t)i * c->part;
        member[i].started = good =
            pthread_create(&member[i].thread, NULL, copy_on, &member[i]) == 0;
    }
    while (good && atomic_load(&c->ready) < threads)
        ;
    return good;
}

static void stop_crowd(struct crowd *c, struct member *member, int threads)
{
    atomic_store(&c->stop, true);
    for (int i = 0; i < threads; i++) {
        if (member[i].started)
            pthread_join(member[i].thread, NULL);
        member[i].started = false;
    }
}

/* What the threads copy while nothing is on the link, in bytes for each millisecond: some pieces
 * each, also on a machine of few CPUs. */
static double crowd_rate(struct crowd *c)
{
    enum { DURING_MS = 50 };
    const size_t before = atomic_load(&c->copied);
    const double start = accel_now_ms();
    while (accel_now_ms() - start < DURING_MS)
        ;
    return (double)(atomic_load(&c->copied) - before) / (accel_now_ms() - start);
}

static void measure_beside(struct link *l, struct crowd *c, struct member *member, int threads)
{
    char name[64];
    for (int up = 1; up >= 0; up--) {
        const char *way = up ? "up" : "down", *does = up ? "packed" : "unpacked";
        c->pack = up;
        if (!start_crowd(c, member, threads)) {
            stop_crowd(c, member, threads);
            report_missing("pieces_beside", "no thread can be started");
            return;
        }
        const double rate = crowd_rate(c);
        const size_t before = atomic_load(&c->copied);
        const double start = accel_now_ms();
        const double ms = best_transfer_ms(l, up, PIECE, 1);
        const double during = accel_now_ms() - start;
        const size_t copied = atomic_load(&c->copied) - before;
        stop_crowd(c, member, threads);
        snprintf(name, sizeof name, "pieces_%s_beside_%d_threads", way, threads);
        report_rate(name, ms, l->bytes);
        snprintf(name, sizeof name, "%s_by_%d_threads", does, threads);
        report(name, rate * 1e-6, "GB/s");
        snprintf(name, sizeof name, "%s_by_%d_threads_beside", does, threads);
        report_rate(name, during, copied);
    }
}

void measure_pieces(bool quick)
{
    static const int threads[] = {4, 8, MOST_THREADS};
    const size_t bytes = quick ? 16 << 20 : 512 << 20, part = quick ? 2 * PIECE : 64 << 20;
    struct link l;
    struct member member[MOST_THREADS] = {{0}};
    struct crowd crowd = {.part = part, .host = touched_memory(MOST_THREADS * part, false)};
    bool good = open_link(&l, bytes);
    if (good)
        measure_alone(&l);
    else
        report_missing("pieces", "");
    for (int i = 0; good && i < MOST_THREADS; i++) {
        void *buffer = NULL;
        good = CUDA_OK(cuMemHostAlloc, &buffer, PIECE, 0);
        member[i].buffer = buffer;
        if (buffer)
            memset(buffer, 1, PIECE);
    }
    if (good && crowd.host)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
            measure_beside(&l, &crowd, member, threads[i]);
    else
        report_missing("pieces_beside", crowd.host ? "" : "no memory");
    for (int i = 0; i < MOST_THREADS; i++)
        if (member[i].buffer)
            CUDA_OK(cuMemFreeHost, member[i].buffer);
    close_link(&l);
    if (crowd.host)
        touched_memory_free(crowd.host, MOST_THREADS * part);
}
