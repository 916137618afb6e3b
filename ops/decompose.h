/*
 * A call that is decomposed into other calls: for what no device can take as a whole. The operation
 * (op->gpu->decompose) makes inner calls of BLAS and LAPACK on matrices of its own in host memory;
 * whoever runs the decomposition decides where each of them runs. The caller's operands are only
 * read. The same walk without memory adds up what the calls take.
 */
#ifndef ACCEL_DECOMPOSE_H
#define ACCEL_DECOMPOSE_H

#include <stdlib.h>

#include "call/call.h"
#include "gpu/device/gpu.h"

struct decomposition {
    /* Runs an inner call, a valid one. GPU_OK, or its operands are lost; with GPU_NO_MEMORY and
     * GPU_UNSUPPORTED of LAPACK they are as they were. With `estimates`, adds its time up: its
     * operands must not be touched. */
    enum gpu_status (*run)(void *context, const struct accel_call *inner);
    /* Returns whether a device takes the call as a whole. */
    bool (*fits)(void *context, const struct accel_call *inner);
    void *context;
    bool estimates; /* nothing is computed: sizes that depend on data are nominal ones */
    /* That the decomposition itself reads and writes, beside inner calls: added up */
    double host_bytes;
};

/* Frees the results that a decomposition has in memory of its own. */
static inline void decomposition_free(const struct accel_call *call, struct accel_call *done)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        if (done->span[i].ptr != call->span[i].ptr)
            free(done->span[i].ptr);
        done->span[i] = call->span[i];
    }
}

#endif
