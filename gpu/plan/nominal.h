/*
 * The highest rates of a device, from its driver's attributes. A MIG instance has attributes of its
 * own, so no name is needed. Pure.
 */
#ifndef ACCEL_NOMINAL_H
#define ACCEL_NOMINAL_H

#include <stdbool.h>

#include "precision.h"

/* As the driver gives them; 0 if it gives none. */
struct nominal_attributes {
    int major, minor; /* compute capability */
    int processors;
    int clock_khz, memory_clock_khz, bus_bits;
    int single_to_double;  /* the rate in single precision over that in double */
    bool integrated;       /* its memory is the host's */
    bool host_page_tables; /* its kernels reach the host's memory by the host's page tables */
};

struct nominal_rates {
    /* Of large products, in single and in double precision: 10^9 operations a second */
    double gflops[2];
    double memory_gbps;          /* 10^9 bytes a second */
    double gain[GPU_PRECISIONS]; /* in operations a second over native precision, at least 1 */
    double copy_gbps; /* the same of one thread that stages from pageable memory, up or down */
    double link_gbps; /* the same of as many threads as help */
    /* The same of kernels that read the host's memory where it is; 0: they cannot */
    double place_gbps;
};

/* Sets the gains of a device whose large products run at these rates: native (in single, in double
 * precision), in integers of 8 bits, in TF32 and in bfloat16, 10^9 operations a second; 0: the
 * device has none. */
void nominal_gains(double gain[GPU_PRECISIONS], const double native[2], double integers,
                   double tf32, double bfloat16);

/* Copies that many threads stage, over 16 lanes of PCIe 5 (docs/measurements). */
#define NOMINAL_LINK_GBPS 45.0

/* NVLink-C2C in one direction: NVIDIA, "Grace Hopper Superchip Architecture". */
#define NOMINAL_C2C_GBPS 450.0

/* Returns positive rates: takes a slow device's if an attribute is missing. */
struct nominal_rates nominal_rates(const struct nominal_attributes *attributes);

#endif
