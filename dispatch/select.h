/*
 * Gathers all that a decision depends on: who wants to see the call, where its operands are, how
 * busy the machine is. Decides, and has CUDA started if that would pay. Thread-safe, except for the
 * start.
 */
#ifndef ACCEL_SELECT_H
#define ACCEL_SELECT_H

#include "task.h"

/* The settings stay. adapts: whether a decision may depend on the course of the program: how busy
 * the machine is, how much memory is free, how calls fared, what was learned. False under MPI,
 * whose ranks may need the same results bit for bit, and with ACCEL_START=wait, which makes runs
 * repeatable: then calls wait for CUDA, and do not run on the CPU meanwhile. */
void select_start(const struct accel_settings *settings, int cores, bool adapts);

/* A call that would gain so much waits for CUDA, which starts in less than a second as a rule: many
 * programs make one large call. */
#define SELECT_WAITS_FROM_MS 3000

/* See dispatch_filter(). */
struct dispatch_filter select_filter(const struct dispatch_device *device);

/* With no GPU in the machine, rules the device out, and makes later calls bypass us. */
void select_rule_out_gpu(struct dispatch_device *device, const struct accel_call *call,
                         const struct dispatch_caller *caller);

/* Whether CUDA is left to the program, or to a fork server's children (fork_policy.h).
 * ACCEL_POLICY=gpu and ACCEL_REQUIRE=gpu overrule the former, but not ACCEL_START=program. */
bool select_is_held(const struct dispatch_caller *caller);

/* See dispatch_is_decided(). */
bool select_is_decided(uint64_t kind, unsigned long long (*loads)(void));

/* Whether a call is too little to be worth a decision. */
bool select_is_negligible(const struct accel_call *call, const struct dispatch_caller *caller);

/* Describes and decides the task's call, and has CUDA started if that would pay. task_drop_plan()
 * ends what this begins. */
void select_call(struct task *task);

/* Describes and decides an inner call of a decomposition for the task's device, or several that
 * share it, whose estimate is in the decision. task_drop_plan() ends what this begins. */
void select_inner(struct task *task);

#endif
