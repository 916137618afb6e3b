/*
 * gpu/cuda/: the one kind of device. It alone includes CUDA's headers.
 *
 * This header is a device of CUDA's: its context, stream contexts and memory, and how a thread
 * enters and leaves CUDA for one call.
 */
#ifndef ACCEL_CUDA_DEVICE_H
#define ACCEL_CUDA_DEVICE_H

#include "check.h"
#include "gpu/device/choose.h"
#include "gpu/device/device.h"
#include "gpu/device/seats.h"
#include "stream_ctx.h"
#include "own.h"
#include "pool.h"

/* How fast a device reads another one's lent memory. */
struct peer_rate {
    unsigned start; /* of the other one; 0: not known */
    double gbps;    /* 0: it does not */
    double again;   /* when to ask again, in milliseconds of the clock; 0: never */
};

struct cuda_device {
    struct gpu_device common; /* must be the first member */
    CUdevice number;
    unsigned start;    /* tells it from devices that were started earlier with its ordinal */
    CUcontext context; /* the primary one, shared with the program if it uses the runtime API */
    int64_t budget;    /* bytes of the device's memory that we may use */
    struct seat seat;
    struct stream_ctxs ctxs;
    struct pool pool;
    struct own_module own;
    struct peer_rate peer[CHOICE_MAX]; /* by the other one's CUDA ordinal: for peer_rate.c */
    /* For idle.c: */
    atomic_bool watched;
    struct cuda_device *next_watched;
};

static inline struct cuda_device *cuda_device_of(struct gpu_device *device)
{
    return (struct cuda_device *)device;
}

/* The capture mode that a thread had before it entered our context. */
struct gpu_scope {
    CUstreamCaptureMode mode;
    bool mode_exchanged;
};

/* Makes the device's context current, and relaxes this thread's capture mode, so that our calls do
 * not disturb another thread's graph capture. */
enum gpu_status gpu_enter(struct cuda_device *device, struct gpu_scope *scope);
void gpu_leave(const struct gpu_scope *scope);

/* Returns whether the driver has so little memory left that a library could fail for want of it;
 * false if the driver does not answer. Our context must be current. */
bool gpu_memory_is_short(void);

/* Return whether the process has a device in use; whether it is the child of a fork, in which CUDA
 * does not work. */
bool cuda_is_started(void);
bool cuda_is_dead(void);

/* Returns a number that changes when gpu_start() begins and when it ends: odd in between, when
 * contexts may be active that are ours. */
unsigned cuda_starts(void);

/* For gpu_device_functions: in run.c, place.c, measure.c, measure_paces.c and peer_rate.c. */
enum gpu_status cuda_run(struct gpu_device *device, const struct accel_call *call,
                         struct gpu_host *host);
void cuda_locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch);
bool cuda_fetch(struct gpu_device *device, void *host, const struct accel_span *x);
bool cuda_store(struct gpu_device *device, const struct accel_span *x, const void *host);
bool cuda_measure_copies(struct gpu_device *device, struct gpu_copy_rates *rates);
bool cuda_measure_paces(struct gpu_device *device, const struct accel_call *product,
                        double limit_ms, struct block_paces *paces);
double cuda_peer_gbps(struct gpu_device *reader, struct gpu_device *owner);

extern const struct gpu_memory cuda_memory;     /* run.c */
extern const struct gpu_copies cuda_copies;     /* stream_ctx.c */
extern const struct gpu_kernels cuda_kernels;   /* kernels.c */
extern const struct gpu_own_kernels cuda_own;   /* own.c */
extern const struct solver_library cuda_solver; /* cusolver.c */

#endif
