#include "survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "about.h"
#include "called.h"
#include "composed.h"
#include "dispatch/settings/complaints.h"
#include "copies.h"
#include "decide.h"
#include "declined.h"
#include "devices.h"
#include "hold.h"
#include "precision.h"
#include "several.h"
#include "small.h"
#include "base/thread/forks.h"
#include "base/memory/written.h"
#include "dispatch/cost/cost.h"
#include "gpu/plan/scheduled.h"
#include "ops/lapack/in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "ops/rules/rules.h"
#include "ops/op.h"
#include "report/report.h"

static const struct accel_settings *settings;
static int cores;
static bool adapts;

/* The program has a CUDA context: any pointer may be a device pointer. Stays set. */
static atomic_bool program_uses_cuda;

void survey_start(const struct accel_settings *with, int cores_there, bool may_adapt)
{
    settings = with;
    cores = cores_there;
    adapts = may_adapt;
    several_start(with, may_adapt);
}

struct dispatch_attention survey_attention(const struct dispatch_device *device)
{
    struct dispatch_attention attention = {.level = DISPATCH_SEE_NOTHING, .gate = UINT64_MAX};
    const enum device_state now = device_state(device);
    const bool over = device_state_is_over(now) && !settings->require_gpu;
    if (report_is_on() || called_is_on() || settings->broken_promise || complaints_wait()) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (settings->policy == ACCEL_POLICY_CPU || (over && now != DEVICE_FAILED)) {
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
        attention.matrices =
            adapts && settings->resident == ACCEL_RESIDENT_AUTO && !written_why_not();
    }
    return attention;
}

/* ---- The decision ---- */

/* A digest takes the place of an upload if it is faster by this. */
#define KEEP_GAIN 1.1

/* Which operands are kept depends on the course of the program, so a decision may know of it only
 * where it may depend on that. A call on several devices keeps nothing. */
static void see_what_is_kept(const struct accel_call *call, struct situation *situation,
                             struct accel_machine *machine)
{
    machine->digest_gbps = gpu_digest_gbps();
    machine->scan_gbps = gpu_scan_gbps();
    situation->digests =
        !situation->plan && (settings->resident == ACCEL_RESIDENT_HASH ||
                             (settings->resident == ACCEL_RESIDENT_AUTO &&
                              machine->digest_gbps > KEEP_GAIN * machine->up_gbps));
    /* The program's own CUDA may write to host memory that it has pinned, without a fault. */
    const bool may_track = !situation->plan && settings->resident == ACCEL_RESIDENT_AUTO &&
                           !atomic_load(&program_uses_cuda) && !written_why_not();
    situation->keeps = situation->digests || may_track;
    situation->tracks = may_track;
    machine->may_bring = may_track && adapts;
    machine->brings = situation->brings;
    if (situation->keeps && adapts && call->batch > 0 && machine->gpu == DEVICE_READY &&
        !accel_call_fault(call))
        machine->kept = gpu_kept(device_gpu(situation->device), call);
    machine->keeps = situation->keeps && settings->resident == ACCEL_RESIDENT_HASH;
    if (!situation->tracks) {
        machine->kept.digested_bytes += machine->kept.watched_bytes;
        machine->kept.watched_bytes = 0;
    }
}

/* Sets the precision, and what the device's rates are in it. */
static void see_rates(const struct accel_call *call, struct situation *situation,
                      struct accel_machine *machine)
{
    struct cost_curves *const curves = atomic_load(&situation->device->curves);
    struct scheduled scheduled;
    situation->precision = precision_of(settings, situation->device, call);
    machine->gpu_gain = cost_call_gain(curves, call, situation->precision);
    situation->rates = (struct schedule_rates){.up = 0};
    if (!accel_call_fault(call) &&
        (accel_op_of(call->routine)->scheduled ? scheduled_is_divided(call, &scheduled)
                                               : lapack_has_panels(call)))
        situation->rates = cost_schedule_rates(curves, call, situation->precision);
    machine->schedule = situation->rates;
}

/* Sees whether another precision would make the call faster. machine: as for native precision. */
static struct accel_offer see_offer(const struct accel_call *call,
                                    const struct situation *situation, struct accel_machine machine)
{
    struct accel_offer offer = {.precision = GPU_NATIVE};
    if (!report_is_on() || machine.gpu != DEVICE_READY || machine.arithmetic ||
        accel_call_fault(call))
        return offer;
    offer.precision = precision_offered(settings, situation->device, call);
    if (offer.precision != GPU_NATIVE) {
        const double gain =
            cost_precision_gain(atomic_load(&situation->device->curves), offer.precision);
        machine.schedule.compute *= gain / machine.gpu_gain;
        machine.schedule.paces = (struct block_paces){.highest = 0};
        machine.schedule.own_nrhs = 0;
        machine.gpu_gain = gain;
        offer.est_gpu_ms = accel_estimate_gpu_ms(call, &machine, settings);
    }
    return offer;
}

/* Not while curves are borrowed. */
static void see_offered_rates(const struct accel_call *call, const struct situation *situation,
                              struct accel_offer *offer)
{
    struct cost_curves *const curves = atomic_load(&situation->device->curves);
    const bool in_double = accel_is_double(call->routine->dtype);
    if (offer->precision == GPU_NATIVE)
        return;
    offer->native_gflops = cost_product_gflops(curves, in_double ? ACCEL_FLOAT64 : ACCEL_FLOAT32);
    offer->gflops = offer->native_gflops * cost_precision_gain(curves, offer->precision);
}

/* Returns the device's state that the decision holds for; it may have changed since. */
static enum device_state decide_now(const struct accel_call *call, struct situation *situation)
{
    struct dispatch_device *device = situation->device;
    const bool valid = call->batch >= 0;
    struct accel_machine machine;
    accel_machine_init(&machine, NULL, NULL);
    machine.gpu = device_state(device);
    if (device_state_is_known(machine.gpu)) {
        machine.gpu_memory = device->memory_bytes;
        machine.gpu_slowdown = device->sharers;
    }
    /* Threads that the library starts meanwhile have the arithmetic of ours. */
    if (adapts && machine.gpu == DEVICE_READY && settings->policy == ACCEL_POLICY_AUTO &&
        contention_cpu_calls() == 0 && !situation->arithmetic)
        cost_probe(situation->library, situation->threads);
    if (adapts && valid) {
        double demand = (double)(contention_cpu_calls() + 1) * situation->threads;
        machine.cpu_slowdown = demand > cores ? demand / cores : 1;
        if (situation->threads > cores) /* the library was measured with as many */
            machine.cpu_slowdown = contention_cpu_calls() + 1;
    }
    if (adapts && valid && machine.gpu == DEVICE_READY) {
        machine.gpu_wait_ms = contention_gpu_ms(&device->contention);
        machine.lost =
            regret_lost(&device->regret, situation->site) || declined_holds(situation->site);
        machine.full = full_for(&device->full, call);
    }
    machine.arithmetic = situation->arithmetic;
    machine.composed_ms = situation->composed_ms;
    if (!adapts)
        machine.gpu_first_ms = warm_counted_ms(device, call->routine);
    machine.distrusted = left_alone_has(&device->left_alone, call->routine, LEFT_WRONG);
    machine.failed = left_alone_has(&device->left_alone, call->routine, LEFT_FAILED);
    /* Decisions that do not depend on the course of the program do not depend on a log, either. */
    machine.wants_all = !adapts || report_is_on();
    see_rates(call, situation, &machine);
    cost_borrow(&machine, atomic_load(&device->curves), call->routine, situation->library,
                situation->threads);
    see_what_is_kept(call, situation, &machine);
    if (situation->plan) {
        machine.gpu_share = situation->plan->split.ms / situation->plan->split.whole_ms;
        machine.place_gbps = 0; /* parts copy their operands */
    }
    situation->decision = accel_decide(call, &machine, settings);
    situation->fallback = settings->require_gpu && !situation->decision.gpu &&
                          accel_is_fallback(call, &machine, settings, situation->decision.why);
    situation->offer = see_offer(call, situation, machine);
    cost_give_back();
    see_offered_rates(call, situation, &situation->offer);
    return machine.gpu;
}

/* ---- Which device ---- */

/* Whether it matters which of several devices a call has: one that only a device keeps from the
 * GPU, or that goes there. */
static bool may_choose(const struct accel_decision *decision)
{
    switch (decision->why) {
    case ACCEL_SLOWER:
    case ACCEL_BUSY:
    case ACCEL_NO_MEMORY:
    case ACCEL_ERROR:
    case ACCEL_VERIFY_FAILED:
        return true;
    default:
        return decision->gpu;
    }
}

/* The device of the thread's last call on the GPU: what that left there may be of use again. */
static _Thread_local struct dispatch_device *last_device __attribute__((tls_model("initial-exec")));

/* Estimates are not exact: another device must promise this share of the time of the last one. */
#define WORTH_A_CHANGE 0.9

/* When a call would be done on a device; infinity: it would not go there. */
static double done_ms(const struct situation *situation)
{
    const struct accel_decision *decision = &situation->decision;
    if (!decision->gpu)
        return INFINITY;
    return decision->est_gpu_ms / (situation->device == last_device ? 1 : WORTH_A_CHANGE);
}

/* Has one more device started if the call would wait for those that are there. */
static void note_wait(const struct accel_decision *decision, int count)
{
    const double wait_ms = decision->est_gpu_ms - decision->est_own_ms;
    if (wait_ms <= 0)
        return;
    for (int i = 0; i < count; i++)
        if (device_state(devices_at(i)) == DEVICE_UNTRIED) {
            device_note_gain(devices_at(i), wait_ms);
            return;
        }
}

/* Gives the call to the device that would have it done first. One whose kernels are cold is warmed
 * up meanwhile. */
static void choose_by_time(const struct accel_call *call, struct situation *situation, int count)
{
    const struct situation by_first = *situation;
    for (int i = 0; i < count; i++) {
        struct situation other = by_first;
        other.device = devices_at(i);
        if (other.device == by_first.device || device_state(other.device) != DEVICE_READY)
            continue;
        decide_now(call, &other);
        if (!(done_ms(&other) < done_ms(situation)))
            continue;
        if (situation->decision.gpu && !warm_is(other.device, call->routine))
            warm_ask(other.device, call->routine);
        else
            *situation = other;
    }
    if (may_choose(&situation->decision))
        note_wait(&situation->decision, count);
}

/* Gives the call to its thread's device, which is started if need be. */
static void choose_by_thread(struct accel_call *call, struct situation *situation)
{
    struct dispatch_device *const mine = devices_of_thread();
    if (mine == situation->device)
        return;
    if (device_state_is_open(device_state(mine)))
        device_start_now(mine, DEVICE_SOME_SECONDS);
    if (device_state(mine) != DEVICE_READY)
        return;
    situation->device = mine;
    decide_now(call, situation);
}

/* ---- Several devices for one call ---- */

void situation_drop_plan(struct situation *situation)
{
    free(situation->plan);
    situation->plan = NULL;
}

/* Has several devices run the call if it would be done first so. */
static void consider_several(const struct accel_call *call, struct situation *situation)
{
    const struct accel_decision *alone = &situation->decision;
    if (devices_count() == 1 || !may_choose(alone) || !accel_is_on_host(call) ||
        !several_may_share(call, situation) || alone->est_own_ms < SPLIT_LEAST_MS)
        return;
    struct situation several = *situation;
    several.plan = malloc(sizeof *several.plan);
    if (!several.plan)
        return;
    const bool shared = several_plan(call, situation, several.plan);
    if (shared)
        decide_now(call, &several);
    if (shared && several.decision.gpu &&
        several.decision.est_own_ms < SPLIT_GAIN * alone->est_own_ms)
        *situation = several;
    else
        situation_drop_plan(&several);
}

/* Chooses among several devices, for a call whose operands are in host memory. then: the state of
 * the device that the decision so far is for. Returns that of the chosen one. */
static enum device_state choose_device(struct accel_call *call, struct situation *situation,
                                       enum device_state then)
{
    const int count = devices_count();
    if (count == 1 || then != DEVICE_READY || !may_choose(&situation->decision) ||
        !accel_is_on_host(call))
        return then;
    if (adapts)
        choose_by_time(call, situation, count);
    else
        choose_by_thread(call, situation);
    consider_several(call, situation);
    if (situation->decision.gpu)
        last_device = situation->device;
    return DEVICE_READY;
}

/* ---- Inner calls ---- */

void survey_inner(const struct accel_call *call, struct situation *situation)
{
    if (decide_now(call, situation) == DEVICE_READY)
        consider_several(call, situation);
}

/* Has a call that no device takes as a whole done by inner calls, if it can be. */
static void consider_composed(const struct accel_call *call, struct situation *situation)
{
    if (situation->decision.why != ACCEL_NO_MEMORY || situation->decision.gpu ||
        !composed_may_be(call) || !device_state_is_known(device_state(situation->device)))
        return;
    situation->composed_ms = composed_estimate(call, situation);
    if (situation->composed_ms > 0)
        decide_now(call, situation);
}

/* ---- The start ---- */

static void keep_on_cpu(struct situation *situation, enum accel_why why)
{
    situation->decision.gpu = false;
    situation->decision.why = why;
    situation_drop_plan(situation);
}

/* Whether the call cannot be run on the CPU while CUDA starts. */
static bool must_have_gpu(const struct accel_call *call)
{
    return !copies_host_can_read(call) || !adapts || settings->require_gpu ||
           settings->policy == ACCEL_POLICY_GPU ||
           pattern_matches(&settings->gpu_routines, call->routine);
}

/* Decides anew, once the device may have started. */
static void decide_after_start(const struct accel_call *call, struct situation *situation)
{
    if (decide_now(call, situation) != DEVICE_READY)
        return;
    consider_several(call, situation);
    consider_composed(call, situation);
}

/* A call that would gain seconds waits for CUDA, which starts in less than one as a rule: many
 * programs make one large call. It waits for a third of what it would gain, and for 10 s at most:
 * estimates may be wrong, and who has waited so long does not know whether the start will ever
 * end. */
#define WAITS_FROM_MS  3000
#define WAITED_SHARE   (1.0 / 3)
#define WAITED_MOST_MS 10000

/* Waits for the start, if that pays. Returns whether the call was decided anew: the GPU is
 * ready. */
static bool wait_for_start(const struct accel_call *call, const struct dispatch_caller *caller,
                           struct situation *situation, double gain_ms)
{
    if (!(gain_ms >= WAITS_FROM_MS) || situation->brings || situation->together)
        return false;
    const double most_ms = WAITED_SHARE * gain_ms;
    device_await(situation->device, most_ms < WAITED_MOST_MS ? most_ms : WAITED_MOST_MS, caller);
    if (device_state(situation->device) != DEVICE_READY)
        return false;
    decide_after_start(call, situation);
    return true;
}

/* Has the GPU started, as the call would gain by it or has operands there. */
static void see_to_gpu(struct accel_call *call, const struct dispatch_caller *caller,
                       struct situation *situation)
{
    struct dispatch_device *device = situation->device;
    const struct accel_decision *decision = &situation->decision;
    if (must_have_gpu(call)) {
        device_start_now(device,
                         copies_host_can_read(call) ? DEVICE_SOME_SECONDS : DEVICE_WITHOUT_END);
        if (!copies_host_can_read(call)) /* whether they are in our context is known only now */
            gpu_locate(device_gpu(device), call->span, ACCEL_SPANS, call->batch);
        decide_after_start(call, situation);
        return;
    }
    const double gain_ms =
        decision->est_cpu_ms - (situation->brings ? decision->est_there_ms : decision->est_own_ms);
    if (decision->gpu) /* untried as yet */
        device_note_gain(device, gain_ms);
    if (!wait_for_start(call, caller, situation, gain_ms)) {
        const enum device_state now = device_state(device);
        const bool never = now == DEVICE_ABSENT || device_has_no_thread(device);
        const bool forked = now == DEVICE_FORKED || device_is_inherited(device);
        keep_on_cpu(situation, forked ? ACCEL_FORKED : never ? ACCEL_NO_GPU : ACCEL_WARMING);
    }
}

/* With a log, small calls do not look: their lines are the same without. Threads that come before
 * the first look has ended look for themselves, so that all of their calls know. */
void survey_rule_out_gpu(struct dispatch_device *device, const struct accel_call *call,
                         const struct dispatch_caller *caller)
{
    static atomic_bool looked;
    const struct gpu_config config = {.cuda_dir = settings->cuda_dir};
    if (device_state(device) != DEVICE_UNTRIED || (report_is_on() && small_is(call)) ||
        settings->policy != ACCEL_POLICY_AUTO || settings->gpu_routines.text ||
        settings->require_gpu || atomic_load(&looked))
        return;
    if (!gpu_may_exist(&config, caller->loaded(gpu_is_cuda_library)) && device_rule_out(device))
        about_no_gpu("this machine has no NVIDIA device");
    atomic_store(&looked, true);
}

/* Whether the program has a CUDA context, without which there are no device pointers. A thread may
 * have none. */
static bool sees_cuda(const struct dispatch_caller *caller)
{
    if (!atomic_load(&program_uses_cuda) && gpu_program_uses_cuda(caller->loads()))
        atomic_store(&program_uses_cuda, true);
    return atomic_load(&program_uses_cuda);
}

/* False if each decision is reported, or an operand could be in device memory. */
bool survey_is_trifle(const struct accel_call *call, const struct dispatch_caller *caller)
{
    return !report_is_on() && settings->policy == ACCEL_POLICY_AUTO &&
           !settings->gpu_routines.text && small_is_trifle(call) && !sees_cuda(caller);
}

static bool is_on(const struct accel_call *call, enum accel_place place)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].ptr && call->span[i].place == place)
            return true;
    return false;
}

/* Finds the device whose memory has the operands that are in none of the first one's, and starts it
 * if need be. */
static void locate_among_others(struct accel_call *call, struct situation *situation)
{
    const int count = devices_count();
    for (int i = 0; i < count && is_on(call, ACCEL_REMOTE); i++) {
        struct dispatch_device *const device = devices_at(i);
        struct accel_call there = *call;
        if (device_state(device) == DEVICE_UNTRIED)
            device_start_now(device, DEVICE_SOME_SECONDS);
        if (device_state(device) != DEVICE_READY)
            continue;
        gpu_locate(device_gpu(device), there.span, ACCEL_SPANS, there.batch);
        if (!is_on(&there, ACCEL_DEVICE))
            continue;
        *call = there;
        situation->device = device;
    }
}

/* Sets the places of the operands, unless all are in host memory for certain. */
static void locate(struct situation *situation, struct accel_call *call,
                   const struct dispatch_caller *caller)
{
    struct dispatch_device *const device = situation->device;
    if (devices_are_inherited()) /* forked without the handlers: _Fork(), clone() */
        forks_child();
    const enum device_state now = device_state(device);
    const bool may_start = device_state_is_open(now);
    if (settings->policy != ACCEL_POLICY_CPU && (may_start || now == DEVICE_READY))
        sees_cuda(caller);
    if ((device_state_has_memory(now) || (may_start && atomic_load(&program_uses_cuda))) &&
        !accel_call_fault(call) && !accel_is_rows_of_lapack(call)) {
        gpu_locate(device_gpu(device), call->span, ACCEL_SPANS, call->batch);
        if (!accel_is_on_host(call) || gpu_program_pins())
            atomic_store(&program_uses_cuda, true);
        if (devices_count() > 1 && settings->policy != ACCEL_POLICY_CPU)
            locate_among_others(call, situation);
    }
}

/* The first call of a routine that would gain has it warmed up, and runs on the CPU meanwhile. A
 * call that gains more than a warm-up costs runs on the GPU at once. If calls wait for CUDA (adapts
 * is false), they run on the GPU once the missed gains exceed the cost. */
static void see_to_kernels(const struct accel_call *call, struct situation *situation)
{
    struct dispatch_device *device = situation->device;
    const struct accel_decision *decision = &situation->decision;
    if (!adapts && decision->why == ACCEL_SLOWER)
        warm_note_gain(device, call->routine, decision->est_cpu_ms - decision->est_own_ms);
    if (!adapts || decision->why != ACCEL_FASTER || device_state(device) != DEVICE_READY ||
        warm_is(device, call->routine) || settings->require_gpu ||
        decision->est_cpu_ms - decision->est_gpu_ms > warm_cost_ms(device, call->routine))
        return;
    warm_ask(device, call->routine);
    if (warm_is(device, call->routine))
        return;
    keep_on_cpu(situation, ACCEL_WARMING);
}

/* Of the program's own calls that stay on the CPU, one may be the one that had better bring its
 * largest input, for later ones. (LAPACK's inner calls mostly see a matrix that LAPACK is
 * overwriting.) */
static void see_to_matrix(const struct accel_call *call, const struct dispatch_caller *caller,
                          struct situation *situation)
{
    const struct accel_decision *decision = &situation->decision;
    if (!(decision->est_there_ms > 0) || caller->depth > 0 ||
        !gpu_is_worth_bringing(call, decision->est_cpu_ms - decision->est_there_ms,
                               decision->est_own_ms - decision->est_there_ms))
        return;
    situation->brings = 1u << gpu_operand_to_bring(call);
    decide_now(call, situation);
}

bool survey_is_held(const struct dispatch_caller *caller)
{
    bool demanded = settings->policy == ACCEL_POLICY_GPU || settings->require_gpu;
    return (!demanded || settings->start == ACCEL_START_PROGRAM) && hold_applies(settings, caller);
}

/* Whether this is the child of a vfork(2). One that has memory of its own, and was forked without
 * the handlers (_Fork(), clone()), is told to all parts here. */
static bool is_in_shared_memory(void)
{
    const bool shared = forks_memory_is_shared();
    if (!shared)
        forks_late_child();
    return shared;
}

void survey(struct accel_call *call, const struct dispatch_caller *caller,
            struct situation *situation)
{
    locate(situation, call, caller);
    situation->arithmetic = caller->arithmetic;
    situation->library = caller->library(caller->context);
    situation->threads = situation->library->threads(situation->library);
    situation->site = adapts ? regret_key(caller->site, call) : 0;
    const enum device_state then = choose_device(call, situation, decide_now(call, situation));
    const bool starting = device_state_is_open(then);
    consider_composed(call, situation);
    if (then == DEVICE_ESTIMATED)
        return;
    see_to_matrix(call, caller, situation);
    bool wanted = situation->decision.gpu || situation->decision.why == ACCEL_WARMING;
    bool copied = !copies_host_can_read(call); /* by CUDA, for the CPU, if it runs there */
    if (starting && (wanted || copied) && is_in_shared_memory()) {
        keep_on_cpu(situation, ACCEL_FORKED);
        situation->fallback = settings->require_gpu;
    } else if (wanted && then == DEVICE_UNTRIED && !copied && survey_is_held(caller)) {
        keep_on_cpu(situation, ACCEL_NO_GPU);
        situation->fallback = settings->require_gpu;
    } else if (starting && (wanted || copied))
        see_to_gpu(call, caller, situation);
    see_to_kernels(call, situation);
}
