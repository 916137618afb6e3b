/*
 * The maker's figures of GPUs that were not measured. Constant data.
 */
#ifndef ACCEL_KNOWN_GPUS_H
#define ACCEL_KNOWN_GPUS_H

#include <stdbool.h>
#include <stddef.h>

struct known_gpu {
    char name[24]; /* CUDA's, without "NVIDIA", "Tesla", "GeForce" */
    /* Peak of matrix products, 10^12 a second: [0] single, [1] double precision */
    double tflops[2];
    /* The same in integers of 8 bits, in TF32, in bfloat16; 0: unknown, or too slow to gain */
    double tensor[3];
    double memory_gbps;        /* 10^9 bytes a second */
    double memory_gb;          /* 10^9 bytes */
    double up_gbps, down_gbps; /* of one thread that stages from pageable memory */
    /* Of kernels that read the host's memory where it is, by NVLink-C2C or as it is theirs, too; 0:
     * they cannot. */
    double place_gbps;
    bool integrated; /* its memory is the host's */
};

/* Returns the known GPU all of whose words are in `name`, which is CUDA's ("NVIDIA H100 80GB HBM3")
 * or a user's ("h100"), in any case; of several, the first with the most words. NULL: none. */
const struct known_gpu *known_gpu_find(const char *name);

/* The same for CUDA's name of a whole card: NULL for a MIG instance, a vGPU, a laptop's chip or
 * another card with a longer name. */
const struct known_gpu *known_gpu_whole(const char *name);

/* Returns what is wrong with a name that has a known GPU in it (known_gpu_find()), and that is to
 * be of its whole card or of a MIG instance of it; NULL: nothing. */
const char *known_gpu_fault(const char *name);

/* Returns the figures of a MIG instance of the card, by the profile in its name ("H200 MIG
 * 1g.18gb"); without one, the card's. */
struct known_gpu known_gpu_slice(const struct known_gpu *card, const char *name);

/* The list ends with an empty name. */
extern const struct known_gpu known_gpus[];

#endif
