#include "decomposed.h"

#include "verify.h"
#include "base/text/text.h"
#include "dispatch/cost/cost.h"
#include "gpu/device/work.h"
#include "ops/decompose.h"
#include "ops/rules/lapack_rules.h"
#include "ops/op.h"

/* A decomposition under way, or its estimate. */
struct decomposed {
    const struct task *task; /* of the whole call */
    double ms;               /* of the inner calls so far, estimated */
    /* Only where they run: */
    struct gpu_host *host; /* the whole call's link to the layer above */
    struct accel_record *record;
    uint64_t devices; /* that have done something, as bits 1 << number */
    bool on_cpu;      /* the original has finished an inner call */
};

bool decomposed_may_be(const struct accel_call *call)
{
    return accel_is_lapack(call->routine) && accel_gpu_of(call->op)->decompose &&
           accel_is_on_host(call);
}

static bool fits(void *context, const struct accel_call *inner)
{
    const struct decomposed *c = context;
    return lapack_gpu_bytes(inner) <= (double)c->task->device->memory_bytes;
}

/* Decides an inner call. task_drop_plan() ends what this begins. */
static void decide_inner(struct task *task, const struct decomposed *c, struct accel_call *inner)
{
    task_begin(task, inner, NULL, c->task->device);
    task->library = c->task->library;
    task->threads = c->task->threads;
    select_inner(task);
}

/* Returns what keeps an inner call from the device, whatever it would gain there. */
static enum gpu_status obstacle(const struct accel_decision *decision)
{
    switch (decision->why) {
    case ACCEL_NO_MEMORY:
        return GPU_NO_MEMORY;
    case ACCEL_NO_GPU:
    case ACCEL_FORKED:
    case ACCEL_ERROR:
    case ACCEL_VERIFY_FAILED:
    case ACCEL_UNSUPPORTED:
    case ACCEL_BAD_ARGUMENT:
        return GPU_UNSUPPORTED;
    default:
        return GPU_OK;
    }
}

/* ---- The estimate ---- */

static enum gpu_status estimate_inner(void *context, const struct accel_call *inner)
{
    struct decomposed *c = context;
    struct accel_call call = *inner;
    struct task task;
    decide_inner(&task, c, &call);
    c->ms += task.decision.est_own_ms;
    task_drop_plan(&task);
    return obstacle(&task.decision);
}

/* Of the passes of one thread over memory; and passes over the matrix that the judgement of its
 * results takes. */
#define HOST_GBPS     2.0
#define JUDGED_PASSES 8.0

double decomposed_estimate(const struct task *task)
{
    const struct accel_call *const call = task->call;
    struct decomposed c = {.task = task};
    struct decomposition decomposition = {
        .run = estimate_inner, .fits = fits, .context = &c, .estimates = true};
    struct accel_call done;
    if (call->op->gpu->decompose(&decomposition, call, &done) != GPU_OK)
        return 0;
    double bytes = decomposition.host_bytes;
    for (int i = 0; i < ACCEL_SPANS; i++)
        bytes += call->span[i].ptr ? JUDGED_PASSES * (double)accel_bytes(&call->span[i]) : 0;
    return c.ms + bytes / (HOST_GBPS * 1e6);
}

/* ---- The run ---- */

/* The library does what no device finishes of an inner call. */
static bool by_library(void *context, const struct accel_call *part)
{
    struct decomposed *c = context;
    c->on_cpu = true;
    return c->task->library->run(c->task->library, part);
}

static void on_event(void *context, const struct gpu_event *event)
{
    struct decomposed *c = context;
    c->host->event(c->host->context, event);
}

static void on_steps(void *context, const struct gpu_steps *steps)
{
    struct decomposed *c = context;
    c->host->steps(c->host->context, steps);
}

static void note_device(struct decomposed *c, const struct dispatch_device *device)
{
    c->devices |= (uint64_t)1 << (gpu_info(device_gpu(device))->index & 63);
}

static enum gpu_status run_alone(struct decomposed *c, const struct accel_call *inner,
                                 const struct task *task, struct gpu_host *host)
{
    struct dispatch_device *device = task->device;
    const int number = contention_enter_gpu(&device->contention, task->decision.est_own_ms);
    const enum gpu_status status = gpu_run(device_gpu(device), inner, host);
    contention_leave_gpu(&device->contention, number);
    if (status == GPU_OK)
        warm_up_note(device, inner->routine);
    if (gpu_is_finished(status))
        note_device(c, device);
    quarantine_by_status(device, inner, host, status);
    device_tidy(device);
    return status;
}

static enum gpu_status run_shared(struct decomposed *c, const struct accel_call *inner,
                                  const struct gang_plan *plan, struct gpu_host *host)
{
    struct accel_record record = *c->record;
    const enum gpu_status status = gang_run(plan, inner, host, &record);
    for (int i = 0; gpu_is_finished(status) && i < plan->split.count; i++)
        note_device(c, plan->device[plan->split.part[i].device]);
    return status;
}

static enum gpu_status run_inner(void *context, const struct accel_call *inner)
{
    struct decomposed *c = context;
    const struct accel_gpu *gpu = inner->op->gpu;
    struct accel_call call = *inner;
    struct task task;
    decide_inner(&task, c, &call);
    enum gpu_status status = obstacle(&task.decision);
    struct gpu_host host = {.original = by_library,
                            .event = c->host->event ? on_event : NULL,
                            .steps = c->host->steps ? on_steps : NULL,
                            .context = c,
                            .precision = GPU_NATIVE,
                            .scheduled = task_scheduled(&task),
                            .rates = task.host.rates};
    if (!(host.rates.up > 0) && (gpu->scheduled || gpu->in_panels))
        host.rates =
            cost_schedule_rates(atomic_load(&task.device->curves), &task.problem, GPU_NATIVE);
    if (status == GPU_OK)
        status =
            task.plan ? run_shared(c, &call, task.plan, &host) : run_alone(c, &call, &task, &host);
    task_drop_plan(&task);
    c->host->up_bytes += host.up_bytes;
    c->host->down_bytes += host.down_bytes;
    c->host->peer_bytes += host.peer_bytes;
    c->host->set_up |= host.set_up;
    if (status == GPU_LOST)
        return GPU_ERROR; /* what is lost is memory of our own */
    return gpu_is_finished(status) ? GPU_OK : status;
}

/* ---- Its results ---- */

/* Gives the results to the program, which cannot fail. */
static void deliver(const struct accel_call *call, const struct accel_call *done)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *to = &call->span[i], *from = &done->span[i];
        for (int64_t j = 0; from->ptr != to->ptr && j < to->cols; j++)
            memcpy(gpu_element(to, 0, j), gpu_element(from, 0, j),
                   (size_t)(to->rows * gpu_size_of(to)));
    }
}

static void name_devices(const struct decomposed *c)
{
    struct accel_text text;
    text_start(&text, c->record->devices, sizeof c->record->devices);
    for (int i = 0; i < 64; i++) {
        if (!(c->devices >> i & 1))
            continue;
        text_string(&text, text.length > 0 ? "+gpu" : "gpu");
        text_integer(&text, i);
    }
    text_string(&text, c->on_cpu ? "+cpu" : "");
    text_end(&text);
    c->record->ran = c->record->devices;
}

enum gpu_status decomposed_run(struct task *task, struct accel_record *record)
{
    const struct accel_call *const call = task->call;
    struct decomposed c = {.task = task, .host = &task->host, .record = record};
    struct decomposition decomposition = {.run = run_inner, .fits = fits, .context = &c};
    struct accel_call done;
    enum gpu_status status = call->op->gpu->decompose(&decomposition, call, &done);
    if (status == GPU_OK) /* a multiple of the identity needs no device */
        status = c.devices && verify_apart(device_gpu(task->device), call, &done) ? GPU_OK
                                                                                  : GPU_UNSUPPORTED;
    if (status == GPU_OK) {
        deliver(call, &done);
        name_devices(&c);
    }
    decomposition_free(call, &done);
    if (status == GPU_NO_MEMORY)
        oom_backoff_note(&task->device->oom_backoff, call);
    return status;
}
