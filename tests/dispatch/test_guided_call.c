/*
 * A call of a library that computes on the GPU by itself, by a guide that the test makes: which
 * device it is told to use, or why there is none, and what is reported of the call.
 */
#include "base/file/shared_file.h"
#include "tests/lib/own_clock.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/output/message.h"
#include "dispatch/cost/cost.h"
#include "dispatch/guided.h"
#include "dispatch/select.h"
#include "ops/guide.h"
#include "ops/op.h"
#include "report/banner.h"
#include "report/report.h"
#include "tests/lib/idle_library.h"

static struct accel_settings settings = {.on = true};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct dispatch_device device;
static struct played_device played;

/* ---- What the program is linked with --wrap for: the operation, the clock, the start ---- */

static struct {
    bool asks, runs;
    enum guide_news news;
    int number;      /* the answer */
    uint64_t result; /* of the original */
} guide_is;

static enum guide_news guide(struct guide *guide)
{
    if (guide_is.asks)
        guide_is.number = guide->device(guide);
    if (guide_is.runs)
        guide_is.result = guide->original(guide);
    return guide_is.news;
}

extern const struct accel_op __wrap_op_xgboost_train;
const struct accel_op __wrap_op_xgboost_train = {
    GUIDED(ACCEL_XGBOOST, NULL, guide, .nests = false)};

static bool starts_well;
static int starts;

struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES]);

struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES])
{
    (void)with;
    starts++;
    strcpy(why, starts_well ? "" : "told not to be there");
    return starts_well ? &played.gpu : NULL;
}

/* ---- The caller, and what is reported ---- */

static int forwarded, reports, messages;
static double takes_ms;
static struct accel_record reported;
static struct accel_call call;
static struct accel_result result;

static void forward(void *context, const struct accel_call *with)
{
    (void)context;
    assert_ptr_equal(with, &call);
    assert_int_equal(reports, 0); /* what the original has done is reported after it */
    forwarded++;
    now_ms += takes_ms;
    result.gpr[0] = 4711;
    const struct accel_call inner = {.routine = call.routine};
    struct accel_record record =
        record_of(&inner, "inner", 0, (struct accel_decision){.gpu = true});
    record.depth = 3;
    record.ms = 2;
    record.gpu = &played.gpu.info;
    record.ran = "gpu5";
    reports--; /* not the one that is looked for */
    report_decision(&record);
}

static bool nothing_loaded(bool (*is)(const char *path))
{
    (void)is;
    return false;
}

static const struct dispatch_caller usual = {.symbol = "XGBoosterUpdateOneIter",
                                             .site = 77,
                                             .depth = 2,
                                             .library = library_of,
                                             .loads = no_loads,
                                             .loaded = nothing_loaded,
                                             .forward = forward,
                                             .result = &result};
static struct dispatch_caller caller;

static void on_decision(const struct accel_record *record)
{
    reports++;
    reported = *record;
}

static bool take_message(const char *message)
{
    (void)message;
    messages++;
    return true;
}

static int prepare(void **state)
{
    (void)state;
    settings = (struct accel_settings){.on = true};
    select_start(&settings, 8, true);
    play_device(&played, &device, 5);
    caller = usual;
    call = accel_call_of(routine("xgboost_train"));
    memset(&guide_is, 0, sizeof guide_is);
    guide_is.asks = true;
    guide_is.number = 99;
    starts = forwarded = reports = messages = 0;
    starts_well = true;
    takes_ms = 7;
    return 0;
}

static bool run(enum guide_news news)
{
    guide_is.news = news;
    reports = 0;
    return guided_call(&device, &call, &caller, &settings);
}

/* ---- Which device ---- */

static void device_that_is_there(void **state)
{
    (void)state;
    run(GUIDE_NOTHING);
    assert_int_equal(guide_is.number, 5);
    assert_int_equal(starts, 0);
    atomic_store(&device.state, DEVICE_UNTRIED);
    run(GUIDE_NOTHING);
    assert_int_equal(guide_is.number, 5);
    assert_int_equal(starts, 1);
    assert_int_equal(device_state(&device), DEVICE_READY);
    /* The question is the library's. */
    prepare(state);
    atomic_store(&device.state, DEVICE_UNTRIED);
    guide_is.asks = false;
    run(GUIDE_NOTHING);
    assert_int_equal(starts, 0);
}

static void assert_none(enum accel_why why)
{
    run(GUIDE_NO_DEVICE);
    assert_int_equal(guide_is.number, -1);
    assert_int_equal(reports, 1);
    assert_string_equal(accel_why_name(reported.why), accel_why_name(why));
    assert_string_equal(reported.ran, "cpu");
    assert_false(reported.decision.gpu);
}

static void why_there_is_none(void **state)
{
    static const struct {
        enum device_state is;
        enum accel_why why;
    } states[] = {
        {DEVICE_ABSENT, ACCEL_NO_GPU}, {DEVICE_FAILED, ACCEL_ERROR}, {DEVICE_FORKED, ACCEL_FORKED}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        prepare(state);
        atomic_store(&device.state, states[i].is);
        assert_none(states[i].why);
        assert_int_equal(starts, 0);
    }
    prepare(state);
    starts_well = false;
    atomic_store(&device.state, DEVICE_UNTRIED);
    assert_none(ACCEL_NO_GPU);
    assert_int_equal(starts, 1);
    prepare(state);
    settings.policy = ACCEL_POLICY_CPU;
    assert_none(ACCEL_USER);
    settings.policy = ACCEL_POLICY_AUTO;
    settings.cpu_routines.text = "dgemm,xgboost_train";
    assert_none(ACCEL_USER);
    settings.cpu_routines.text = "dgemm";
    run(GUIDE_NOTHING);
    assert_int_equal(guide_is.number, 5);
    caller.arithmetic = "rounds_up";
    assert_none(ACCEL_UNSUPPORTED);
    assert_string_equal(reported.arithmetic, "rounds_up");
    /* CUDA is left to the program, unless it has been started. */
    prepare(state);
    settings.start_given = true;
    settings.start = ACCEL_START_PROGRAM;
    run(GUIDE_NOTHING);
    assert_int_equal(guide_is.number, 5);
    atomic_store(&device.state, DEVICE_UNTRIED);
    assert_none(ACCEL_NO_GPU);
    assert_int_equal(starts, 0);
}

/* ---- What is reported ---- */

static void news_of_a_call(void **state)
{
    static const struct {
        enum guide_news news;
        enum accel_why why;
    } expected[] = {{GUIDE_ON_GPU, ACCEL_FORCED},
                    {GUIDE_UNSUPPORTED, ACCEL_UNSUPPORTED},
                    {GUIDE_FAILED, ACCEL_ERROR},
                    {GUIDE_NO_MEMORY, ACCEL_NO_MEMORY}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const bool on_gpu = expected[i].news == GUIDE_ON_GPU;
        prepare(state);
        guide_is.runs = true;
        const double before = now_ms;
        assert_true(run(expected[i].news));
        assert_int_equal(forwarded, 1);
        assert_int_equal(guide_is.result, 4711);
        assert_int_equal(reports, 1);
        assert_ptr_equal(reported.call, &call);
        assert_string_equal(reported.symbol, "XGBoosterUpdateOneIter");
        assert_int_equal(reported.site, 77);
        assert_int_equal(reported.depth, 2);
        assert_int_equal(reported.decision.gpu, on_gpu);
        assert_string_equal(accel_why_name(reported.why), accel_why_name(expected[i].why));
        assert_string_equal(reported.ran, on_gpu ? "gpu5" : "cpu");
        assert_ptr_equal(reported.gpu, on_gpu ? &played.gpu.info : NULL);
        assert_true(reported.start_ms == before && reported.ms > 6.99 && reported.ms < 7.01);
        assert_true(reported.in.gpu_calls == 1 && reported.in.ms == 2);
        assert_null(reported.arithmetic);
    }
    /* No decision; one before the original, which the caller is to call. */
    prepare(state);
    guide_is.runs = true;
    reports = 0;
    assert_true(run(GUIDE_NOTHING));
    assert_int_equal(forwarded, 1);
    assert_int_equal(reports, 0);
    guide_is.runs = false;
    assert_false(run(GUIDE_NOTHING));
    assert_int_equal(reports, 0);
    assert_false(run(GUIDE_ON_GPU));
    assert_int_equal(reports, 1);
    assert_true(reported.ms < 0);
    assert_int_equal(forwarded, 1);
    /* One that takes no time has run. */
    guide_is.runs = true;
    takes_ms = 0;
    assert_true(run(GUIDE_ON_GPU));
}

/* The library is none of the CPU's. */
static void what_is_told_of_the_process(void **state)
{
    struct report_line line;
    (void)state;
    run(GUIDE_ON_GPU);
    assert_false(banner_lacks_program());
    line_start(&line, false);
    assert_true(banner_put(&line, BANNER_PROGRAM));
    line_end(&line);
    line.buffer[line.text.length] = 0;
    assert_non_null(strstr(line.buffer, "precision=native"));
    assert_null(strstr(line.buffer, "cpu_"));
}

/* ---- A GPU that is required ---- */

/* A crash of a child ends it: cmocka would go on with the other tests there. */
static void crash_for_good(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
}

static int status_of(enum guide_news news)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        crash_for_good();
        run(news);
        _exit(reports == 1 ? 0 : 9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void calls_that_need_the_gpu(void **state)
{
    static const enum guide_news news[] = {GUIDE_NO_DEVICE, GUIDE_UNSUPPORTED, GUIDE_FAILED,
                                           GUIDE_NO_MEMORY};
    (void)state;
    atomic_store(&device.state, DEVICE_ABSENT);
    for (int required = 0; required < 2; required++) {
        settings.require_gpu = required;
        for (size_t i = 0; i < sizeof news / sizeof *news; i++)
            assert_int_equal(status_of(news[i]), required);
        atomic_store(&device.state, DEVICE_READY);
        assert_int_equal(status_of(GUIDE_ON_GPU), 0);
        atomic_store(&device.state, DEVICE_ABSENT);
    }
    settings.policy = ACCEL_POLICY_CPU; /* the user has asked for that */
    assert_int_equal(status_of(GUIDE_NO_DEVICE), 0);
}

static int start(void **state)
{
    static const struct report_sink sink = {.decision = on_decision};
    (void)state;
    report_subscribe(&sink);
    message_to(take_message);
    device_prepare(&settings, &ranks);
    shared_file_prepare();
    cost_start(&settings, 8, true, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(device_that_is_there),
        PREPARED(why_there_is_none),
        PREPARED(news_of_a_call),
        PREPARED(calls_that_need_the_gpu),
        PREPARED(what_is_told_of_the_process),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
