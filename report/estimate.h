/*
 * accel estimate: everything runs on the CPU, and what a GPU would have run is counted. Each process has a file in
 * ACCEL_ESTIMATE_DIR, by its number: an array with an element for each routine of the table, which is added to as the calls
 * come, so that it is there however the process ends. The tool reads it. Thread-safe but for the start.
 */
#ifndef ACCEL_ESTIMATE_H
#define ACCEL_ESTIMATE_H

#include "dispatch/decide.h"

/* Of one routine: all calls and the time that they took; of those that the GPU would have run, the time that they took and
 * would have taken; of these again, those that the CPU was faster at, and the difference. Milliseconds. */
struct estimate_sums {
    int64_t calls, gpu_calls, lost_calls;
    double cpu_ms, gpu_cpu_ms, est_gpu_ms, lost_ms;
};

/* settings->estimate is the GPU. Where it is not known, that is said and nothing is estimated. */
void estimate_start(const struct accel_settings *settings);

bool estimate_is_on(void);

/* Bytes of the GPU's memory that may be used. */
int64_t estimate_memory(void);

void estimate_count(const struct accel_routine *routine, const struct accel_decision *decision,
                    double cpu_ms);

#endif
