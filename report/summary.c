#define _GNU_SOURCE
#include "summary.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "base/forks.h"
#include "base/output.h"
#include "base/text.h"

static const char *file; /* constant after the start */

/* A row for each (symbol, ran, why). A row that is taken stays taken; calls that find none are counted in `others`. */
struct row {
    _Atomic(const char *) symbol; /* NULL: free */
    const char *ran;
    enum accel_why why;
    atomic_bool ready; /* ran and why are set */
    _Atomic int64_t calls, nanoseconds, up_bytes, down_bytes;
};

#define ROWS 512
static struct row rows[ROWS];
static _Atomic int64_t others;

static struct row *find_row(const struct accel_record *record)
{
    size_t start = ((uintptr_t)record->symbol / 8 * 31 + (size_t)record->why) % ROWS;
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[(start + i) % ROWS];
        const char *expected = NULL;
        if (atomic_compare_exchange_strong(&row->symbol, &expected, record->symbol)) {
            row->ran = record->ran;
            row->why = record->why;
            atomic_store_explicit(&row->ready, true, memory_order_release);
            return row;
        }
        if (expected != record->symbol)
            continue;
        while (!atomic_load_explicit(&row->ready, memory_order_acquire))
            ; /* its owner is two stores away from that */
        if (row->why == record->why && strcmp(row->ran, record->ran) == 0)
            return row;
    }
    return NULL;
}

static void count(const struct accel_record *record)
{
    struct row *row = find_row(record);
    if (!row) {
        atomic_fetch_add(&others, 1);
        return;
    }
    atomic_fetch_add(&row->calls, 1);
    if (record->ms > 0)
        atomic_fetch_add(&row->nanoseconds, (int64_t)(record->ms * 1e6));
    atomic_fetch_add(&row->up_bytes, record->up_bytes);
    atomic_fetch_add(&row->down_bytes, record->down_bytes);
}

static void put_number(struct accel_text *text, double value)
{
    char buffer[32];
    struct accel_text cell;
    text_start(&cell, buffer, sizeof buffer);
    text_decimal(&cell, value);
    text_end(&cell);
    text_padded(text, buffer, 12);
}

/* The child of a fork counts anew. */
static void forget_parent(void)
{
    for (int i = 0; i < ROWS; i++) {
        atomic_store(&rows[i].symbol, NULL);
        atomic_store(&rows[i].ready, false);
        atomic_store(&rows[i].calls, 0);
        atomic_store(&rows[i].nanoseconds, 0);
        atomic_store(&rows[i].up_bytes, 0);
        atomic_store(&rows[i].down_bytes, 0);
    }
    atomic_store(&others, 0);
}
FORKS_CHILD(forget_parent);

/* The row that follows `last` (NULL: the first) in the order of symbols; NULL: there is none. */
static struct row *next_row(struct row *last)
{
    struct row *next = NULL;
    for (struct row *row = rows; row < rows + ROWS; row++) {
        const char *symbol = atomic_load(&row->symbol);
        if (!symbol || !atomic_load_explicit(&row->ready, memory_order_acquire))
            continue;
        int order = last ? strcmp(symbol, atomic_load(&last->symbol)) : 1;
        if (order < 0 || (order == 0 && row <= last))
            continue;
        if (!next || strcmp(symbol, atomic_load(&next->symbol)) < 0)
            next = row;
    }
    return next;
}

static void put_row(struct accel_text *text, struct row *row)
{
    text_string(text, "accel: ");
    text_padded(text, atomic_load(&row->symbol), -24);
    text_padded(text, row->ran, -10);
    text_padded(text, accel_why_name(row->why), -14);
    put_number(text, (double)atomic_load(&row->calls));
    put_number(text, (double)atomic_load(&row->nanoseconds) * 1e-6);
    put_number(text, (double)atomic_load(&row->up_bytes) * 1e-6);
    put_number(text, (double)atomic_load(&row->down_bytes) * 1e-6);
    text_char(text, '\n');
}

static void print(void)
{
    static const char heading[] = "accel: symbol                  ran       why                  "
                                  "calls          ms       up_mb     down_mb\n";
    static char buffer[65536];
    struct accel_text text;
    struct row *row = next_row(NULL);
    const bool any = row;
    text_start(&text, buffer, sizeof buffer);
    text_string(&text, "accel: summary pid=");
    text_integer(&text, getpid());
    text_char(&text, '\n');
    text_string(&text, heading);
    for (; row; row = next_row(row))
        put_row(&text, row);
    if (atomic_load(&others)) {
        text_string(&text, "accel: further calls: ");
        text_integer(&text, atomic_load(&others));
        text_char(&text, '\n');
    }
    if (any) /* most processes that inherit ACCEL_SUMMARY call nothing */
        output_log_at_exit(file, buffer, text.length);
}

void summary_start(const char *to)
{
    static const struct report_sink sink = {.decision = count, .end = print};
    file = to;
    report_subscribe(&sink);
}
