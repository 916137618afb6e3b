/*
 * accel estimate: everything runs on the CPU, and the calls that a GPU would have run are counted.
 * Each process has a file named after its number: an array of struct estimate_sums, by routine of
 * the table. It is written as the calls come, so that it is complete however the process ends. The
 * tool reads it.
 */
#ifndef ACCEL_ESTIMATE_H
#define ACCEL_ESTIMATE_H

#include <stdint.h>

#include "simulated_start.h"

/* The calls of one routine, in milliseconds. */
struct estimate_sums {
    int64_t calls, gpu_calls; /* all; those that the GPU would have run */
    int64_t lost_calls;       /* of gpu_calls, those that the GPU would have been slower at */
    double cpu_ms;            /* all calls took */
    double gpu_cpu_ms;        /* gpu_calls took, on the CPU */
    double est_gpu_ms;        /* gpu_calls would have taken on the GPU */
    double lost_ms;           /* lost_calls would have taken longer on the GPU */
    double saved_ms;          /* with CUDA's start: see simulated_start.h */
    struct simulated_kernels kernels;
};

/* Subscribes the sink. Its files are in `folder`, a string that stays; NULL: nothing is counted.
 * *with stays, too. */
void estimate_start(const char *folder, const struct simulated_start_rules *with);

#endif
