#include "several.h"

#include <math.h>
#include <string.h>

#include "base/thread/copy_pool.h"
#include "devices.h"
#include "dispatch/cost/cost.h"
#include "dispatch/cost/lending.h"
#include "dispatch/cost/split_cache.h"
#include "ops/lapack/in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "precision.h"

static const struct accel_settings *settings;
static bool adapts;

void several_start(const struct accel_settings *with, bool may_adapt)
{
    settings = with;
    adapts = may_adapt;
}

/* Whether a device may have a part now, next to the task's own. Of those that are ready, where
 * decisions may depend on the course of the program, only one that has nothing else to do. One
 * whose kernels are cold is warmed up meanwhile. */
static bool may_have_part(struct task *task, struct dispatch_device *device)
{
    const struct accel_call *const call = task->call;
    if (device_state(device) != DEVICE_READY ||
        quarantine_has(&device->quarantine, call->routine, QUARANTINE_WRONG) ||
        quarantine_has(&device->quarantine, call->routine, QUARANTINE_FAILED) ||
        precision_of(settings, device, call) != task->host.precision ||
        !atomic_load(&device->curves))
        return false;
    if (!adapts)
        return true;
    if (!warm_up_is_done(device, call->routine))
        warm_up_ask(device, call->routine);
    return warm_up_is_done(device, call->routine) &&
           !oom_backoff_for(&device->oom_backoff, &task->problem) &&
           contention_gpu_ms(&device->contention) == 0;
}

/* What the device could do for the call. Processes that share it have their shares of it. */
static struct split_device part_of_device(const struct dispatch_device *device, struct task *task)
{
    struct cost_curves *const curves = atomic_load(&device->curves);
    struct split_device part = {cost_schedule_rates(curves, &task->problem, task->host.precision),
                                device->memory_bytes, 0};
    part.rates.compute /= device->sharers;
    part.rates.up /= device->sharers;
    part.rates.down /= device->sharers;
    return part;
}

/* Returns a number for the device's port: that of the first one of some that has the same; 0: it
 * has none that is known. */
static int port_of(const struct dispatch_device *device, struct dispatch_device *const *others,
                   int count)
{
    const char *port = gpu_info(device_gpu(device))->port;
    int i = 0;
    while (i < count && strcmp(port, gpu_info(device_gpu(others[i]))->port) != 0)
        i++;
    return port[0] ? i + 1 : 0;
}

/* Devices say only after a measurement how fast they copy from each other: it takes a millisecond
 * or some for each pair, once. */
#define PEERS_LEAST_MS 10

/* Sets the slowest rate at which each device copies from another one. If one copies from another no
 * faster than from the host, where all of them copy, none lends anything, and no further pair is
 * measured. */
static void see_peers(struct split_device *device, struct dispatch_device *const *its, int count,
                      double host_gbps)
{
    for (int i = 0; i < count; i++) {
        struct schedule_rates *rates = &device[i].rates;
        const double share = host_gbps / count, up = rates->up < share ? rates->up : share;
        for (int j = 0; j < count; j++) {
            const double gbps =
                i == j ? INFINITY : gpu_peer_gbps(device_gpu(its[i]), device_gpu(its[j]));
            rates->peer = j == 0 || gbps < rates->peer ? gbps : rates->peer;
            if (gbps > LENDING_GAIN * up)
                continue;
            for (int x = 0; x < count; x++)
                device[x].rates.peer = 0;
            return;
        }
    }
}

/* Divides the call over the devices that may have a part; also: so many more devices like the
 * task's own. */
static void plan_parts(struct task *task, int count, int also, struct gang_plan *plan)
{
    const struct accel_call *const call = task->call;
    struct split_device device[SPLIT_MOST];
    double fastest = 0;
    int have = 0;
    for (int i = 0; i < count; i++) {
        struct dispatch_device *const next = devices_at(i);
        if (!may_have_part(task, next))
            continue;
        device[have] = part_of_device(next, task);
        device[have].port = port_of(next, plan->device, have);
        fastest = fastest > device[have].rates.up ? fastest : device[have].rates.up;
        plan->device[have++] = next;
    }
    plan->factors = accel_cuts_of(call) == 0;
    const bool may_lend = !plan->factors && call->batch == 1 && also == 0 &&
                          task->decision.est_own_ms >= PEERS_LEAST_MS;
    const int ready = have;
    for (int i = 0; i < also && have > 0; i++)
        device[have++] = part_of_device(task->device, task);
    const double host_gbps = split_host_gbps(copy_pool_size() + have);
    const double gbps = host_gbps > fastest ? host_gbps : fastest;
    if (may_lend && ready > 1)
        see_peers(device, plan->device, ready, gbps);
    if (plan->factors)
        factorisation_make(&plan->split, &plan->shared, call, device, have, gbps);
    else
        split_cache_make(&plan->split, call, device, have, gbps);
}

/* Has further devices started if the call would gain by them: where calls wait for CUDA, at
 * once. */
static void start_others(struct task *task, int count, struct gang_plan *plan)
{
    int open = 0;
    for (int i = 0; i < count; i++)
        open += device_state(devices_at(i)) == DEVICE_UNTRIED;
    if (open == 0)
        return;
    plan_parts(task, count, open, plan);
    for (int i = 0; plan->split.count > 1 && i < count; i++) {
        if (device_state(devices_at(i)) != DEVICE_UNTRIED)
            continue;
        if (adapts)
            device_note_gain(devices_at(i), plan->split.whole_ms - plan->split.ms);
        else
            device_start_now(devices_at(i), DEVICE_SOME_SECONDS);
    }
}

bool several_may_share(const struct task *task)
{
    const struct accel_call *const call = task->call;
    if (accel_uses_solver(call->routine))
        return lapack_gpu_bytes(call) > (double)task->device->memory_bytes &&
               factorisation_is_shared(call);
    return accel_cuts_of(call) != 0;
}

bool several_plan(struct task *task, struct gang_plan *plan)
{
    const int count = devices_count();
    start_others(task, count, plan);
    plan_parts(task, count, 0, plan);
    return plan->split.count > 1;
}
