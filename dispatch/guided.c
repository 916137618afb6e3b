#include "guided.h"

#include "startup_banner.h"
#include "dispatch/settings/pattern.h"
#include "fatal.h"
#include "select.h"
#include "base/thread/clock.h"
#include "ops/guide.h"
#include "ops/op.h"
#include "report/report.h"

/* A guide, and the state that its functions need. */
struct guided {
    struct guide guide; /* first: the operation has a pointer to it */
    struct dispatch_device *device;
    const struct dispatch_caller *caller;
    const struct accel_settings *settings;
    enum accel_why why;  /* there is no device */
    double start_ms, ms; /* of the original's last run; ms negative: it has not run */
    struct accel_inner in;
};

static enum accel_why why_none(enum device_state state)
{
    switch (state) {
    case DEVICE_FORKED:
        return ACCEL_FORKED;
    case DEVICE_FAILED:
        return ACCEL_ERROR;
    case DEVICE_STARTING:
        return ACCEL_WARMING;
    default:
        return ACCEL_NO_GPU;
    }
}

static int find_device(struct guide *guide)
{
    struct guided *g = (struct guided *)guide;
    const struct accel_settings *settings = g->settings;
    g->why = ACCEL_USER;
    if (settings->policy == ACCEL_POLICY_CPU ||
        pattern_matches(&settings->cpu_routines, guide->call->routine))
        return -1;
    g->why = ACCEL_UNSUPPORTED;
    if (g->caller->arithmetic)
        return -1;
    g->why = ACCEL_NO_GPU;
    if (device_state(g->device) == DEVICE_UNTRIED && select_is_held(g->caller))
        return -1;
    if (device_state_is_open(device_state(g->device)))
        device_start_now(g->device, DEVICE_SOME_SECONDS);
    const enum device_state now = device_state(g->device);
    g->why = why_none(now);
    return now == DEVICE_READY ? gpu_info(device_gpu(g->device))->index : -1;
}

static uint64_t forward_original(struct guide *guide)
{
    struct guided *g = (struct guided *)guide;
    const struct accel_inner before = report_begin_inner();
    g->start_ms = accel_now_ms();
    g->caller->forward(g->caller->context, guide->call);
    g->ms = accel_now_ms() - g->start_ms;
    g->in = report_end_inner(before);
    return g->caller->result->gpr[0];
}

static void report(const struct guided *g, enum guide_news news)
{
    const enum accel_why whys[] = {[GUIDE_ON_GPU] = ACCEL_FORCED,
                                   [GUIDE_NO_DEVICE] = g->why,
                                   [GUIDE_UNSUPPORTED] = ACCEL_UNSUPPORTED,
                                   [GUIDE_FAILED] = ACCEL_ERROR,
                                   [GUIDE_NO_MEMORY] = ACCEL_NO_MEMORY};
    const struct accel_decision decision = {.gpu = news == GUIDE_ON_GPU, .why = whys[news]};
    startup_banner_process(g->device, NULL, 0);
    struct accel_record record =
        record_of(g->guide.call, g->caller->symbol, g->caller->site, decision);
    record.depth = g->caller->depth;
    record.in = g->in;
    record.arithmetic = record.why == ACCEL_UNSUPPORTED ? g->caller->arithmetic : NULL;
    if (decision.gpu) {
        record.ran = g->device->name;
        record.gpu = gpu_info(device_gpu(g->device));
    } else if (g->settings->require_gpu && decision.why != ACCEL_USER)
        fatal_cpu(g->device, g->caller, decision.why);
    record.start_ms = g->start_ms;
    record.ms = g->ms;
    report_decision(&record);
}

bool guided_call(struct dispatch_device *device, struct accel_call *call,
                 const struct dispatch_caller *caller, const struct accel_settings *settings)
{
    struct guided g = {.guide = {.call = call,
                                 .passed = caller->passed,
                                 .device = find_device,
                                 .original = forward_original},
                       .device = device,
                       .caller = caller,
                       .settings = settings,
                       .ms = -1};
    const enum guide_news news = call->op->foreign->guide(&g.guide);
    if (news != GUIDE_NOTHING)
        report(&g, news);
    return g.ms >= 0;
}
