/*
 * What is known of GPUs that were not measured: their makers' figures. Constant data.
 */
#ifndef ACCEL_KNOWN_GPUS_H
#define ACCEL_KNOWN_GPUS_H

#include <stdbool.h>
#include <stddef.h>

struct known_gpu {
    const char *name; /* as CUDA says it, without "NVIDIA", "Tesla", "GeForce" */
    double
        tflops[2]; /* peak of matrix products: [0] single, [1] double precision, 10^12 a second */
    double memory_gbps;        /* 10^9 bytes a second */
    double memory_gb;          /* 10^9 bytes */
    double up_gbps, down_gbps; /* what one thread that stages from pageable memory reaches */
};

/* The GPU of a name that CUDA gives ("NVIDIA H100 80GB HBM3"), or a user ("h100"): each word of the one that is known
 * must be in it, in any case; of several, the first with the most words. NULL for
 * none. */
const struct known_gpu *known_gpu_find(const char *name);

/* The same of a name that CUDA gives, where it is that of the whole card: NULL for a MIG instance, a vGPU, a laptop's chip
 * or another card whose name begins alike. */
const struct known_gpu *known_gpu_whole(const char *name);

/* What a MIG instance of the card has, by its profile in the name ("H200 MIG 1g.18gb"); without one, what the card has. */
struct known_gpu known_gpu_slice(const struct known_gpu *card, const char *name);

/* All of them, ending with a name of NULL. */
extern const struct known_gpu known_gpus[];

#endif
