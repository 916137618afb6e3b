#define _GNU_SOURCE
#include "log.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/output/output.h"
#include "base/output/message.h"
#include "ops/op.h"
#include "banner.h"
#include "line.h"
#include "log_json.h"
#include "report.h"

/* Constant after the start. */
static const char *file;
static double min_ms;

/* What each line begins with. */
static void begin_log_line(struct report_line *line, bool json)
{
    line_start(line, json);
    if (json)
        log_json_begin(line);
    line_integer(line, "pid", getpid());
    line_integer(line, "tid", gettid());
}

static void end_log_line(struct report_line *line)
{
    line_end(line);
    output_log(file, line->text.at, line->text.length);
}

/* ---- What is told once ---- */

static atomic_uint told;

static void tell_anew(void)
{
    atomic_store(&told, 0);
}
FORKS_CHILD(tell_anew);

/* Lines before the first decision, and before the first one after a GPU or cuSOLVER has started:
 * CUDA may start late, or not at all. Not inlined: the frame of a decision that has no news has no
 * line but its own. */
static __attribute__((noinline)) void put_news(unsigned news, bool json)
{
    struct report_line line;
    for (unsigned part = 0; news >> part; part++) {
        if (!(news >> part & 1) || (!json && !file && banner_is_said(part)))
            continue;
        begin_log_line(&line, json);
        if (banner_put(&line, part))
            end_log_line(&line);
    }
}

static void put_banner(bool json)
{
    const unsigned news = banner_news(&told);
    if (news)
        put_news(news, json);
}

/* ---- Lines ---- */

/* Puts the fields that the operation describes a call with into a line. */
struct own_fields {
    struct accel_fields fields; /* first: the operation has a pointer to it */
    struct report_line *line;
};

static void own_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    line_integer(((const struct own_fields *)fields)->line, name, value);
}

static void own_string(const struct accel_fields *fields, const char *name, const char *value)
{
    line_string(((const struct own_fields *)fields)->line, name, value);
}

/* A call that was not timed may have taken long. */
static bool is_short(const struct accel_record *record)
{
    return record->ms >= 0 && record->ms < min_ms;
}

static void put_fields(struct report_line *line, const struct accel_record *record)
{
    const struct accel_decision *decision = &record->decision;
    const struct own_fields own = {{own_integer, own_string}, line};
    accel_describe(record->call, &own.fields);
    line_string(line, "ran", record->ran);
    line_string(line, "why", accel_why_name(record->why));
    if (decision->est_cpu_ms > 0) {
        line_decimal(line, "est_cpu_ms", decision->est_cpu_ms);
        line_decimal(line, "est_gpu_ms", decision->est_gpu_ms);
    }
    if (record->ms >= 0)
        line_decimal(line, "ms", record->ms);
    if (record->up_bytes || record->down_bytes) {
        line_decimal(line, "up_mb", (double)record->up_bytes * 1e-6);
        line_decimal(line, "down_mb", (double)record->down_bytes * 1e-6);
    }
    if (record->peer_bytes)
        line_decimal(line, "peer_mb", (double)record->peer_bytes * 1e-6);
    if (record->kept_bytes)
        line_decimal(line, "kept_mb", (double)record->kept_bytes * 1e-6);
    if (record->in.gpu_calls)
        line_integer(line, "inner_gpu", record->in.gpu_calls);
    if (record->arithmetic)
        line_string(line, "arithmetic", record->arithmetic);
    if (record->precision)
        line_string(line, "precision", record->precision);
    if (record->verify >= 0)
        line_decimal(line, "verify", record->verify);
    else if (record->verify > VERIFY_NOT_ASKED)
        line_string(line, "verify", "unknown");
}

/* What JSON has besides. */
static void put_details(struct report_line *line, const struct accel_record *record)
{
    const struct own_fields own = {{own_integer, own_string}, line};
    accel_describe_scalars(record->call, &own.fields);
    log_json_details(line, record);
}

static void put_decision(const struct accel_record *record, bool json)
{
    struct report_line line;
    if (is_short(record))
        return;
    put_banner(json);
    begin_log_line(&line, json);
    line_string(&line, "sym", record->symbol);
    put_fields(&line, record);
    if (json)
        put_details(&line, record);
    else if (record->depth > 0)
        line_integer(&line, "depth", record->depth);
    end_log_line(&line);
}

void log_put_fields(struct accel_text *text, const struct accel_record *record)
{
    struct report_line line;
    line_start(&line, true);
    put_fields(&line, record);
    text_char(&line.text, '}');
    text_end(&line.text);
    text_string(text, line.buffer);
}

static void put_event(const struct accel_record *record, const struct gpu_event *event)
{
    static const char *const names[] = {
        [GPU_EVENT_H2D] = "h2d",           [GPU_EVENT_D2H] = "d2h",
        [GPU_EVENT_IN_PLACE] = "in_place", [GPU_EVENT_MIGRATE] = "migrate",
        [GPU_EVENT_PEER] = "peer",         [GPU_EVENT_CACHED] = "kept",
        [GPU_EVENT_ALLOCATE] = "allocate"};
    struct report_line line;
    put_banner(false);
    begin_log_line(&line, false);
    line_string(&line, "sym", record->symbol);
    line_string(&line, "event", names[event->kind]);
    if (event->operand)
        line_string(&line, "operand", event->operand);
    if (event->rows) {
        line_integer(&line, "rows", event->rows);
        line_integer(&line, "cols", event->cols);
    }
    line_decimal(&line, "mb", (double)event->bytes * 1e-6);
    end_log_line(&line);
}

static void put_pinned(const struct accel_record *record, bool json)
{
    struct report_line line;
    begin_log_line(&line, json);
    line_string(&line, "sym", record->symbol);
    line_string(&line, "event", "pinned");
    line_decimal(&line, "ms", record->ms);
    line_decimal(&line, "est_cpu_ms", record->decision.est_cpu_ms);
    end_log_line(&line);
}

static void put_server_lost(const char *reason, bool json)
{
    struct report_line line;
    begin_log_line(&line, json);
    line_string(&line, "event", "server_lost");
    line_words(&line, "reason", reason);
    end_log_line(&line);
}

static void text_server_lost(const char *reason)
{
    put_server_lost(reason, false);
}

static void json_server_lost(const char *reason)
{
    put_server_lost(reason, true);
}

/* Calls inside others are a part of those, which have a line. */
static void whole_decision(const struct accel_record *record)
{
    if (record->depth == 0)
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

static void whole_pinned(const struct accel_record *record)
{
    if (record->depth == 0)
        put_pinned(record, false);
}

static void text_pinned(const struct accel_record *record)
{
    put_pinned(record, false);
}

/* A message among the lines, also where they go to a file, which then is read as a whole. True:
 * stderr has got it as a line. */
static bool json_message(const char *message)
{
    struct report_line line;
    begin_log_line(&line, true);
    line_string(&line, "event", "message");
    line_string(&line, "text", message);
    line_end(&line);
    /* A message while a line is written says that the log's file cannot be used: then lines may go
     * to stderr. */
    if (file && output_log_in_time(file, OUTPUT_LINES, line.text.at, line.text.length))
        return output_log_is_stderr();
    output_stderr(line.text.at, line.text.length);
    return true;
}

static void json_pinned(const struct accel_record *record)
{
    put_pinned(record, true);
}

void log_start(enum accel_log_level level, const char *to, double from_ms)
{
    static const struct report_sink text = {.decision = whole_decision,
                                            .pinned = whole_pinned,
                                            .server_lost = text_server_lost},
                                    moves = {.decision = text_decision,
                                             .event = put_event,
                                             .pinned = text_pinned,
                                             .server_lost = text_server_lost},
                                    json = {.decision = json_decision,
                                            .pinned = json_pinned,
                                            .server_lost = json_server_lost};
    static const struct report_sink *const sinks[] = {
        [ACCEL_LOG_DECISIONS] = &text, [ACCEL_LOG_MOVES] = &moves, [ACCEL_LOG_JSON] = &json};
    file = to;
    min_ms = from_ms;
    if (level == ACCEL_LOG_JSON) {
        log_json_start();
        message_to(json_message);
    }
    if (level != ACCEL_LOG_OFF)
        report_subscribe(sinks[level]);
}
