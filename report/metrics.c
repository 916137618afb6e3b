#define _GNU_SOURCE
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/text/error_text.h"
#include "base/file/file.h"
#include "base/thread/forks.h"
#include "base/thread/signal_mask.h"
#include "base/host/host.h"
#include "base/thread/thread_spawn.h"
#include "base/output/message.h"
#include "base/text/text.h"
#include "base/thread/monotonic_wait.h"
#include "report.h"
#include "totals.h"

enum { FIRST_MS = 1000, INTERVAL_MS = 15000, STACK_BYTES = 256 * 1024, LAST_WRITES = 32 };

/* How long the process's end waits for a thread that writes. */
#define END_MS 2000

static const char *folder; /* constant after the start */
static struct totals_part part;
static _Atomic int64_t look_ms; /* when this process looks next whether the file has a writer */

/* Held while this process writes the file; by our threads alone, and at exit. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static bool ended;         /* under the lock: the process exits */
static atomic_bool failed; /* nothing is written any more */

/* ---- The text ---- */

struct metrics_text {
    struct totals_row row[TOTALS_ROWS]; /* one for each label */
    int count;
    char program[NAME_MAX + 1];
    struct accel_text text;
    char buffer[TOTALS_ROWS * 5 * 256 + 4096];
};

static bool same_labels(const struct totals_row *a, const struct totals_row *b)
{
    return a->why == b->why && strcmp(a->name, b->name) == 0 && strcmp(a->ran, b->ran) == 0;
}

/* The time of a call inside another one is in that one's. */
static void add_totals_row(struct metrics_text *work, const struct totals_row *row)
{
    int i = 0;
    while (i < work->count && !same_labels(&work->row[i], row))
        i++;
    struct totals_row *sum = &work->row[i];
    if (i == work->count) {
        work->count++;
        *sum = *row;
        sum->calls = sum->up = sum->down = sum->kept = 0;
        sum->seconds = 0;
    }
    sum->calls += row->inner ? 0 : row->calls;
    sum->seconds += row->inner ? 0 : row->seconds;
    sum->up += row->up;
    sum->down += row->down;
    sum->kept += row->kept;
}

static void put_label(struct accel_text *text, const char *name, const char *value)
{
    text_string(text, name);
    text_string(text, "=\"");
    for (; *value; value++) {
        if (*value == '"' || *value == '\\' || *value == '\n')
            text_char(text, '\\');
        text_char(text, *value == '\n' ? 'n' : *value);
    }
    text_char(text, '"');
}

static void put_process(struct metrics_text *work, const char *metric)
{
    struct accel_text *text = &work->text;
    text_string(text, metric);
    text_char(text, '{');
    put_label(text, "program", work->program);
    text_string(text, ",pid=\"");
    text_integer(text, totals_maker(part.totals));
    text_char(text, '"');
}

static void put_heading(struct accel_text *text, const char *metric, const char *help)
{
    text_string(text, "# HELP ");
    text_string(text, metric);
    text_char(text, ' ');
    text_string(text, help);
    text_string(text, "\n# TYPE ");
    text_string(text, metric);
    text_string(text, " counter\n");
}

static void put_value(struct accel_text *text, const struct totals_row *row, int metric)
{
    const int64_t integers[] = {row->calls, 0, row->up, row->down, row->kept};
    if (metric == 1)
        text_fixed(text, row->seconds, 6);
    else
        text_integer(text, integers[metric]);
}

static void put_all(struct metrics_text *work)
{
    static const char *const metrics[][2] = {
        {"accel_calls_total", "Calls of BLAS, LAPACK and machine learning."},
        {"accel_call_seconds_total", "Seconds that these calls took."},
        {"accel_up_bytes_total", "Bytes copied to the GPU, also by calls inside other calls."},
        {"accel_down_bytes_total", "Bytes copied from the GPU, also by calls inside other calls."},
        {"accel_kept_bytes_total", "Bytes that were on the GPU already."}};
    struct accel_text *text = &work->text;
    for (int m = 0; m < (int)(sizeof metrics / sizeof *metrics); m++) {
        put_heading(text, metrics[m][0], metrics[m][1]);
        for (int i = 0; i < work->count; i++) {
            const struct totals_row *row = &work->row[i];
            put_process(work, metrics[m][0]);
            text_char(text, ',');
            put_label(text, "routine", row->name);
            text_char(text, ',');
            put_label(text, "ran", row->ran);
            text_char(text, ',');
            put_label(text, "why", accel_why_name(row->why));
            text_string(text, "} ");
            put_value(text, row, m);
            text_char(text, '\n');
        }
    }
    put_heading(text, "accel_process_seconds_total",
                "Seconds that the processes which made calls have run, together.");
    put_process(work, "accel_process_seconds_total");
    text_string(text, "} ");
    text_fixed(text, totals_read_sums(part.totals, false).seconds, 3);
    text_char(text, '\n');
}

static void make_text(struct metrics_text *work)
{
    char path[PATH_MAX];
    struct totals_row row;
    struct accel_text program;
    text_start(&program, work->program, sizeof work->program);
    text_string(&program, file_program(path) ? strrchr(path, '/') + 1 : "unknown");
    text_end(&program);
    work->count = 0;
    for (int i = 0; i < TOTALS_ROWS; i++)
        if (totals_read(part.totals, i, false, &row))
            add_totals_row(work, &row);
    text_start(&work->text, work->buffer, sizeof work->buffer);
    if (work->count)
        put_all(work);
}

/* ---- The file ---- */

/* FOLDER/accel.HOST.PID, and what follows. */
static bool make_path(char path[PATH_MAX], const char *end, pid_t writer)
{
    struct accel_text text;
    char host[HOST_BYTES];
    host_name(host);
    text_start(&text, path, PATH_MAX);
    text_string(&text, folder);
    text_string(&text, "/accel.");
    text_string(&text, host);
    text_char(&text, '.');
    text_integer(&text, totals_maker(part.totals));
    text_string(&text, end);
    if (writer)
        text_integer(&text, writer);
    return text_end(&text);
}

/* Returns 0 or an errno value. */
static int write_aside(const char *aside, const char *bytes, size_t length)
{
    struct signal_mask held;
    size_t written;
    unlink(aside); /* of a process that had the same number */
    const int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno;
    signals_hold(&held);
    const int error = file_write(fd, bytes, length, &written);
    signals_release(&held, error != 0);
    return close(fd) != 0 && !error ? errno : error;
}

static int write_file(const struct metrics_text *work)
{
    char path[PATH_MAX], aside[PATH_MAX];
    if (!make_path(path, ".prom", 0) || !make_path(aside, ".prom.", getpid()))
        return ENAMETOOLONG;
    int error = write_aside(aside, work->buffer, work->text.length);
    if (!error && rename(aside, path) != 0)
        error = errno;
    if (error)
        unlink(aside);
    return error;
}

/* Writes again, up to `most` times, while the sums are no longer those of the text: another process
 * may have put a newer one in place since that was made, and it is the older one that stays. */
static int write_newest(struct metrics_text work[2], int most)
{
    int error = 0;
    make_text(&work[0]);
    for (int i = 0; i < most && !error && work[i % 2].text.length; i++) {
        const struct accel_text *was = &work[i % 2].text, *is = &work[(i + 1) % 2].text;
        error = write_file(&work[i % 2]);
        make_text(&work[(i + 1) % 2]);
        if (is->length == was->length && memcmp(is->at, was->at, is->length) == 0)
            break;
    }
    return error;
}

/* Under the lock. */
static void write_metrics(int most)
{
    const size_t size = 2 * sizeof(struct metrics_text);
    struct metrics_text *work = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (work == MAP_FAILED)
        return;
    const int error = write_newest(work, most);
    munmap(work, size);
    if (error && !atomic_exchange(&failed, true))
        accel_message("ACCEL_METRICS_DIR: %s cannot be written (%s); there will be no metrics",
                      folder, error_text(error));
}

/* ---- When ---- */

static void wait_ms(int64_t ms)
{
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        continue;
}

static void *write_now_and_then(void *unused)
{
    bool goes_on = true;
    for (int64_t ms = FIRST_MS; goes_on; ms = INTERVAL_MS) {
        wait_ms(ms);
        pthread_mutex_lock(&lock);
        goes_on = !ended && !atomic_load(&failed);
        if (goes_on)
            write_metrics(1);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* One process writes for all that share the table. Another one takes its place when it is gone. */
static void look_for_writer(int64_t now_ms)
{
    int64_t due = atomic_load_explicit(&look_ms, memory_order_relaxed);
    if (now_ms < due || !atomic_compare_exchange_strong(&look_ms, &due, now_ms + INTERVAL_MS))
        return;
    if (!atomic_load(&failed) && totals_become_writer(part.totals) &&
        !thread_spawn(write_now_and_then, NULL, STACK_BYTES))
        totals_leave_writer(part.totals);
}

static void count_in_metrics(const struct accel_record *record)
{
    totals_add(&part, record);
    look_for_writer((int64_t)accel_now_ms());
}

/* The thread may hold the lock, while a slow file system takes the file. */
static void end_metrics(void)
{
    totals_end(&part);
    const bool mine = totals_is_mine(part.totals), writer = totals_leave_writer(part.totals);
    if ((!mine && !writer) || atomic_load(&failed) || !monotonic_timed_lock(&lock, END_MS))
        return;
    write_metrics(LAST_WRITES);
    ended = true;
    pthread_mutex_unlock(&lock);
}

static void begin_child(void)
{
    if (!folder || !part.totals) /* without the first, its page stays untouched */
        return;
    totals_begin(&part, part.totals);
    atomic_store(&look_ms, 0);
}
FORKS_CHILD(begin_child);

void metrics_start(const char *in)
{
    static const struct report_sink sink = {.decision = count_in_metrics, .end = end_metrics};
    struct totals *totals = totals_make();
    if (!totals) {
        accel_message(
            "ACCEL_METRICS_DIR: there is no memory for the sums; there will be no metrics");
        return;
    }
    folder = in;
    totals_begin(&part, totals);
    report_subscribe(&sink);
}
