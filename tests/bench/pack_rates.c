/*
 * How fast a slot is packed and unpacked: prints for each shape its name, the direction, and the time of one byte over that of
 * contiguous memory, taken in turns with it, a line for each pair.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
    return 0;
}
