#define _GNU_SOURCE
#include "log_sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/hash.h"

/* A class has sizes from a power of four up to the next, as in the summary. */
static int size_class(int64_t size)
{
    return size > 0 ? 1 + ilogb((double)size) / 2 : 0;
}

const char *log_sizes(char text[LOG_SIZES_BYTES], const struct log_row *row)
{
    *text = 0;
    if (row->is.high > row->is.low)
        snprintf(text, LOG_SIZES_BYTES, "%lld-%lld", (long long)row->is.low,
                 (long long)row->is.high);
    else if (row->is.high > 0)
        snprintf(text, LOG_SIZES_BYTES, "%lld", (long long)row->is.high);
    return text;
}

/* ---- One decision ---- */

static enum accel_why why_of(const char *name)
{
    int why = 0;
    while (why < ACCEL_WHYS && strcmp(accel_why_name(why), name) != 0)
        why++;
    return why;
}

static int64_t bytes_of_mb(double mb)
{
    return (int64_t)fmin(fmax(0, mb * 1e6), 1e18);
}

/* Makes the row of this decision alone. */
static struct log_row row_of(const struct log_decision *decision)
{
    struct log_row row = {.is = {.why = why_of(decision->why),
                                 .inner = decision->inner,
                                 .low = decision->largest,
                                 .high = decision->largest,
                                 .calls = decision->calls,
                                 .untimed = decision->ms < 0 ? decision->calls : 0,
                                 .seconds = fmax(0, decision->ms) * 1e-3,
                                 .up = bytes_of_mb(decision->up_mb),
                                 .down = bytes_of_mb(decision->down_mb),
                                 .kept = bytes_of_mb(decision->kept_mb)},
                          .side = decision->side,
                          .class = size_class(decision->largest)};
    const double instead = decision->side == LOG_CPU ? decision->est_gpu_ms : decision->est_cpu_ms;
    snprintf(row.is.name, sizeof row.is.name, "%.31s", decision->name);
    snprintf(row.is.ran, sizeof row.is.ran, "%s", decision->ran);
    snprintf(row.why, sizeof row.why, "%s", decision->why);
    if (decision->ms >= 0 && instead > 0) {
        row.is.estimated = row.is.seconds;
        row.is.instead = instead * 1e-3;
    }
    if (decision->ms >= 0 && decision->operations > 0) {
        row.operations = decision->operations;
        row.operations_s = row.is.seconds;
    }
    return row;
}

/* ---- Rows ---- */

static bool is_like(const struct log_row *row, const struct log_row *other)
{
    return row->class == other->class && row->is.inner == other->is.inner &&
           strcmp(row->is.name, other->is.name) == 0 && strcmp(row->is.ran, other->is.ran) == 0 &&
           strcmp(row->why, other->why) == 0;
}

/* Returns the row like this one, a new one without calls if there is none; NULL if there is no
 * room. */
static struct log_row *find_row(struct log_sums *sums, const struct log_row *like)
{
    const unsigned places = sizeof sums->place / sizeof *sums->place;
    const uint64_t kind = 2 * (uint64_t)like->class + like->is.inner;
    uint64_t at = hash_text(hash_text(kind, like->is.name), like->why);
    for (;; at++) {
        int *place = &sums->place[at % places];
        if (*place && is_like(&sums->row[*place - 1], like))
            return &sums->row[*place - 1];
        if (*place)
            continue;
        if (sums->rows == TOTALS_ROWS)
            return NULL;
        struct log_row *row = &sums->row[sums->rows++];
        *place = sums->rows;
        *row = (struct log_row){.is = {.why = like->is.why, .inner = like->is.inner},
                                .side = like->side,
                                .class = like->class};
        memcpy(row->is.name, like->is.name, sizeof row->is.name);
        memcpy(row->is.ran, like->is.ran, sizeof row->is.ran);
        memcpy(row->why, like->why, sizeof row->why);
        return row;
    }
}

void log_row_add(struct log_row *sum, const struct log_row *row)
{
    struct totals_row *to = &sum->is;
    const struct totals_row *from = &row->is;
    to->low = to->calls ? accel_min(to->low, from->low) : from->low;
    to->high = accel_max(to->high, from->high);
    to->calls += from->calls;
    to->untimed += from->untimed;
    to->seconds += from->seconds;
    to->estimated += from->estimated;
    to->instead += from->instead;
    to->up += from->up;
    to->down += from->down;
    to->kept += from->kept;
    sum->operations += row->operations;
    sum->operations_s += row->operations_s;
}

void log_sums_add(struct log_sums *sums, const struct log_decision *decision)
{
    const struct log_row one = row_of(decision);
    struct log_row *row = find_row(sums, &one);
    if (row)
        log_row_add(row, &one);
    if (decision->inner) {
        sums->inner += decision->calls;
        return;
    }
    if (!row)
        log_row_add(&sums->left_out, &one);
    log_row_add(&sums->all, &one);
    log_row_add(&sums->side[decision->side], &one);
}

/* By time, then by the number of calls, then by name; calls inside others behind all others. */
static int by_time(const void *a, const void *b)
{
    const struct log_row *x = a, *y = b;
    if (x->is.inner != y->is.inner)
        return x->is.inner ? 1 : -1;
    if (x->is.seconds != y->is.seconds)
        return x->is.seconds < y->is.seconds ? 1 : -1;
    if (x->is.calls != y->is.calls)
        return x->is.calls < y->is.calls ? 1 : -1;
    const int order = strcmp(x->is.name, y->is.name);
    return order ? order : x->class - y->class;
}

void log_sums_sort(struct log_sums *sums)
{
    qsort(sums->row, (size_t)sums->rows, sizeof *sums->row, by_time);
}
