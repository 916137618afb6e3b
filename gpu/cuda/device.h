/*
 * The device in use, inside gpu/: its context, the way in and out of CUDA for one call.
 */
#ifndef ACCEL_DEVICE_H
#define ACCEL_DEVICE_H

#include "cuda_api.h"
#include "failure.h"
#include "gpu/gpu.h"

struct gpu_device {
    CUdevice device;
    CUcontext context; /* the primary one, shared with the program if it uses the runtime API */
    int ordinal;
    int64_t budget; /* bytes of its memory that we may use */
};

/* Set by gpu_start(), constant afterwards. */
extern struct gpu_device gpu_device;

/* The calling thread inside our context, and what it had before. */
struct gpu_scope {
    CUstreamCaptureMode mode;
    bool mode_exchanged;
};

/* Makes our context current. Another thread's graph capture is not disturbed by what follows: this
 * thread's capture mode is relaxed meanwhile. */
enum gpu_status gpu_enter(struct gpu_scope *scope);
void gpu_leave(const struct gpu_scope *scope);

/* Whether the driver has so little memory left that a library could fail for want of it. False where it cannot be asked.
 * Our context must be current. */
bool gpu_memory_is_short(void);

/* The status of a call that the original has finished after this one. */
static inline enum gpu_status gpu_finished_else(enum gpu_status status)
{
    return status == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

#endif
