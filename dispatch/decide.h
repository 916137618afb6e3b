/*
 * Decides where a call runs: a pure function of the call, the machine and the settings.
 */
#ifndef ACCEL_DECIDE_H
#define ACCEL_DECIDE_H

#include "dispatch/cost/model.h"
#include "device.h"
#include "report/record.h"

/* The state of the machine at the moment of a call, as far as the decision depends on it. */
struct accel_machine {
    enum device_state gpu;
    int64_t gpu_memory; /* bytes that this process may use on the device */
    /* Of the call's routine: in the caller's library with its threads, and on the GPU. */
    const struct model_curve *cpu_curve, *gpu_curve;
    double up_gbps, down_gbps; /* 10^9 bytes a second, host to device and back */
    double place_gbps;         /* kernels that read the host's memory where it is; 0: they cannot */
    bool one_memory; /* the device's memory is the host's: reading in place costs nothing more */
    /* For a call that a schedule divides (gpu/scheduled.h); up = 0: copies and kernels are added. */
    struct schedule_rates schedule;
    /* Corrects the time of the schedule by measured calls: see model_work_of_time(). NULL: none was measured. */
    const struct model_curve *schedule_curve;
    /* The estimate of a call that certainly stays on the CPU is wanted, too, by its schedule: it is reported, or counts later. */
    bool wants_all;
    struct gpu_kept kept; /* inputs that are probably on the device already */
    bool keeps;           /* the user asks that inputs are kept: they are worth a copy */
    /* A call that would gain if its largest input were there may bring that, to be known by the kernel's record of writes (bringing.h in
     * gpu/). The one to be brought now, whatever the call loses by that: a bit as in gpu_host.brings. */
    bool may_bring;
    unsigned brings;
    double digest_gbps, scan_gbps; /* 10^9 bytes a second, to see that they have not changed */
    double cpu_slowdown;           /* >= 1: more threads compute than there are cores */
    double gpu_gain; /* > 0: by how much operations are faster in the precision that is asked for */
    double gpu_slowdown; /* >= 1: processes share the device */
    /* <= 1: of its time that the call takes, because other devices compute parts of it */
    double gpu_share;
    /* Of a call that exceeds its memory, by inner calls; 0: it is not so done */
    double composed_ms;
    double gpu_wait_ms;     /* until the device has done the calls of others */
    double gpu_first_ms;    /* to load kernels and libraries, for the first call of a routine */
    const char *arithmetic; /* how the calling thread computes and no GPU does; NULL: as a GPU */
    bool lost; /* calls from this call site were slower on the GPU than the CPU would have been */
    bool distrusted; /* results of the routine were wrong on this GPU */
    bool failed;     /* a library has failed at the routine */
    bool full;       /* a call of this size found no device memory a moment ago */
};

/* Describes an idle machine with these curves, whose GPU has not been tried. */
void accel_machine_init(struct accel_machine *machine, const struct model_curve *cpu_curve,
                        const struct model_curve *gpu_curve);

/* Returns where a valid call runs, and why, with the two estimates as far as they were needed. */
struct accel_decision accel_decide(const struct accel_call *call,
                                   const struct accel_machine *machine,
                                   const struct accel_settings *settings);

/* Returns the milliseconds that a valid call is estimated to take on the GPU, without a wait for others. */
double accel_estimate_gpu_ms(const struct accel_call *call, const struct accel_machine *machine,
                             const struct accel_settings *settings);

/* Whether a call stays on the CPU for reason `why` although it should run on the GPU: ACCEL_REQUIRE=gpu forbids that. */
bool accel_is_fallback(const struct accel_call *call, const struct accel_machine *machine,
                       const struct accel_settings *settings, enum accel_why why);

#endif
