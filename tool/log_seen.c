#define _GNU_SOURCE
#include "log_seen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "complain.h"

static void *must(void *memory)
{
    return memory ? memory : exit(complain(2, "accel: %s\n", strerror(ENOMEM))), memory;
}

struct log_seen *log_seen_open(void)
{
    return must(calloc(1, sizeof(struct log_seen)));
}

void log_seen_close(struct log_seen *seen)
{
    for (int i = 0; i < seen->events; i++) {
        for (int j = 0; j < 2 * seen->event[i].fields; j++)
            free(seen->event[i].field[j]);
        free(seen->event[i].field);
        free(seen->event[i].name);
    }
    free(seen);
}

/* ---- Processes ---- */

static uint64_t hash(uint64_t h, const char *text)
{
    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (h ^ 0xff) * 1099511628211u;
}

static void note_process(struct log_seen *seen, const struct log_line *line)
{
    const uint64_t key =
        hash(hash(14695981039346656037u, log_string(line, "host")), log_string(line, "pid")) | 1;
    uint64_t at = key;
    while (seen->process[at % (2 * SEEN_PROCESSES)] &&
           seen->process[at % (2 * SEEN_PROCESSES)] != key)
        at++;
    if (seen->process[at % (2 * SEEN_PROCESSES)] == key || seen->processes == SEEN_PROCESSES)
        return;
    seen->process[at % (2 * SEEN_PROCESSES)] = key;
    seen->processes++;
}

/* ---- Events ---- */

static bool tells_processes_apart(const char *name)
{
    static const char *const names[] = {"v", "pid", "tid", "thread", "time", "event", "rank"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_like(const struct seen_event *event, const struct log_line *line)
{
    int j = 0;
    if (strcmp(event->name, line->event) != 0)
        return false;
    for (int i = 0; i < line->fields; i++) {
        if (tells_processes_apart(line->field[i].name))
            continue;
        if (j == event->fields || strcmp(event->field[2 * j], line->field[i].name) != 0 ||
            strcmp(event->field[2 * j + 1], line->field[i].value) != 0)
            return false;
        j++;
    }
    return j == event->fields;
}

static void note_event(struct log_seen *seen, const struct log_line *line)
{
    int i = 0;
    seen->pinned += strcmp(line->event, "pinned") == 0;
    if (log_string(line, "sym")) /* of a call */
        return;
    while (i < seen->events && !is_like(&seen->event[i], line))
        i++;
    if (i == SEEN_EVENTS)
        return;
    struct seen_event *event = &seen->event[i];
    event->lines++;
    if (i < seen->events)
        return;
    seen->events++;
    event->name = must(strdup(line->event));
    event->field = must(calloc(2 * (size_t)line->fields + 1, sizeof *event->field));
    for (int j = 0; j < line->fields; j++) {
        if (tells_processes_apart(line->field[j].name))
            continue;
        event->field[2 * event->fields] = must(strdup(line->field[j].name));
        event->field[2 * event->fields + 1] = must(strdup(line->field[j].value));
        event->fields++;
    }
}

const char *log_seen_fact(const struct log_seen *seen, const char *name)
{
    for (int i = 0; i < seen->events; i++)
        for (int j = 0; j < seen->event[i].fields; j++)
            if (strcmp(seen->event[i].field[2 * j], name) == 0)
                return seen->event[i].field[2 * j + 1];
    return NULL;
}

/* ---- Decisions ---- */

/* Returns the time of day at which a line was written, in seconds; NAN: the line does not say. */
static double time_of(const struct log_line *line)
{
    const char *text = log_string(line, "time");
    struct tm tm = {.tm_year = 0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!rest)
        return NAN;
    return (double)timegm(&tm) + (*rest == '.' ? strtod(rest, NULL) : 0);
}

static void put_on_timeline(struct log_seen *seen, const struct log_line *line,
                            const struct log_decision *decision)
{
    const char *host = log_string(line, "host"), *rank = log_string(line, "rank");
    char thread[160], device[160];
    snprintf(thread, sizeof thread, "%s%s%s%s%spid %s thread %s", host ? host : "", host ? " " : "",
             rank ? "rank " : "", rank ? rank : "", rank ? " " : "", log_string(line, "pid"),
             log_string(line, "tid"));
    snprintf(device, sizeof device, "%s%s%s", host ? host : "", host ? " " : "", decision->device);
    timeline_add(&seen->timeline, decision, time_of(line), thread, device);
}

void log_seen_take(void *context, const struct log_line *line)
{
    struct log_seen *seen = context;
    struct log_decision decision;
    note_process(seen, line);
    if (line->event) {
        note_event(seen, line);
        return;
    }
    log_decision_read(&decision, line);
    decision.own_ms = log_inner_own_ms(&seen->inner, line, decision.ms);
    log_sums_add(&seen->sums, &decision);
    put_on_timeline(seen, line, &decision);
    if (decision.ms <= 0 || (decision.inner && decision.side == LOG_CPU))
        return;
    const double ms = decision.ms / (double)decision.calls;
    scatter_add(&seen->sizes, &decision, decision.size, ms);
    if (decision.operations > 0 && decision.operand_bytes > 0) {
        scatter_add(&seen->rates, &decision, decision.operations / decision.operand_bytes,
                    decision.operations / decision.ms * 1e-6);
        seen->has_rate[accel_is_double(decision.dtype)] = true;
    }
}
