#include "report.h"

#include <string.h>

enum { SINKS = 8 };
static const struct report_sink *sinks[SINKS]; /* constant after the start */
static int count;

void report_subscribe(const struct report_sink *sink)
{
    if (count < SINKS)
        sinks[count++] = sink;
}

bool report_is_on(void)
{
    return count > 0;
}

static bool takes(const struct report_sink *sink, const struct accel_record *record)
{
    return !(sink->whole_calls && record->inner);
}

bool report_takes(const struct accel_record *record)
{
    for (int i = 0; i < count; i++)
        if (takes(sinks[i], record))
            return true;
    return false;
}

bool report_takes_events(void)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->event)
            return true;
    return false;
}

bool report_takes_steps(void)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->steps)
            return true;
    return false;
}

/* Of the decisions reported so far inside the call that this thread runs. A call that the program
 * leaves by longjmp(3) leaves it wrong for the calls around it, which are most likely left as well;
 * others begin anew. */
static _Thread_local struct accel_inner inner __attribute__((tls_model("initial-exec")));

struct accel_inner report_begin_inner(void)
{
    const struct accel_inner before = inner;
    inner = (struct accel_inner){0, 0};
    return before;
}

struct accel_inner report_end_inner(struct accel_inner before)
{
    const struct accel_inner in_between = inner;
    inner = before;
    return in_between;
}

void report_decision(const struct accel_record *record)
{
    if (record->ms > 0)
        inner.ms += record->ms;
    inner.gpu_calls += record->in.gpu_calls + (record->gpu && strcmp(record->ran, "cpu") != 0);
    for (int i = 0; i < count; i++)
        if (takes(sinks[i], record))
            sinks[i]->decision(record);
}

void report_event(const struct accel_record *record, const struct gpu_event *event)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->event)
            sinks[i]->event(record, event);
}

void report_steps(const struct accel_record *record, const char *device,
                  const struct gpu_steps *steps)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->steps)
            sinks[i]->steps(record, device, steps);
}

void report_pinned(const struct accel_record *record)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->pinned)
            sinks[i]->pinned(record);
}

void report_server_lost(const char *reason)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->server_lost)
            sinks[i]->server_lost(reason);
}

void report_end(void)
{
    for (int i = 0; i < count; i++)
        if (sinks[i]->end)
            sinks[i]->end();
}
