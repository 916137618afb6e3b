/*
 * Gathers all that a decision depends on: who wants to see the call, where its operands are, how
 * busy the machine is. Decides, and has CUDA started if that would pay. Thread-safe, except for the
 * start.
 */
#ifndef ACCEL_SURVEY_H
#define ACCEL_SURVEY_H

#include "device.h"
#include "dispatch.h"
#include "team.h"
#include "report/record.h"

/* What is known of a call when it is decided. */
struct situation {
    /* Set by the caller of survey(), which may choose another one (devices.h). */
    struct dispatch_device *device;
    const struct dispatch_library *library;
    int threads;            /* of that library */
    uint64_t site;          /* a regret_key(); 0: the past of this call site does not matter */
    const char *arithmetic; /* as in dispatch_caller */
    struct accel_decision decision;
    struct team_plan *plan;       /* for the run on several devices; NULL: on `device` alone */
    double composed_ms;           /* > 0: it is done by inner calls (composed.h), in so much time */
    enum gpu_precision precision; /* that the GPU is to compute in */
    struct accel_offer offer;     /* only where decisions are reported */
    struct schedule_rates rates;  /* of the call's schedule on the device; up = 0: not known */
    bool keeps;           /* inputs that come again stay on the device, and are looked for there */
    bool digests, tracks; /* as in gpu_host */
    unsigned brings;
    bool fallback; /* it would run on the CPU although ACCEL_REQUIRE=gpu forbids that */
    bool together; /* the caller of survey() passes all parts of the call to the original at once */
};

/* The settings stay. adapts: whether a decision may depend on the course of the program: how busy
 * the machine is, how much memory is free, how calls fared, what was learned. False under MPI,
 * whose ranks may need the same results bit for bit, and with ACCEL_START=wait, which makes runs
 * repeatable: then calls wait for CUDA, and do not run on the CPU meanwhile. */
void survey_start(const struct accel_settings *settings, int cores, bool adapts);

/* See dispatch_attention(). */
struct dispatch_attention survey_attention(const struct dispatch_device *device);

/* With no GPU in the machine, rules the device out, and makes later calls bypass us. */
void survey_rule_out_gpu(struct dispatch_device *device, const struct accel_call *call,
                         const struct dispatch_caller *caller);

/* Whether CUDA is left to the program (hold.h). ACCEL_POLICY=gpu and ACCEL_REQUIRE=gpu overrule
 * that, but not ACCEL_START=program. */
bool survey_is_held(const struct dispatch_caller *caller);

/* Whether a call is too little to be worth a decision. */
bool survey_is_trifle(const struct accel_call *call, const struct dispatch_caller *caller);

/* Decides, and has CUDA started if that would pay. situation_drop_plan() ends what this begins. */
void survey(struct accel_call *call, const struct dispatch_caller *caller,
            struct situation *situation);

/* Decides an inner call of a composition for the situation's device, or several that share it,
 * whose estimate is in the decision. situation_drop_plan() ends what this begins. */
void survey_inner(const struct accel_call *call, struct situation *situation);

/* Frees the plan for several devices, if there is one: the call runs on one, or on the CPU. */
void situation_drop_plan(struct situation *situation);

#endif
