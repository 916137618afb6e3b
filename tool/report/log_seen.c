#define _GNU_SOURCE
#include "log_seen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/hash.h"
#include "tool/util/complain.h"

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

/* Never 0; a text that is missing counts as an empty one. */
static uint64_t extend_key(uint64_t before, const char *text)
{
    return hash_text(before, text ? text : "") | 1;
}

/* Returns the time of day at which a line was written, in seconds; NAN: the line does not say. */
static double time_of_line(const struct log_line *line)
{
    const double time_s = log_number(line, "time", NAN);
    return fabs(time_s) < 1e12 ? time_s : NAN;
}

/* Returns the process of a line; once all places are taken, NULL for a new one. */
static struct seen_process *find_process(struct log_seen *seen, const struct log_line *line)
{
    const char *host = log_string(line, "host");
    const uint64_t key =
        extend_key(extend_key(0, host ? host : line->path), log_string(line, "pid"));
    for (uint64_t at = key;; at++) {
        struct seen_process *process = &seen->process[at % (2 * SEEN_PROCESSES)];
        if (process->key == key)
            return process;
        if (process->key)
            continue;
        if (seen->processes == SEEN_PROCESSES)
            return NULL;
        seen->processes++;
        *process = (struct seen_process){.key = key, .start_ms = -1, .first_s = NAN, .last_s = NAN};
        return process;
    }
}

static void note_call(struct seen_process *process, const struct log_line *line, double ms)
{
    const uint64_t thread = extend_key(0, log_string(line, "tid"));
    const double end_s = time_of_line(line);
    process->threads = process->threads || (process->thread && process->thread != thread);
    process->thread = thread;
    process->first_s = fmin(process->first_s, end_s - fmax(0, ms) * 1e-3);
    process->last_s = fmax(process->last_s, end_s);
}

/* ---- Events ---- */

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names;
}

static bool tells_processes_apart(const char *name)
{
    static const char *const names[] = {"v",     "pid",  "tid",      "thread", "time",
                                        "event", "rank", "start_ms", NULL};
    return is_one_of(name, names);
}

static bool tells_machines_apart(const char *name)
{
    static const char *const names[] = {"host", "gpu_id", "index", NULL};
    return is_one_of(name, names);
}

/* Whether "a, b" has this item, or no more room. */
static bool list_has(const char *list, const char *item)
{
    const size_t length = strlen(item), all = strlen(list);
    if (all >= 3 && strcmp(list + all - 3, "...") == 0)
        return true;
    for (const char *at = list; length > 0 && (at = strstr(at, item)); at++)
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ','))
            return true;
    return length == 0;
}

static void add_to_list(char **list, const char *item)
{
    char *longer = NULL;
    if (list_has(*list, item))
        return;
    const bool fits = strlen(*list) + strlen(item) < SEEN_LIST_BYTES;
    if (asprintf(&longer, "%s%s%s", *list, **list ? ", " : "", fits ? item : "...") < 0)
        longer = NULL;
    free(*list);
    *list = must(longer);
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
            (!tells_machines_apart(line->field[i].name) &&
             strcmp(event->field[2 * j + 1], line->field[i].value) != 0))
            return false;
        j++;
    }
    return j == event->fields;
}

static void add_machine(struct seen_event *event, const struct log_line *line)
{
    for (int j = 0; j < event->fields; j++)
        if (tells_machines_apart(event->field[2 * j]))
            add_to_list(&event->field[2 * j + 1], log_string(line, event->field[2 * j]));
}

static void note_event(struct log_seen *seen, const struct log_line *line)
{
    int i = 0;
    if (log_string(line, "sym") || strcmp(line->event, "summary") == 0) /* of calls */
        return;
    while (i < seen->events && !is_like(&seen->event[i], line))
        i++;
    seen->events_left_out += i == SEEN_EVENTS;
    if (i == SEEN_EVENTS)
        return;
    struct seen_event *event = &seen->event[i];
    event->lines++;
    if (i < seen->events) {
        add_machine(event, line);
        return;
    }
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

/* ---- Starts ---- */

/* Of several GPUs of a process the first: calls run there while the others start. */
static void note_start(struct log_seen *seen, const struct log_line *line)
{
    struct seen_process *process = log_string(line, "start_ms") ? find_process(seen, line) : NULL;
    if (process && process->start_ms < 0)
        process->start_ms = log_number(line, "start_ms", -1);
}

/* Once the GPU is ready, a routine's first call may wait for its kernels: it would lose as much. */
static void note_warming(struct log_seen *seen, struct seen_process *process,
                         const struct log_decision *decision)
{
    const double lost = decision->ms - decision->est_gpu_ms;
    if (!process || decision->side != LOG_CPU || decision->inner ||
        strcmp(decision->why, "warming") != 0)
        return;
    if (process->start_ms < 0)
        process->warming = true;
    else if (decision->est_gpu_ms > 0 && lost > 0)
        seen->loading_ms += lost;
}

double log_seen_starting(const struct log_seen *seen)
{
    double ms = seen->loading_ms;
    for (int i = 0; i < 2 * SEEN_PROCESSES; i++) {
        const struct seen_process *process = &seen->process[i];
        if (process->warming && process->start_ms < 0)
            return -1;
        ms += process->warming ? process->start_ms : 0;
    }
    return 1e-3 * ms;
}

/* ---- Time ---- */

double log_seen_seconds(const struct log_seen *seen, double *outside)
{
    double seconds = 0;
    bool threads = false;
    for (int i = 0; i < 2 * SEEN_PROCESSES; i++) {
        const struct seen_process *process = &seen->process[i];
        if (!process->thread)
            continue;
        seconds += process->last_s - process->first_s;
        threads = threads || process->threads;
    }
    *outside = threads ? -1 : fmax(0, seconds - seen->sums.all.is.seconds);
    if (seconds > 0)
        return seconds;
    *outside = -1;
    return -1;
}

/* ---- Decisions ---- */

static void put_on_timeline(struct log_seen *seen, const struct log_line *line,
                            const struct log_decision *decision)
{
    const char *host = log_string(line, "host"), *given = log_string(line, "rank"),
               *rank = given && strcmp(given, "0") != 0 ? given : NULL,
               *pid = log_string(line, "pid"), *tid = log_string(line, "tid");
    char thread[160], before[128];
    snprintf(thread, sizeof thread, "%s%s%s%s%spid %s thread %s", host ? host : "", host ? " " : "",
             rank ? "rank " : "", rank ? rank : "", rank ? " " : "", pid ? pid : "?",
             tid ? tid : "?");
    snprintf(before, sizeof before, "%s%s", host ? host : "", host ? " " : "");
    timeline_add(&seen->timeline, decision, time_of_line(line), thread, before);
}

void log_seen_take(void *context, const struct log_line *line)
{
    struct log_seen *seen = context;
    struct log_decision decision;
    if (line->event) {
        note_event(seen, line);
        note_start(seen, line);
        return;
    }
    log_decision_read(&decision, line);
    log_sums_add(&seen->sums, &decision);
    struct seen_process *process = find_process(seen, line);
    if (process)
        note_call(process, line, decision.ms);
    note_warming(seen, process, &decision);
    if (!*seen->gpu && log_string(line, "gpu"))
        snprintf(seen->gpu, sizeof seen->gpu, "%s", log_string(line, "gpu"));
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
