/* One record goes to every sink that has subscribed, and an estimate is one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ops/op.h"
#include "report/banner.h"
#include "report/estimate.h"
#include "report/line.h"
#include "report/log.h"
#include "report/report.h"

static int decisions, inner, events, pinned, ends;

static void count_decision(const struct accel_record *record)
{
    decisions++;
    inner += record->inner;
}

static void count_event(const struct accel_record *record, const struct gpu_event *event)
{
    (void)record;
    events += event->kind == GPU_EVENT_H2D;
}

static void count_pinned(const struct accel_record *record)
{
    (void)record;
    pinned++;
}

static void count_end(void)
{
    ends++;
}

static const struct report_sink all = {
    .decision = count_decision, .event = count_event, .pinned = count_pinned, .end = count_end};
static const struct report_sink decisions_alone = {.decision = count_decision, .whole_calls = true};

static struct accel_call call;

static struct accel_record record_with(bool gpu, double ms)
{
    const struct accel_decision decision = {
        .gpu = gpu, .why = ACCEL_FASTER, .est_cpu_ms = 4, .est_gpu_ms = 2};
    struct accel_record record = record_of(&call, "symbol", 1, decision);
    record.ms = ms;
    return record;
}

static void a_record_begins_on_the_cpu(void **state)
{
    const struct accel_record record = record_with(true, -1);
    (void)state;
    assert_string_equal(record.ran, "cpu");
    assert_int_equal(record.why, ACCEL_FASTER);
    assert_true(record.verify == VERIFY_NOT_ASKED);
    assert_false(record.inner);
}

static void no_sink_takes_nothing(void **state)
{
    const struct accel_record record = record_with(true, 1);
    (void)state;
    assert_false(report_is_on());
    assert_false(report_takes(&record));
    assert_false(report_takes_events());
    report_decision(&record);
    report_end();
}

static void each_sink_has_what_it_takes(void **state)
{
    const struct gpu_event event = {.kind = GPU_EVENT_H2D};
    struct accel_record record = record_with(true, 1);
    (void)state;
    report_subscribe(&decisions_alone);
    assert_true(report_is_on());
    assert_false(report_takes_events());
    report_event(&record, &event);
    assert_int_equal(events, 0);
    report_decision(&record);
    assert_int_equal(decisions, 1);
    record.inner = true;
    assert_false(report_takes(&record));
    report_subscribe(&all);
    assert_true(report_takes(&record));
    assert_true(report_takes_events());
    report_decision(&record);
    assert_int_equal(decisions, 2);
    assert_int_equal(inner, 1);
    report_event(&record, &event);
    report_pinned(&record);
    report_end();
    assert_int_equal(events, 1);
    assert_int_equal(pinned, 1);
    assert_int_equal(ends, 1);
}

/* Each original's share is that of the calls one deeper. */
static void inner_times_are_of_the_next_depth(void **state)
{
    struct accel_record record = record_with(false, 2);
    (void)state;
    const struct accel_inner first = report_begin_inner();
    report_decision(&record);
    const struct accel_inner second = report_begin_inner();
    record.ms = 0.5;
    report_decision(&record);
    report_decision(&record);
    assert_true(report_end_inner(second).ms == 1);
    record.ms = 3;
    report_decision(&record);
    record.ms = -1;
    report_decision(&record);
    assert_true(report_end_inner(first).ms == 5);
    assert_true(report_end_inner(report_begin_inner()).ms == 0);
}

/* However deep; not a call that the GPU began, and the CPU ran. */
static void inner_calls_are_those_that_the_gpu_has_run(void **state)
{
    static const struct gpu_info gpu;
    struct accel_record record = record_with(true, 2);
    (void)state;
    const struct accel_inner before = report_begin_inner();
    record.gpu = &gpu;
    record.ran = "gpu0";
    record.in.gpu_calls = 3;
    report_decision(&record);
    record.ran = "cpu";
    report_decision(&record);
    assert_int_equal(report_end_inner(before).gpu_calls, 3 + 1 + 3);
}

/* Not what was not timed, nor what is a part of a call that was counted. */
static void an_estimate_counts_whole_calls(void **state)
{
    char folder[] = "/tmp/accel-report-XXXXXX", path[64];
    static const struct simulated_start_rules rules = {
        .cuda_ms = 1, .begins_ms = 3, .waits_from_ms = 3};
    struct estimate_sums sums[8] = {{0}};
    struct accel_record record = record_with(true, 5);
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    estimate_start(folder, &rules);
    report_decision(&record);
    record.inner = true;
    report_decision(&record);
    record = record_with(true, 1);
    record.start_ms = 5;
    report_decision(&record);
    record = record_with(false, 3);
    report_decision(&record);
    record.ms = 7;
    record.in.ms = 3; /* the one before was inside */
    report_decision(&record);
    record = record_with(true, 2);
    record.start_ms = 6;
    record.in.ms = 1; /* not reported to an estimate */
    report_decision(&record);
    record = record_with(false, -1);
    report_decision(&record);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(sums, sizeof *sums, 8, file), 8);
    fclose(file);
    unlink(path);
    rmdir(folder);
    const struct estimate_sums *of_call = &sums[call.routine - accel_routines];
    assert_int_equal(of_call->calls, 5);
    assert_int_equal(of_call->gpu_calls, 3);
    assert_int_equal(of_call->lost_calls, 1);
    assert_true(of_call->cpu_ms == 15 && of_call->gpu_cpu_ms == 8);
    assert_true(of_call->est_gpu_ms == 6 && of_call->lost_ms == 1);
    assert_true(of_call->saved_ms == 3 - 1 - 1); /* the first call would have waited */
}

/* The longest line of a routine: every number has as many digits as it can have, and no field is
 * left out. */
static struct accel_record longest_of(struct accel_call *longest,
                                      const struct accel_routine *routine)
{
    static const char symbol[] = "scipy_LAPACKE_zgemm_batch_strided_work64_";
    static struct gpu_info gpu;
    const struct accel_decision decision = {
        .gpu = true, .why = ACCEL_WORKSPACE_QUERY, .est_cpu_ms = 1e15, .est_gpu_ms = 1e15};
    memset(gpu.name, 'N', sizeof gpu.name - 1);
    memset(gpu.id, 'i', sizeof gpu.id - 1);
    *longest = (struct accel_call){.routine = routine, .parts = INT64_MAX, .part = INT64_MAX - 1};
    longest->blas.layout = ACCEL_ROW_MAJOR;
    for (int i = 0; i < routine->args; i++)
        longest->blas.given[i] = routine->arg[i].kind == ACCEL_ARG_FLAG ? 'N' : INT64_MIN;
    for (int i = 0; i < ACCEL_SCALARS; i++)
        longest->blas.scalar[i].re = 2;
    for (int i = 0; i < ACCEL_SPANS; i++)
        longest->span[i] = (struct accel_span){.name = "superb_and_on",
                                               .ptr = (void *)(uintptr_t)4096,
                                               .ld = INT64_MIN,
                                               .place = ACCEL_MANAGED};
    struct accel_record record = record_of(longest, symbol, 1, decision);
    record.ran = "gpu63+gpu62+cpu";
    record.ms = 1e15;
    record.up_bytes = record.down_bytes = record.kept_bytes = INT64_MAX;
    record.precision = "emulated";
    record.verify = 1e15;
    record.has_info = true;
    record.info = INT64_MIN;
    record.depth = 8;
    record.gpu = &gpu;
    return record;
}

static void a_field_that_does_not_fit_is_left_out(void **state)
{
    static char value[LINE_BYTES];
    struct report_line line;
    (void)state;
    for (int json = 0; json < 2; json++) {
        const char *const begin = json ? "{" : "accel ", *const end = json ? "}\n" : "\n";
        const size_t room = LINE_BYTES - 2 - strlen(begin) - strlen(json ? "\"a\": \"\"" : "a=");
        memset(value, 'x', sizeof value);
        value[room] = 0; /* one more than fits */
        line_start(&line, json);
        line_words(&line, "a", value);
        line_integer(&line, "b", 12);
        line_end(&line);
        const char *whole = json ? "{\"b\": 12}\n" : "accel b=12\n";
        assert_int_equal(line.text.length, strlen(whole));
        assert_memory_equal(line.buffer, whole, strlen(whole));
        value[room - 1] = 0;
        line_start(&line, json);
        line_words(&line, "a", value);
        line_end(&line);
        assert_int_equal(line.text.length, LINE_BYTES - 3 + strlen(end));
        assert_memory_equal(line.buffer + line.text.length - strlen(end), end, strlen(end));
    }
}

static void words_with_blanks_are_quoted(void **state)
{
    static const char whole[] = "accel a=b/c b=\"d e\" c=\"\" d=\"\\\"\" e=\"\\u000a\"\n";
    struct report_line line;
    (void)state;
    line_start(&line, false);
    line_words(&line, "a", "b/c");
    line_words(&line, "b", "d e");
    line_words(&line, "c", "");
    line_words(&line, "d", "\"");
    line_words(&line, "e", "\n");
    line_end(&line);
    assert_int_equal(line.text.length, sizeof whole - 1);
    assert_memory_equal(line.buffer, whole, sizeof whole - 1);
}

static void the_longest_line_is_whole(void **state)
{
    char path[] = "/tmp/accel-report-XXXXXX", line[LINE_BYTES + 2];
    static char calibration[LINE_BYTES];
    int lines = 1; /* that of the GPU */
    (void)state;
    memset(calibration, '/', sizeof calibration - 1);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    log_start(ACCEL_LOG_JSON, path, 0);
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        struct accel_call longest;
        if (!accel_is_blas(&accel_routines[i]))
            continue;
        const struct accel_record record = longest_of(&longest, &accel_routines[i]);
        banner_gpu(record.gpu, (struct banner_figures){calibration, INT64_MAX / 2}, 12345.678);
        report_decision(&record);
        lines++;
    }
    FILE *file = fdopen(fd, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const size_t length = strlen(line);
        assert_true(length < LINE_BYTES);
        assert_string_equal(line + length - 2, "}\n");
        assert_non_null(strstr(line, "\"gpu_id\": \"iiii"));
        lines--;
    }
    assert_int_equal(lines, 0);
    fclose(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_begins_on_the_cpu),
        cmocka_unit_test(no_sink_takes_nothing),
        cmocka_unit_test(each_sink_has_what_it_takes),
        cmocka_unit_test(inner_times_are_of_the_next_depth),
        cmocka_unit_test(inner_calls_are_those_that_the_gpu_has_run),
        cmocka_unit_test(an_estimate_counts_whole_calls),
        cmocka_unit_test(the_longest_line_is_whole),
        cmocka_unit_test(a_field_that_does_not_fit_is_left_out),
        cmocka_unit_test(words_with_blanks_are_quoted),
    };
    call.routine = &accel_routines[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
