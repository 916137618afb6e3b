/*
 * A call to be measured: a routine at given sizes, as programs mostly call it (shape_typical), with memory and contents
 * for its operands; run by a library's own function or by the GPU.
 */
#ifndef ACCEL_TOOL_WORKLOAD_H
#define ACCEL_TOOL_WORKLOAD_H

#include "gpu/gpu.h"
#include "libraries.h"

/* Where workloads have their memory: one at a time. */
struct workload_memory {
    char *base;
    size_t size, used;
};

bool workload_memory_open(struct workload_memory *memory, size_t size);
void workload_memory_close(struct workload_memory *memory);

struct workload {
    struct accel_call call;
    void *function; /* NULL: for the GPU alone */
    int64_t
        info; /* what the function writes; the call has its address, so a workload is not copied */
    bool filled;
};

/* Whether the GPU could have such calls, and gain by them. */
bool workload_is_for(const struct accel_routine *routine);

/* Makes a call of these sizes (m n k nrhs); function: the library's, NULL for the GPU alone. False where it does not
 * fit into the memory, or the function does not say what workspace it wants. */
bool workload_make(struct workload *workload, struct workload_memory *memory,
                   const struct accel_routine *routine, const int64_t size[ACCEL_DIMENSIONS],
                   const struct library_function *function);

/* Milliseconds of one run, for which inputs that were overwritten are made anew before; negative where it has
 * failed. */
double workload_cpu_ms(struct workload *workload);

/* The same on a GPU, copies included; host's numbers of bytes are filled. */
double workload_gpu_ms(struct workload *workload, struct gpu_device *device, struct gpu_host *host,
                       enum gpu_status *status);

#endif
