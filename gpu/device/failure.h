/*
 * Failures of a device. That a library fails says little of the device; whether the stream still
 * works says more. So each call notes its first failure, and gpu_run() judges it at the end.
 * Thread-safe.
 */
#ifndef ACCEL_FAILURE_H
#define ACCEL_FAILURE_H

#include "device.h"

enum failure_kind {
    FAILURE_NONE,
    FAILURE_LIBRARY, /* a function of the BLAS or the solver fails */
    FAILURE_SOLVER,  /* the solver does not start */
    FAILURE_DEVICE   /* the driver fails, or the BLAS does not start */
};

struct failure {
    enum failure_kind kind;
    char text[GPU_FAILURE_BYTES]; /* "function: its answer" */
};

/* Notes this thread's failures anew from here on: the first one, and what the driver adds to a
 * library's. *outer keeps the failure noted before, which failure_end() brings back. */
void failure_begin(struct failure *outer);
void failure_end(const struct failure *outer);

/* Ends it as failure_end() does, and adds the failure noted since failure_begin() to the one
 * before; at the outermost level publishes it as the device's. */
void failure_pass_on(const struct failure *outer, struct gpu_device *device);

/* Returns what this thread has noted. */
const struct failure *failure_noted(void);

/* Notes a failure, unless this thread has noted one already; a driver's is added to a library's.
 * answer: NULL if unknown. */
void failure_note(enum failure_kind kind, const char *function, const char *answer);

/* Changes the kind of the failure noted, unless it is the device's already. */
void failure_is_of(enum failure_kind kind);

/* Notes that a driver has said that it is unloaded: from here on gpu_is_gone() returns true. */
void failure_of_unloaded_driver(void);

/* Makes a failure one that gpu_failure() returns. */
void failure_publish(struct gpu_device *device, const struct failure *failure);

#endif
