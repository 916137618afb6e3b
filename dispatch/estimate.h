/*
 * accel estimate: everything runs on the CPU, and what a GPU would have run is counted. For each process a file
 * of lines, which the tool adds up:
 *     routine calls cpu_ms gpu_calls gpu_cpu_ms est_gpu_ms lost_calls lost_ms
 * all calls and the time that they took; of those that the GPU would have run, the time that they took and would have taken;
 * of these again, those that the CPU was faster at, and the difference. Milliseconds. Thread-safe but for the start.
 */
#ifndef ACCEL_ESTIMATE_H
#define ACCEL_ESTIMATE_H

#include "decide.h"

/* settings->estimate is the GPU. Where it is not known, that is said and nothing is estimated. */
void estimate_start(const struct accel_settings *settings);

bool estimate_is_on(void);

/* Bytes of the GPU's memory that may be used. */
int64_t estimate_memory(void);

void estimate_count(const struct accel_routine *routine, const struct accel_decision *decision,
                    double cpu_ms);

/* Writes the file; from a destructor. */
void estimate_end(void);

/* In the child of a fork: it counts for itself. */
void estimate_fork_child(void);

#endif
