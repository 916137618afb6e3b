/*
 * Decides where a call runs: a pure function of the call, the machine and the settings. The
 * problems are described (problem_describe()); their works are filled in.
 */
#ifndef ACCEL_DECIDE_H
#define ACCEL_DECIDE_H

#include "dispatch/cost/machine.h"
#include "dispatch/cost/problem.h"
#include "dispatch/settings/settings.h"
#include "report/record.h"

/* Describes an idle machine with these curves, whose GPU has not been tried. */
void accel_machine_init(struct accel_machine *machine, const struct model_curve *cpu_curve,
                        const struct model_curve *gpu_curve);

/* Returns where a call runs, and why, with the two estimates as far as they were needed. */
struct accel_decision accel_decide(struct problem *problem, const struct accel_machine *machine,
                                   const struct accel_settings *settings);

/* Returns the milliseconds that a valid call is estimated to take on the GPU, without a wait for
 * others. */
double accel_estimate_gpu_ms(struct problem *problem, const struct accel_machine *machine,
                             const struct accel_settings *settings);

/* Whether a call that was decided so is the CPU's by far, whatever of its operands comes to be on
 * the device, and so short that the decision is some of its time. */
bool accel_is_clear(struct problem *problem, const struct accel_machine *machine,
                    const struct accel_settings *settings, const struct accel_decision *decision);

/* Whether a call stays on the CPU for reason `why` although it should run on the GPU:
 * ACCEL_REQUIRE=gpu forbids that. */
bool accel_is_fallback(struct problem *problem, const struct accel_machine *machine,
                       const struct accel_settings *settings, enum accel_why why);

#endif
