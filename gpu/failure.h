/*
 * What has failed on a device. A failure of a library says little about the device:
 * whether the stream still works does. So each call notes its first failure, and gpu_run() judges it at the end.
 * Thread-safe.
 */
#ifndef ACCEL_FAILURE_H
#define ACCEL_FAILURE_H

#include "device.h"

enum failure_kind {
    FAILURE_NONE,
    FAILURE_LIBRARY, /* of a function of the BLAS or the solver */
    FAILURE_SOLVER,  /* the solver does not start */
    FAILURE_DEVICE   /* of the driver, or of all that the device is used by */
};

struct failure {
    enum failure_kind kind;
    char text[GPU_FAILURE_BYTES]; /* "function: what it has answered" */
};

/* From here on this thread's failures are noted anew: the first one tells, and what the driver adds to a library's. *outer keeps
 * what was noted before, until failure_end(). */
void failure_begin(struct failure *outer);
void failure_end(const struct failure *outer);

/* Ends it, and notes what was noted since failure_begin() beside what was before; where this was the outermost, publishes it as the
 * device's. */
void failure_pass_on(const struct failure *outer, struct gpu_device *device);

/* What this thread has noted. */
const struct failure *failure_noted(void);

/* Notes one. */
void failure_note(enum failure_kind kind, const char *function, const char *answer);

/* Makes what was noted of this kind, unless it is the device's already. */
void failure_is_of(enum failure_kind kind);

/* In the child of a fork. */
void failure_fork_child(void);

/* For gpu_failure(). */
void failure_publish(struct gpu_device *device, const struct failure *failure);

#endif
