/*
 * What is asked of a call that no decision has described.
 */
#ifndef TESTS_PROBLEM_H
#define TESTS_PROBLEM_H

#include "dispatch/cost/cost.h"
#include "dispatch/oom_backoff.h"

static inline struct schedule_rates
rates_for(struct cost_curves *device, const struct accel_call *call, enum gpu_precision precision)
{
    struct problem problem;
    problem_of(&problem, call);
    return cost_schedule_rates(device, &problem, precision);
}

static inline void learn_gpu(struct cost_curves *device, const struct accel_call *call,
                             int64_t memory_bytes, double ms)
{
    struct problem problem;
    problem_of(&problem, call);
    cost_learn_gpu(device, &problem, memory_bytes, ms);
}

static inline void learn_cpu(const struct accel_call *call, const struct dispatch_library *library,
                             int threads, const struct cost_time *took)
{
    struct problem problem;
    problem_of(&problem, call);
    cost_learn_cpu(&problem, library, threads, took);
}

static inline bool is_full_for(const struct oom_backoff *full, const struct accel_call *call)
{
    struct problem problem;
    problem_of(&problem, call);
    return oom_backoff_for(full, &problem);
}

#endif
