#include "block_paces.h"

_Static_assert((PACE_USUAL - PACE_LEAST) % PACE_STEP == 0 && PACE_USUAL <= PACE_MOST,
               "the usual size is measured, too");

const int64_t pace_widths[PACE_WIDTHS] = {1408, 2048, PACE_WIDEST};

void block_paces_settle(struct block_paces *x)
{
    float sum = 0;
    int count = 0;
    x->highest = 0;
    for (int i = 0; i < PACES; i++) {
        x->highest = x->of[i] > x->highest ? x->of[i] : x->highest;
        sum += x->of[i];
        count += x->of[i] > 0;
    }
    x->beyond = count > 0 ? sum / (float)count : 0;
}

double block_pace(const struct block_paces *x, int64_t rows)
{
    const int64_t size = (rows + PACE_STEP - 1) / PACE_STEP - PACE_LEAST / PACE_STEP;
    const float pace = size >= PACES ? x->beyond : x->of[size < 0 ? 0 : size];
    return pace > 0 ? (double)pace : 1;
}

double block_pace_highest(const struct block_paces *x)
{
    return x->highest > 1 ? (double)x->highest : 1;
}

/* Returns in what time products of this size are computed at the usual pace, over that of any other
 * number of rows. */
static double even_time(int64_t rows, double half)
{
    double sum = 0;
    for (int i = 0; i < PACE_WIDTHS; i++) {
        const int64_t cols = pace_widths[i], smaller = rows < cols ? rows : cols;
        const double shortest = (double)(smaller < PACE_DEPTH ? smaller : PACE_DEPTH);
        sum += (double)rows * (double)cols * (shortest + half) / shortest;
    }
    return sum;
}

static double kept_within(double pace)
{
    return pace < PACE_SLOWEST ? PACE_SLOWEST : pace > PACE_FASTEST ? PACE_FASTEST : pace;
}

bool block_paces_by(struct block_paces *x, const double ms[PACES], double half)
{
    const double usual = ms[(PACE_USUAL - PACE_LEAST) / PACE_STEP] / even_time(PACE_USUAL, half);
    *x = (struct block_paces){.highest = 0};
    for (int i = 0; i < PACES; i++)
        if (!(ms[i] > 0))
            return false;
    for (int i = 0; i < PACES; i++) {
        const double pace = usual * even_time(pace_rows(i), half) / ms[i];
        x->of[i] = (float)((int)(kept_within(pace) * PACE_PARTS + 0.5)) / PACE_PARTS;
    }
    block_paces_settle(x);
    return true;
}
