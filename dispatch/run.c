#include "run.h"

#include <pthread.h>
#include <stdlib.h>

#include "copies.h"
#include "refusals.h"
#include "verify.h"
#include "base/clock.h"
#include "base/say.h"
#include "base/text.h"
#include "dispatch/cost/cost.h"
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
    const struct dispatch_caller *caller;
    const struct accel_record *record;
};

static void on_event(void *context, const struct gpu_event *event)
{
    const struct running *running = context;
    report_event(running->record, event);
}

static bool run_original(void *context, const struct accel_call *part)
{
    const struct running *running = context;
    if (!copies_host_can_read(part))
        return copies_run(running->gpu, part, running->caller);
    running->caller->original(running->caller->context, part);
    return true;
}

/* A call has run on the GPU because that was thought to be faster. */
static void judge(const struct accel_record *record, const struct situation *situation)
{
    const struct accel_decision *decision = &record->decision;
    const double ms = record->ms;
    if (!adapts || decision->why != ACCEL_FASTER)
        return;
    enum regret_verdict verdict =
        regret_note(&situation->device->regret, situation->site, ms, decision->est_cpu_ms);
    bool alone = decision->est_gpu_ms == decision->est_own_ms; /* it had the device for itself */
    if (alone && (verdict != REGRET_EARLY || ms < decision->est_own_ms))
        cost_learn_gpu(atomic_load(&situation->device->curves), record->call, ms);
    if (verdict == REGRET_SENT_BACK)
        report_pinned(record);
}

/* A result of the GPU is wrong. */
static void say_wrong(const struct dispatch_caller *caller, double ratio, const char *outcome)
{
    char times[32];
    struct accel_text text;
    text_start(&text, times, sizeof times);
    text_decimal(&text, ratio);
    text_end(&text);
    accel_say("%s: verification: the GPU's result is wrong, %s times what rounding may do; %s",
              caller->symbol, times, outcome);
}

/* Whether what the GPU has left may stand; if not, all is as it was before the call. */
static bool may_stand(const struct verification *verification, struct dispatch_device *device,
                      const struct accel_call *call, const struct dispatch_caller *caller,
                      struct accel_record *record)
{
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
    left_alone_add(&device->left_alone, call->routine, LEFT_WRONG);
    if (!verify_restore(verification, call))
        refuse_wrong_result(device, caller);
    record->why = ACCEL_VERIFY_FAILED;
    record->ran = "cpu";
    return false;
}

bool run_on_gpu(const struct accel_call *call, const struct situation *situation,
                const struct dispatch_caller *caller, struct accel_record *record)
{
    struct dispatch_device *device = situation->device;
    struct gpu_device *gpu = device_gpu(device);
    struct running running = {gpu, caller, record};
    struct gpu_host host = {.original = run_original,
                            .event = report_takes_events() ? on_event : NULL,
                            .context = &running};
    struct verification verification;
    verify_begin(&verification, gpu, call, settings);
    const bool first = !warm_is(device, call->routine);
    double start = accel_now_ms();
    int number = contention_enter_gpu(&device->contention, situation->decision.est_own_ms);
    enum gpu_status status = gpu_run(gpu, call, &host);
    contention_leave_gpu(&device->contention, number);
    record->ms = accel_now_ms() - start;
    if (status == GPU_OK)
        warm_note(device, call->routine);
    device_tidy(device);
    record->up_bytes = host.up_bytes;
    record->down_bytes = host.down_bytes;
    record->ran = "cpu";
    if (status == GPU_OK)
        record->ran = device->name;
    else if (status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE)
        record->ran = device->cpu_name;
    const bool finished =
        status == GPU_OK || status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE;
    const bool stands =
        !finished || !verification.on || may_stand(&verification, device, call, caller, record);
    verify_end(&verification);
    switch (status) {
    case GPU_OK:
        if (stands) {
            caller->succeed(caller->context, call);
            if (!first && !host.set_up) /* what others use is not this call's to pay */
                judge(record, situation);
        }
        return stands;
    case GPU_NO_MEMORY:
        record->why = ACCEL_NO_MEMORY;
        full_note(&device->full, call);
        break;
    case GPU_UNSUPPORTED:
        record->why = ACCEL_UNSUPPORTED;
        break;
    case GPU_ERROR:
        record->why = ACCEL_ERROR;
        left_alone_after(device, call->routine, &host);
        break;
    case GPU_FINISHED_ELSE:
        record->why = stands ? ACCEL_ERROR : record->why;
        left_alone_after(device, call->routine, &host);
        return stands;
    case GPU_SHORT_ELSE:
        record->why = stands ? ACCEL_NO_MEMORY : record->why;
        full_note(&device->full, call);
        return stands;
    case GPU_LOST:
        refuse_wrong_result(device, caller);
    }
    return false;
}

/* ---- By the original ---- */

/* Where on its stack this thread is computing a call that is counted, NULL: nowhere. What is called inside, deeper on the
 * stack, is a part of it: LAPACK calls BLAS. One that the program has left by longjmp is recognised by its place. */
static _Thread_local const char *computes __attribute__((tls_model("initial-exec")));

/* A thread that ends within a call (pthread_cancel(3)) is counted no longer. */
static pthread_key_t computing;
static bool computing_there;

static void stop_computing(void *unused)
{
    (void)unused;
    if (computes)
        contention_leave_cpu();
    computes = NULL;
}

static void make_computing(void)
{
    computing_there = pthread_key_create(&computing, stop_computing) == 0;
}

static void count_computing(const char *here)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    computes = here;
    pthread_once(&once, make_computing);
    if (computing_there && !pthread_getspecific(computing))
        pthread_setspecific(computing, &computes);
}

void run_forward(const struct accel_call *call, const struct situation *situation,
                 const struct dispatch_caller *caller, struct accel_record *record)
{
    const char *here = __builtin_frame_address(0);
    if (computes && here >= computes) {
        computes = NULL;
        contention_leave_cpu();
    }
    bool counted = !computes;
    bool alone = counted && contention_enter_cpu() == 1;
    if (counted)
        count_computing(here);
    double start = accel_now_ms();
    caller->forward(caller->context, accel_is_part(call) ? call : NULL);
    record->ms = accel_now_ms() - start;
    if (counted) {
        computes = NULL;
        alone = alone && contention_cpu_calls() == 1;
        contention_leave_cpu();
    }
    if (alone && adapts && situation->decision.est_cpu_ms > 0)
        cost_learn_cpu(call, situation->library, situation->threads, record->ms);
}

/* Below this a call's time is not worth knowing: taking it would cost more than it could gain. */
#define WORTH_MS 0.05

bool run_is_worth_watching(const struct situation *situation)
{
    return adapts && situation->decision.est_cpu_ms > WORTH_MS &&
           device_state(situation->device) != DEVICE_ABSENT;
}

void run_on_copies(const struct accel_call *call, const struct situation *situation,
                   const struct dispatch_caller *caller, struct accel_record *record)
{
    double start = accel_now_ms();
    if (!copies_run(device_gpu(situation->device), call, caller))
        refuse_wrong_result(situation->device, caller);
    record->ms = accel_now_ms() - start;
}

bool run_for_estimate(const struct accel_call *call, const struct situation *situation,
                      const struct dispatch_caller *caller, struct accel_record *record)
{
    static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
    record->inner = inside;
    if (inside || situation->together)
        return false;
    if (record->why == ACCEL_BAD_ARGUMENT || record->why == ACCEL_UNSUPPORTED)
        return false; /* see dispatch_call() */
    inside = situation->decision.gpu;
    double start = accel_now_ms();
    caller->forward(caller->context, accel_is_part(call) ? call : NULL);
    record->ms = accel_now_ms() - start;
    inside = false;
    if (situation->decision.gpu) {
        record->why = ACCEL_NO_GPU;
        warm_note(situation->device, call->routine);
    } else if (!adapts && record->why == ACCEL_SLOWER) {
        warm_note_gain(situation->device, call->routine,
                       situation->decision.est_cpu_ms - situation->decision.est_own_ms);
    }
    return true;
}
