/*
 * A factorisation that several devices share (panels_shared.h), while it runs: a member for each
 * device, each on a thread of its own. Member 0 leads: it has the memory for the result, and goes
 * on with what the call needs besides. The program's memory is as it was until all is well, as with
 * solver_panels(). If one member fails, all others stop: the original computes the call.
 *
 * All matrices are in host memory.
 */
#ifndef ACCEL_SOLVER_SHARED_H
#define ACCEL_SOLVER_SHARED_H

#include "gpu/plan/panels_shared.h"
#include "solver_panels.h"

struct solver_shared;

/* Returns one that nobody has begun; NULL: there is no memory. The plan stays as long. */
struct solver_shared *solver_shared_new(const struct panels_shared *plan);
/* All members have ended. */
void solver_shared_free(struct solver_shared *shared);

/* Has all members stop, and those that come later. Thread-safe. */
void solver_shared_stop(struct solver_shared *shared);

/* Member 0: does what solver_panels() does for the job, with the others, which have left it when
 * this returns. */
void solver_shared_lead(struct solver *s, struct panels_job *job);

/* The steps of another member. A status of GPU_UNSUPPORTED may also mean that it was stopped. */
void solver_shared_help(struct solver *s);

/* Runs a call of LAPACK: the operation's steps, or those of a member of the devices that share
 * it. */
enum gpu_status solver_run_call(struct gpu_work *work);

#endif
