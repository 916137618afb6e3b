#include "run.h"

#include <pthread.h>
#include <stdlib.h>

#include "decomposed.h"
#include "copies.h"
#include "negative_cache.h"
#include "precision.h"
#include "fatal.h"
#include "verify.h"
#include "base/thread/clock.h"
#include "base/output/message.h"
#include "base/thread/spent.h"
#include "base/text/text.h"
#include "dispatch/cost/cost.h"
#include "ops/blas/pass.h"
#include "ops/op.h"
#include "report/report.h"

static const struct accel_settings *settings;
static bool adapts;

void run_start(const struct accel_settings *with, bool may_adapt)
{
    settings = with;
    adapts = may_adapt;
}

/* ---- On the GPU ---- */

struct running {
    struct gpu_device *gpu;
    const char *name;
    const struct dispatch_caller *caller;
    const struct accel_record *record;
};

static void on_event(void *context, const struct gpu_event *event)
{
    const struct running *running = context;
    report_event(running->record, event);
}

static void on_steps(void *context, const struct gpu_steps *steps)
{
    const struct running *running = context;
    report_steps(running->record, running->name, steps);
}

static bool run_original(void *context, const struct accel_call *part)
{
    const struct running *running = context;
    if (!copies_host_can_read(part))
        return copies_run(running->gpu, part, running->caller);
    running->caller->original(running->caller->context, part);
    return true;
}

/* Compares the time of a call that ran on the GPU because that was estimated to be faster with the
 * estimates. asked: the precision that it was to be computed in. */
static void record_misprediction(const struct accel_record *record, struct task *task,
                                 enum gpu_precision asked)
{
    const struct accel_decision *decision = &record->decision;
    const double ms = record->ms;
    if (!adapts || decision->why != ACCEL_FASTER || report_takes_steps() || task->host.prefetches)
        return; /* a trace takes its own time within the call's; one that brings its matrix loses by
                   that */
    enum misprediction_verdict verdict =
        misprediction_note(&task->device->mispredictions, task->site, ms, decision->est_cpu_ms);
    bool alone = decision->est_gpu_ms == decision->est_own_ms; /* it had the device for itself */
    /* The cost model knows uploads, not what takes the place of one; one device; and the times of
     * native precision. */
    if (alone && !task->plan && !(task->decomposed_ms > 0) && record->kept_bytes == 0 &&
        decision->placed == 0 && asked == GPU_NATIVE &&
        (verdict != MISPREDICTION_EARLY || ms < decision->est_own_ms))
        cost_learn_gpu(atomic_load(&task->device->curves), &task->problem,
                       task->device->memory_bytes, ms);
    if (verdict == MISPREDICTION_SENT_BACK)
        report_pinned(record);
}

static void say_wrong(const struct dispatch_caller *caller, double ratio, const char *outcome)
{
    char times[32];
    struct accel_text text;
    text_start(&text, times, sizeof times);
    text_decimal(&text, ratio);
    text_end(&text);
    accel_message("%s: verification: the GPU's result is wrong, %s times what rounding may do; %s",
                  caller->symbol, times, outcome);
}

/* Of several devices, nobody knows which one was wrong. */
static void distrust(const struct task *task, const struct accel_routine *routine)
{
    const struct gang_plan *plan = task->plan;
    quarantine_add(&task->device->quarantine, routine, QUARANTINE_WRONG);
    for (int i = 0; plan && i < plan->split.count; i++)
        quarantine_add(&plan->device[plan->split.part[i].device]->quarantine, routine,
                       QUARANTINE_WRONG);
}

/* Verifies the result. False: it was wrong, and the operands are again as they were before the
 * call. */
static bool may_stand(const struct verification *verification, const struct task *task,
                      struct accel_record *record)
{
    const struct accel_call *const call = task->call;
    const struct dispatch_caller *const caller = task->caller;
    record->verify = verify_judge(verification, call);
    if (!(record->verify > 1))
        return true;
    switch (settings->verify_action) {
    case ACCEL_VERIFY_WARN:
        say_wrong(caller, record->verify, "it is kept (ACCEL_VERIFY_ACTION=warn)");
        return true;
    case ACCEL_VERIFY_ABORT:
        say_wrong(caller, record->verify, "the program is stopped (ACCEL_VERIFY_ACTION=abort)");
        abort();
    default:
        say_wrong(caller, record->verify,
                  "the CPU computes it anew, and all further calls of the routine");
    }
    distrust(task, call->routine);
    if (!verify_restore(verification, call))
        fatal_wrong_result(task->device, caller);
    record->why = ACCEL_VERIFY_FAILED;
    record->ran = "cpu";
    return false;
}

/* A server has several: it says which one it was. */
static void name_device_of_server(struct accel_record *record, int index)
{
    struct accel_text text;
    text_start(&text, record->devices, sizeof record->devices);
    text_string(&text, "gpu");
    text_integer(&text, index);
    text_end(&text);
    record->ran = record->devices;
}

/* Runs the call and notes in the record how long it took, what was copied, and where it ran. */
static enum gpu_status run_and_note(struct task *task, struct accel_record *record)
{
    const struct accel_call *const call = task->call;
    struct gpu_host *const host = &task->host;
    static atomic_int under_way;
    struct dispatch_device *device = task->device;
    enum gpu_status status;
    record->start_ms = accel_now_ms();
    record->gpu_calls[0] = atomic_fetch_add(&under_way, 1) + 1;
    if (task->decomposed_ms > 0) {
        status = decomposed_run(task, record);
    } else if (task->plan) {
        status = gang_run(task->plan, call, host, record);
    } else {
        const int number = contention_enter_gpu(&device->contention, record->decision.est_own_ms);
        status = gpu_run(device_gpu(device), call, host);
        contention_leave_gpu(&device->contention, number);
    }
    record->gpu_calls[1] = atomic_fetch_sub(&under_way, 1) - 1;
    record->ms = accel_now_ms() - record->start_ms;
    record->up_bytes = host->up_bytes;
    record->down_bytes = host->down_bytes;
    record->peer_bytes = host->peer_bytes;
    record->kept_bytes = host->cached_bytes;
    if (!record->gpu)
        record->gpu = gpu_info(device_gpu(device));
    if (task->plan || task->decomposed_ms > 0)
        return status; /* they have said where it ran */
    if (status == GPU_OK && device_is_remote(device))
        name_device_of_server(record, host->index);
    else if (status == GPU_OK)
        record->ran = device->name;
    else if (gpu_is_finished(status))
        record->ran = device->cpu_name;
    return status;
}

/* Notes whether a place's matrix was one that the device could do. One that it refuses before
 * anything has gone up has cost nothing. */
static void note_outcome(const struct task *task, enum gpu_status status,
                         struct accel_record *record)
{
    record->refused = status == GPU_UNSUPPORTED && record->up_bytes + record->kept_bytes > 0;
    if (accel_is_lapack(record->call->routine) && (record->refused || status == GPU_OK))
        negative_cache_note_gpu(task->site, !record->refused);
}

bool run_on_gpu(struct task *task, struct accel_record *record)
{
    static const enum accel_why why_of[] = {
        [GPU_NO_MEMORY] = ACCEL_NO_MEMORY, [GPU_SHORT_ELSE] = ACCEL_NO_MEMORY,
        [GPU_BUSY] = ACCEL_BUSY,           [GPU_ERROR] = ACCEL_ERROR,
        [GPU_FINISHED_ELSE] = ACCEL_ERROR, [GPU_UNSUPPORTED] = ACCEL_UNSUPPORTED,
        [GPU_CHANGED] = ACCEL_SLOWER};
    const struct accel_call *const call = task->call;
    const struct dispatch_caller *const caller = task->caller;
    struct dispatch_device *device = task->device;
    struct running running = {device_gpu(device), device->name, caller, record};
    struct gpu_host *const host = &task->host;
    const enum gpu_precision asked = host->precision;
    host->original = run_original;
    host->event = report_takes_events() ? on_event : NULL;
    host->steps = report_takes_steps() ? on_steps : NULL;
    host->context = &running;
    host->scheduled = task_scheduled(task);
    host->placed = task->decision.placed;
    host->migrates = settings->c2c == ACCEL_C2C_MIGRATE;
    host->alone_ms = task->decision.est_own_ms;
    host->weighs = settings->resident == ACCEL_RESIDENT_AUTO;
    host->relies = task->decision.why == ACCEL_FASTER && accel_only_moves(call->routine) &&
                   !host->prefetches && call->span[0].place == ACCEL_HOST;
    const struct accel_gpu *gpu = call->op->gpu;
    record->refused = gpu->is_hopeless && accel_is_on_host(call) && gpu->is_hopeless(call);
    if (record->refused) {
        record->why = ACCEL_UNSUPPORTED;
        return false;
    }
    if (!(host->rates.up > 0) && (gpu->scheduled || gpu->in_panels))
        host->rates = cost_schedule_rates(atomic_load(&device->curves), &task->problem, GPU_NATIVE);
    struct verification verification;
    verify_begin(&verification, running.gpu, call, settings);
    verification.precision = asked;
    const bool first = !warm_up_is_done(device, call->routine);
    const enum gpu_status status = run_and_note(task, record);
    if (precision_asked(settings, call->routine) != GPU_NATIVE && gpu_is_finished(status))
        record->precision = gpu_precision_names[host->precision];
    if (status == GPU_OK && !task->plan && !(task->decomposed_ms > 0))
        warm_up_note(device, call->routine);
    device_tidy(device);
    note_outcome(task, status, record);
    const bool finished = gpu_is_finished(status);
    const bool stands = !finished || !verification.on || may_stand(&verification, task, record);
    if (!stands && gpu->discard)
        gpu->discard(call);
    verify_end(&verification);
    if (status == GPU_LOST)
        fatal_wrong_result(device, caller);
    if (status == GPU_OK && stands) {
        caller->succeed(caller->context, call);
        if (!first && !host->set_up) /* a call that sets up what later ones use is not judged */
            record_misprediction(record, task, asked);
    } else if (status != GPU_OK && stands) {
        record->why = why_of[status];
    }
    if (!task->plan && !(task->decomposed_ms > 0))
        quarantine_by_status(device, call, host, status);
    return finished && stands;
}

/* ---- By the original ---- */

/* The stack frame of the call that this thread computes and has counted (contention_enter_cpu()),
 * NULL: none. Calls from deeper frames belong to it: LAPACK calls BLAS. A call from the same frame
 * or a higher one shows that the program has left the counted call by longjmp(3). */
static _Thread_local const char *counted_frame __attribute__((tls_model("initial-exec")));

/* Its destructor ends the count of a thread that ends within a call (pthread_cancel(3)). */
static pthread_key_t thread_end;
static bool thread_end_there;

static void stop_counting(void *unused)
{
    (void)unused;
    if (counted_frame)
        contention_leave_cpu();
    counted_frame = NULL;
}

static void make_thread_end(void)
{
    thread_end_there = pthread_key_create(&thread_end, stop_counting) == 0;
}

/* Returns whether no other call of this process computes on the CPU. */
static bool start_counting(const char *frame)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const bool alone = contention_enter_cpu() == 1;
    counted_frame = frame;
    pthread_once(&once, make_thread_end);
    if (thread_end_there && !pthread_getspecific(thread_end))
        pthread_setspecific(thread_end, &counted_frame);
    return alone;
}

/* Runs the original, and takes its time. */
static void forward(const struct accel_call *call, const struct dispatch_caller *caller,
                    struct accel_record *record)
{
    const struct accel_inner before = report_begin_inner();
    record->start_ms = accel_now_ms();
    caller->forward(caller->context, accel_is_part(call) ? call : NULL);
    record->ms = accel_now_ms() - record->start_ms;
    record->in = report_end_inner(before);
}

/* From here on the time of a call that is learned from is looked at closely, by system calls. */
#define CLOSE_LOOK_MS 0.5

void run_forward(struct task *task, struct accel_record *record)
{
    const struct accel_call *const call = task->call;
    const struct dispatch_caller *const caller = task->caller;
    const char *frame = __builtin_frame_address(0);
    if (counted_frame && frame >= counted_frame)
        stop_counting(NULL);
    const bool counted = !counted_frame;
    bool alone = counted && start_counting(frame);
    const double estimate = task->decision.est_cpu_ms;
    const bool learns = adapts && estimate > 0 && !task->arithmetic;
    const bool closely = learns && estimate >= CLOSE_LOOK_MS;
    const struct spent begin = closely ? spent_begin() : (struct spent){0};
    forward(call, caller, record);
    const struct spent end = closely ? spent_end() : (struct spent){0};
    alone = alone && contention_cpu_calls() == 1;
    if (counted)
        stop_counting(NULL);
    int64_t info = 0; /* a matrix that is not definite ends a factorisation at once */
    const bool failed = blas_info(call, caller->passed, caller->result, &info) && info != 0;
    if (accel_is_lapack(call->routine))
        negative_cache_note_cpu(task->site, !failed);
    const struct cost_time took = {record->ms, closely ? spent_surely(&begin, &end) : record->ms};
    /* The call of a library with one thread takes its own time of the CPU, also beside others. */
    if ((alone || (closely && task->threads == 1)) && learns && !failed)
        cost_learn_cpu(&task->problem, task->library, task->threads, &took);
}

/* Below this, taking a call's time costs more than it could gain. */
#define WORTH_MS 0.05

bool run_is_worth_watching(const struct task *task)
{
    return adapts && task->decision.est_cpu_ms > WORTH_MS &&
           device_state(task->device) != DEVICE_ABSENT;
}

void run_on_copies(const struct task *task, struct accel_record *record)
{
    record->start_ms = accel_now_ms();
    if (!copies_run(device_gpu(task->device), task->call, task->caller))
        fatal_wrong_result(task->device, task->caller);
    record->ms = accel_now_ms() - record->start_ms;
}

bool run_for_estimate(const struct task *task, struct accel_record *record)
{
    /* The frame of the call that runs; a call from a higher one shows that the program has left it
     * by longjmp(3). */
    static _Thread_local const char *inside __attribute__((tls_model("initial-exec")));
    const char *const frame = __builtin_frame_address(0);
    if (inside && frame >= inside)
        inside = NULL;
    record->inner = inside != NULL;
    if (inside || task->together)
        return false;
    if (record->why == ACCEL_BAD_ARGUMENT || record->why == ACCEL_UNSUPPORTED)
        return false; /* they may leave the original by longjmp: see run_on_cpu() in dispatch.c */
    inside = task->decision.gpu ? frame : NULL;
    forward(task->call, task->caller, record);
    inside = NULL;
    if (task->decision.gpu) {
        record->why = ACCEL_NO_GPU;
        warm_up_note(task->device, task->call->routine);
    } else if (!adapts && record->why == ACCEL_SLOWER) {
        warm_up_note_gain(task->device, task->call->routine,
                          task->decision.est_cpu_ms - task->decision.est_own_ms);
    }
    return true;
}
