#include "select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "startup_banner.h"
#include "census.h"
#include "decomposed.h"
#include "dispatch/settings/complaints.h"
#include "copies.h"
#include "decide.h"
#include "decision_cache.h"
#include "negative_cache.h"
#include "devices.h"
#include "fork_policy.h"
#include "precision.h"
#include "several.h"
#include "small.h"
#include "base/thread/forks.h"
#include "base/memory/write_watch.h"
#include "dispatch/cost/cost.h"
#include "gpu/remote/remote.h"
#include "ops/rules/lapack_rules.h"
#include "ops/op.h"
#include "report/report.h"

static const struct accel_settings *settings;
static int cores;
static bool adapts;

/* The program has a CUDA context: any pointer may be a device pointer. Stays set. */
static atomic_bool program_uses_cuda;

void select_start(const struct accel_settings *with, int cores_there, bool may_adapt)
{
    settings = with;
    cores = cores_there;
    adapts = may_adapt;
    several_start(with, may_adapt);
}

struct dispatch_filter select_filter(const struct dispatch_device *device)
{
    struct dispatch_filter filter = {.level = DISPATCH_SEE_NOTHING, .gate = UINT64_MAX};
    const enum device_state now = device_state(device);
    const bool over = device_state_is_over(now) && !settings->require_gpu;
    if (report_is_on() || census_is_on() || settings->broken_promise || complaints_wait()) {
        filter.level = DISPATCH_SEE_ALL;
    } else if (settings->policy == ACCEL_POLICY_CPU || (over && now != DEVICE_FAILED)) {
        return filter;
    } else if (atomic_load(&program_uses_cuda)) {
        filter.level = DISPATCH_SEE_ALL;
    } else if (over) {
        return filter;
    } else if (settings->policy == ACCEL_POLICY_GPU || settings->gpu_routines.text) {
        filter.level = DISPATCH_SEE_ALL;
    } else {
        filter.level = DISPATCH_SEE_LARGE;
        filter.gate = small_gate();
        filter.matrices =
            adapts && settings->resident == ACCEL_RESIDENT_AUTO && !write_watch_why_not();
    }
    return filter;
}

/* ---- The decision ---- */

/* A digest takes the place of an upload if it is faster by this. */
#define DIGEST_GAIN 1.1

/* Which operands are cached depends on the course of the program, so a decision may know of it only
 * where it may depend on that. A call on several devices caches nothing. */
static void see_what_is_cached(struct task *task, struct accel_machine *machine)
{
    const struct accel_call *const call = task->call;
    machine->digest_gbps = gpu_digest_gbps();
    machine->scan_gbps = gpu_scan_gbps();
    task->host.digests = !task->plan && (settings->resident == ACCEL_RESIDENT_HASH ||
                                         (settings->resident == ACCEL_RESIDENT_AUTO &&
                                          machine->digest_gbps > DIGEST_GAIN * machine->up_gbps));
    /* The program's own CUDA may write to host memory that it has pinned, without a fault. */
    const bool may_track = !task->plan && settings->resident == ACCEL_RESIDENT_AUTO &&
                           !atomic_load(&program_uses_cuda) && !write_watch_why_not();
    task->host.caches = task->host.digests || may_track;
    task->host.tracks = may_track;
    machine->may_prefetch = may_track && adapts;
    machine->prefetches = task->host.prefetches;
    if (task->host.caches && adapts && call->batch > 0 && machine->gpu == DEVICE_READY &&
        !task->problem.fault)
        machine->cached = gpu_cached(device_gpu(task->device), call);
    machine->caches = task->host.caches && settings->resident == ACCEL_RESIDENT_HASH;
    if (!task->host.tracks) {
        machine->cached.digested_bytes += machine->cached.watched_bytes;
        machine->cached.watched_bytes = 0;
    }
}

/* Sets the precision, and what the device's rates are in it. */
static void see_rates(struct task *task, struct accel_machine *machine)
{
    const struct accel_call *const call = task->call;
    struct cost_curves *const curves = atomic_load(&task->device->curves);
    task->host.precision = precision_of(settings, task->device, call);
    machine->gpu_gain = cost_call_gain(curves, call, task->host.precision);
    task->host.rates = (struct schedule_rates){.up = 0};
    if (problem_has_schedule(&task->problem))
        task->host.rates = cost_schedule_rates(curves, &task->problem, task->host.precision);
    machine->schedule = task->host.rates;
}

/* Sees whether another precision would make the call faster. machine: as for native precision. */
static struct accel_offer see_offer(struct task *task, struct accel_machine machine)
{
    const struct accel_call *const call = task->call;
    struct accel_offer offer = {.precision = GPU_NATIVE};
    if (!report_is_on() || machine.gpu != DEVICE_READY || machine.arithmetic || task->problem.fault)
        return offer;
    offer.precision = precision_offered(settings, task->device, call);
    if (offer.precision != GPU_NATIVE) {
        const double gain =
            cost_precision_gain(atomic_load(&task->device->curves), offer.precision);
        machine.schedule.compute *= gain / machine.gpu_gain;
        machine.schedule.paces = (struct block_paces){.highest = 0};
        machine.schedule.own_nrhs = 0;
        machine.gpu_gain = gain;
        offer.est_gpu_ms = accel_estimate_gpu_ms(&task->problem, &machine, settings);
    }
    return offer;
}

/* Not while curves are borrowed. */
static void see_offered_rates(const struct task *task, struct accel_offer *offer)
{
    struct cost_curves *const curves = atomic_load(&task->device->curves);
    const bool in_double = accel_is_double(task->call->routine->dtype);
    if (offer->precision == GPU_NATIVE)
        return;
    offer->native_gflops = cost_product_gflops(curves, in_double ? ACCEL_FLOAT64 : ACCEL_FLOAT32);
    offer->gflops = offer->native_gflops * cost_precision_gain(curves, offer->precision);
}

/* Where a server has the device, it tells of all users' calls; else processes of this user count.
 */
static void see_load(const struct task *task, struct accel_machine *machine)
{
    struct dispatch_device *const device = task->device;
    if (!device_is_remote(device)) {
        machine->gpu_wait_ms = contention_gpu_ms(&device->contention);
        return;
    }
    const struct gpu_load load = gpu_load(device_gpu(device), task->call);
    machine->gpu_wait_ms = load.wait_ms;
    machine->gpu_beside = load.slower;
}

/* Returns the device's state that the decision holds for; it may have changed since. */
static enum device_state decide_now(struct task *task)
{
    const struct accel_call *const call = task->call;
    struct dispatch_device *device = task->device;
    const bool valid = !task->problem.fault;
    struct accel_machine machine;
    accel_machine_init(&machine, NULL, NULL);
    machine.gpu = device_state(device);
    if (device_state_is_known(machine.gpu)) {
        machine.gpu_memory = device->memory_bytes;
        machine.gpu_slowdown = device->sharers;
    }
    /* Threads that the library starts meanwhile have the arithmetic of ours. */
    if (adapts && machine.gpu == DEVICE_READY && settings->policy == ACCEL_POLICY_AUTO &&
        contention_cpu_calls() == 0 && !task->arithmetic)
        cost_probe(task->library, task->threads);
    if (adapts && valid) {
        double demand = (double)(contention_cpu_calls() + 1) * task->threads;
        machine.cpu_slowdown = demand > cores ? demand / cores : 1;
        if (task->threads > cores) /* the library was measured with as many */
            machine.cpu_slowdown = contention_cpu_calls() + 1;
    }
    if (adapts && valid && machine.gpu == DEVICE_READY) {
        see_load(task, &machine);
        machine.lost = misprediction_is_lost(&device->mispredictions, task->site) ||
                       negative_cache_holds(task->site);
        machine.full = oom_backoff_for(&device->oom_backoff, &task->problem);
    }
    machine.arithmetic = task->arithmetic;
    machine.decomposed_ms = task->decomposed_ms;
    if (!adapts)
        machine.gpu_first_ms = warm_up_counted_ms(device, call->routine);
    machine.distrusted = quarantine_has(&device->quarantine, call->routine, QUARANTINE_WRONG);
    machine.failed = quarantine_has(&device->quarantine, call->routine, QUARANTINE_FAILED);
    /* Decisions that do not depend on the course of the program do not depend on a log, either. */
    machine.wants_all = !adapts || report_is_on();
    see_rates(task, &machine);
    cost_borrow(&machine, atomic_load(&device->curves), call->routine, task->library,
                task->threads);
    see_what_is_cached(task, &machine);
    if (task->plan) {
        machine.gpu_share = task->plan->split.ms / task->plan->split.whole_ms;
        machine.place_gbps = 0; /* parts copy their operands */
    }
    task->decision = accel_decide(&task->problem, &machine, settings);
    task->fallback = settings->require_gpu && !task->decision.gpu &&
                     accel_is_fallback(&task->problem, &machine, settings, task->decision.why);
    task->clear = adapts && task->caller && task->caller->kind && !report_is_on() &&
                  accel_is_clear(&task->problem, &machine, settings, &task->decision);
    task->offer = see_offer(task, machine);
    cost_give_back();
    see_offered_rates(task, &task->offer);
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
static double done_ms(const struct task *task)
{
    const struct accel_decision *decision = &task->decision;
    if (!decision->gpu)
        return INFINITY;
    return decision->est_gpu_ms / (task->device == last_device ? 1 : WORTH_A_CHANGE);
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
static void choose_by_time(struct task *task, int count)
{
    const struct accel_call *const call = task->call;
    const struct task by_first = *task;
    for (int i = 0; i < count; i++) {
        struct task other = by_first;
        other.device = devices_at(i);
        if (other.device == by_first.device || device_state(other.device) != DEVICE_READY)
            continue;
        decide_now(&other);
        if (!(done_ms(&other) < done_ms(task)))
            continue;
        if (task->decision.gpu && !warm_up_is_done(other.device, call->routine))
            warm_up_ask(other.device, call->routine);
        else
            *task = other;
    }
    if (may_choose(&task->decision))
        note_wait(&task->decision, count);
}

/* Gives the call to its thread's device, which is started if need be. */
static void choose_by_thread(struct task *task)
{
    struct dispatch_device *const mine = devices_of_thread();
    if (mine == task->device)
        return;
    if (device_state_is_open(device_state(mine)))
        device_start_now(mine, DEVICE_SOME_SECONDS);
    if (device_state(mine) != DEVICE_READY)
        return;
    task->device = mine;
    decide_now(task);
}

/* ---- Several devices for one call ---- */

/* Has several devices run the call if it would be done first so. */
static void consider_several(struct task *task)
{
    const struct accel_decision *alone = &task->decision;
    if (devices_count() == 1 || !may_choose(alone) || !accel_is_on_host(task->call) ||
        !several_may_share(task) || alone->est_own_ms < SPLIT_LEAST_MS)
        return;
    struct task several = *task;
    several.plan = malloc(sizeof *several.plan);
    if (!several.plan)
        return;
    const bool shared = several_plan(task, several.plan);
    if (shared)
        decide_now(&several);
    if (shared && several.decision.gpu &&
        several.decision.est_own_ms < SPLIT_GAIN * alone->est_own_ms)
        *task = several;
    else
        task_drop_plan(&several);
}

/* Chooses among several devices, for a call whose operands are in host memory. then: the state of
 * the device that the decision so far is for. Returns that of the chosen one. */
static enum device_state choose_device(struct task *task, enum device_state then)
{
    const int count = devices_count();
    if (count == 1 || then != DEVICE_READY || !may_choose(&task->decision) ||
        !accel_is_on_host(task->call))
        return then;
    if (adapts)
        choose_by_time(task, count);
    else
        choose_by_thread(task);
    consider_several(task);
    if (task->decision.gpu)
        last_device = task->device;
    return DEVICE_READY;
}

/* ---- Inner calls ---- */

void select_inner(struct task *task)
{
    problem_of(&task->problem, task->call);
    if (decide_now(task) == DEVICE_READY)
        consider_several(task);
}

/* Has a call that no device takes as a whole done by inner calls, if it can be. */
static void consider_decomposed(struct task *task)
{
    if (task->decision.why != ACCEL_NO_MEMORY || task->decision.gpu ||
        !decomposed_may_be(task->call) || !device_state_is_known(device_state(task->device)))
        return;
    task->decomposed_ms = decomposed_estimate(task);
    if (task->decomposed_ms > 0)
        decide_now(task);
}

/* ---- The start ---- */

static void keep_on_cpu(struct task *task, enum accel_why why)
{
    task->decision.gpu = false;
    task->decision.why = why;
    task_drop_plan(task);
}

/* Whether the call cannot be run on the CPU while CUDA starts. */
static bool must_have_gpu(const struct accel_call *call)
{
    return !copies_host_can_read(call) || !adapts || settings->require_gpu ||
           settings->policy == ACCEL_POLICY_GPU ||
           pattern_matches(&settings->gpu_routines, call->routine);
}

/* Decides anew, once the device may have started. */
static void decide_after_start(struct task *task)
{
    if (decide_now(task) != DEVICE_READY)
        return;
    consider_several(task);
    consider_decomposed(task);
}

/* Such a call (select.h) waits for a third of what it would gain, and for 10 s at most:
 * estimates may be wrong, and who has waited so long does not know whether the start will ever
 * end. */
#define WAITED_SHARE   (1.0 / 3)
#define WAITED_MOST_MS 10000

/* Waits for the start, if that pays. Returns whether the call was decided anew: the GPU is
 * ready. */
static bool wait_for_start(struct task *task, double gain_ms)
{
    if (!(gain_ms >= SELECT_WAITS_FROM_MS) || task->host.prefetches || task->together)
        return false;
    const double most_ms = WAITED_SHARE * gain_ms;
    device_await(task->device, most_ms < WAITED_MOST_MS ? most_ms : WAITED_MOST_MS, task->caller);
    if (device_state(task->device) != DEVICE_READY)
        return false;
    decide_after_start(task);
    return true;
}

/* Has the GPU started, as the call would gain by it or has operands there. */
static void see_to_gpu(struct task *task)
{
    struct accel_call *const call = task->call;
    struct dispatch_device *device = task->device;
    const struct accel_decision *decision = &task->decision;
    if (device_has_server() && !remote_takes(call))
        device_leave_server(device);
    if (must_have_gpu(call)) {
        device_start_now(device,
                         copies_host_can_read(call) ? DEVICE_SOME_SECONDS : DEVICE_WITHOUT_END);
        if (!copies_host_can_read(call)) /* whether they are in our context is known only now */
            gpu_locate(device_gpu(device), call->span, ACCEL_SPANS, call->batch);
        problem_describe(&task->problem);
        decide_after_start(task);
        if (device_state(device) == DEVICE_UNTRIED && copies_host_can_read(call))
            keep_on_cpu(task, ACCEL_WARMING); /* of a server's that has not started in time */
        return;
    }
    if (device_state(device) == DEVICE_UNTRIED && device_has_server()) {
        device_start_now(device, DEVICE_AT_ONCE);
        decide_after_start(task);
        if (device_state_is_open(device_state(device))) /* the server's device starts */
            keep_on_cpu(task, ACCEL_WARMING);
        return;
    }
    const double gain_ms = decision->est_cpu_ms -
                           (task->host.prefetches ? decision->est_there_ms : decision->est_own_ms);
    if (decision->gpu) /* untried as yet */
        device_note_gain(device, gain_ms);
    if (!wait_for_start(task, gain_ms)) {
        const enum device_state now = device_state(device);
        const bool never = now == DEVICE_ABSENT || device_has_no_thread(device);
        const bool forked = now == DEVICE_FORKED || device_is_inherited(device);
        keep_on_cpu(task, forked ? ACCEL_FORKED : never ? ACCEL_NO_GPU : ACCEL_WARMING);
    }
}

/* With a log, small calls do not look: their lines are the same without. Threads that come before
 * the first look has ended look for themselves, so that all of their calls know. */
void select_rule_out_gpu(struct dispatch_device *device, const struct accel_call *call,
                         const struct dispatch_caller *caller)
{
    static atomic_bool looked;
    const struct gpu_config config = {.cuda_dir = settings->cuda_dir};
    if (device_state(device) != DEVICE_UNTRIED || (report_is_on() && small_is(call)) ||
        settings->policy != ACCEL_POLICY_AUTO || settings->gpu_routines.text ||
        settings->require_gpu || atomic_load(&looked))
        return;
    if (!device_has_server() && !gpu_may_exist(&config, caller->loaded(gpu_is_cuda_library)) &&
        device_rule_out(device))
        startup_banner_no_gpu("this machine has no NVIDIA device");
    atomic_store(&looked, true);
}

/* Whether the program has a CUDA context, without which there are no device pointers. A thread may
 * have none. */
static bool sees_cuda(unsigned long long (*loads)(void))
{
    if (!atomic_load(&program_uses_cuda) && gpu_program_uses_cuda(loads()))
        atomic_store(&program_uses_cuda, true);
    return atomic_load(&program_uses_cuda);
}

bool select_is_decided(uint64_t kind, unsigned long long (*loads)(void))
{
    /* To see CUDA may ask the system, which a sandbox may forbid: not before a decision is kept. */
    return select_filter(devices_first()).level == DISPATCH_SEE_LARGE &&
           decision_cache_holds(kind, contention_cpu_calls()) && !sees_cuda(loads);
}

/* False if each decision is reported, or an operand could be in device memory. */
bool select_is_negligible(const struct accel_call *call, const struct dispatch_caller *caller)
{
    return !report_is_on() && settings->policy == ACCEL_POLICY_AUTO &&
           !settings->gpu_routines.text && small_is_negligible(call) && !sees_cuda(caller->loads);
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
static void locate_among_others(struct task *task)
{
    struct accel_call *const call = task->call;
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
        task->device = device;
    }
}

/* Sets the places of the operands, unless all are in host memory for certain. */
static void locate(struct task *task)
{
    struct accel_call *const call = task->call;
    struct dispatch_device *const device = task->device;
    if (devices_are_inherited()) /* forked without the handlers: _Fork(), clone() */
        forks_child();
    const enum device_state now = device_state(device);
    const bool may_start = device_state_is_open(now);
    if (settings->policy != ACCEL_POLICY_CPU && (may_start || now == DEVICE_READY))
        sees_cuda(task->caller->loads);
    if ((device_state_has_memory(now) || (may_start && atomic_load(&program_uses_cuda))) &&
        !task->problem.fault && !accel_is_rows_of_lapack(call)) {
        gpu_locate(device_gpu(device), call->span, ACCEL_SPANS, call->batch);
        if (!accel_is_on_host(call) || gpu_program_pins())
            atomic_store(&program_uses_cuda, true);
        if (devices_count() > 1 && settings->policy != ACCEL_POLICY_CPU)
            locate_among_others(task);
    }
}

/* The first call of a routine that would gain has it warmed up, and runs on the CPU meanwhile. A
 * call that gains more than a warm-up costs runs on the GPU at once. If calls wait for CUDA (adapts
 * is false), they run on the GPU once the missed gains exceed the cost. */
static void see_to_kernels(struct task *task)
{
    const struct accel_call *const call = task->call;
    struct dispatch_device *device = task->device;
    const struct accel_decision *decision = &task->decision;
    if (!adapts && decision->why == ACCEL_SLOWER)
        warm_up_note_gain(device, call->routine, decision->est_cpu_ms - decision->est_own_ms);
    if (!adapts || decision->why != ACCEL_FASTER || device_state(device) != DEVICE_READY ||
        warm_up_is_done(device, call->routine) || settings->require_gpu ||
        decision->est_cpu_ms - decision->est_gpu_ms > warm_up_cost_ms(device, call->routine))
        return;
    warm_up_ask(device, call->routine);
    if (warm_up_is_done(device, call->routine))
        return;
    keep_on_cpu(task, ACCEL_WARMING);
}

/* Of the program's own calls that stay on the CPU, one may be the one that had better bring its
 * largest input, for later ones. (LAPACK's inner calls mostly see a matrix that LAPACK is
 * overwriting.) */
static void see_to_matrix(struct task *task)
{
    const struct accel_call *const call = task->call;
    const struct accel_decision *decision = &task->decision;
    if (!(decision->est_there_ms > 0) || task->caller->depth > 0 ||
        !gpu_is_worth_prefetching(call, decision->est_cpu_ms - decision->est_there_ms,
                                  decision->est_own_ms - decision->est_there_ms))
        return;
    task->host.prefetches = 1u << gpu_operand_to_prefetch(call);
    decide_now(task);
}

bool select_is_held(const struct dispatch_caller *caller)
{
    bool demanded = settings->policy == ACCEL_POLICY_GPU || settings->require_gpu;
    return fork_policy_is_server() || ((!demanded || settings->start == ACCEL_START_PROGRAM) &&
                                       fork_policy_applies(settings, caller));
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

void select_call(struct task *task)
{
    const struct accel_call *const call = task->call;
    problem_begin(&task->problem, call);
    locate(task);
    problem_describe(&task->problem);
    task->library = task->caller->library(task->caller->context);
    task->threads = task->library->threads(task->library);
    task->site = adapts ? call_site_key(task->caller->site, call) : 0;
    enum device_state then = choose_device(task, decide_now(task));
    if (task->decision.gpu && device_is_remote(task->device) && !remote_takes(call)) {
        device_leave_server(task->device);
        then = decide_now(task);
    }
    const bool starting = device_state_is_open(then);
    consider_decomposed(task);
    if (then == DEVICE_ESTIMATED)
        return;
    see_to_matrix(task);
    bool wanted = task->decision.gpu || task->decision.why == ACCEL_WARMING;
    bool copied = !copies_host_can_read(call); /* by CUDA, for the CPU, if it runs there */
    if (starting && (wanted || copied) && is_in_shared_memory()) {
        keep_on_cpu(task, ACCEL_FORKED);
        task->fallback = settings->require_gpu;
    } else if (wanted && then == DEVICE_UNTRIED && !copied && !device_has_server() &&
               select_is_held(task->caller)) {
        keep_on_cpu(task, ACCEL_NO_GPU);
        task->fallback = settings->require_gpu && !fork_policy_is_server();
    } else if (starting && (wanted || copied))
        see_to_gpu(task);
    see_to_kernels(task);
}
