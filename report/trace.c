#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forks.h"
#include "base/text.h"
#include "log.h"
#include "report.h"
#include "trace_file.h"

/* From the monotonic clock to the time of day, in microseconds: the clock of all processes of all machines. Constant after the start. */
static int64_t day_us;

/* Some events on their way to the file. */
struct events {
    struct accel_text text;
    int count;
    char buffer[3072];
};

static void events_begin(struct events *events)
{
    text_start(&events->text, events->buffer, sizeof events->buffer);
    events->count = 0;
}

static void events_end(struct events *events)
{
    if (events->count > 0)
        trace_file_put(events->buffer, events->text.length, events->count);
    events_begin(events);
}

/* Begins an event. `phase` is the format's letter. */
static void event_begin(struct events *events, char phase, const char *name, int64_t track)
{
    enum { LONGEST = 1400 }; /* of an event */
    struct accel_text *text = &events->text;
    if (events->text.length + LONGEST > sizeof events->buffer)
        events_end(events);
    text_string(text, events->count++ > 0 ? ",\n" : "");
    text_string(text, "{\"ph\": \"");
    text_char(text, phase);
    text_string(text, "\", \"name\": ");
    text_json_string(text, name);
    text_string(text, ", \"pid\": ");
    text_integer(text, getpid());
    text_string(text, ", \"tid\": ");
    text_integer(text, track);
}

static int64_t us_of(double ms)
{
    return day_us + (int64_t)(ms * 1e3);
}

/* Both ends are rounded down, so that what lies within another event, or behind it, still does. */
static void event_times(struct events *events, double start_ms, double end_ms)
{
    struct accel_text *text = &events->text;
    text_string(text, ", \"ts\": ");
    text_integer(text, us_of(start_ms));
    if (end_ms >= start_ms) {
        text_string(text, ", \"dur\": ");
        text_integer(text, us_of(end_ms) - us_of(start_ms));
    }
}

static void put_name(struct events *events, const char *what, int64_t track, const char *name)
{
    event_begin(events, 'M', what, track);
    text_string(&events->text, ", \"args\": {\"name\": ");
    text_json_string(&events->text, name);
    text_string(&events->text, "}}");
}

/* ---- Names ---- */

static atomic_bool named; /* the process is */
/* The process in which this thread is named. */
static _Thread_local pid_t named_in __attribute__((tls_model("initial-exec")));

static void forget_parent(void)
{
    atomic_store(&named, false);
}
FORKS_CHILD(forget_parent);

static void name_thread(struct events *events)
{
    char name[17] = "";
    if (!atomic_exchange(&named, true))
        put_name(events, "process_name", 0, program_invocation_short_name);
    if (named_in == getpid())
        return;
    named_in = getpid();
    if (prctl(PR_GET_NAME, name) == 0)
        put_name(events, "thread_name", gettid(), name);
}

/* ---- Calls ---- */

static void put_decision(const struct accel_record *record)
{
    const bool timed = record->ms >= 0;
    struct events events;
    events_begin(&events);
    name_thread(&events);
    event_begin(&events, timed ? 'X' : 'i', record->symbol, gettid());
    if (timed)
        event_times(&events, record->start_ms, record->start_ms + record->ms);
    else
        event_times(&events, accel_now_ms(), -1);
    text_string(&events.text, timed ? "" : ", \"s\": \"t\"");
    text_string(&events.text, ", \"cat\": \"call\", \"args\": ");
    log_put_fields(&events.text, record);
    text_char(&events.text, '}');
    events_end(&events);
}

/* ---- The start ---- */

static double ms_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void trace_start(const char *pattern, int64_t most_bytes)
{
    static const struct report_sink sink = {.decision = put_decision};
    day_us = (int64_t)((ms_of(CLOCK_REALTIME) - accel_now_ms()) * 1e3);
    trace_file_start(pattern, most_bytes);
    report_subscribe(&sink);
}
