#include "in_panels.h"

#include "gpu/exec/lapack/solver_panels.h"
#include "ops/rules/lapack_rules.h"

/* ---- Times ---- */

enum { JOBS = 2 };

/* Sets the jobs of a call that may go in panels, and returns how many there are; 0: none. */
static int jobs_of(const struct accel_call *call, struct panels_call jobs[JOBS])
{
    return lapack_has_panels(call) ? call->op->gpu->in_panels->calls(call, jobs) : 0;
}

bool lapack_has_panels(const struct accel_call *call)
{
    return accel_gpu_of(call->op)->in_panels && accel_is_on_host(call) &&
           lapack_gpu_bytes(call) >= (double)PANELS_LEAST_BYTES;
}

bool lapack_factors(const struct accel_call *call)
{
    struct panels_call jobs[JOBS];
    return jobs_of(call, jobs) > 0 && jobs[0].kind != PANELS_APPLY;
}

static int64_t memory_for(const struct panels_call *job, int64_t memory_bytes)
{
    return memory_bytes - solver_panels_reserve(job);
}

bool lapack_fits_in_panels(const struct accel_call *call, int64_t memory_bytes)
{
    struct panels_call jobs[JOBS];
    const int count = jobs_of(call, jobs);
    for (int i = 0; i < count; i++)
        if (!panels_fit(&jobs[i], memory_for(&jobs[i], memory_bytes)))
            return false;
    return count > 0;
}

/* Of a wide matrix, the adjoint is factored. */
static bool is_turned(const struct accel_call *call, const struct panels_call *job)
{
    return job->kind != PANELS_APPLY && job->m != call->span[ACCEL_a].rows;
}

/* From the device's memory, results go to a copy in host memory. The copy is written to the
 * program's as fast as results come down, at most; and so is an adjoint made. */
static double above_memory_ms(const struct accel_call *call, const struct panels_call *jobs,
                              int count, const struct schedule_rates *rates, int64_t memory_bytes)
{
    double sum = is_turned(call, &jobs[0]) ? 2 * panels_down_ms(&jobs[0], rates) : 0;
    for (int i = 0; i < count; i++) {
        const double ms = panels_ms(&jobs[i], rates, memory_for(&jobs[i], memory_bytes));
        if (ms < 0)
            return -1;
        sum += ms + panels_down_ms(&jobs[i], rates);
    }
    return sum;
}

/* The matrix comes up while the device factors it; the other jobs follow. Negative: it comes up as
 * a whole, because panels are not faster, or because the host makes its adjoint first. */
static double in_core_ms(const struct accel_call *call, const struct panels_call *jobs, int count,
                         const struct schedule_rates *rates)
{
    if (is_turned(call, &jobs[0]))
        return -1;
    const double ms = panels_in_core_ms(&jobs[0], rates);
    if (ms < 0)
        return -1;
    const double solution =
        count > 1 ? panels_whole_ms(&jobs[1], rates) + panels_down_ms(&jobs[1], rates) : 0;
    return ms + panels_down_ms(&jobs[0], rates) + solution;
}

double lapack_panels_ms(const struct accel_call *call, const struct schedule_rates *rates,
                        int64_t memory_bytes)
{
    struct panels_call jobs[JOBS];
    const int count = jobs_of(call, jobs);
    if (count == 0)
        return -1;
    return lapack_gpu_bytes(call) > (double)memory_bytes
               ? above_memory_ms(call, jobs, count, rates, memory_bytes)
               : in_core_ms(call, jobs, count, rates);
}

bool lapack_is_kept_whole(const struct accel_call *call, unsigned there, int64_t memory_bytes)
{
    return there & 1u << ACCEL_a && lapack_gpu_bytes(call) <= (double)memory_bytes;
}

double lapack_panels_floor_ms(const struct accel_call *call, const struct schedule_rates *rates)
{
    struct panels_call jobs[JOBS];
    const int count = jobs_of(call, jobs);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += panels_floor(&jobs[i], rates);
    return sum;
}
