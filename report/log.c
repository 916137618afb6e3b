#define _GNU_SOURCE
#include "log.h"

#include <unistd.h>

#include "base/output.h"
#include "ops/op.h"
#include "base/text.h"
#include "report.h"

/* Constant after the start. */
static const char *file;
static double min_ms;

/* One line: the same fields as text (key=value) or as JSON. */
struct line {
    struct accel_text text;
    bool json;
    char buffer[1024];
};

static void key(struct line *line, const char *name)
{
    bool first = line->text.length == (line->json ? 1 : sizeof "accel " - 1);
    if (!first)
        text_string(&line->text, line->json ? ", " : " ");
    if (line->json) {
        text_json_string(&line->text, name);
        text_string(&line->text, ": ");
    } else {
        text_string(&line->text, name);
        text_char(&line->text, '=');
    }
}

static void field_string(struct line *line, const char *name, const char *value)
{
    key(line, name);
    if (line->json)
        text_json_string(&line->text, value);
    else
        text_string(&line->text, value);
}

static void field_integer(struct line *line, const char *name, int64_t value)
{
    key(line, name);
    text_integer(&line->text, value);
}

static void field_decimal(struct line *line, const char *name, double value)
{
    key(line, name);
    text_decimal(&line->text, value);
}

static void line_start(struct line *line, const struct accel_record *record, bool json)
{
    text_start(&line->text, line->buffer, sizeof line->buffer - 2); /* room for "}\n" */
    line->json = json;
    text_string(&line->text, json ? "{" : "accel ");
    field_integer(line, "pid", getpid());
    field_integer(line, "tid", gettid());
    field_string(line, "sym", record->symbol);
}

static void line_end(struct line *line)
{
    line->text.size = sizeof line->buffer;
    text_string(&line->text, line->json ? "}\n" : "\n");
    output_log(file, line->buffer, line->text.length);
}

/* Puts the fields that the operation describes a call with into a line. */
struct own_fields {
    struct accel_fields fields; /* first: the operation has a pointer to it */
    struct line *line;
};

static void own_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    field_integer(((const struct own_fields *)fields)->line, name, value);
}

static void own_string(const struct accel_fields *fields, const char *name, const char *value)
{
    field_string(((const struct own_fields *)fields)->line, name, value);
}

/* A call that was not timed may have taken long. */
static bool is_short(const struct accel_record *record)
{
    return record->ms >= 0 && record->ms < min_ms;
}

static void put_fields(struct line *line, const struct accel_record *record)
{
    const struct accel_decision *decision = &record->decision;
    const struct own_fields own = {{own_integer, own_string}, line};
    accel_describe(record->call, &own.fields);
    field_string(line, "ran", record->ran);
    field_string(line, "why", accel_why_name(record->why));
    if (decision->est_cpu_ms > 0) {
        field_decimal(line, "est_cpu_ms", decision->est_cpu_ms);
        field_decimal(line, "est_gpu_ms", decision->est_gpu_ms);
    }
    if (record->ms >= 0)
        field_decimal(line, "ms", record->ms);
    if (record->up_bytes || record->down_bytes) {
        field_decimal(line, "up_mb", (double)record->up_bytes * 1e-6);
        field_decimal(line, "down_mb", (double)record->down_bytes * 1e-6);
    }
    if (record->kept_bytes)
        field_decimal(line, "kept_mb", (double)record->kept_bytes * 1e-6);
    if (record->precision)
        field_string(line, "precision", record->precision);
    if (record->verify >= 0)
        field_decimal(line, "verify", record->verify);
    else if (record->verify > VERIFY_NOT_ASKED)
        field_string(line, "verify", "unknown");
    if (record->depth > 0)
        field_integer(line, "depth", record->depth);
}

static void put_decision(const struct accel_record *record, bool json)
{
    struct line line;
    if (is_short(record))
        return;
    line_start(&line, record, json);
    put_fields(&line, record);
    line_end(&line);
}

void log_put_fields(struct accel_text *text, const struct accel_record *record)
{
    struct line line;
    line.json = true;
    text_start(&line.text, line.buffer, sizeof line.buffer - 2); /* room for "}" */
    text_char(&line.text, '{');
    put_fields(&line, record);
    line.text.size = sizeof line.buffer;
    text_char(&line.text, '}');
    text_end(&line.text);
    text_string(text, line.buffer);
}

static void put_event(const struct accel_record *record, const struct gpu_event *event)
{
    static const char *const names[] = {[GPU_EVENT_H2D] = "h2d",
                                        [GPU_EVENT_D2H] = "d2h",
                                        [GPU_EVENT_IN_PLACE] = "in_place",
                                        [GPU_EVENT_KEPT] = "kept",
                                        [GPU_EVENT_ALLOCATE] = "allocate"};
    struct line line;
    line_start(&line, record, false);
    field_string(&line, "event", names[event->kind]);
    if (event->operand)
        field_string(&line, "operand", event->operand);
    if (event->rows) {
        field_integer(&line, "rows", event->rows);
        field_integer(&line, "cols", event->cols);
    }
    field_decimal(&line, "mb", (double)event->bytes * 1e-6);
    line_end(&line);
}

static void put_pinned(const struct accel_record *record, bool json)
{
    struct line line;
    line_start(&line, record, json);
    field_string(&line, "event", "pinned");
    field_decimal(&line, "ms", record->ms);
    field_decimal(&line, "est_cpu_ms", record->decision.est_cpu_ms);
    line_end(&line);
}

/* Whether the call is only a part of one that stays on one side, which has a line. A part that the GPU got is news. */
static bool is_told_by_outer(const struct accel_record *record)
{
    return record->depth > 0 && (record->inner || !record->decision.gpu);
}

static void whole_decision(const struct accel_record *record)
{
    if (!is_told_by_outer(record))
        put_decision(record, false);
}

static void text_decision(const struct accel_record *record)
{
    put_decision(record, false);
}

static void json_decision(const struct accel_record *record)
{
    put_decision(record, true);
}

static void text_pinned(const struct accel_record *record)
{
    put_pinned(record, false);
}

static void json_pinned(const struct accel_record *record)
{
    put_pinned(record, true);
}

void log_start(enum accel_log_level level, const char *to, double from_ms)
{
    static const struct report_sink text = {.decision = whole_decision, .pinned = text_pinned},
                                    moves = {.decision = text_decision,
                                             .event = put_event,
                                             .pinned = text_pinned},
                                    json = {.decision = json_decision, .pinned = json_pinned};
    static const struct report_sink *const sinks[] = {
        [ACCEL_LOG_DECISIONS] = &text, [ACCEL_LOG_MOVES] = &moves, [ACCEL_LOG_JSON] = &json};
    file = to;
    min_ms = from_ms;
    if (level != ACCEL_LOG_OFF)
        report_subscribe(sinks[level]);
}
