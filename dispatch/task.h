/*
 * A call under way: who calls, what is known of the call, what was decided, and how the GPU is to
 * run it. Made once when the call comes in (dispatch.c) and carried to its end. Of one thread.
 */
#ifndef ACCEL_TASK_H
#define ACCEL_TASK_H

#include "device.h"
#include "dispatch.h"
#include "dispatch/cost/problem.h"
#include "gang.h"
#include "report/record.h"

struct task {
    struct accel_call *call;
    const struct dispatch_caller *caller; /* NULL: an inner call of a decomposition */
    struct dispatch_device *device; /* the first; select_call() may choose another (devices.h) */
    const struct dispatch_library *library;
    int threads;            /* of that library */
    uint64_t site;          /* a call_site_key(); 0: the past of this call site does not matter */
    const char *arithmetic; /* as in dispatch_caller */
    struct problem problem;
    struct accel_decision decision;
    struct gang_plan *plan;   /* for the run on several devices; NULL: on `device` alone */
    double decomposed_ms;     /* > 0: it is done by inner calls (decomposed.h), in so much time */
    struct accel_offer offer; /* only where decisions are reported */
    bool clear;               /* accel_is_clear(); where decisions are reported, not known */
    bool fallback;            /* it would run on the CPU although ACCEL_REQUIRE=gpu forbids that */
    bool together; /* the caller of select_call() passes all parts of the call to the original at
                      once */
    /* How the GPU runs it: select_call() sets the precision, the rates and what is cached. */
    struct gpu_host host;
};

/* Begins one: all else is 0. */
void task_begin(struct task *task, struct accel_call *call, const struct dispatch_caller *caller,
                struct dispatch_device *device);

/* Returns the description of the call's schedule, for gpu_host; NULL: it has none. */
static inline const struct scheduled *task_scheduled(const struct task *task)
{
    return task->problem.is_described ? &task->problem.scheduled : NULL;
}

/* Frees the plan for several devices, if there is one: the call runs on one, or on the CPU. */
void task_drop_plan(struct task *task);

#endif
