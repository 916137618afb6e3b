/*
 * The decision: a pure function of the call, the machine and the settings.
 */
#ifndef ACCEL_DECIDE_H
#define ACCEL_DECIDE_H

#include "dispatch/cost/model.h"
#include "device.h"
#include "report/record.h"

/* What the decision knows of the machine, at the moment of a call. */
struct accel_machine {
    enum device_state gpu;
    int64_t gpu_memory; /* bytes that may be had on the device */
    /* Of the call's routine, by the caller's library with its threads, and on the GPU. */
    const struct model_curve *cpu_curve, *gpu_curve;
    double up_gbps, down_gbps; /* 10^9 bytes a second, host to device and back */
    double cpu_slowdown;       /* >= 1: more threads compute than there are cores */
    double gpu_slowdown;       /* >= 1: processes that share the device do the same */
    double gpu_wait_ms;        /* what the device has to do for others */
    double gpu_first_ms;       /* what this call, as the first of its kind, has to load there */
    bool lost;       /* calls from this place were slower on the GPU than the CPU would have been */
    bool distrusted; /* results of the routine were wrong on this GPU */
    bool failed;     /* a library has failed at the routine */
    bool full;       /* the last call of this size found no device memory, a moment ago */
};

/* Nominal rates of a CPU, for as many threads as compute: 25 Gflop/s each in double precision, 50 in single (a core of
 * about 3 GHz with 256-bit vectors at half its peak), 10 GB/s each up to 200. */
struct model_rates accel_nominal_cpu(int threads);

/* Of a fast GPU, as long as none is known; of one whose peaks are known: 10^9 operations a second, [0] in single, [1] in
 * double precision, of which large products reach 70 %. */
struct model_rates accel_nominal_gpu(void);
struct model_rates accel_gpu_of_peaks(const double peak_gflops[2], double memory_gbps);

/* What a call costs at least, nominally: three copies, a kernel and a wait. */
#define ACCEL_LAUNCH_MS 0.06
/* What one thread stages from pageable memory, nominally. */
#define ACCEL_COPY_GBPS 10.0

/* A machine with nothing on it, and these curves. */
void accel_machine_init(struct accel_machine *machine, const struct model_curve *cpu_curve,
                        const struct model_curve *gpu_curve);

struct accel_decision accel_decide(const struct accel_call *call,
                                   const struct accel_machine *machine,
                                   const struct accel_settings *settings);

/* Whether a call that stays on the CPU should have been on the GPU and could not: what ACCEL_REQUIRE=gpu forbids. */
bool accel_is_fallback(const struct accel_call *call, const struct accel_machine *machine,
                       const struct accel_settings *settings, enum accel_why why);

#endif
