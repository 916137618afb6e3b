#define _GNU_SOURCE
#include "trace.h"

#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/host/program.h"
#include "base/thread/forks.h"
#include "base/text/text.h"
#include "log.h"
#include "report.h"
#include "trace_file.h"

/* From the monotonic clock to the time of day, in microseconds: the clock of all processes of all
 * machines. Constant after the start. */
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
    if (atomic_load(&named))
        atomic_store(&named, false);
}
FORKS_CHILD(forget_parent);

static void name_thread(struct events *events)
{
    char name[17] = "";
    if (!atomic_exchange(&named, true))
        put_name(events, "process_name", 0, program_name());
    if (named_in == getpid())
        return;
    named_in = getpid();
    if (prctl(PR_GET_NAME, name) == 0)
        put_name(events, "thread_name", gettid(), name);
}

/* ---- Counters ---- */

static void put_counter(struct events *events, const char *name, double at_ms, double value)
{
    event_begin(events, 'C', name, 0);
    event_times(events, at_ms, -1);
    text_string(&events->text, ", \"args\": {\"value\": ");
    text_decimal(&events->text, value);
    text_string(&events->text, "}}");
}

/* ---- The device ---- */

/* Tracks of devices have numbers beyond those of threads (at most 2^22): three for each lane of
 * each device. */
enum {
    FIRST_TRACK = 1000000000,
    DEVICES = 64,
    LANES = 8,
    TRACKS = DEVICES * LANES * GPU_STEP_KINDS
};
static const char *const kind_names[] = {"up", "compute", "down"};
static atomic_bool track_named[TRACKS]; /* the child of a fork has no device */

static void name_track(struct events *events, int track, const char *device)
{
    char name[80];
    struct accel_text text;
    if (atomic_exchange(&track_named[track], true))
        return;
    text_start(&text, name, sizeof name);
    text_string(&text, device);
    const int lane = track / GPU_STEP_KINDS % LANES;
    if (lane > 0) {
        text_string(&text, ", lane ");
        text_integer(&text, lane + 1);
    }
    text_string(&text, ": ");
    text_string(&text, kind_names[track % GPU_STEP_KINDS]);
    text_end(&text);
    put_name(events, "thread_name", FIRST_TRACK + track, name);
    event_begin(events, 'M', "thread_sort_index", FIRST_TRACK + track);
    text_string(&events->text, ", \"args\": {\"sort_index\": ");
    text_integer(&events->text, FIRST_TRACK + track);
    text_string(&events->text, "}}");
}

static void put_step(struct events *events, int track, const char *symbol,
                     const struct gpu_step *step)
{
    const bool copies = step->kind != GPU_STEP_COMPUTE;
    event_begin(events, 'X', copies && step->operand ? step->operand : symbol, FIRST_TRACK + track);
    event_times(events, step->start_ms, step->end_ms);
    text_string(&events->text, ", \"cat\": \"");
    text_string(&events->text, kind_names[step->kind]);
    text_string(&events->text, "\", \"args\": {\"sym\": ");
    text_json_string(&events->text, symbol);
    if (copies) {
        text_string(&events->text, ", \"mb\": ");
        text_decimal(&events->text, (double)step->bytes * 1e-6);
    }
    text_string(&events->text, "}}");
}

static void put_left_out(struct events *events, int track, int64_t left_out)
{
    event_begin(events, 'i', "further steps are left out", FIRST_TRACK + track);
    event_times(events, accel_now_ms(), -1);
    text_string(&events->text, ", \"s\": \"t\", \"args\": {\"steps\": ");
    text_integer(&events->text, left_out);
    text_string(&events->text, "}}");
}

static void put_steps(const struct accel_record *record, const char *device,
                      const struct gpu_steps *steps)
{
    const int lane = steps->device % DEVICES * LANES + steps->lane % LANES;
    const int track = lane * GPU_STEP_KINDS;
    const double now = accel_now_ms();
    struct events events;
    events_begin(&events);
    name_thread(&events);
    for (int i = 0; i < steps->count; i++) {
        const struct gpu_step *step = &steps->step[i];
        name_track(&events, track + (int)step->kind, device);
        put_step(&events, track + (int)step->kind, record->symbol, step);
    }
    if (steps->left_out)
        put_left_out(&events, track + GPU_STEP_COMPUTE, steps->left_out);
    put_counter(&events, "device memory (MB)", now, (double)steps->device_bytes * 1e-6);
    put_counter(&events, "of it kept (MB)", now, (double)steps->cached_bytes * 1e-6);
    events_end(&events);
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
    if (record->ran[0] == 'g' && record->gpu_calls[0] > 0) {
        put_counter(&events, "calls on the GPU", record->start_ms, record->gpu_calls[0]);
        put_counter(&events, "calls on the GPU", record->start_ms + record->ms,
                    record->gpu_calls[1]);
    }
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
    static const struct report_sink sink = {.decision = put_decision, .steps = put_steps};
    day_us = (int64_t)((ms_of(CLOCK_REALTIME) - accel_now_ms()) * 1e3);
    trace_file_start(pattern, most_bytes);
    report_subscribe(&sink);
}
