/*
 * The original on copies: operands that the host cannot reach are copied to host memory, packed, the caller's original runs on
 * the copies, and what it has written is put back. All functions are thread-safe.
 */
#ifndef ACCEL_COPIES_H
#define ACCEL_COPIES_H

#include "dispatch.h"
#include "gpu/gpu.h"

/* Whether the host can read and write an operand where it is, as gpu_locate() has found it; all operands of a call. */
bool copies_host_can_reach(const struct accel_span *x);
bool copies_host_can_read(const struct accel_call *call);

/* Runs the original of a valid call, for one that the GPU has refused and the CPU cannot see. Operands have any shape, and those
 * that the host can reach are not copied; the copies are freed. Products of a batch one after the other: they may be refused for
 * depending on each other. False without memory, or where the device fails: what was put back before that stays. */
bool copies_run(struct gpu_device *gpu, const struct accel_call *call,
                const struct dispatch_caller *caller);

/* Makes x the packed copy of itself in `memory`, which remains the caller's: rows x cols elements with ld = max(1, rows), of a
 * vector with inc = 1 or -1. Its place stays as it is. */
void copies_put(struct accel_span *x, void *memory);

#endif
