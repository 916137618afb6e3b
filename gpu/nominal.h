/*
 * What a device can do at most, from the attributes that its driver gives. Those of a MIG instance are the instance's
 * own, so no name is needed. Pure.
 */
#ifndef ACCEL_NOMINAL_H
#define ACCEL_NOMINAL_H

/* As the driver gives them; 0 where the driver has none. */
struct nominal_attributes {
    int major, minor; /* compute capability */
    int processors;
    int clock_khz, memory_clock_khz, bus_bits;
    int single_to_double; /* the ratio of the two rates */
};

struct nominal_rates {
    double gflops
        [2]; /* of large products, 10^9 operations a second: [0] single, [1] double precision */
    double memory_gbps; /* 10^9 bytes a second */
};

/* All rates are positive: what is missing is taken to be that of a slow device. */
struct nominal_rates nominal_rates(const struct nominal_attributes *attributes);

#endif
