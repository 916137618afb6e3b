/*
 * A call on its way through the dispatcher, in a process of its own with settings of its own: on a
 * device that the test plays, by the caller's original, or in parts; what is waited for, reported
 * and learned.
 */
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
#include "base/thread/forks.h"
#include "dispatch/cost/cost.h"
#include "dispatch/devices.h"
#include "dispatch/dispatch.h"
#include "dispatch/small.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "report/report.h"
#include "tests/lib/environment.h"
#include "tests/lib/idle_library.h"

enum { MEDIUM = 512, PARTS = 3 };

static struct played_device played;

/* Ends the child: a failure of cmocka's would go on with the other tests there. */
#define must(condition) ((condition) ? (void)0 : broken(#condition, __LINE__))

static _Noreturn void broken(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s\n", line, condition);
    _exit(99);
}

/* ---- What the program is linked with --wrap for: the clock, lessons, and the process's end ----
 */

static int lessons, holds, held_most;
static bool ends, is_gone, was_outermost;

void __wrap_cost_learn_cpu(struct problem *problem, const struct dispatch_library *library,
                           int threads, const struct cost_time *time);
void __wrap_exit_guard_hold(bool outermost);
void __wrap_exit_guard_release(void);
bool __wrap_exit_guard_has_begun(void);
bool __wrap_gpu_is_gone(void);

void __wrap_cost_learn_cpu(struct problem *problem, const struct dispatch_library *library,
                           int threads, const struct cost_time *time)
{
    (void)problem;
    (void)library;
    (void)threads;
    (void)time;
    lessons++;
}

void __wrap_exit_guard_hold(bool outermost)
{
    was_outermost = outermost;
    holds++;
    held_most++;
}

void __wrap_exit_guard_release(void)
{
    holds--;
}

bool __wrap_exit_guard_has_begun(void)
{
    return ends;
}

bool __wrap_gpu_is_gone(void)
{
    return is_gone;
}

/* ---- Parts: calls of the test's own operation ---- */

static int64_t part_size[PARTS], largest_size;
static int asked;         /* for the largest size */
static bool ready_behind; /* the device becomes ready behind the last part */

static struct accel_call square(const char *name, int64_t n);

static bool next_part(struct accel_call *part, const struct accel_passed *passed)
{
    (void)passed;
    const int64_t number = part->part + 1;
    if (number == PARTS && ready_behind)
        atomic_store(&devices_at(0)->state, DEVICE_READY);
    if (number == PARTS)
        return false;
    *part = square("dgemm_batch", part_size[number]);
    part->part = number;
    part->parts = PARTS;
    return true;
}

static int64_t largest(const struct accel_routine *routine, const struct accel_passed *passed)
{
    (void)passed;
    must(accel_is_batch(routine));
    asked++;
    return largest_size;
}

/* The operation of batches, with two functions of this test. */
extern const struct accel_op __real_op_gemm_batch;
extern struct accel_op __wrap_op_gemm_batch;
struct accel_op __wrap_op_gemm_batch;

static void make_operation(void)
{
    static struct accel_rules rules;
    __wrap_op_gemm_batch = __real_op_gemm_batch;
    rules = *__real_op_gemm_batch.rules;
    rules.next = next_part;
    rules.largest = largest;
    __wrap_op_gemm_batch.rules = &rules;
}

/* ---- The device and the caller ---- */

static int runs, succeeded, forwarded, originals, reports;
static enum gpu_status status;
static int64_t up_bytes;
static const struct accel_call *forwarded_part;
static struct accel_record reported[2 * PARTS];

static enum gpu_status run(struct played_device *on, const struct accel_call *call,
                           struct gpu_host *host)
{
    (void)on;
    (void)call;
    runs++;
    must(holds == 1);
    host->up_bytes = up_bytes;
    return status;
}

static void forward(void *context, const struct accel_call *part)
{
    (void)context;
    forwarded++;
    forwarded_part = part;
    must(holds == ends); /* exit() does not wait for a program's own library, unless it has begun */
    now_ms += 3;
}

static void original(void *context, const struct accel_call *call)
{
    (void)context;
    must(call);
    originals++;
}

static void succeed(void *context, const struct accel_call *call)
{
    (void)context;
    must(call);
    succeeded++;
}

static bool nothing_loaded(bool (*is)(const char *path))
{
    (void)is;
    return false;
}

static const uint64_t no_words[ACCEL_WORD_REGISTERS];
static struct accel_result result;
static const struct accel_passed passed = {.gpr = no_words, .abi = ACCEL_ABI_CBLAS, .width = 32};
static struct dispatch_caller caller = {.symbol = "called",
                                        .site = 55,
                                        .library = library_of,
                                        .loads = no_loads,
                                        .loaded = nothing_loaded,
                                        .forward = forward,
                                        .original = original,
                                        .succeed = succeed,
                                        .passed = &passed,
                                        .result = &result};

static void on_decision(const struct accel_record *record)
{
    must(reports < 2 * PARTS);
    reported[reports++] = *record;
}

static void report(void)
{
    static const struct report_sink sink = {.decision = on_decision};
    report_subscribe(&sink);
}

static bool take_message(const char *message)
{
    (void)message;
    return true;
}

static struct accel_call square(const char *name, int64_t n)
{
    static double small[3][64];
    struct accel_call call;
    shape_of_order(&call, routine(name), n);
    for (int i = 0; i < 3; i++) /* nobody reads large ones */
        call.span[i].ptr = n > 8 ? (void *)((uintptr_t)(i + 1) << 40) : small[i];
    return call;
}

/* Returns whether the call is done; nothing holds exit() back then. */
static bool run_call(struct accel_call *call)
{
    runs = succeeded = forwarded = originals = reports = lessons = 0;
    const bool done = dispatch_call(call, &caller);
    must(holds == 0);
    return done;
}

static bool run_square(int64_t n)
{
    struct accel_call call = square("dgemm", n);
    return run_call(&call);
}

/* ---- Children ---- */

/* A crash of a child ends it: cmocka would go on with the other tests there. */
static void crash_for_good(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
}

/* Runs a test in a child with this variable, on a device that is ready. Returns its exit status. */
static int status_with(const char *name, const char *value, void (*test)(void))
{
    int ended;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        crash_for_good();
        clear_environment();
        setenv("HOME", "/nonexistent", 1);
        if (name)
            setenv(name, value, 1);
        message_to(take_message);
        make_operation();
        dispatch_start();
        play_device(&played, devices_at(0), 2);
        played.run = run;
        warm_up_note(devices_at(0), routine("dgemm"));
        warm_up_note(devices_at(0), routine("dgemm_batch"));
        test();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    return WEXITSTATUS(ended);
}

/* ---- Who is asked at all ---- */

static void all_is_off(void)
{
    must(!dispatch_is_on());
    must(dispatch_filter().level == DISPATCH_SEE_NOTHING);
    must(dispatch_filter().gate == UINT64_MAX);
}

static void the_cpu_has_all(void)
{
    must(dispatch_is_on());
    must(dispatch_filter().level == DISPATCH_SEE_NOTHING);
    must(!run_square(MEDIUM));
    must(runs + forwarded + reports == 0 && held_most == 0);
    for (largest_size = 0; largest_size < 5000; largest_size += 1000)
        must(dispatch_passes_over(routine("dgemm_batch"), &passed));
    largest_size = -1; /* it is whole, or wrong */
    must(!dispatch_passes_over(routine("dgemm_batch"), &passed));
    must(!dispatch_passes_over(routine("dgemm"), &passed));
}

static void large_calls_are_seen(void)
{
    const int64_t gate = (int64_t)small_gate();
    must(dispatch_filter().level == DISPATCH_SEE_LARGE);
    must(dispatch_filter().gate == small_gate());
    for (largest_size = gate - 2; largest_size < gate + 2; largest_size++)
        must(dispatch_passes_over(routine("dgemm_batch"), &passed) == (largest_size < gate));
    largest_size = 0;
    must(dispatch_passes_over(routine("dgemm_batch"), &passed));
    largest_size = -1;
    must(!dispatch_passes_over(routine("dgemm_batch"), &passed));
    report();
    must(dispatch_filter().level == DISPATCH_SEE_ALL);
    asked = 0;
    largest_size = 1;
    must(!dispatch_passes_over(routine("dgemm_batch"), &passed));
    must(asked == 0);
}

static void which_calls_are_seen(void **state)
{
    (void)state;
    assert_int_equal(status_with("ACCEL", "0", all_is_off), 0);
    assert_int_equal(status_with("ACCEL_POLICY", "cpu", the_cpu_has_all), 0);
    assert_int_equal(status_with(NULL, NULL, large_calls_are_seen), 0);
}

/* ---- One call ---- */

static void a_call_on_the_device(void)
{
    must(run_square(MEDIUM));
    must(runs == 1 && succeeded == 1 && forwarded == 0 && was_outermost);
    report();
    caller.depth = 2;
    must(run_square(MEDIUM));
    must(runs == 1 && reports == 1 && !was_outermost);
    must(strcmp(reported[0].ran, "gpu2") == 0 && reported[0].why == ACCEL_FASTER);
    must(strcmp(reported[0].symbol, "called") == 0 && reported[0].site == 55);
    must(reported[0].depth == 2 && reported[0].ms >= 0);
    must(!reported[0].arithmetic);
}

/* One that the caller is to pass on when we are out of its way. */
static void a_call_that_is_left(void)
{
    must(!run_square(4));
    must(runs + forwarded + lessons == 0);
    struct accel_call wrong = square("dgemm", MEDIUM);
    wrong.span[ACCEL_c].ld = 1;
    must(!run_call(&wrong));
    must(runs + forwarded == 0);
    caller.arithmetic = "rounds_up";
    must(!run_square(MEDIUM));
    must(runs + forwarded == 0);
    /* With a log, only those are that may leave by longjmp(3). */
    report();
    must(!run_square(MEDIUM));
    must(runs + forwarded == 0 && reports == 1);
    must(reported[0].why == ACCEL_UNSUPPORTED && reported[0].ms < 0);
    must(strcmp(reported[0].arithmetic, "rounds_up") == 0);
    caller.arithmetic = NULL;
    must(!run_call(&wrong));
    must(runs + forwarded == 0 && reports == 1);
    must(reported[0].why == ACCEL_BAD_ARGUMENT && reported[0].ms < 0);
    must(run_square(4));
    must(runs == 0 && forwarded == 1 && !forwarded_part && reports == 1);
    must(reported[0].why == ACCEL_SMALL && reported[0].ms > 2.99 && reported[0].ms < 3.01);
    must(strcmp(reported[0].ran, "cpu") == 0);
}

/* One whose time on the CPU is worth knowing. */
static void a_call_that_is_watched(void)
{
    quarantine_add(&devices_at(0)->quarantine, routine("dgemm"), QUARANTINE_FAILED);
    must(run_square(MEDIUM));
    must(runs == 0 && forwarded == 1 && !forwarded_part && lessons == 1);
    atomic_store(&devices_at(0)->state, DEVICE_ABSENT);
    must(!run_square(MEDIUM));
    must(forwarded == 0);
}

/* exit() waits for a call that it has found here, as long as its library computes. */
static void a_call_while_the_process_ends(void)
{
    quarantine_add(&devices_at(0)->quarantine, routine("dgemm"), QUARANTINE_FAILED);
    must(!run_square(MEDIUM)); /* where times are not learned from */
    must(runs + forwarded == 0);
    ends = true;
    must(run_square(MEDIUM));
    must(runs + lessons == 0 && forwarded == 1);
}

/* Operands that the host cannot read. */
static void a_call_on_copies(void)
{
    static double memory[64];
    struct accel_call call = square("dgemm", 8);
    played.own = (char *)memory;
    played.own_bytes = sizeof memory;
    call.span[ACCEL_b].ptr = memory;
    report();
    must(run_call(&call));
    must(runs == 1 && forwarded + originals == 0 && reported[0].why == ACCEL_DEVICE_DATA);
    status = GPU_UNSUPPORTED;
    must(run_call(&call));
    must(runs == 1 && forwarded == 0 && originals == 1 && played.fetched == 1);
    must(reports == 1 && reported[0].why == ACCEL_UNSUPPORTED && reported[0].ms >= 0);
    must(strcmp(reported[0].ran, "cpu") == 0);
    /* It may not stop at the device's memory: a wrong one is the original's. */
    call.span[ACCEL_c].ld = 1;
    must(!run_call(&call));
    must(runs + originals + forwarded == 0);
}

static void one_call(void **state)
{
    (void)state;
    assert_int_equal(status_with(NULL, NULL, a_call_on_the_device), 0);
    assert_int_equal(status_with(NULL, NULL, a_call_that_is_left), 0);
    assert_int_equal(status_with(NULL, NULL, a_call_that_is_watched), 0);
    assert_int_equal(status_with("ACCEL_START", "wait", a_call_while_the_process_ends), 0);
    assert_int_equal(status_with(NULL, NULL, a_call_on_copies), 0);
}

/* ---- ACCEL_REQUIRE=gpu ---- */

static void fails_there(void)
{
    status = GPU_ERROR;
    run_square(MEDIUM);
}

static void is_left_alone(void)
{
    quarantine_add(&devices_at(0)->quarantine, routine("dgemm"), QUARANTINE_FAILED);
    run_square(MEDIUM);
}

static void is_gone_with_the_driver(void)
{
    is_gone = true;
    fails_there();
    must(forwarded == 1);
}

static void is_small(void)
{
    run_square(4);
}

/* Only LAPACK can report on its matrix. */
static void is_refused(void)
{
    status = GPU_UNSUPPORTED;
    up_bytes = 1;
    run_square(MEDIUM);
    must(runs == 1 && forwarded == 0);
}

/* The device cannot do such a call. */
static void is_unsupported(void)
{
    status = GPU_UNSUPPORTED;
    run_square(MEDIUM);
}

/* What it would have gained there by is not there any more. */
static void is_slower_after_all(void)
{
    status = GPU_CHANGED;
    run_square(MEDIUM);
    must(runs == 1 && forwarded == 1);
}

static void a_gpu_that_is_required(void **state)
{
    static const struct {
        void (*test)(void);
        bool ends;
    } cases[] = {
        {fails_there, true},         {is_left_alone, true}, {is_gone_with_the_driver, false},
        {is_small, false},           {is_refused, false},   {is_unsupported, true},
        {is_slower_after_all, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(status_with("ACCEL_REQUIRE", "gpu", cases[i].test), cases[i].ends);
        if (cases[i].ends)
            assert_int_equal(status_with(NULL, NULL, cases[i].test), 0);
    }
}

/* ---- Calls in parts ---- */

static struct accel_call first_part(void)
{
    struct accel_call call = square("dgemm_batch", part_size[0]);
    call.parts = PARTS;
    return call;
}

/* No part is for the device: the original gets the whole call. */
static void parts_for_the_cpu(void)
{
    part_size[0] = part_size[1] = part_size[2] = 4;
    struct accel_call call = first_part();
    must(run_call(&call));
    must(runs == 0 && forwarded == 1 && !forwarded_part);
    report();
    call = first_part();
    must(run_call(&call));
    must(runs == 0 && forwarded == 1 && !forwarded_part && reports == PARTS);
    for (int i = 0; i < PARTS; i++)
        must(reported[i].why == ACCEL_SMALL && reported[i].ms < 0);
}

/* One is: each part goes its own way. */
static void parts_for_both(void)
{
    for (int large = 0; large < PARTS; large++) {
        for (int i = 0; i < PARTS; i++)
            part_size[i] = i == large ? MEDIUM : 4;
        struct accel_call call = first_part();
        must(run_call(&call));
        must(runs == 1 && forwarded == PARTS - 1 && forwarded_part);
    }
    report();
    struct accel_call call = first_part();
    must(run_call(&call));
    must(reports == PARTS);
    for (int i = 0; i < PARTS; i++)
        must((strcmp(reported[i].ran, "gpu2") == 0) == (i == PARTS - 1) && reported[i].ms >= 0);
}

/* The device becomes ready when it is known that the original gets the whole call. */
static void parts_and_a_device_that_starts(void)
{
    part_size[0] = part_size[1] = part_size[2] = MEDIUM;
    struct accel_call call = first_part();
    atomic_store(&devices_at(0)->state, DEVICE_STARTING);
    ready_behind = true;
    report();
    must(run_call(&call));
    must(runs == 0 && forwarded == 1 && !forwarded_part && reports == PARTS);
    for (int i = 0; i < PARTS; i++)
        must(reported[i].why == ACCEL_WARMING && reported[i].ms < 0);
    must(run_call(&call));
    must(runs == PARTS && forwarded == 0);
}

/* An argument of one is wrong: so is the call, which its original gets. */
static void parts_of_which_one_is_wrong(void)
{
    for (int wrong = 0; wrong < PARTS; wrong++) {
        for (int i = 0; i < PARTS; i++)
            part_size[i] = i == wrong ? -1 : MEDIUM;
        struct accel_call call = first_part();
        must(!run_call(&call));
        must(runs + forwarded == 0);
    }
}

static void calls_in_parts(void **state)
{
    (void)state;
    assert_int_equal(status_with(NULL, NULL, parts_for_the_cpu), 0);
    assert_int_equal(status_with(NULL, NULL, parts_for_both), 0);
    assert_int_equal(status_with(NULL, NULL, parts_and_a_device_that_starts), 0);
    assert_int_equal(status_with(NULL, NULL, parts_of_which_one_is_wrong), 0);
}

/* ---- Other libraries ---- */

static void libraries_that_are_taken(void)
{
    must(dispatch_takes_library(routine("dgemm")));
    must(dispatch_takes_library(routine("xgboost_train")));
    must(!dispatch_takes_library(routine("lightgbm_file")));
    report();
    dispatch_not_known(routine("dgemm"), &caller);
    dispatch_not_known(routine("xgboost_train"), &caller);
    dispatch_not_known(routine("lightgbm_file"), &caller);
    must(reports == 3);
    must(reported[0].why == ACCEL_UNSUPPORTED && reported[1].why == ACCEL_UNSUPPORTED);
    must(reported[2].why == ACCEL_USER);
    for (int i = 0; i < 3; i++)
        must(reported[i].ms < 0 && strcmp(reported[i].symbol, "called") == 0);
}

static void no_library_is_taken(void)
{
    must(dispatch_takes_library(routine("dgemm")));
    must(!dispatch_takes_library(routine("xgboost_train")));
}

static void originals_are_elsewhere(void)
{
    must(strcmp(dispatch_original_libraries(), "/some/library") == 0);
}

static void they_are_not(void)
{
    must(!dispatch_original_libraries());
}

static void other_libraries(void **state)
{
    (void)state;
    assert_int_equal(status_with("ACCEL_ML", "xgboost", libraries_that_are_taken), 0);
    assert_int_equal(status_with("ACCEL", "0", no_library_is_taken), 0);
    assert_int_equal(status_with("ACCEL_ORIGINAL", "/some/library", originals_are_elsewhere), 0);
    assert_int_equal(status_with(NULL, NULL, they_are_not), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_calls_are_seen),   cmocka_unit_test(one_call),
        cmocka_unit_test(a_gpu_that_is_required), cmocka_unit_test(calls_in_parts),
        cmocka_unit_test(other_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
