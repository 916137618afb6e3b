#define _GNU_SOURCE
#include "log_sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int class_of(int64_t size)
{
    return size > 0 ? 1 + ilogb((double)size) / 2 : 0;
}

const char *log_sizes(char text[LOG_SIZES_BYTES], const struct log_row *row)
{
    *text = 0;
    if (row->high > 0)
        snprintf(text, LOG_SIZES_BYTES, "%lld", (long long)row->low);
    if (row->high > row->low)
        snprintf(text + strlen(text), LOG_SIZES_BYTES - strlen(text), "\u2013%lld",
                 (long long)row->high);
    return text;
}

static bool is_row_of(const struct log_row *row, const struct log_decision *decision)
{
    return row->class == class_of(decision->largest) && strcmp(row->name, decision->name) == 0 &&
           strncmp(row->ran, decision->ran, sizeof row->ran - 1) == 0 &&
           strncmp(row->why, decision->why, sizeof row->why - 1) == 0;
}

static unsigned hash(unsigned h, const char *text)
{
    while (*text)
        h = (h ^ (unsigned char)*text++) * 16777619u;
    return h;
}

/* Returns the row of a decision, a new one if there is none; NULL if there is no room. */
static struct log_row *find_row(struct log_sums *sums, const struct log_decision *decision)
{
    const unsigned places = sizeof sums->place / sizeof *sums->place;
    unsigned at = hash(hash((unsigned)class_of(decision->largest), decision->name), decision->why);
    for (;; at++) {
        int *place = &sums->place[at % places];
        if (*place == 0 && sums->rows == LOG_ROWS)
            return NULL;
        if (*place == 0) {
            struct log_row *row = &sums->row[sums->rows++];
            *place = sums->rows;
            *row = (struct log_row){.class = class_of(decision->largest),
                                    .side = decision->side,
                                    .low = decision->largest};
            snprintf(row->name, sizeof row->name, "%s", decision->name);
            snprintf(row->ran, sizeof row->ran, "%s", decision->ran);
            snprintf(row->why, sizeof row->why, "%s", decision->why);
            return row;
        }
        if (is_row_of(&sums->row[*place - 1], decision))
            return &sums->row[*place - 1];
    }
}

static void add(struct log_sum *sum, const struct log_decision *decision)
{
    const bool timed = decision->ms >= 0;
    sum->calls += decision->calls;
    sum->up_mb += decision->up_mb;
    sum->down_mb += decision->down_mb;
    sum->kept_mb += decision->kept_mb;
    if (!timed)
        return;
    sum->timed += decision->calls;
    sum->ms += decision->own_ms;
    if (decision->est_cpu_ms > 0 && decision->est_gpu_ms > 0 &&
        !(decision->inner && decision->side == LOG_CPU)) {
        sum->estimated += decision->calls;
        sum->estimated_ms += decision->ms;
        sum->est_cpu_ms += decision->est_cpu_ms;
        sum->est_gpu_ms += decision->est_gpu_ms;
    }
    if (decision->operations > 0) {
        sum->operations += decision->operations;
        sum->operations_ms += decision->ms;
    }
}

void log_sums_add(struct log_sums *sums, const struct log_decision *decision)
{
    sums->inner += decision->inner ? decision->calls : 0;
    struct log_row *row = find_row(sums, decision);
    add(row ? &row->sum : &sums->left_out, decision);
    if (row) {
        row->low = accel_min(row->low, decision->largest);
        row->high = accel_max(row->high, decision->largest);
    }
    add(&sums->all, decision);
    add(&sums->side[decision->side], decision);
}

double log_sum_saved_ms(const struct log_sum *sum, enum log_side side)
{
    return (side == LOG_CPU ? sum->est_gpu_ms : sum->est_cpu_ms) - sum->estimated_ms;
}

/* By time, then by the number of calls, then by name. */
static int by_time(const void *a, const void *b)
{
    const struct log_row *x = a, *y = b;
    if (x->sum.ms != y->sum.ms)
        return x->sum.ms < y->sum.ms ? 1 : -1;
    if (x->sum.calls != y->sum.calls)
        return x->sum.calls < y->sum.calls ? 1 : -1;
    const int order = strcmp(x->name, y->name);
    return order ? order : x->class - y->class;
}

void log_sums_sort(struct log_sums *sums)
{
    qsort(sums->row, (size_t)sums->rows, sizeof *sums->row, by_time);
}
