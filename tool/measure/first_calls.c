#include "first_calls.h"

#include "ops/op.h"

#include <math.h>

/* Small: the call itself is short. */
enum { ORDER = 48 };

/* Returns the first of two runs' milliseconds less the second's, at least the clock's resolution;
 * negative if a run fails. *set_up: the first run made handles or waited for a library. */
static double excess_ms(struct gpu_device *device, const struct accel_routine *routine,
                        struct workload_memory *memory, bool *set_up)
{
    struct workload workload;
    struct gpu_host host;
    enum gpu_status status;
    const int64_t size[ACCEL_DIMENSIONS] = {ORDER, ORDER, ORDER, ORDER};
    if (!workload_make(&workload, memory, routine, size, NULL))
        return -1;
    double first = workload_gpu_ms(&workload, device, &host, &status);
    *set_up = host.set_up;
    double second = workload_gpu_ms(&workload, device, &host, &status);
    return first >= 0 && second >= 0 ? fmax(first - second, 0.01) : -1;
}

struct first_calls first_calls_measure(struct gpu_device *device, struct workload_memory *memory)
{
    struct first_calls first = {0, 0};
    double sum = 0;
    int count = 0;
    bool set_up = true;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        if (accel_is_lapack(routine) || !workload_is_for(routine))
            continue;
        double ms = excess_ms(device, routine, memory, &set_up);
        if (ms < 0 || set_up)
            continue;
        sum += ms;
        count++;
    }
    if (count > 0)
        first.kernels_ms = sum / count;
    for (uint32_t i = 0; i < accel_routine_count && first.solver_ms == 0; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        double ms = accel_uses_solver(routine) && workload_is_for(routine)
                        ? excess_ms(device, routine, memory, &set_up)
                        : -1;
        if (ms >= 0)
            first.solver_ms = fmax(ms - first.kernels_ms, 0.01);
    }
    return first;
}
