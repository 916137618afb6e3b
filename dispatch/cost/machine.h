/*
 * The machine at the moment of a call, as the decision sees it: the curves of both sides, rates,
 * and the state of a device. Plain data.
 */
#ifndef ACCEL_MACHINE_H
#define ACCEL_MACHINE_H

#include "device_state.h"
#include "gpu/device/gpu.h"
#include "model.h"

/* The state of the machine at the moment of a call, as far as the decision depends on it. */
struct accel_machine {
    enum device_state gpu;
    int64_t gpu_memory; /* bytes that this process may use on the device */
    /* Of the call's routine: in the caller's library with its threads, and on the GPU. */
    const struct model_curve *cpu_curve, *gpu_curve;
    double up_gbps, down_gbps; /* 10^9 bytes a second, host to device and back */
    double place_gbps;         /* kernels that read the host's memory where it is; 0: they cannot */
    bool one_memory; /* the device's memory is the host's: reading in place costs nothing more */
    /* For a call that a schedule divides (gpu/plan/scheduled.h); up = 0: copies and kernels are
     * added. */
    struct schedule_rates schedule;
    /* Corrects the time of the schedule by measured calls: see model_work_of_time(). NULL: none was
     * measured. */
    const struct model_curve *schedule_curve;
    /* The estimate of a call that certainly stays on the CPU is wanted, too, by its schedule: it is
     * reported, or counts later. */
    bool wants_all;
    struct gpu_cached cached; /* inputs that are probably on the device already */
    bool caches;              /* the user asks that inputs are cached: they are worth a copy */
    /* A call that would gain if its largest input were there may bring that, to be known by the
     * kernel's record of writes (prefetch.h in gpu/). The one to be brought now, whatever the call
     * loses by that: a bit as in gpu_host.prefetches. */
    bool may_prefetch;
    unsigned prefetches;
    double digest_gbps, scan_gbps; /* 10^9 bytes a second, to see that they have not changed */
    double cpu_slowdown;           /* >= 1: more threads compute than there are cores */
    double gpu_gain; /* > 0: by how much operations are faster in the precision that is asked for */
    double gpu_slowdown; /* >= 1: processes share the device */
    /* <= 1: of its time that the call takes, because other devices compute parts of it */
    double gpu_share;
    /* Of a call that exceeds its memory, by inner calls; 0: it is not so done */
    double decomposed_ms;
    double gpu_wait_ms;     /* until the device has done the calls of others */
    double gpu_beside;      /* >= 1: it takes so many times as long beside them */
    double gpu_first_ms;    /* to load kernels and libraries, for the first call of a routine */
    const char *arithmetic; /* how the calling thread computes and no GPU does; NULL: as a GPU */
    bool lost; /* calls from this call site were slower on the GPU than the CPU would have been */
    bool distrusted; /* results of the routine were wrong on this GPU */
    bool failed;     /* a library has failed at the routine */
    bool full;       /* a call of this size found no device memory a moment ago */
};

#endif
