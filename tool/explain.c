#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "tool/report/advice.h"
#include "tool/util/terminal.h"
#include "tool/util/stream.h"
#include "tool/util/utf8_json.h"

enum { ROUTINES_SHOWN = 10, ROWS_SHOWN = 15, LOST_SHOWN = 10 };

static const struct option_row option_rows[] = {
    {"json", 0, NULL, "JSON, for programs", .read = option_flag}, {0}};

/* ---- By routine ---- */

/* The sums of a routine's rows, and the part that ran on the GPU. */
struct routine {
    struct log_row all;
    double gpu_s;
};

struct routines {
    struct routine *row;
    int count;
};

static int by_seconds(const void *a, const void *b)
{
    const struct routine *x = a, *y = b;
    return (x->all.is.seconds < y->all.is.seconds) - (x->all.is.seconds > y->all.is.seconds);
}

/* Ends this process if there is no memory. */
static struct routines routines_of(const struct log_sums *sums)
{
    struct routines routines = {calloc((size_t)sums->rows + 1, sizeof *routines.row), 0};
    if (!routines.row)
        exit(complain(2, "accel explain: %s\n", strerror(errno)));
    for (int i = 0; i < sums->rows && !sums->row[i].is.inner; i++) {
        const struct log_row *row = &sums->row[i];
        int at = 0;
        while (at < routines.count && strcmp(routines.row[at].all.is.name, row->is.name) != 0)
            at++;
        struct routine *routine = &routines.row[at];
        if (at == routines.count) {
            routines.count++;
            memcpy(routine->all.is.name, row->is.name, sizeof row->is.name);
        }
        log_row_add(&routine->all, row);
        routine->gpu_s += row->side == LOG_CPU ? 0 : row->is.seconds;
    }
    qsort(routines.row, (size_t)routines.count, sizeof *routines.row, by_seconds);
    return routines;
}

/* ---- Text ---- */

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void heading(const char *text)
{
    const bool coloured = terminal_is_coloured(STDOUT_FILENO);
    printf("\n%s%s%s\n", coloured ? "\033[1m" : "", text, coloured ? "\033[0m" : "");
}

static void print_side(const char *name, const struct totals_row *sum, double all_s)
{
    if (sum->calls)
        printf("  %-18s %10lld calls %10.3f s %4.0f %%\n", name, (long long)sum->calls,
               sum->seconds, percent(sum->seconds, all_s));
}

static void print_whole(const struct log_seen *seen)
{
    const struct log_sums *sums = &seen->sums;
    double outside;
    const double seconds = log_seen_seconds(seen, &outside), all_s = sums->all.is.seconds;
    printf("%lld calls of %d process%s took %.3f s", (long long)sums->all.is.calls, seen->processes,
           seen->processes == 1 ? "" : "es", all_s);
    if (seconds >= 0)
        printf("; %s %.3f s from the first call to the last",
               seen->processes == 1 ? "it ran" : "they ran together", seconds);
    putchar('\n');
    print_side("on the GPU", &sums->side[LOG_GPU].is, all_s);
    print_side("on the CPU", &sums->side[LOG_CPU].is, all_s);
    print_side("failed on the GPU", &sums->side[LOG_BOTH].is, all_s);
    if (sums->inner)
        printf("  %lld more were made inside others, which have their time\n",
               (long long)sums->inner);
}

static void print_routines(const struct log_sums *sums)
{
    const struct routines routines = routines_of(sums);
    char name[48];
    heading("Time by routine");
    printf("  %-24s %10s %12s %7s %11s\n", "", "calls", "seconds", "share", "on the GPU");
    for (int i = 0; i < routines.count && i < ROUTINES_SHOWN; i++) {
        const struct totals_row *is = &routines.row[i].all.is;
        printf("  %-24s %10lld %12.3f %5.1f %% %9.0f %%\n",
               terminal_clean(name, sizeof name, is->name), (long long)is->calls, is->seconds,
               percent(is->seconds, sums->all.is.seconds),
               percent(routines.row[i].gpu_s, is->seconds));
    }
    if (routines.count > ROUTINES_SHOWN)
        printf("  and %d more\n", routines.count - ROUTINES_SHOWN);
    free(routines.row);
}

static void print_row(const struct log_row *row)
{
    char sizes[LOG_SIZES_BYTES], name[48], ran[128], why[48];
    printf("  %-24s %13s %10lld %-8s %-15s %10.3f", terminal_clean(name, sizeof name, row->is.name),
           log_sizes(sizes, row), (long long)row->is.calls,
           terminal_clean(ran, sizeof ran, row->is.ran), terminal_clean(why, sizeof why, row->why),
           row->is.seconds);
    if (row->is.estimated > 0)
        printf(" %10.3f %10.3f\n", row->is.instead, row->is.instead - row->is.estimated);
    else
        printf(" %10s %10s\n", "-", "-");
}

static void print_rows(const struct log_sums *sums)
{
    int shown = 0, count = 0;
    heading("By routine and size");
    printf("  %-24s %13s %10s %-8s %-15s %10s %10s %10s\n", "", "size", "calls", "ran", "why",
           "seconds", "elsewhere", "saved");
    for (int i = 0; i < sums->rows; i++) {
        count += !sums->row[i].is.inner;
        if (sums->row[i].is.inner || shown == ROWS_SHOWN)
            continue;
        print_row(&sums->row[i]);
        shown++;
    }
    if (count > shown)
        printf("  and %d more row%s: accel explain --json, accel report --html\n", count - shown,
               count - shown == 1 ? "" : "s");
}

static void print_sentence(void *context, const char *sentence)
{
    (void)context;
    printf("  - ");
    for (const char *c = sentence; *c; c++)
        putchar((unsigned char)*c < ' ' || *c == 127 ? '?' : *c);
    putchar('\n');
}

static void print_text(const struct log_seen *seen)
{
    print_whole(seen);
    print_routines(&seen->sums);
    print_rows(&seen->sums);
    heading("Where time was lost");
    const int lost = advice_lost(seen, LOST_SHOWN, print_sentence, NULL);
    if (lost > LOST_SHOWN)
        printf("  and %d more: accel explain --json\n", lost - LOST_SHOWN);
    if (lost == 0)
        puts("  Nowhere, by the estimates.");
    heading("What to change");
    if (advice_hints(seen, print_sentence, NULL) == 0)
        puts("  Nothing that a setting would bring.");
}

/* ---- JSON: keys as in the summary's ---- */

static void put_member(struct json_object *object, const char *name, struct json_object *value)
{
    if (!object || !value || json_object_object_add(object, name, value) != 0)
        exit(complain(2, "accel explain: %s\n", strerror(ENOMEM)));
}

/* To nanoseconds and bytes: sums differ in the last digits by their order. */
static void put_decimal(struct json_object *object, const char *name, double value)
{
    put_member(object, name, json_object_new_double(round(value * 1e9) / 1e9));
}

static void append(struct json_object *list, struct json_object *value)
{
    if (!list || !value || json_object_array_add(list, value) != 0)
        exit(complain(2, "accel explain: %s\n", strerror(ENOMEM)));
}

static void append_sentence(void *list, const char *sentence)
{
    append(list, utf8_json(sentence));
}

static void append_row(struct json_object *list, const struct log_row *row)
{
    struct json_object *one = json_object_new_object();
    append(list, one);
    put_member(one, "routine", utf8_json(row->is.name));
    if (row->is.high > 0) {
        put_member(one, "size_min", json_object_new_int64(row->is.low));
        put_member(one, "size_max", json_object_new_int64(row->is.high));
    }
    put_member(one, "ran", utf8_json(row->is.ran));
    put_member(one, "why", utf8_json(row->why));
    put_member(one, "inner", json_object_new_boolean(row->is.inner));
    put_member(one, "calls", json_object_new_int64(row->is.calls));
    put_member(one, "untimed", json_object_new_int64(row->is.untimed));
    put_decimal(one, "s", row->is.seconds);
    if (row->is.estimated > 0) {
        put_decimal(one, "estimated_s", row->is.estimated);
        put_decimal(one, "elsewhere_s", row->is.instead);
    }
    put_decimal(one, "up_mb", (double)row->is.up * 1e-6);
    put_decimal(one, "down_mb", (double)row->is.down * 1e-6);
    put_decimal(one, "kept_mb", (double)row->is.kept * 1e-6);
}

static void print_json(const struct log_seen *seen, const struct log_counts *counts)
{
    struct json_object *all = json_object_new_object(), *list = json_object_new_array(),
                       *lost = json_object_new_array(), *hints = json_object_new_array();
    double outside;
    const double seconds = log_seen_seconds(seen, &outside);
    put_member(all, "v", json_object_new_int(1));
    put_member(all, "processes", json_object_new_int(seen->processes));
    put_member(all, "calls", json_object_new_int64(seen->sums.all.is.calls));
    put_decimal(all, "calls_s", seen->sums.all.is.seconds);
    if (seconds >= 0)
        put_decimal(all, "s", seconds);
    if (outside >= 0)
        put_decimal(all, "outside_s", outside);
    put_member(all, "dropped", json_object_new_int64(seen->sums.left_out.is.calls));
    put_member(all, "damaged", json_object_new_int64(counts->damaged));
    put_member(all, "later", json_object_new_int64(counts->later));
    put_member(all, "rows", list);
    put_member(all, "lost", lost);
    put_member(all, "hints", hints);
    for (int i = 0; i < seen->sums.rows; i++)
        append_row(list, &seen->sums.row[i]);
    advice_lost(seen, TOTALS_ROWS, append_sentence, lost);
    advice_hints(seen, append_sentence, hints);
    puts(json_object_to_json_string_ext(all,
                                        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
}

/* ---- The command ---- */

static int explain(const struct words *logs, bool json)
{
    struct log_seen *seen = log_seen_open();
    struct log_counts counts;
    const int read =
        log_read_all("accel explain", logs->word, logs->count, log_seen_take, seen, &counts);
    int status = read == logs->count && counts.decisions > 0 ? 0 : 1;
    log_sums_sort(&seen->sums);
    if (counts.decisions == 0)
        complain(0, "accel explain: no call in %s\n",
                 logs->count == 1 ? "the log" : "any of the logs");
    else if (json)
        print_json(seen, &counts);
    else
        print_text(seen);
    log_seen_close(seen);
    if ((errno = stream_flush(stdout)))
        status = complain(2, "accel explain: stdout: %s\n", strerror(errno));
    return status;
}

static int explain_logs(const struct command *command, int argc, char **argv)
{
    bool json = false;
    const struct words logs = options_read(command, argc, argv, &json);
    if (logs.count == 0)
        return complain(2, "accel explain: no log is given: accel explain LOG\n");
    return explain(&logs, json);
}

/* Returns 0; 1 if a log cannot be read, or none has a call; 2 for wrong options, or if stdout
 * cannot be written. */
const struct command explain_command = {
    .name = "explain",
    .does = "say where the time of a log's calls went, where it was lost, and what to change",
    .options = option_rows,
    .arguments = "LOG...",
    .doc = "Says what logs that ACCEL_LOG=1 or json has written mean: where the time went, where "
           "it was lost and why, and what to change. Logs of several processes are read as one.\v"
           "The log - is stdin. The exit status is 1 if a log cannot be read or has no line of "
           "libaccel's, or if no log has a call; 2 for wrong options, or if stdout cannot be "
           "written.",
    .run = explain_logs};
