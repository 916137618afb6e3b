/*
 * The kernels that a CPU library multiplies with, as far as it says. Pure.
 */
#ifndef ACCEL_CPU_KERNELS_H
#define ACCEL_CPU_KERNELS_H

/* Slower ones last. */
enum cpu_kernels {
    KERNELS_TUNED, /* for a CPU of today; also of a library that does not say */
    KERNELS_AVX,   /* 256-bit vectors, no fused multiply-add */
    KERNELS_SSE,   /* 128-bit vectors */
    KERNELS_LOOPS, /* plain loops, as in the reference library */
    KERNELS
};

/* Returns the kernels of a core that OpenBLAS names ("CORE2", "Haswell"), in any case. */
enum cpu_kernels kernels_of_core(const char *core);

/* What outputs call plain loops, whose library has no name for them. */
#define KERNELS_REFERENCE "reference"

#endif
