#include "block_paces.h"

_Static_assert((PACE_USUAL - PACE_LEAST) % PACE_STEP == 0 && PACE_USUAL <= PACE_MOST,
               "the usual size is measured, too");

double block_pace(const struct block_paces *x, int64_t rows)
{
    const int64_t size = (rows + PACE_STEP - 1) / PACE_STEP - PACE_LEAST / PACE_STEP,
                  number = size < 0       ? 0
                           : size < PACES ? size
                                          : PACES - 1;
    return x->of[number] > 0 ? (double)x->of[number] : 1;
}

double block_pace_highest(const struct block_paces *x)
{
    double highest = 1;
    for (int i = 0; i < PACES; i++)
        highest = (double)x->of[i] > highest ? (double)x->of[i] : highest;
    return highest;
}

/* Returns the rate of products of this size, as a part of one that fills the device. */
static double share_of_full(int64_t rows, double half)
{
    const double shortest = (double)(rows < PACE_COLS ? rows : PACE_COLS);
    return shortest / (shortest + half);
}

bool block_paces_by(struct block_paces *x, const double ms[PACES], double half)
{
    double rate[PACES];
    *x = (struct block_paces){{0}};
    for (int i = 0; i < PACES; i++) {
        const int64_t rows = PACE_LEAST + i * PACE_STEP;
        if (!(ms[i] > 0))
            return false;
        rate[i] = (double)rows / ms[i] / share_of_full(rows, half);
    }
    for (int i = 0; i < PACES; i++) {
        const double pace = rate[i] / rate[(PACE_USUAL - PACE_LEAST) / PACE_STEP];
        x->of[i] = (float)(pace < PACE_SLOWEST   ? PACE_SLOWEST
                           : pace > PACE_FASTEST ? PACE_FASTEST
                                                 : pace);
    }
    return true;
}
