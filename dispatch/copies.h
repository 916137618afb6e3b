/*
 * Runs the original on copies: operands that the host cannot reach are copied to host memory,
 * packed; the caller's original runs on the copies; and the operands that it has written are copied
 * back. All functions are thread-safe.
 */
#ifndef ACCEL_COPIES_H
#define ACCEL_COPIES_H

#include "dispatch.h"
#include "gpu/device/gpu.h"

/* Whether the host can read and write an operand, or all operands of a call, at the place that
 * gpu_locate() has found. */
bool copies_host_can_reach(const struct accel_span *x);
bool copies_host_can_read(const struct accel_call *call);

/* Runs the original of a valid call that the GPU has refused, and whose operands the CPU cannot all
 * reach. Operands have any shape; those that the host can reach are not copied. Products of a batch
 * run one after the other, as they may depend on each other. False without memory, or if the device
 * fails: operands that were copied back before that stay so. */
bool copies_run(struct gpu_device *gpu, const struct accel_call *call,
                const struct dispatch_caller *caller);

/* Makes x describe its packed copy in `memory`, which the caller owns: rows x cols elements with ld
 * = max(1, rows), of a vector with inc = 1 or -1. Leaves its place. */
void copies_put(struct accel_span *x, void *memory);

#endif
