#define _GNU_SOURCE
#include "dispatch.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/forks.h"
#include "called.h"
#include "copies.h"
#include "decide.h"
#include "report/estimate.h"
#include "dispatch/cost/figures.h"
#include "base/clock.h"
#include "gpu/gpu.h"
#include "hold.h"
#include "left_alone.h"
#include "dispatch/cost/contention.h"
#include "report/log.h"
#include "base/output.h"
#include "base/ranks.h"
#include "base/say.h"
#include "dispatch/cost/regret.h"
#include "start.h"
#include "base/text.h"
#include "verify.h"
#include "dispatch/cost/warm.h"
#include "ops/op.h"

static struct accel_settings settings;
static struct accel_ranks ranks;
static int cores;
static struct accel_machine nominal; /* with nothing on it */
static atomic_bool ready;            /* the settings have been read */

/* Whether a decision may depend on what happens while the program runs: how busy the machine is, what free memory there
 * is, how calls fared, what was learned. Not under MPI, whose ranks may need the same results bit for bit, and not
 * where the user wants the same runs again. Constant. */
static bool adapts;

/* The program has a CUDA context of its own: any pointer may be a device pointer. Stays set. */
static atomic_bool program_uses_cuda;

/* The last call that found no device memory: until when others as large are not tried. */
static _Atomic int64_t full_until_ms, full_bytes;
enum { FULL_MS = 1000 };

static void prepare_machine(void)
{
    cpu_set_t set;
    cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    accel_machine_init(&nominal, NULL, NULL);
    gpu_look_for_devices();
    ranks_read(&ranks);
    bool wait = settings.start_given ? settings.start == ACCEL_START_WAIT : ranks.mpi;
    adapts = !wait;
    if (settings.devices.kind == ACCEL_DEVICES_NONE)
        settings.policy = ACCEL_POLICY_CPU;
    figures_start(&settings, cores, adapts, ranks.mpi && ranks.rank > 0);
    load_prepare();
    start_prepare(&settings, &ranks, wait);
    if (settings.estimate)
        estimate_start(&settings);
    called_start(&settings);
}

void dispatch_start(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun))
        return;
    settings_read(&settings);
    if (settings.on) {
        settings_check_routines(&settings, accel_routines, accel_routine_count);
        output_start();
        prepare_machine();
    }
    atomic_store_explicit(&ready, true, memory_order_release);
}

/* Off as well while they are being read: that is at start-up, when the program has one thread. */
bool dispatch_is_on(void)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        dispatch_start();
    return atomic_load_explicit(&ready, memory_order_acquire) && settings.on;
}

bool dispatch_is_borrowed(void)
{
    enum accel_gpu_state now = start_state();
    return (now == ACCEL_GPU_READY || now == ACCEL_GPU_STARTING) && start_is_borrowed();
}

const char *dispatch_original_libraries(void)
{
    dispatch_is_on();
    return settings.original;
}

void dispatch_end(void)
{
    if (!dispatch_is_on())
        return;
    if (settings.summary)
        summary_print(&settings);
    figures_end();
}

struct dispatch_attention dispatch_attention(void)
{
    struct dispatch_attention attention = {DISPATCH_SEE_NOTHING, UINT64_MAX};
    if (!dispatch_is_on())
        return attention;
    enum accel_gpu_state now = start_state();
    bool none = now == ACCEL_GPU_ABSENT || now == ACCEL_GPU_FORKED || now == ACCEL_GPU_FAILED;
    if (settings.log != ACCEL_LOG_OFF || settings.summary || estimate_is_on() || called_is_on() ||
        settings.broken_promise || settings_wait_to_complain()) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (settings.policy == ACCEL_POLICY_CPU ||
               (none && !settings.require_gpu && now != ACCEL_GPU_FAILED)) {
        return attention;
    } else if (atomic_load(&program_uses_cuda)) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (none && !settings.require_gpu) {
        return attention;
    } else if (settings.policy == ACCEL_POLICY_GPU || settings.gpu_routines.text) {
        attention.level = DISPATCH_SEE_ALL;
    } else {
        attention.level = DISPATCH_SEE_LARGE;
        attention.gate = nominal.gate;
    }
    return attention;
}

/* Where no right result can be had: the device has failed after it had overwritten a matrix of the
 * program, or with a matrix that is nowhere else; or there is no memory in which the CPU could see such a one. */
static _Noreturn void stop_program(const struct dispatch_caller *caller)
{
    bool failed = gpu_has_failure();
    accel_say(
        "%s: %s%s%s with a matrix of the program on the GPU; the result cannot be made right, so "
        "the program is stopped",
        caller->symbol, failed ? "the GPU failed (" : "no memory is left",
        failed ? gpu_failure() : "", failed ? ")" : "");
    abort();
}

/* ACCEL_REQUIRE=gpu. */
static _Noreturn void end_program(const struct dispatch_caller *caller, enum accel_why why)
{
    bool reason = why == ACCEL_NO_GPU || why == ACCEL_ERROR;
    accel_say("%s would run on the CPU (why=%s%s%s), and ACCEL_REQUIRE=gpu is set: the program is "
              "ended",
              caller->symbol, accel_why_name(why), reason ? ": " : "", reason ? gpu_failure() : "");
    _exit(1);
}

/* What is wrong with the settings is said at the first call of BLAS: the environment is inherited by shells, launchers and
 * tools, which nothing was promised of. */
static void complain(void)
{
    static atomic_bool done;
    static pthread_mutex_t ends = PTHREAD_MUTEX_INITIALIZER;
    FORKS_LOCK(ends);
    if (settings.broken_promise) {
        pthread_mutex_lock(&ends); /* another thread's end waits for the message */
        settings_complain();
        _exit(1);
    }
    if (atomic_load_explicit(&done, memory_order_relaxed) || atomic_exchange(&done, true))
        return;
    settings_complain();
    figures_complain();
}

/* ---- One call ---- */

struct running {
    const struct dispatch_caller *caller;
    bool log_moves;
};

static void on_event(void *context, const struct gpu_event *event)
{
    const struct running *running = context;
    log_event(&settings, running->caller->symbol, event);
}

static bool all_on_host(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (call->operand[i].place != ACCEL_HOST)
            return false;
    return true;
}

static bool run_original(void *context, const struct accel_call *part)
{
    const struct running *running = context;
    if (!copies_host_can_read(part))
        return copies_run(part, running->caller);
    running->caller->original(running->caller->context, part);
    return true;
}

/* What is known of a call when it is decided. */
struct situation {
    const struct dispatch_library *library;
    int threads;   /* of that library */
    uint64_t site; /* where a decision may depend on how calls fared */
    struct accel_decision decision;
    bool fallback; /* which ACCEL_REQUIRE forbids */
};

static int64_t bytes_moved(const struct accel_call *call)
{
    struct model_work work;
    model_work_of(call, &work);
    return (int64_t)(work.up_bytes + work.down_bytes);
}

static bool device_is_full(const struct accel_call *call)
{
    int64_t until = atomic_load_explicit(&full_until_ms, memory_order_relaxed);
    return until > 0 && (double)until > accel_now_ms() &&
           bytes_moved(call) >= atomic_load(&full_bytes);
}

static void note_full(const struct accel_call *call)
{
    atomic_store(&full_bytes, bytes_moved(call));
    atomic_store(&full_until_ms, (int64_t)accel_now_ms() + FULL_MS);
}

/* A call has run on the GPU because that was thought to be faster. */
static void judge(const struct accel_call *call, const struct situation *situation, double ms,
                  const struct dispatch_caller *caller)
{
    const struct accel_decision *decision = &situation->decision;
    if (!adapts || decision->why != ACCEL_FASTER)
        return;
    enum sites_verdict verdict = sites_note(situation->site, ms, decision->est_cpu_ms);
    bool alone = decision->est_gpu_ms == decision->est_own_ms; /* it had the device for itself */
    if (alone && (verdict != SITES_EARLY || ms < decision->est_own_ms))
        figures_learn_gpu(call, ms);
    if (verdict == SITES_SENT_BACK && settings.log != ACCEL_LOG_OFF)
        log_pinned(&settings, caller->symbol, ms, decision->est_cpu_ms);
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
static bool may_stand(const struct verification *verification, const struct accel_call *call,
                      const struct dispatch_caller *caller, struct accel_record *record)
{
    record->verify = verify_judge(verification, call);
    if (!(record->verify > 1))
        return true;
    switch (settings.verify_action) {
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
    left_alone_add(call->routine, LEFT_WRONG);
    if (!verify_restore(verification, call))
        stop_program(caller);
    record->why = ACCEL_VERIFY_FAILED;
    record->ran = "cpu";
    return false;
}

/* Runs on the GPU. True when the result is there; the record says where it came from. */
static bool run_on_gpu(const struct accel_call *call, const struct situation *situation,
                       const struct dispatch_caller *caller, struct accel_record *record)
{
    struct running running = {caller, settings.log == ACCEL_LOG_MOVES};
    struct gpu_host host = {.original = run_original,
                            .event = running.log_moves ? on_event : NULL,
                            .context = &running};
    struct verification verification;
    verify_begin(&verification, call, &settings);
    const bool first = !warm_is(call->routine);
    double start = accel_now_ms();
    int number = load_enter_gpu(situation->decision.est_own_ms);
    enum gpu_status status = gpu_run(call, &host);
    load_leave_gpu(number);
    record->ms = accel_now_ms() - start;
    if (status == GPU_OK)
        warm_note(call->routine);
    start_tidy();
    record->up_bytes = host.up_bytes;
    record->down_bytes = host.down_bytes;
    record->ran = "cpu";
    if (status == GPU_OK)
        record->ran = start_gpu_name();
    else if (status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE)
        record->ran = start_gpu_cpu_name();
    const bool finished =
        status == GPU_OK || status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE;
    const bool stands =
        !finished || !verification.on || may_stand(&verification, call, caller, record);
    verify_end(&verification);
    switch (status) {
    case GPU_OK:
        if (stands) {
            caller->succeed(caller->context);
            if (!first && !host.set_up) /* what others use is not this call's to pay */
                judge(call, situation, record->ms, caller);
        }
        return stands;
    case GPU_NO_MEMORY:
        record->why = ACCEL_NO_MEMORY;
        note_full(call);
        break;
    case GPU_UNSUPPORTED:
        record->why = ACCEL_UNSUPPORTED;
        break;
    case GPU_ERROR:
        record->why = ACCEL_ERROR;
        left_alone_after(call->routine, &host);
        break;
    case GPU_FINISHED_ELSE:
        record->why = stands ? ACCEL_ERROR : record->why;
        left_alone_after(call->routine, &host);
        return stands;
    case GPU_SHORT_ELSE:
        record->why = stands ? ACCEL_NO_MEMORY : record->why;
        note_full(call);
        return stands;
    case GPU_LOST:
        stop_program(caller);
    }
    return false;
}

static void settle(const struct accel_record *record)
{
    if (settings.log != ACCEL_LOG_OFF)
        log_decision(&settings, record);
    if (settings.summary)
        summary_count(record);
}

/* Then the original is not to be called with all that the caller passed. */
static bool call_is_part(const struct accel_call *call)
{
    return call->groups > 1;
}

/* ---- Deciding ---- */

static void decide_now(const struct accel_call *call, struct situation *situation)
{
    const bool valid = call->batch >= 0;
    struct accel_machine machine = nominal;
    machine.gpu = estimate_is_on() ? ACCEL_GPU_READY : start_state();
    if (machine.gpu == ACCEL_GPU_READY) {
        const struct gpu_info *gpu = start_gpu();
        machine.gpu_memory = estimate_is_on() ? estimate_memory() : gpu->memory_bytes;
        machine.gpu_slowdown = gpu->sharers > 1 ? gpu->sharers : 1;
    }
    if (adapts && machine.gpu == ACCEL_GPU_READY && settings.policy == ACCEL_POLICY_AUTO &&
        load_cpu_calls() == 0 && !estimate_is_on())
        figures_probe(situation->library, situation->threads);
    if (adapts && valid) {
        double demand = (double)(load_cpu_calls() + 1) * situation->threads;
        machine.cpu_slowdown = demand > cores ? demand / cores : 1;
        if (situation->threads > cores) /* what was measured of the library was so, too */
            machine.cpu_slowdown = load_cpu_calls() + 1;
    }
    if (adapts && valid && machine.gpu == ACCEL_GPU_READY) {
        machine.gpu_wait_ms = load_gpu_ms();
        machine.lost = sites_lost(situation->site);
        machine.full = device_is_full(call);
    }
    if (start_waits())
        machine.gpu_first_ms = warm_counted_ms(call->routine);
    machine.distrusted = left_alone_has(call->routine, LEFT_WRONG);
    machine.failed = left_alone_has(call->routine, LEFT_FAILED);
    figures_borrow(&machine, call->routine, situation->library, situation->threads);
    situation->decision = accel_decide(call, &machine, &settings);
    bool ends = settings.require_gpu && !situation->decision.gpu &&
                accel_is_fallback(call, &machine, &settings, situation->decision.why);
    figures_give_back();
    situation->fallback = ends;
}

/* Whether the call cannot be run on the CPU while CUDA starts. */
static bool must_have_gpu(const struct accel_call *call)
{
    return !copies_host_can_read(call) || start_waits() || settings.require_gpu ||
           settings.policy == ACCEL_POLICY_GPU ||
           pattern_matches(&settings.gpu_routines, call->routine);
}

/* The call would gain by a GPU that has not been started. */
static void see_to_gpu(const struct accel_call *call, struct situation *situation)
{
    const struct accel_decision *decision = &situation->decision;
    if (must_have_gpu(call)) {
        start_now(copies_host_can_read(call) ? START_SOME_SECONDS : START_WITHOUT_END);
        if (!copies_host_can_read(call)) /* whose context they belong to is known only now */
            gpu_locate(((struct accel_call *)(uintptr_t)call)->operand, ACCEL_MATRICES,
                       call->batch);
        decide_now(call, situation);
    } else if (decision->gpu) {
        start_note_gain(decision->est_cpu_ms - decision->est_own_ms);
        situation->decision.gpu = false;
        situation->decision.why = start_state() == ACCEL_GPU_ABSENT || start_has_no_thread()
                                      ? ACCEL_NO_GPU
                                      : ACCEL_WARMING;
    }
}

/* As the entries ask it. */
static bool is_large(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if ((uint64_t)call->size[i] >= nominal.gate)
            return true;
    return false;
}

/* Without a GPU, calls shall not come here for nothing, nor pass a gate, and no figures are read. In a log, calls that no GPU would get are small, and no more is said of them. */
static void rule_out_gpu(const struct accel_call *call, const struct dispatch_caller *caller)
{
    static atomic_bool looked;
    const struct gpu_config config = {.cuda_dir = settings.cuda_dir};
    bool seen = settings.log != ACCEL_LOG_OFF || settings.summary;
    if (start_state() != ACCEL_GPU_UNTRIED || (seen && !is_large(call)) || estimate_is_on() ||
        settings.policy != ACCEL_POLICY_AUTO || settings.gpu_routines.text ||
        settings.require_gpu || atomic_exchange(&looked, true) ||
        gpu_may_exist(&config, caller->loaded(gpu_is_cuda_library)))
        return;
    start_rule_out();
    if (settings.log != ACCEL_LOG_OFF)
        accel_say("no GPU is used: this machine has no NVIDIA device");
}

/* Device pointers can only exist where the program has a context, though not in each of its threads. */
static bool sees_cuda(const struct dispatch_caller *caller)
{
    if (!atomic_load(&program_uses_cuda) && gpu_program_uses_cuda(caller->loads()))
        atomic_store(&program_uses_cuda, true);
    return atomic_load(&program_uses_cuda);
}

/* Finds out where the operands are. */
static void locate(struct accel_call *call, const struct dispatch_caller *caller)
{
    enum accel_gpu_state now = start_state();
    if ((now == ACCEL_GPU_READY || now == ACCEL_GPU_STARTING) && !start_is_own_process()) {
        /* Forked without the handlers: _Fork(), clone(). */
        forks_child();
        now = start_state();
    }
    bool may_start = now == ACCEL_GPU_UNTRIED || now == ACCEL_GPU_STARTING;
    if (settings.policy != ACCEL_POLICY_CPU && (may_start || now == ACCEL_GPU_READY))
        sees_cuda(caller);
    if ((now == ACCEL_GPU_READY || now == ACCEL_GPU_FAILED ||
         (may_start && atomic_load(&program_uses_cuda))) &&
        !accel_call_fault(call) && !accel_is_rows_of_lapack(call)) {
        gpu_locate(call->operand, ACCEL_MATRICES, call->batch);
        if (!all_on_host(call))
            atomic_store(&program_uses_cuda, true);
    }
}

/* Whether a call takes the CPU less, at a billion operations and bytes a second, than a look at it and a launch take: a column
 * of a few rows is above the gate by its length. Then it is not worth a decision, if nobody wants to see one, and no operand can
 * be in device memory. */
static bool is_trifle(const struct accel_call *call, const struct dispatch_caller *caller)
{
    double sum = call->routine->flops(call);
    if (settings.log != ACCEL_LOG_OFF || settings.summary || settings.policy != ACCEL_POLICY_AUTO ||
        settings.gpu_routines.text || estimate_is_on() || call->batch != 1)
        return false;
    for (int i = 0; i < ACCEL_MATRICES; i++)
        sum += (double)call->operand[i].rows * (double)call->operand[i].cols * 8;
    return sum * 1e-6 < ACCEL_LAUNCH_MS / 2 && sum >= 0 && !sees_cuda(caller);
}

/* The first call of a routine that would gain has it warmed up, and runs on the CPU as long as that takes; one that gains more than a
 * warm-up takes does not wait for it. Where calls wait for CUDA, they do so for this, too, once it pays. */
static void see_to_kernels(const struct accel_call *call, struct accel_decision *decision)
{
    if (start_waits() && decision->why == ACCEL_SLOWER)
        warm_note_gain(call->routine, decision->est_cpu_ms - decision->est_own_ms +
                                          warm_counted_ms(call->routine));
    if (!adapts || decision->why != ACCEL_FASTER || start_state() != ACCEL_GPU_READY ||
        warm_is(call->routine) || settings.require_gpu ||
        decision->est_cpu_ms - decision->est_gpu_ms > warm_cost_ms(call->routine))
        return;
    warm_ask(call->routine);
    if (warm_is(call->routine))
        return;
    decision->gpu = false;
    decision->why = ACCEL_WARMING;
}

/* Whether CUDA is left to the program; what it has been told to put on the GPU goes there, unless it has been told to wait. */
static bool is_held(const struct dispatch_caller *caller)
{
    bool demanded = settings.policy == ACCEL_POLICY_GPU || settings.require_gpu;
    return (!demanded || settings.start == ACCEL_START_PROGRAM) && hold_applies(&settings, caller);
}

/* Decides, and has CUDA started if that would pay. */
static void survey(struct accel_call *call, const struct dispatch_caller *caller,
                   struct situation *situation)
{
    if (!estimate_is_on())
        locate(call, caller);
    situation->library = caller->library(caller->context);
    situation->threads = situation->library->threads(situation->library);
    situation->site = adapts ? sites_key(caller->site, call) : 0;
    decide_now(call, situation);
    if (estimate_is_on())
        return;
    enum accel_gpu_state now = start_state();
    bool starting = now == ACCEL_GPU_UNTRIED || now == ACCEL_GPU_STARTING;
    bool wanted = situation->decision.gpu || situation->decision.why == ACCEL_WARMING;
    bool copied = !copies_host_can_read(call); /* by CUDA, for the CPU, if it runs there */
    if (wanted && now == ACCEL_GPU_UNTRIED && !copied && is_held(caller)) {
        situation->decision.gpu = false;
        situation->decision.why = ACCEL_NO_GPU;
        situation->fallback = settings.require_gpu;
    } else if (starting && (wanted || copied))
        see_to_gpu(call, situation);
    else if (situation->decision.gpu && now != ACCEL_GPU_READY)
        decide_now(call, situation); /* another thread has found none since the decision */
    see_to_kernels(call, &situation->decision);
}

bool dispatch_would_run(struct accel_call *call, const struct dispatch_caller *caller)
{
    struct situation situation;
    if (called_is_on())
        return false;
    rule_out_gpu(call, caller);
    survey(call, caller, &situation);
    return !copies_host_can_read(call) || situation.decision.gpu;
}

/* ---- Seeing it through ---- */

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
        load_leave_cpu();
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

/* The original, with the caller's own arguments; how long it took is learned from. Returns milliseconds. */
static double run_forward(const struct accel_call *call, const struct situation *situation,
                          const struct dispatch_caller *caller)
{
    const char *here = __builtin_frame_address(0);
    if (computes && here >= computes) {
        computes = NULL;
        load_leave_cpu();
    }
    bool counted = !computes;
    bool alone = counted && load_enter_cpu() == 1;
    if (counted)
        count_computing(here);
    double start = accel_now_ms();
    caller->forward(caller->context);
    double ms = accel_now_ms() - start;
    if (counted) {
        computes = NULL;
        alone = alone && load_cpu_calls() == 1;
        load_leave_cpu();
    }
    if (alone && adapts && situation->decision.est_cpu_ms > 0)
        figures_learn_cpu(call, situation->library, situation->threads, ms);
    return ms;
}

/* Below this a call's time is not worth knowing: taking it would cost more than it could gain. */
#define WORTH_MS 0.05

static bool is_worth_watching(const struct situation *situation)
{
    return adapts && situation->decision.est_cpu_ms > WORTH_MS && start_state() != ACCEL_GPU_ABSENT;
}

/* accel estimate: all runs on the CPU. What runs inside a call that the GPU would have run is a part of it. */
static bool run_for_estimate(const struct accel_call *call, const struct situation *situation,
                             const struct dispatch_caller *caller, struct accel_record *record)
{
    static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
    if (inside || !caller->forward)
        return false;
    if (record->why == ACCEL_BAD_ARGUMENT || record->why == ACCEL_UNSUPPORTED)
        return false; /* as below */
    inside = situation->decision.gpu;
    double start = accel_now_ms();
    caller->forward(caller->context);
    record->ms = accel_now_ms() - start;
    inside = false;
    if (situation->decision.gpu) {
        record->why = ACCEL_NO_GPU;
        warm_note(call->routine);
    } else if (start_waits() && record->why == ACCEL_SLOWER) {
        warm_note_gain(call->routine, record->est_cpu_ms - situation->decision.est_own_ms +
                                          warm_counted_ms(call->routine));
    }
    estimate_count(call->routine, &situation->decision, record->ms);
    settle(record);
    return true;
}

bool dispatch_call(struct accel_call *call, const struct dispatch_caller *caller)
{
    struct situation situation;
    if (called_is_on()) { /* what is wrong with the settings, the tool says */
        called_note(caller->library(caller->context), caller->symbol);
        return false;
    }
    complain();
    rule_out_gpu(call, caller);
    if (caller->forward && !call_is_part(call) &&
        (dispatch_attention().level == DISPATCH_SEE_NOTHING || is_trifle(call, caller)))
        return false;
    survey(call, caller, &situation);
    const struct accel_decision *decision = &situation.decision;
    bool valid = decision->why != ACCEL_BAD_ARGUMENT;
    if (decision->gpu && !caller->forward) { /* become ready since the caller asked */
        situation.decision.gpu = false;
        situation.decision.why = ACCEL_WARMING;
    }
    struct accel_record record = {.call = call,
                                  .symbol = caller->symbol,
                                  .why = decision->why,
                                  .ran = "cpu",
                                  .est_cpu_ms = decision->est_cpu_ms,
                                  .est_gpu_ms = decision->est_gpu_ms,
                                  .ms = -1,
                                  .verify = VERIFY_NOT_ASKED};
    bool recorded = settings.log != ACCEL_LOG_OFF || settings.summary;
    if (estimate_is_on() && run_for_estimate(call, &situation, caller, &record))
        return true;
    if (decision->gpu && !estimate_is_on() && run_on_gpu(call, &situation, caller, &record)) {
        settle(&record);
        return true;
    }
    record.ms = -1;
    /* A matrix that the GPU has tried, and that only the program's LAPACK can speak about, is no fallback. */
    bool refused = record.why == ACCEL_UNSUPPORTED && record.up_bytes > 0;
    /* Nor is a call after exit() has begun, which CUDA is kept out of. */
    if (!estimate_is_on() && !gpu_is_gone() &&
        (situation.fallback || (settings.require_gpu && decision->gpu && !refused)))
        end_program(caller, record.why);
    bool readable = copies_host_can_read(call);
    if (!valid || !caller->forward ||
        (readable && record.why == ACCEL_UNSUPPORTED && !call_is_part(call))) {
        /* The original may leave by longjmp or by an exception from its error handler: nothing of
         * ours may be on the stack then. */
        settle(&record);
        return false;
    }
    if (readable && !recorded && !call_is_part(call) && !is_worth_watching(&situation))
        return false;
    if (readable) {
        record.ms = run_forward(call, &situation, caller);
    } else {
        double start = accel_now_ms();
        if (!copies_run(call, caller))
            stop_program(caller);
        record.ms = accel_now_ms() - start;
    }
    settle(&record);
    return true;
}

void dispatch_not_blas(const char *symbol)
{
    static const struct accel_routine no_routine = {.args = 0};
    const struct accel_call call = {.routine = &no_routine};
    const struct accel_record record = {.call = &call,
                                        .symbol = symbol,
                                        .why = ACCEL_UNSUPPORTED,
                                        .ran = "cpu",
                                        .ms = -1,
                                        .verify = VERIFY_NOT_ASKED};
    complain();
    settle(&record);
}
