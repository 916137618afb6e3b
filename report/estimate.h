/*
 * accel estimate: everything runs on the CPU, and what a GPU would have run is counted. Each process has a file, by its
 * number: an array with an element for each routine of the table, which is added to as the calls come, so that it is
 * there however the process ends. The tool reads it.
 */
#ifndef ACCEL_ESTIMATE_H
#define ACCEL_ESTIMATE_H

#include <stdint.h>

/* Of one routine: all calls and the time that they took; of those that the GPU would have run, the time that they took and
 * would have taken; of these again, those that the CPU was faster at, and the difference. Milliseconds. */
struct estimate_sums {
    int64_t calls, gpu_calls, lost_calls;
    double cpu_ms, gpu_cpu_ms, est_gpu_ms, lost_ms;
};

/* Subscribes it. The files are in this folder, whose name stays; NULL: nothing is counted. */
void estimate_start(const char *folder);

#endif
