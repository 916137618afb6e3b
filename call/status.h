/*
 * How a call on a device has ended.
 */
#ifndef ACCEL_STATUS_H
#define ACCEL_STATUS_H

#include <stdbool.h>

/* Returns from a function with a step's status, unless that is GPU_OK. */
#define GPU_TRY(step)                                                                              \
    do {                                                                                           \
        const enum gpu_status try_status = (step);                                                 \
        if (try_status != GPU_OK)                                                                  \
            return try_status;                                                                     \
    } while (0)

enum gpu_status {
    GPU_OK,
    GPU_NO_MEMORY,   /* nothing was written; may succeed another time */
    GPU_UNSUPPORTED, /* nothing was written; the device's library cannot do it */
    GPU_CHANGED, /* nothing was written; an input is not on the device any more (gpu_host.relies) */
    GPU_BUSY,    /* nothing was written; other calls have all stream contexts (gpu_host.hurries) */
    GPU_ERROR,   /* nothing was written; use no more what gpu_host.blame names */
    GPU_FINISHED_ELSE, /* failed on the way, and the original did the rest: the result is complete;
                          blame as before */
    GPU_SHORT_ELSE,    /* the same, for lack of memory, which may pass */
    GPU_LOST           /* failed, and what had been overwritten cannot be made right */
};

/* Whether the result is complete, by the device alone or with the original's help. */
static inline bool gpu_is_finished(enum gpu_status status)
{
    return status == GPU_OK || status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE;
}

#endif
