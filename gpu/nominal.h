/*
 * The highest rates of a device, from its driver's attributes. A MIG instance has attributes of its own, so no name is
 * needed. Pure.
 */
#ifndef ACCEL_NOMINAL_H
#define ACCEL_NOMINAL_H

#include <stdbool.h>

/* As the driver gives them; 0 if it gives none. */
struct nominal_attributes {
    int major, minor; /* compute capability */
    int processors;
    int clock_khz, memory_clock_khz, bus_bits;
    int single_to_double; /* the rate in single precision over that in double */
    bool integrated;      /* its memory is the host's */
};

struct nominal_rates {
    double gflops
        [2]; /* of large products, in single and in double precision: 10^9 operations a second */
    double memory_gbps; /* 10^9 bytes a second */
    double copy_gbps;   /* the same of one thread that stages from pageable memory, up or down */
};

/* Returns positive rates: takes a slow device's if an attribute is missing. */
struct nominal_rates nominal_rates(const struct nominal_attributes *attributes);

#endif
