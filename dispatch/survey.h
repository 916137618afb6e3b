/*
 * What is to become of a call: whether anybody wants to know, where its operands are, what the machine is like at this
 * moment, the decision; and CUDA's start where that would pay. Thread-safe, except for the start.
 */
#ifndef ACCEL_SURVEY_H
#define ACCEL_SURVEY_H

#include "device.h"
#include "dispatch.h"
#include "report/record.h"

/* What is known of a call when it is decided. */
struct situation {
    struct dispatch_device *device; /* that it is decided for; the caller's to set */
    const struct dispatch_library *library;
    int threads;   /* of that library */
    uint64_t site; /* where a decision may depend on how calls fared */
    struct accel_decision decision;
    bool fallback; /* which ACCEL_REQUIRE forbids */
    bool together; /* the original is to have this part of a call with all others at once */
};

/* The settings stay. adapts: whether a decision may depend on what happens while the program runs: how busy the machine is,
 * what free memory there is, how calls fared, what was learned. Not under MPI, whose ranks may need the same results bit for
 * bit, and not where the user wants the same runs again: there a call waits for CUDA, and does not run on the CPU meanwhile. */
void survey_start(const struct accel_settings *settings, int cores, bool adapts);

/* Which calls are worth bringing here, as of now. Cheap. */
struct dispatch_attention survey_attention(const struct dispatch_device *device);

/* With no GPU in the machine, rules the device out, and makes later calls bypass us. */
void survey_rule_out_gpu(struct dispatch_device *device, const struct accel_call *call,
                         const struct dispatch_caller *caller);

/* Whether a call is too little to be worth a decision. */
bool survey_is_trifle(const struct accel_call *call, const struct dispatch_caller *caller);

/* Decides, and has CUDA started if that would pay. */
void survey(struct accel_call *call, const struct dispatch_caller *caller,
            struct situation *situation);

#endif
