#include "survey.h"

#include <stdatomic.h>

#include "called.h"
#include "copies.h"
#include "decide.h"
#include "full.h"
#include "hold.h"
#include "left_alone.h"
#include "small.h"
#include "start.h"
#include "base/forks.h"
#include "base/say.h"
#include "dispatch/cost/contention.h"
#include "dispatch/cost/cost.h"
#include "dispatch/cost/regret.h"
#include "dispatch/cost/warm.h"
#include "gpu/gpu.h"
#include "ops/rules.h"
#include "ops/op.h"
#include "report/report.h"

static const struct accel_settings *settings;
static int cores;
static bool adapts;

/* The program has a CUDA context of its own: any pointer may be a device pointer. Stays set. */
static atomic_bool program_uses_cuda;

void survey_start(const struct accel_settings *with, int cores_there, bool may_adapt)
{
    settings = with;
    cores = cores_there;
    adapts = may_adapt;
}

struct dispatch_attention survey_attention(void)
{
    struct dispatch_attention attention = {DISPATCH_SEE_NOTHING, UINT64_MAX};
    const enum accel_gpu_state now = start_state();
    const bool over = gpu_state_is_over(now) && !settings->require_gpu;
    if (report_is_on() || called_is_on() || settings->broken_promise ||
        settings_wait_to_complain()) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (settings->policy == ACCEL_POLICY_CPU || (over && now != ACCEL_GPU_FAILED)) {
        return attention;
    } else if (atomic_load(&program_uses_cuda)) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (over) {
        return attention;
    } else if (settings->policy == ACCEL_POLICY_GPU || settings->gpu_routines.text) {
        attention.level = DISPATCH_SEE_ALL;
    } else {
        attention.level = DISPATCH_SEE_LARGE;
        attention.gate = small_gate();
    }
    return attention;
}

/* ---- The decision ---- */

static void decide_now(const struct accel_call *call, struct situation *situation)
{
    const bool valid = call->batch >= 0;
    struct accel_machine machine;
    accel_machine_init(&machine, NULL, NULL);
    machine.gpu = start_state();
    if (gpu_state_is_known(machine.gpu)) {
        machine.gpu_memory = start_memory();
        machine.gpu_slowdown = start_gpu()->sharers > 1 ? start_gpu()->sharers : 1;
    }
    if (adapts && machine.gpu == ACCEL_GPU_READY && settings->policy == ACCEL_POLICY_AUTO &&
        contention_cpu_calls() == 0)
        cost_probe(situation->library, situation->threads);
    if (adapts && valid) {
        double demand = (double)(contention_cpu_calls() + 1) * situation->threads;
        machine.cpu_slowdown = demand > cores ? demand / cores : 1;
        if (situation->threads > cores) /* what was measured of the library was so, too */
            machine.cpu_slowdown = contention_cpu_calls() + 1;
    }
    if (adapts && valid && machine.gpu == ACCEL_GPU_READY) {
        machine.gpu_wait_ms = contention_gpu_ms(start_contention());
        machine.lost = regret_lost(situation->site);
        machine.full = full_for(start_full(), call);
    }
    if (start_waits())
        machine.gpu_first_ms = warm_counted_ms(call->routine);
    machine.distrusted = left_alone_has(call->routine, LEFT_WRONG);
    machine.failed = left_alone_has(call->routine, LEFT_FAILED);
    cost_borrow(&machine, call->routine, situation->library, situation->threads);
    situation->decision = accel_decide(call, &machine, settings);
    bool ends = settings->require_gpu && !situation->decision.gpu &&
                accel_is_fallback(call, &machine, settings, situation->decision.why);
    cost_give_back();
    situation->fallback = ends;
}

/* Whether the call cannot be run on the CPU while CUDA starts. */
static bool must_have_gpu(const struct accel_call *call)
{
    return !copies_host_can_read(call) || start_waits() || settings->require_gpu ||
           settings->policy == ACCEL_POLICY_GPU ||
           pattern_matches(&settings->gpu_routines, call->routine);
}

/* The call would gain by a GPU that has not been started. */
static void see_to_gpu(const struct accel_call *call, struct situation *situation)
{
    const struct accel_decision *decision = &situation->decision;
    if (must_have_gpu(call)) {
        start_now(copies_host_can_read(call) ? START_SOME_SECONDS : START_WITHOUT_END);
        if (!copies_host_can_read(call)) /* whose context they belong to is known only now */
            gpu_locate(start_device(), ((struct accel_call *)(uintptr_t)call)->span, ACCEL_MATRICES,
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

/* For a log, not before a call that is not small: more is not said of small ones. */
void survey_rule_out_gpu(const struct accel_call *call, const struct dispatch_caller *caller)
{
    static atomic_bool looked;
    const struct gpu_config config = {.cuda_dir = settings->cuda_dir};
    if (start_state() != ACCEL_GPU_UNTRIED || (report_is_on() && small_is(call)) ||
        settings->policy != ACCEL_POLICY_AUTO || settings->gpu_routines.text ||
        settings->require_gpu || atomic_exchange(&looked, true) ||
        gpu_may_exist(&config, caller->loaded(gpu_is_cuda_library)))
        return;
    start_rule_out();
    if (settings->log != ACCEL_LOG_OFF)
        accel_say("no GPU is used: this machine has no NVIDIA device");
}

/* Device pointers can only exist where the program has a context, though not in each of its threads. */
static bool sees_cuda(const struct dispatch_caller *caller)
{
    if (!atomic_load(&program_uses_cuda) && gpu_program_uses_cuda(caller->loads()))
        atomic_store(&program_uses_cuda, true);
    return atomic_load(&program_uses_cuda);
}

/* Not where somebody wants to see each decision, or an operand could be in device memory. */
bool survey_is_trifle(const struct accel_call *call, const struct dispatch_caller *caller)
{
    return !report_is_on() && settings->policy == ACCEL_POLICY_AUTO &&
           !settings->gpu_routines.text && small_is_trifle(call) && !sees_cuda(caller);
}

static bool all_on_host(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (call->span[i].place != ACCEL_HOST)
            return false;
    return true;
}

/* Finds out where the operands are. */
static void locate(struct accel_call *call, const struct dispatch_caller *caller)
{
    enum accel_gpu_state now = start_state();
    if (gpu_state_is_in_use(now) && !start_is_own_process()) {
        /* Forked without the handlers: _Fork(), clone(). */
        forks_child();
        now = start_state();
    }
    const bool may_start = gpu_state_is_open(now);
    if (settings->policy != ACCEL_POLICY_CPU && (may_start || now == ACCEL_GPU_READY))
        sees_cuda(caller);
    if ((gpu_state_has_memory(now) || (may_start && atomic_load(&program_uses_cuda))) &&
        !accel_call_fault(call) && !accel_is_rows_of_lapack(call)) {
        gpu_locate(start_device(), call->span, ACCEL_MATRICES, call->batch);
        if (!all_on_host(call))
            atomic_store(&program_uses_cuda, true);
    }
}

/* The first call of a routine that would gain has it warmed up, and runs on the CPU as long as that takes; one that gains more than a
 * warm-up takes does not wait for it. Where calls wait for CUDA, they do so for this, too, once it pays. */
static void see_to_kernels(const struct accel_call *call, struct accel_decision *decision)
{
    if (start_waits() && decision->why == ACCEL_SLOWER)
        warm_note_gain(call->routine, decision->est_cpu_ms - decision->est_own_ms +
                                          warm_counted_ms(call->routine));
    if (!adapts || decision->why != ACCEL_FASTER || start_state() != ACCEL_GPU_READY ||
        warm_is(call->routine) || settings->require_gpu ||
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
    bool demanded = settings->policy == ACCEL_POLICY_GPU || settings->require_gpu;
    return (!demanded || settings->start == ACCEL_START_PROGRAM) && hold_applies(settings, caller);
}

void survey(struct accel_call *call, const struct dispatch_caller *caller,
            struct situation *situation)
{
    locate(call, caller);
    situation->library = caller->library(caller->context);
    situation->threads = situation->library->threads(situation->library);
    situation->site = adapts ? regret_key(caller->site, call) : 0;
    decide_now(call, situation);
    const enum accel_gpu_state now = start_state();
    const bool starting = gpu_state_is_open(now);
    if (now == ACCEL_GPU_ESTIMATED)
        return;
    bool wanted = situation->decision.gpu || situation->decision.why == ACCEL_WARMING;
    bool copied = !copies_host_can_read(call); /* by CUDA, for the CPU, if it runs there */
    if (wanted && now == ACCEL_GPU_UNTRIED && !copied && is_held(caller)) {
        situation->decision.gpu = false;
        situation->decision.why = ACCEL_NO_GPU;
        situation->fallback = settings->require_gpu;
    } else if (starting && (wanted || copied))
        see_to_gpu(call, situation);
    else if (situation->decision.gpu && now != ACCEL_GPU_READY)
        decide_now(call, situation); /* another thread has found none since the decision */
    see_to_kernels(call, &situation->decision);
}
