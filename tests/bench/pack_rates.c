/*
 * How fast a slot is packed and unpacked: prints for each shape its name, the direction, and the time of one byte over that of
 * contiguous memory, taken in turns with it, a line for each pair. And the same for a large matrix that the crew packs and unpacks,
 * over the time that the same threads need for memcpy().
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crew.h"
#include "gpu/pack.h"

enum { SLOT_BYTES = 1 << 20, HOST_BYTES = 6 * SLOT_BYTES, PAIRS = 61, REPEATS = 24 };

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

/* Nanoseconds for each byte that is copied. The copies go through all of the HOST_BYTES in turn, whatever the shape: so each shape
 * finds the same share of them in the caches. */
static double cost(const struct lane_rectangle *shape, char *packed, bool up)
{
    struct lane_rectangle r = *shape;
    const struct pack_piece all = {0, r.cols, 0, r.rows};
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

enum { LARGE_BYTES = 96 << 20, LARGE_PAIRS = 15 };

struct transfer {
    struct lane_rectangle r;
    char *slots;
    bool up, plain;
};

static void copy_plainly(void *context, int64_t number)
{
    const struct transfer *t = context;
    char *slot = t->slots + number % CREW_ITEMS * SLOT_BYTES,
         *host = t->r.host + number * SLOT_BYTES;
    memcpy(t->up ? slot : host, t->up ? host : slot, SLOT_BYTES);
}

static void copy_piece(void *context, int64_t number)
{
    const struct transfer *t = context;
    const struct pack_piece piece = pack_piece(&t->r, t->r.rows, SLOT_BYTES, number);
    char *slot = t->slots + number % CREW_ITEMS * SLOT_BYTES;
    if (t->up)
        pack_from_host(slot, &t->r, &piece, t->r.rows);
    else
        pack_to_host(&t->r, &piece, slot, t->r.rows);
}

/* Nanoseconds for each byte. */
static double crew_cost(struct transfer *t)
{
    struct crew_job job = {.item = t->plain ? copy_plainly : copy_piece, .context = t};
    const int64_t count =
        t->plain ? LARGE_BYTES / SLOT_BYTES : pack_count(&t->r, t->r.rows, SLOT_BYTES);
    double start = now_ns();
    crew_begin(&job, true);
    for (int64_t done = 0; done < count; done = crew_done(&job)) {
        crew_open(&job, done + CREW_ITEMS < count ? done + CREW_ITEMS : count);
        crew_finish(&job, done + 1);
    }
    crew_end(&job);
    return (now_ns() - start) /
           (t->plain ? LARGE_BYTES : (double)(t->r.rows * t->r.cols * t->r.size));
}

static void time_crew(void)
{
    char *host = memory(LARGE_BYTES), *slots = memory(CREW_ITEMS * SLOT_BYTES);
    const struct {
        const char *name;
        int64_t rows, ld;
    } shapes[] = {{"crew", 1 << 12, 1 << 12}, {"crew1000", 1000, 1024}, {"crew64", 64, 72}};
    struct transfer plain = {.plain = true, .slots = slots, .r.host = host};
    for (int pair = -1; pair < LARGE_PAIRS; pair++)
        for (int up = 0; up < 2; up++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                struct transfer t = {.up = up, .slots = slots};
                t.r = lane_whole(host, shapes[i].rows, LARGE_BYTES / 8 / shapes[i].ld, shapes[i].ld,
                                 8);
                t.r.streamed = !up;
                plain.up = up;
                double shape = crew_cost(&t), base = crew_cost(&plain);
                if (pair >= 0)
                    printf("%s %s %.4f\n", shapes[i].name, up ? "up" : "down", shape / base);
            }
    free(host);
    free(slots);
}

int main(void)
{
    const int64_t size = sizeof(double), n = SLOT_BYTES / size;
    char *host = memory(HOST_BYTES), *packed = memory(SLOT_BYTES);
    const struct lane_rectangle contiguous = lane_whole(host, n, 1, n, size);
    const struct {
        const char *name;
        struct lane_rectangle r;
    } shapes[] = {{"strided", lane_whole(host, 1, n, 3, size)},
                  {"rows8", lane_whole(host, 8, n / 8, 16, size)},
                  {"rows32", lane_whole(host, 32, n / 32, 64, size)}};
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
    time_crew();
    return 0;
}
