#define _GNU_SOURCE
#include "folds.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void swap(int *a, int *b)
{
    const int kept = *a;
    *a = *b;
    *b = kept;
}

void accel_shuffle_by_rand(int *place, int count, int seed)
{
    (void)seed; /* rand() goes on from where the program has left it */
    for (int i = 0; i < count; i++)
        swap(&place[i], &place[i + rand() % (count - i)]);
}

int accel_fold_start(int fold, int rows, int folds)
{
    return (int)((int64_t)fold * rows / folds);
}

/* ---- rand() ---- */

/* The bytes of glibc's states, by their type (initstate(3)), which the first word tells: type + 5 *
 * position. */
static size_t size_of_state(const char *state)
{
    static const uint16_t sizes[] = {8, 32, 64, 128, 256};
    int32_t word;
    memcpy(&word, state, sizeof word);
    return sizes[word % 5];
}

/* Gives rand() another state: that completes its own, which is returned. */
static char *take_state(char other[128])
{
    return initstate(1, other, 128);
}

void accel_rand_keep(struct accel_rand *kept)
{
    _Alignas(8) char other[128];
    char *state = take_state(other);
    memcpy(kept->state, state, size_of_state(state));
    setstate(state);
}

void accel_rand_put_back(const struct accel_rand *kept)
{
    _Alignas(8) char other[128];
    char *state = take_state(other);
    memcpy(state, kept->state, size_of_state(kept->state));
    setstate(state);
}
