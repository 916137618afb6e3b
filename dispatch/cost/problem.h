/*
 * A call with what follows from its arguments and from where its operands are: its validity, the
 * description of its schedule, its work. A decision makes it once; the estimates, the run and the
 * learning use it. Plain data, of one thread.
 */
#ifndef ACCEL_PROBLEM_H
#define ACCEL_PROBLEM_H

#include "gpu/plan/scheduled.h"
#include "model.h"

struct problem {
    const struct accel_call *call; /* which stays where it is */
    const char *fault;             /* as accel_call_fault(); NULL: it is valid */
    /* Set by problem_describe(); of a call that is not valid, false. */
    bool is_described; /* as scheduled_describe() */
    bool is_divided;   /* as scheduled_is_divided() */
    bool in_panels;    /* as lapack_has_panels() */
    bool has_work[2];
    struct model_work work[2];  /* of problem_work() */
    struct scheduled scheduled; /* if is_described */
};

/* Looks at the arguments. The operands need not have been located. */
void problem_begin(struct problem *problem, const struct accel_call *call);

/* Describes the call, whose operands have been located since. Anew if their places change. */
void problem_describe(struct problem *problem);

/* Does both. */
void problem_of(struct problem *problem, const struct accel_call *call);

/* Returns what model_work_of() says; the call is valid. */
const struct model_work *problem_work(struct problem *problem, bool device);

/* Returns whether schedules of the call are made: in blocks or in panels. */
static inline bool problem_has_schedule(const struct problem *problem)
{
    return problem->is_divided || problem->in_panels;
}

#endif
