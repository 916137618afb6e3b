#define _GNU_SOURCE
#include "advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/banner.h"
#include "report/hints.h"

/* ---- Losses ---- */

/* Why calls were on the GPU or on the CPU, in words. */
static const char *reason(enum accel_why why)
{
    static const char *const words[ACCEL_WHYS] = {
        [ACCEL_FASTER] = "which was expected to be faster",
        [ACCEL_FORCED] = "sent there by a setting",
        [ACCEL_DEVICE_DATA] = "where an operand was",
        [ACCEL_REQUIRED] = "as ACCEL_REQUIRE=gpu asks",
        [ACCEL_SMALL] = "as too small to gain",
        [ACCEL_SLOWER] = "because the GPU was expected to be slower",
        [ACCEL_UNSUPPORTED] = "because the GPU does not support that",
        [ACCEL_WORKSPACE_QUERY] = "as a question for the size of the workspace",
        [ACCEL_EMPTY] = "because there was nothing to compute",
        [ACCEL_OFF] = "because libaccel was off",
        [ACCEL_USER] = "because a setting says so",
        [ACCEL_NO_GPU] = "because there was no GPU",
        [ACCEL_WARMING] = "while the GPU was starting",
        [ACCEL_NO_MEMORY] = "because the GPU's memory had no room",
        [ACCEL_BUSY] = "because the GPU was busy",
        [ACCEL_ERROR] = "because the GPU had failed",
        [ACCEL_FORKED] = "in forked children of a process that used the GPU",
        [ACCEL_VERIFY_FAILED] = "because a result of the GPU was wrong",
    };
    return why < ACCEL_WHYS && words[why] ? words[why] : "for another reason";
}

/* Returns the seconds that a row's calls took longer than they would have taken on the other
 * side. */
static double lost_s(const struct log_row *row)
{
    const double lost =
        row->side == LOG_BOTH ? row->is.seconds : row->is.estimated - row->is.instead;
    return row->is.inner || lost <= 0 ? 0 : lost;
}

static int by_loss(const void *a, const void *b)
{
    const double x = lost_s(*(const struct log_row *const *)a),
                 y = lost_s(*(const struct log_row *const *)b);
    return (x < y) - (x > y);
}

/* Prints seconds so that they are readable from microseconds on. */
static const char *seconds(char text[32], double s)
{
    if (s >= 1)
        snprintf(text, 32, "%.*f s", s >= 100 ? 0 : s >= 10 ? 1 : 2, s);
    else
        snprintf(text, 32, "%.3g ms", s * 1e3);
    return text;
}

static void say_loss(const struct log_row *row, advice_say *say, void *context)
{
    char sizes[LOG_SIZES_BYTES], took[32], other[32], sentence[400];
    const int64_t calls = row->is.calls;
    int n = snprintf(sentence, sizeof sentence, "%s%s%s: %lld call%s", row->is.name,
                     row->is.high > 0 ? " " : "", log_sizes(sizes, row), (long long)calls,
                     calls == 1 ? "" : "s");
    if (row->side == LOG_BOTH)
        n += snprintf(sentence + n, sizeof sentence - (size_t)n,
                      " failed on the GPU, and took %s until the CPU had finished",
                      seconds(took, row->is.seconds));
    else if (row->side == LOG_CPU)
        n += snprintf(sentence + n, sizeof sentence - (size_t)n,
                      " ran on the CPU %s, in %s in place of about %s", reason(row->is.why),
                      seconds(took, row->is.estimated), seconds(other, row->is.instead));
    else
        n += snprintf(sentence + n, sizeof sentence - (size_t)n,
                      " took %s on the GPU, %s, and about %s on the CPU, as estimated",
                      seconds(took, row->is.estimated), reason(row->is.why),
                      seconds(other, row->is.instead));
    say(context, sentence);
}

int advice_lost(const struct log_seen *seen, int most, advice_say *say, void *context)
{
    const struct log_sums *sums = &seen->sums;
    const struct log_row *row[TOTALS_ROWS];
    int count = 0;
    for (int i = 0; i < sums->rows; i++)
        if (lost_s(&sums->row[i]) > 0.01 * sums->all.is.seconds)
            row[count++] = &sums->row[i];
    qsort(row, (size_t)count, sizeof *row, by_loss);
    for (int i = 0; i < count && i < most; i++)
        say_loss(row[i], say, context);
    return count;
}

/* ---- Hints ---- */

struct counted {
    advice_say *say;
    void *context;
    int count;
};

static void count_sentence(void *context, const char *sentence)
{
    struct counted *counted = context;
    counted->count++;
    counted->say(counted->context, sentence);
}

/* Whether a process left CUDA to the program. */
static bool was_held(const struct log_seen *seen)
{
    for (int i = 0; i < seen->events; i++)
        for (int j = 0; j < seen->event[i].fields; j++)
            if (strcmp(seen->event[i].field[2 * j + 1], BANNER_HELD) == 0)
                return true;
    return false;
}

int advice_hints(const struct log_seen *seen, advice_say *say, void *context)
{
    const struct log_sums *sums = &seen->sums;
    const bool on_gpu = sums->side[LOG_CPU].is.calls < sums->all.is.calls;
    struct totals_row row[TOTALS_ROWS];
    struct counted counted = {say, context, 0};
    struct hints_of of = {.row = row,
                          .count = sums->rows,
                          .starting = log_seen_starting(seen),
                          .facts =
                              (on_gpu ? TOTALS_ON_GPU : 0) | (was_held(seen) ? TOTALS_HELD : 0),
                          .known = TOTALS_ON_GPU | TOTALS_HELD};
    for (int i = 0; i < sums->rows; i++)
        row[i] = sums->row[i].is;
    of.seconds = log_seen_seconds(seen, &of.outside);
    if (of.seconds < 0)
        of.seconds = sums->all.is.seconds;
    hints_make(&of, count_sentence, &counted);
    return counted.count;
}
