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

/* One row a (symbol, ran, why). Rows are claimed once and never given back; what does not fit is
 * counted in `others`. */
struct row {
    _Atomic(const char *) symbol;
    const char *ran;
    enum accel_why why;
    atomic_bool ready;
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
            ; /* two stores away */
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

static void column(struct accel_text *text, double value, int width)
{
    char buffer[32];
    struct accel_text cell;
    text_start(&cell, buffer, sizeof buffer);
    text_decimal(&cell, value);
    text_end(&cell);
    text_padded(text, buffer, width);
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

static void print(void)
{
    static char buffer[65536];
    struct accel_text text;
    bool any = false;
    text_start(&text, buffer, sizeof buffer);
    text_string(&text, "accel: summary pid=");
    text_integer(&text, getpid());
    text_string(&text, "\naccel: ");
    text_padded(&text, "symbol", -24);
    text_padded(&text, "ran", -10);
    text_padded(&text, "why", -14);
    text_padded(&text, "calls", 12);
    text_padded(&text, "ms", 12);
    text_padded(&text, "up_mb", 12);
    text_padded(&text, "down_mb", 12);
    text_char(&text, '\n');
    /* Ordered by symbol: few rows, so the smallest that is larger than the last is looked for. */
    int last = -1;
    for (;;) {
        int next = -1;
        for (int i = 0; i < ROWS; i++) {
            const char *symbol = atomic_load(&rows[i].symbol);
            if (!symbol || !atomic_load_explicit(&rows[i].ready, memory_order_acquire))
                continue;
            if (last >= 0) {
                int order = strcmp(symbol, atomic_load(&rows[last].symbol));
                if (order < 0 || (order == 0 && i <= last))
                    continue;
            }
            if (next < 0 || strcmp(symbol, atomic_load(&rows[next].symbol)) < 0)
                next = i;
        }
        if (next < 0)
            break;
        struct row *row = &rows[next];
        any = true;
        text_string(&text, "accel: ");
        text_padded(&text, atomic_load(&row->symbol), -24);
        text_padded(&text, row->ran, -10);
        text_padded(&text, accel_why_name(row->why), -14);
        column(&text, (double)atomic_load(&row->calls), 12);
        column(&text, (double)atomic_load(&row->nanoseconds) * 1e-6, 12);
        column(&text, (double)atomic_load(&row->up_bytes) * 1e-6, 12);
        column(&text, (double)atomic_load(&row->down_bytes) * 1e-6, 12);
        text_char(&text, '\n');
        last = next;
    }
    if (atomic_load(&others)) {
        text_string(&text, "accel: further calls: ");
        text_integer(&text, atomic_load(&others));
        text_char(&text, '\n');
    }
    if (any) /* most processes that inherit the settings call nothing */
        output_log_at_exit(file, buffer, text.length);
}

void summary_start(const char *to)
{
    static const struct report_sink sink = {.decision = count, .end = print};
    file = to;
    report_subscribe(&sink);
}
