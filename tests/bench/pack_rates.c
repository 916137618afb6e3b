/*
 * How fast a buffer is packed and unpacked: prints for each shape its name, the direction, and the
 * time of one byte over that of contiguous memory, taken in turns with it, a line for each pair.
 * And the same for a large matrix that the copy pool packs and unpacks, over the time that the same
 * threads need for memcpy().
 */
#define _GNU_SOURCE /* CPU_SET() */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread/copy_pool.h"
#include "gpu/pack/pack.h"

enum {
    BUFFER_BYTES = 1 << 20,
    BUFFERS = 32,
    HOST_BYTES = 6 * BUFFER_BYTES,
    PAIRS = 61,
    REPEATS = 24
};

static char *memory(size_t bytes)
{
    char *x = malloc(bytes);
    if (!x)
        exit(1);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (char)i;
    return x;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds for each byte that is copied. The copies go through all of the HOST_BYTES in turn,
 * whatever the shape: so each shape finds the same share of them in the caches. */
static double cost(const struct host_rectangle *shape, char *packed, bool up)
{
    struct host_rectangle r = *shape;
    const struct pack_chunk all = {0, r.cols, 0, r.rows};
    const int64_t span = r.ld * r.cols * r.size, places = HOST_BYTES / span;
    double start = now_ns();
    for (int i = 0; i < REPEATS; i++) {
        r.host = shape->host + i % places * span;
        if (up)
            pack_from_host(packed, &r, &all, r.rows);
        else
            pack_to_host(&r, &all, packed, r.rows);
    }
    return (now_ns() - start) / REPEATS / (double)(r.rows * r.cols * r.size);
}

/* ---- A large matrix ---- */

enum { LARGE_BYTES = 96 << 20, LARGE_PAIRS = 9, LINE = 64, DOUBLE = sizeof(double) };

struct transfer {
    struct host_rectangle r;
    char *buffers;
    bool up, plain;
};

static void copy_plainly(void *context, int64_t number)
{
    const struct transfer *t = context;
    char *buffer = t->buffers + number % BUFFERS * BUFFER_BYTES,
         *host = t->r.host + number * BUFFER_BYTES;
    memcpy(t->up ? buffer : host, t->up ? host : buffer, BUFFER_BYTES);
}

static void copy_chunk(void *context, int64_t number)
{
    const struct transfer *t = context;
    const struct pack_chunk chunk = pack_chunk(&t->r, t->r.rows, BUFFER_BYTES, number);
    char *buffer = t->buffers + number % BUFFERS * BUFFER_BYTES;
    if (t->up)
        pack_from_host(buffer, &t->r, &chunk, t->r.rows);
    else
        pack_to_host(&t->r, &chunk, buffer, t->r.rows);
}

/* Nanoseconds. */
static double copy_pool_time(struct transfer *t)
{
    struct copy_pool_job job = {.task = t->plain ? copy_plainly : copy_chunk, .context = t};
    const int64_t count =
        t->plain ? LARGE_BYTES / BUFFER_BYTES : pack_count(&t->r, t->r.rows, BUFFER_BYTES);
    double start = now_ns();
    copy_pool_begin(&job, true);
    for (int64_t done = 0; done < count; done = copy_pool_done(&job)) {
        copy_pool_open(&job, done + BUFFERS < count ? done + BUFFERS : count);
        copy_pool_finish(&job, done + 1);
    }
    copy_pool_end(&job);
    return now_ns() - start;
}

/* The bytes of the cache's lines that columns of doubles lie in, if they begin at lines, or are
 * apart by less than a line. */
static double bytes_of_lines(const struct host_rectangle *r)
{
    const int64_t gap = (r->ld - r->rows) * DOUBLE, column = r->rows * DOUBLE;
    return (double)r->cols *
           (double)(gap < LINE ? r->ld * DOUBLE : (column + LINE - 1) / LINE * LINE);
}

/* Lets the process use the first `count` CPUs of those that it may use. Returns false if it has
 * fewer. */
static bool use_cpus(const cpu_set_t *all, int count)
{
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int cpu = 0, left = count; left > 0; cpu++) {
        if (cpu == CPU_SETSIZE)
            return false;
        if (CPU_ISSET(cpu, all)) {
            CPU_SET(cpu, &some);
            left--;
        }
    }
    return sched_setaffinity(0, sizeof some, &some) == 0;
}

/* Over memcpy() of as many lines by the same threads. */
static void time_copy_pool(int threads, char *host, char *buffers)
{
    const struct {
        int64_t rows, ld;
    } shapes[] = {{1 << 12, 1 << 12},
                  {1000, 1024},
                  {64, 72},
                  {32, 40},
                  {16, 24},
                  {8, 16},
                  {4, 6},
                  {2, 3},
                  {1, 3},
                  {1, 1024}};
    struct transfer plain = {.plain = true, .buffers = buffers, .r.host = host};
    for (int pair = -1; pair < LARGE_PAIRS; pair++)
        for (int up = 0; up < 2; up++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                struct transfer t = {.up = up, .buffers = buffers};
                t.r = host_whole(host, shapes[i].rows, LARGE_BYTES / DOUBLE / shapes[i].ld,
                                 shapes[i].ld, DOUBLE);
                t.r.streamed = !up;
                plain.up = up;
                double shape = copy_pool_time(&t) / bytes_of_lines(&t.r),
                       base = copy_pool_time(&plain) / LARGE_BYTES;
                if (pair >= 0)
                    printf("%d/%d/%d %s %.4f\n", threads, (int)shapes[i].rows, (int)shapes[i].ld,
                           up ? "up" : "down", shape / base);
            }
}

static void time_copy_pools(void)
{
    char *host = memory(LARGE_BYTES), *buffers = memory(BUFFERS * BUFFER_BYTES);
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        exit(1);
    for (int threads = 1; threads <= 4; threads *= 2)
        if (use_cpus(&all, threads))
            time_copy_pool(threads, host, buffers);
    free(host);
    free(buffers);
}

int main(void)
{
    const int64_t size = sizeof(double), n = BUFFER_BYTES / size;
    char *host = memory(HOST_BYTES), *packed = memory(BUFFER_BYTES);
    const struct host_rectangle contiguous = host_whole(host, n, 1, n, size);
    const struct {
        const char *name;
        struct host_rectangle r;
    } shapes[] = {{"strided", host_whole(host, 1, n, 3, size)},
                  {"rows8", host_whole(host, 8, n / 8, 16, size)},
                  {"rows32", host_whole(host, 32, n / 32, 64, size)},
                  /* Where the buffer is in its page, and 16 bytes beyond. */
                  {"page0", host_whole(host, 8192, n / 8704, 8704, size)},
                  {"page16", host_whole(host + 16, 8192, n / 8704, 8704, size)}};
    for (int pair = -1; pair < PAIRS; pair++) /* the first warms up */
        for (int up = 0; up < 2; up++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                bool first = pair % 2 == 0;
                double shape = first ? cost(&shapes[i].r, packed, up) : 0;
                double base = cost(&contiguous, packed, up);
                if (!first)
                    shape = cost(&shapes[i].r, packed, up);
                if (pair >= 0)
                    printf("%s %s %.4f\n", shapes[i].name, up ? "up" : "down", shape / base);
            }
    free(host);
    free(packed);
    time_copy_pools();
    return 0;
}
