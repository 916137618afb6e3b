/*
 * How a decided call is run, on a device that the test plays and by its clock: what the device is
 * told, what becomes of each status, which runs are learned from, what a verification does.
 */
#include "base/file/shared_file.h"
#include "tests/lib/own_clock.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"
#include "tests/lib/problem.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output/message.h"
#include "dispatch/cost/cost.h"
#include "dispatch/negative_cache.h"
#include "dispatch/run.h"
#include "dispatch/verify.h"
#include "ops/typical.h"
#include "report/report.h"

/* ---- The clock, and who learns: this program is linked with --wrap for each ---- */

static int gpu_lessons, cpu_lessons;
static double lesson_ms;
static struct cost_time took;

void __wrap_cost_learn_gpu(struct cost_curves *device, struct problem *problem,
                           int64_t memory_bytes, double ms);
void __wrap_cost_learn_cpu(struct problem *problem, const struct dispatch_library *library,
                           int threads, const struct cost_time *time);

void __wrap_cost_learn_gpu(struct cost_curves *device, struct problem *problem,
                           int64_t memory_bytes, double ms)
{
    assert_null(device);
    assert_non_null(problem->call);
    assert_int_equal(memory_bytes, (int64_t)1 << 37);
    gpu_lessons++;
    lesson_ms = ms;
}

void __wrap_cost_learn_cpu(struct problem *problem, const struct dispatch_library *library,
                           int threads, const struct cost_time *time)
{
    assert_non_null(problem->call);
    assert_non_null(library);
    assert_in_range(threads, 1, 8);
    cpu_lessons++;
    took = *time;
}

/* ---- The device ---- */

static struct accel_settings settings = {.on = true};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct dispatch_device device;
static struct played_device played;

enum { N = 8 };
static double a[N * N], b[N * N], c[N * N];

static struct {
    enum gpu_status status;
    double takes_ms;
    int64_t up, down, peer, kept;
    bool sets_up, is_wrong, asks_original, breaks;
    int runs;
    struct gpu_host told;
} next;

static enum gpu_status run(struct played_device *on, const struct accel_call *call,
                           struct gpu_host *host)
{
    next.runs++;
    next.told = *host;
    now_ms += next.takes_ms;
    host->up_bytes = next.up;
    host->down_bytes = next.down;
    host->peer_bytes = next.peer;
    host->cached_bytes = next.kept;
    host->set_up = next.sets_up;
    host->blame = GPU_BLAME_ROUTINE;
    on->fails = next.breaks;
    assert_true(contention_gpu_ms(&on->device->contention) >= 0);
    if (next.asks_original)
        assert_true(host->original(host->context, call));
    if (gpu_is_finished(next.status) && call->span[ACCEL_c].ptr == c)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = c[i + j * N];
                for (int k = 0; k < N; k++)
                    sum += a[i + k * N] * b[k + j * N];
                c[i + j * N] = sum + next.is_wrong;
            }
    return next.status;
}

/* ---- The caller ---- */

static int succeeded, forwarded, originals, pinned, messages;
static void (*inside)(void); /* the original, while it runs */

static void succeed(void *context, const struct accel_call *call)
{
    (void)context;
    (void)call;
    succeeded++;
}

static void forward(void *context, const struct accel_call *part)
{
    (void)context;
    assert_null(part);
    forwarded++;
    if (inside)
        inside();
}

static void original(void *context, const struct accel_call *call)
{
    (void)context;
    assert_non_null(call);
    originals++;
}

static const uint64_t no_words[ACCEL_WORD_REGISTERS];
static struct accel_result result;
static const struct accel_passed passed = {.gpr = no_words, .abi = ACCEL_ABI_LAPACKE, .width = 32};
static const struct dispatch_caller caller = {.symbol = "dgemm_",
                                              .site = 1,
                                              .succeed = succeed,
                                              .forward = forward,
                                              .original = original,
                                              .passed = &passed,
                                              .result = &result};
static const struct dispatch_library library = {.name = "library"};

static void on_decision(const struct accel_record *record)
{
    (void)record;
}

static void on_pinned(const struct accel_record *record)
{
    assert_non_null(record);
    pinned++;
}

static bool take_message(const char *message)
{
    (void)message;
    messages++;
    return true;
}

static struct accel_call product(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    struct accel_call call;
    shape_typical(&call, routine("dgemm"), size);
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    call.span[ACCEL_c].ptr = c;
    return call;
}

static struct accel_call factorisation(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 1};
    struct accel_call call;
    shape_typical(&call, routine("dpotrf"), size);
    call.span[ACCEL_a].ptr = a;
    return call;
}

static struct task task;
static struct accel_record record;

static int prepare(void **state)
{
    (void)state;
    settings = (struct accel_settings){.on = true};
    play_device(&played, &device, 2);
    played.run = run;
    memset(&next, 0, sizeof next);
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 5 - 2;
        b[i] = i % 7 - 3;
        c[i] = i % 3;
    }
    for (int i = 0; i < N; i++)
        a[i + i * N] = 100;
    task = (struct task){
        .device = &device,
        .library = &library,
        .threads = 4,
        .decision = {
            .gpu = true, .why = ACCEL_FASTER, .est_cpu_ms = 10, .est_gpu_ms = 5, .est_own_ms = 5}};
    succeeded = forwarded = originals = pinned = messages = gpu_lessons = cpu_lessons = 0;
    inside = NULL;
    result.gpr[0] = 0;
    run_start(&settings, true);
    return 0;
}

/* The task is of this call from here on. */
static void take(const struct accel_call *call)
{
    static struct accel_call taken;
    taken = *call;
    task.call = &taken;
    task.caller = &caller;
    problem_of(&task.problem, &taken);
}

static void run_original(const struct accel_call *call, struct accel_record *to)
{
    take(call);
    run_forward(&task, to);
}

static bool run_call(const struct accel_call *call)
{
    record = record_of(call, caller.symbol, caller.site, task.decision);
    take(call);
    return run_on_gpu(&task, &record);
}

static bool run_product(void)
{
    const struct accel_call call = product();
    return run_call(&call);
}

/* ---- What the device is told ---- */

static void what_the_device_is_told(void **state)
{
    (void)state;
    assert_true(run_product());
    assert_false(next.told.caches || next.told.digests || next.told.tracks || next.told.migrates ||
                 next.told.relies || next.told.hurries || next.told.prefetches || next.told.placed);
    assert_true(next.told.weighs && !next.told.event && !next.told.steps);
    assert_int_equal(next.told.precision, GPU_NATIVE);
    assert_true(next.told.rates.up > 0); /* a product's schedule is chosen by them */
    task.host.caches = true;
    task.decision.placed = 5;
    task.host.precision = GPU_EMULATED;
    task.host.rates = (struct schedule_rates){.up = 77};
    settings.c2c = ACCEL_C2C_MIGRATE;
    settings.resident = ACCEL_RESIDENT_HASH;
    assert_true(run_product());
    assert_true(next.told.caches && next.told.migrates && !next.told.weighs);
    assert_false(next.told.digests || next.told.tracks);
    assert_int_equal(next.told.placed, 5);
    assert_int_equal(next.told.precision, GPU_EMULATED);
    assert_true(next.told.rates.up == 77);
    task.host.digests = true;
    task.host.prefetches = 2;
    assert_true(run_product());
    assert_true(next.told.digests && !next.told.tracks && next.told.prefetches == 2);
    task.host.digests = false;
    task.host.tracks = true;
    assert_true(run_product());
    assert_true(next.told.tracks && !next.told.digests);
}

/* A call that only moves its matrix pays only if that is there already. */
static void what_a_call_relies_on(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 1};
    struct accel_call call;
    (void)state;
    shape_typical(&call, routine("dgemv"), size);
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_x].ptr = b;
    call.span[ACCEL_y].ptr = b + N;
    assert_true(run_call(&call) && next.told.relies);
    task.host.prefetches = 1;
    assert_true(run_call(&call) && !next.told.relies);
    task.host.prefetches = 0;
    task.decision.why = ACCEL_FORCED;
    assert_true(run_call(&call) && !next.told.relies);
    task.decision.why = ACCEL_FASTER;
    call.span[0].place = ACCEL_DEVICE;
    assert_true(run_call(&call) && !next.told.relies);
    next.status = GPU_CHANGED;
    assert_false(run_call(&call));
    assert_int_equal(record.why, ACCEL_SLOWER);
}

/* ---- What becomes of a status ---- */

static void statuses(void **state)
{
    static const struct {
        enum gpu_status status;
        bool done;
        enum accel_why why;
        const char *ran;
        bool is_failed;
    } expected[] = {{GPU_OK, true, ACCEL_FASTER, "gpu2", false},
                    {GPU_NO_MEMORY, false, ACCEL_NO_MEMORY, "cpu", false},
                    {GPU_UNSUPPORTED, false, ACCEL_UNSUPPORTED, "cpu", false},
                    {GPU_CHANGED, false, ACCEL_SLOWER, "cpu", false},
                    {GPU_ERROR, false, ACCEL_ERROR, "cpu", true},
                    {GPU_FINISHED_ELSE, true, ACCEL_ERROR, "gpu2+cpu", true},
                    {GPU_SHORT_ELSE, true, ACCEL_NO_MEMORY, "gpu2+cpu", false}};
    const struct accel_call call = product();
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        prepare(state);
        next.status = expected[i].status;
        next.takes_ms = 3;
        next.up = 11;
        next.down = 12;
        next.peer = 13;
        next.kept = 14;
        const double before = now_ms;
        assert_int_equal(run_product(), expected[i].done);
        assert_int_equal(record.why, expected[i].why);
        assert_string_equal(record.ran, expected[i].ran);
        assert_true(record.start_ms == before && record.ms > 2.99 && record.ms < 3.01);
        assert_int_equal(record.up_bytes, 11);
        assert_int_equal(record.down_bytes, 12);
        assert_int_equal(record.peer_bytes, 13);
        assert_int_equal(record.kept_bytes, 14);
        assert_ptr_equal(record.gpu, &played.gpu.info);
        assert_int_equal(record.gpu_calls[0], 1);
        assert_int_equal(record.gpu_calls[1], 0);
        assert_null(record.precision);
        assert_true(record.verify == VERIFY_NOT_ASKED);
        assert_int_equal(record.refused, expected[i].status == GPU_UNSUPPORTED);
        assert_int_equal(succeeded, expected[i].status == GPU_OK);
        assert_int_equal(warm_up_is_done(&device, call.routine), expected[i].status == GPU_OK);
        assert_int_equal(quarantine_has(&device.quarantine, call.routine, QUARANTINE_FAILED),
                         expected[i].is_failed);
        assert_int_equal(is_full_for(&device.oom_backoff, &call),
                         expected[i].why == ACCEL_NO_MEMORY);
        assert_true(contention_gpu_ms(&device.contention) == 0);
        assert_int_equal(messages, expected[i].is_failed);
    }
    /* One that the device refuses before anything has gone up has cost nothing. */
    prepare(state);
    next.status = GPU_UNSUPPORTED;
    assert_false(run_product() || record.refused);
    next.kept = 1;
    assert_false(run_product());
    assert_true(record.refused);
}

/* The process ends, since its matrix is lost. */
static void what_is_lost(void **state)
{
    int status;
    (void)state;
    next.status = GPU_LOST;
    const pid_t child = fork();
    if (child == 0) {
        run_product();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void the_original_gets_what_the_device_leaves(void **state)
{
    (void)state;
    next.asks_original = true;
    assert_true(run_product());
    assert_int_equal(originals, 1);
}

static void precision_is_told_where_it_was_asked_for(void **state)
{
    const struct accel_call call = product();
    (void)state;
    settings.precision[call.routine - accel_routines] = GPU_EMULATED;
    task.host.precision = GPU_EMULATED;
    assert_true(run_product());
    assert_string_equal(record.precision, gpu_precision_names[GPU_EMULATED]);
    next.status = GPU_ERROR;
    assert_false(run_product());
    assert_null(record.precision);
}

/* A matrix that no device can do: known before anything goes up. A place that has had two on the
 * device, which looked at them, is held. */
static void matrices_that_are_refused(void **state)
{
    struct accel_call call = factorisation();
    (void)state;
    task.site = 4711;
    a[0] = -1; /* not definite */
    assert_false(run_call(&call));
    assert_true(record.refused && record.why == ACCEL_UNSUPPORTED);
    assert_int_equal(next.runs, 0);
    a[0] = 100;
    next.status = GPU_UNSUPPORTED;
    for (int i = 0; i < 4; i++)
        assert_false(run_call(&call)); /* nothing has gone up */
    assert_false(negative_cache_holds(4711));
    next.up = 1;
    assert_false(run_call(&call));
    assert_false(negative_cache_holds(4711));
    next.status = GPU_OK;
    assert_true(run_call(&call)); /* not in a row */
    next.status = GPU_UNSUPPORTED;
    assert_false(run_call(&call));
    assert_false(negative_cache_holds(4711));
    assert_false(run_call(&call));
    assert_true(negative_cache_holds(4711));
    /* Two in a row that the CPU does. */
    for (int i = 0; i < 2; i++) {
        result.gpr[0] = i == 0;
        run_original(&call, &record);
    }
    assert_true(negative_cache_holds(4711));
    result.gpr[0] = 0;
    run_original(&call, &record);
    assert_false(negative_cache_holds(4711));
}

/* ---- Which runs on the device are learned from ---- */

/* Runs one call that takes so long, at a place of its own unless told otherwise. Returns whether it
 * was learned from. */
static bool learns(double ms)
{
    const int before = gpu_lessons;
    next.takes_ms = ms;
    assert_true(run_product());
    return gpu_lessons > before;
}

/* The place has had its first runs, and the routine is warm. */
static void be_usual(void)
{
    static uint64_t place = 100;
    task.site = place++;
    warm_up_note(&device, routine("dgemm"));
    for (int i = 0; i < 3; i++)
        misprediction_note(&device.mispredictions, task.site, 5, 10);
    next.kept = 0;
    next.sets_up = false;
}

static void runs_that_are_learned_from(void **state)
{
    (void)state;
    be_usual();
    assert_true(learns(4));
    assert_true(lesson_ms > 3.99 && lesson_ms < 4.01);
    assert_true(learns(8)); /* also one that takes longer than estimated */
    /* Among the first ones of a place, those that are faster. */
    task.site = 7;
    assert_true(learns(4));
    assert_false(learns(8));
    /* Not one that had to wait, or in which something took the place of an upload. */
    be_usual();
    task.decision.est_gpu_ms = 6;
    assert_false(learns(4));
    task.decision.est_gpu_ms = 5;
    next.kept = 1;
    assert_false(learns(4));
    next.kept = 0;
    task.decision.placed = 1;
    assert_false(learns(4));
    task.decision.placed = 0;
    task.host.precision = GPU_EMULATED;
    assert_false(learns(4));
    task.host.precision = GPU_NATIVE;
    next.sets_up = true;
    assert_false(learns(4));
    next.sets_up = false;
    task.host.prefetches = 1;
    assert_false(learns(4));
    task.host.prefetches = 0;
    task.decision.why = ACCEL_FORCED;
    assert_false(learns(4));
    task.decision.why = ACCEL_FASTER;
    assert_true(learns(4));
    run_start(&settings, false);
    assert_false(learns(4));
    run_start(&settings, true);
    next.status = GPU_SHORT_ELSE;
    assert_false(learns(4));
    next.status = GPU_OK;
    memset(&device.warm_up, 0, sizeof device.warm_up);
    assert_false(learns(4)); /* the first of the routine */
    assert_true(learns(4));
}

/* A place that loses is sent back, which is reported once. */
static void places_that_lose(void **state)
{
    (void)state;
    be_usual();
    assert_true(learns(4));
    assert_int_equal(pinned, 0);
    for (int i = 0; i < 20 && !misprediction_is_lost(&device.mispredictions, task.site); i++) {
        assert_int_equal(pinned, 0);
        learns(300);
    }
    assert_true(misprediction_is_lost(&device.mispredictions, task.site));
    assert_int_equal(pinned, 1);
    learns(300);
    assert_int_equal(pinned, 1);
    /* None of a call that was told to be there. */
    be_usual();
    task.decision.why = ACCEL_FORCED;
    for (int i = 0; i < 20; i++)
        learns(300);
    assert_false(misprediction_is_lost(&device.mispredictions, task.site));
}

/* ---- Verification ---- */

static void results_that_are_verified(void **state)
{
    double before[N * N];
    int status;
    (void)state;
    memcpy(before, c, sizeof c);
    settings.verify_every = 1;
    settings.verify_action = ACCEL_VERIFY_CPU;
    assert_true(run_product());
    assert_true(record.verify >= 0 && record.verify <= 1);
    assert_int_equal(messages, 0);
    memcpy(c, before, sizeof c);
    next.status = GPU_NO_MEMORY; /* there is no result to verify */
    assert_false(run_product());
    assert_true(record.verify == VERIFY_NOT_ASKED && record.why == ACCEL_NO_MEMORY);
    assert_int_equal(messages, 0);
    next.status = GPU_OK;
    next.is_wrong = true;
    settings.verify_action = ACCEL_VERIFY_WARN;
    assert_true(run_product());
    assert_true(record.verify > 1);
    assert_string_equal(record.ran, "gpu2");
    assert_int_equal(succeeded, 2);
    assert_int_equal(messages, 1);
    assert_false(quarantine_has(&device.quarantine, routine("dgemm"), QUARANTINE_WRONG));
    memcpy(c, before, sizeof c);
    settings.verify_action = ACCEL_VERIFY_CPU;
    assert_false(run_product());
    assert_memory_equal(c, before, sizeof c);
    assert_int_equal(record.why, ACCEL_VERIFY_FAILED);
    assert_string_equal(record.ran, "cpu");
    assert_int_equal(succeeded, 2);
    assert_true(quarantine_has(&device.quarantine, routine("dgemm"), QUARANTINE_WRONG));
    /* What is to stop the program, or cannot be restored. */
    for (int i = 0; i < 2; i++) {
        settings.verify_action = i ? ACCEL_VERIFY_CPU : ACCEL_VERIFY_ABORT;
        next.breaks = i;
        const pid_t child = fork();
        if (child == 0) {
            run_product();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static void one_of_some_is_verified(void **state)
{
    int verified = 0;
    (void)state;
    settings.verify_every = 3;
    for (int i = 0; i < 9; i++) {
        run_product();
        verified += record.verify != VERIFY_NOT_ASKED;
        assert_true(i != 5 || verified == 2);
    }
    assert_int_equal(verified, 3);
}

/* Nothing stays of the copies of what a call overwrites, large enough to have pages of their
 * own. */
static void copies_are_freed(void **state)
{
    enum { LARGE = 512 };
    static double x[LARGE * LARGE];
    const int64_t size[ACCEL_DIMENSIONS] = {LARGE, LARGE, LARGE, 0};
    struct accel_call call;
    (void)state;
    shape_typical(&call, routine("dgemm"), size);
    for (int i = 0; i < 3; i++)
        call.span[i].ptr = x; /* zeros, whatever is computed */
    settings.verify_every = 1;
    run_call(&call);
    const struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 8; i++)
        assert_true(run_call(&call));
    const struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + sizeof x);
}

/* ---- By the original ---- */

static double original_ms;
static void pass_time(void)
{
    now_ms += original_ms;
}

static int others; /* calls of other threads, while the original runs */
static void beside_others(void)
{
    pass_time();
    for (int i = 0; i < others; i++)
        contention_enter_cpu();
}

static bool learns_of_cpu(const struct accel_call *call)
{
    const int before = cpu_lessons;
    run_original(call, &record);
    for (int i = 0; i < others && inside == beside_others; i++)
        contention_leave_cpu();
    assert_int_equal(contention_cpu_calls(), 0);
    return cpu_lessons > before;
}

static void originals_that_are_learned_from(void **state)
{
    const struct accel_call call = product(), lapack = factorisation();
    (void)state;
    inside = pass_time;
    original_ms = 7;
    assert_true(learns_of_cpu(&call));
    assert_true(record.ms > 6.99 && record.ms < 7.01 && took.ms == record.ms);
    assert_true(took.sure_ms <= took.ms);
    task.decision.est_cpu_ms = 0.1; /* nobody looks closely */
    assert_true(learns_of_cpu(&call));
    assert_true(took.sure_ms == took.ms);
    task.decision.est_cpu_ms = 0;
    assert_false(learns_of_cpu(&call));
    task.decision.est_cpu_ms = 10;
    task.arithmetic = "rounds_up";
    assert_false(learns_of_cpu(&call));
    task.arithmetic = NULL;
    assert_true(learns_of_cpu(&lapack));
    result.gpr[0] = 3; /* its INFO: it has ended early */
    assert_false(learns_of_cpu(&lapack));
    assert_true(learns_of_cpu(&call));
    run_start(&settings, false);
    assert_false(learns_of_cpu(&call));
    run_start(&settings, true);
    /* Beside others, only of a library with one thread, and a call that is looked at closely. */
    inside = beside_others;
    others = 1;
    assert_false(learns_of_cpu(&call));
    task.threads = 1;
    assert_true(learns_of_cpu(&call));
    task.decision.est_cpu_ms = 0.1;
    assert_false(learns_of_cpu(&call));
    others = 0;
    assert_true(learns_of_cpu(&call));
    contention_enter_cpu(); /* one that began before, and has ended meanwhile */
    const int before = cpu_lessons;
    inside = contention_leave_cpu;
    run_original(&call, &record);
    assert_int_equal(cpu_lessons, before);
}

static int counted_inside;
static void call_again(void)
{
    const struct accel_call call = product();
    struct accel_record inner = {.ms = 0};
    inside = NULL;
    run_original(&call, &inner);
    counted_inside = contention_cpu_calls();
}

/* Calls that an original makes belong to it. */
static void inner_calls_are_not_counted(void **state)
{
    const struct accel_call call = product();
    (void)state;
    inside = call_again;
    run_original(&call, &record);
    assert_int_equal(forwarded, 2);
    assert_int_equal(counted_inside, 1);
    assert_int_equal(contention_cpu_calls(), 0);
    assert_int_equal(cpu_lessons, 1); /* of the outer one: the inner one did not compute alone */
}

static jmp_buf out;
static void leave(void)
{
    longjmp(out, 1);
}

static void look(void)
{
    counted_inside = contention_cpu_calls();
}

/* What the program has left by longjmp(3) does not count any more. */
static void originals_that_are_left(void **state)
{
    const struct accel_call call = product();
    (void)state;
    inside = leave;
    if (setjmp(out) == 0)
        run_original(&call, &record);
    inside = look;
    run_original(&call, &record);
    assert_int_equal(counted_inside, 1);
    assert_int_equal(contention_cpu_calls(), 0);
    assert_int_equal(cpu_lessons, 1);
}

static void what_is_worth_watching(void **state)
{
    (void)state;
    assert_true(run_is_worth_watching(&task));
    task.decision.est_cpu_ms = 0.01;
    assert_false(run_is_worth_watching(&task));
    task.decision.est_cpu_ms = 10;
    atomic_store(&device.state, DEVICE_ABSENT);
    assert_false(run_is_worth_watching(&task));
    atomic_store(&device.state, DEVICE_UNTRIED);
    assert_true(run_is_worth_watching(&task));
    run_start(&settings, false);
    assert_false(run_is_worth_watching(&task));
}

/* ---- On copies; for an estimate ---- */

static void originals_on_copies(void **state)
{
    struct accel_call call = product();
    int status;
    (void)state;
    call.span[ACCEL_a].place = call.span[ACCEL_c].place = ACCEL_DEVICE;
    record.ms = -1;
    take(&call);
    run_on_copies(&task, &record);
    assert_int_equal(originals, 1);
    assert_int_equal(played.fetched, 2);
    assert_int_equal(played.stored, 1);
    assert_true(record.ms >= 0 && record.start_ms == now_ms);
    const pid_t child = fork();
    if (child == 0) {
        played.fails = true;
        take(&call);
        run_on_copies(&task, &record);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static bool inner_ran, inner_is_marked;
static void estimate_inside(void)
{
    const struct accel_call call = product();
    struct accel_record inner = record_of(&call, "dgemm_", 1, task.decision);
    inside = NULL;
    take(&call);
    inner_ran = run_for_estimate(&task, &inner);
    inner_is_marked = inner.inner;
}

static bool estimate(enum accel_why why, bool gpu)
{
    const struct accel_call call = product();
    task.decision.why = why;
    task.decision.gpu = gpu;
    record = record_of(&call, "dgemm_", 1, task.decision);
    take(&call);
    return run_for_estimate(&task, &record);
}

static void originals_for_an_estimate(void **state)
{
    const struct accel_routine *const dgemm = routine("dgemm");
    (void)state;
    inside = pass_time;
    original_ms = 9;
    assert_true(estimate(ACCEL_FASTER, true));
    assert_true(record.why == ACCEL_NO_GPU && !record.inner && record.ms > 8.99);
    assert_true(warm_up_is_done(&device, dgemm));
    assert_int_equal(forwarded, 1);
    memset(&device.warm_up, 0, sizeof device.warm_up);
    assert_true(estimate(ACCEL_SMALL, false));
    assert_int_equal(record.why, ACCEL_SMALL);
    assert_false(warm_up_is_done(&device, dgemm));
    assert_false(estimate(ACCEL_BAD_ARGUMENT, false));
    assert_false(estimate(ACCEL_UNSUPPORTED, false));
    task.together = true;
    assert_false(estimate(ACCEL_FASTER, true));
    task.together = false;
    assert_int_equal(forwarded, 2);
    /* A call inside one that the GPU would run is a part of it; not one inside another. */
    inside = estimate_inside;
    assert_true(estimate(ACCEL_FASTER, true));
    assert_true(!inner_ran && inner_is_marked);
    inside = estimate_inside;
    assert_true(estimate(ACCEL_SMALL, false));
    assert_true(inner_ran && !inner_is_marked);
    /* Left by longjmp(3) */
    inside = leave;
    if (setjmp(out) == 0)
        estimate(ACCEL_FASTER, true);
    inside = NULL;
    assert_true(estimate(ACCEL_FASTER, true) && !record.inner);
    /* Where no thread warms up, what slower calls miss is noted. */
    memset(&device.warm_up, 0, sizeof device.warm_up);
    const double cost = warm_up_counted_ms(&device, dgemm);
    assert_true(estimate(ACCEL_SLOWER, false));
    assert_true(warm_up_counted_ms(&device, dgemm) == cost);
    run_start(&settings, false);
    task.decision.est_cpu_ms = 10;
    task.decision.est_own_ms = 8 + cost;
    assert_true(estimate(ACCEL_SLOWER, false));
    const double counted = warm_up_counted_ms(&device, dgemm);
    assert_true(cost > 2 && counted > cost - 2.01 && counted < cost - 1.99);
}

static int start(void **state)
{
    static const struct report_sink sink = {.decision = on_decision, .pinned = on_pinned};
    (void)state;
    report_subscribe(&sink);
    message_to(take_message);
    device_prepare(&settings, &ranks);
    shared_file_prepare();
    cost_start(&settings, 1, true, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(what_the_device_is_told),
        PREPARED(what_a_call_relies_on),
        PREPARED(statuses),
        PREPARED(what_is_lost),
        PREPARED(the_original_gets_what_the_device_leaves),
        PREPARED(precision_is_told_where_it_was_asked_for),
        PREPARED(matrices_that_are_refused),
        PREPARED(runs_that_are_learned_from),
        PREPARED(places_that_lose),
        PREPARED(results_that_are_verified),
        PREPARED(one_of_some_is_verified),
        PREPARED(copies_are_freed),
        PREPARED(originals_that_are_learned_from),
        PREPARED(inner_calls_are_not_counted),
        PREPARED(originals_that_are_left),
        PREPARED(what_is_worth_watching),
        PREPARED(originals_on_copies),
        PREPARED(originals_for_an_estimate),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
