/*
 * tall PERIODS: calls with m or k beyond 2^31, in 64-bit integers. An operand of 8 GB is three pieces of memory: one for its first
 * period, one for its last, and one that is mapped over and over between them, where results are then the same, too. Prints the number of
 * rows, "wrong: NAME" for each call that is not right, and "done".
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef const char *chars;
typedef const int64_t *ints;

void sgemm_(chars, chars, ints, ints, ints, const float *, const float *, ints, const float *, ints,
            const float *, float *, ints, size_t, size_t);

enum { PERIOD = 1 << 20, PERIOD_BYTES = PERIOD * (int)sizeof(float) };

static int64_t rows;

enum { FIRST, BETWEEN, LAST, PIECES };

static int piece_of(int period, int periods)
{
    return period == 0 ? FIRST : period < periods - 1 ? BETWEEN : LAST;
}

/* NULL where there is no room. */
static float *repeat(int periods)
{
    const size_t bytes = (size_t)periods * PERIOD_BYTES;
    const int file = memfd_create("period", MFD_CLOEXEC);
    char *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || ftruncate(file, PIECES * PERIOD_BYTES) != 0 || range == MAP_FAILED)
        return NULL;
    for (int i = 0; i < periods; i++)
        if (mmap(range + (size_t)i * PERIOD_BYTES, PERIOD_BYTES, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, file,
                 (off_t)piece_of(i, periods) * PERIOD_BYTES) == MAP_FAILED)
            return NULL;
    close(file);
    return (float *)(void *)range;
}

static float value(int64_t i, int piece)
{
    return (float)(1 + i % 1021 + piece);
}

static int64_t start_of(int piece)
{
    return piece == FIRST ? 0 : piece == BETWEEN ? PERIOD : rows - PERIOD;
}

static void set(float *x)
{
    for (int piece = FIRST; piece < PIECES; piece++)
        for (int64_t i = 0; i < PERIOD; i++)
            x[start_of(piece) + i] = value(i, piece);
}

static bool is_right(const float *x, float factor)
{
    for (int piece = FIRST; piece < PIECES; piece++)
        for (int64_t i = 0; i < PERIOD; i++)
            if (x[start_of(piece) + i] != factor * value(i, piece))
                return false;
    return true;
}

int main(int argc, char **argv)
{
    const float one = 1, none = 0, three = 3;
    const int64_t single = 1;
    const int periods = argc > 1 ? atoi(argv[1]) : 0; /* at least 3 */
    float *a = periods > 2 ? repeat(periods) : NULL, *c = periods > 2 ? repeat(periods) : NULL;
    if (!a || !c) {
        fprintf(stderr, "tall PERIODS: no room for so many\n");
        return 2;
    }
    rows = (int64_t)periods * PERIOD;
    printf("rows %lld\n", (long long)rows);
    set(a);
    sgemm_("N", "N", &rows, &single, &single, &one, a, &rows, &three, &single, &none, c, &rows, 1,
           1);
    if (!is_right(c, 3))
        printf("wrong: m\n");

    /* One row of as many columns, of which one in each period is not 0: the sum is exact. */
    float sum = 5, expected = 5;
    for (int piece = FIRST; piece < PIECES; piece++) {
        memset(c + start_of(piece), 0, PERIOD_BYTES);
        c[start_of(piece) + PERIOD - 1] = 2;
    }
    for (int i = 0; i < periods; i++)
        expected += 2 * value(PERIOD - 1, piece_of(i, periods));
    sgemm_("T", "N", &single, &single, &rows, &one, a, &rows, c, &rows, &one, &sum, &single, 1, 1);
    if (sum != expected)
        printf("wrong: k, %g is not %g\n", (double)sum, (double)expected);
    printf("done\n");
    return 0;
}
