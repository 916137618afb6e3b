/*
 * Operands whose pages are watched for writes (base/memory/write_watch.h): those that are the
 * operand's alone. The pages at its two edges, which others may write to, are digested each time,
 * as far as they are the operand's. Thread-safe.
 */
#ifndef ACCEL_DIRTY_TRACKING_H
#define ACCEL_DIRTY_TRACKING_H

#include "gpu/pack/digest.h"
#include "call/call.h"

/* Begins to watch a matrix in host memory. Returns the watch, 0 if it cannot be watched. */
uint64_t dirty_tracking_begin(const struct accel_span *x);

/* Validates a watch by a digest of all of it: the edges' contents did not change while that was
 * taken. */
struct dirty_tracking_validation {
    bool has_edges;
    uint64_t watch; /* with the pages at the edges; 0: they cannot be watched */
    struct gpu_edges edges;
};

/* Call these before and behind the digest. The second returns whether the edges have stayed what
 * validation->edges says. */
void dirty_tracking_validate(const struct accel_span *x,
                             struct dirty_tracking_validation *validation);
bool dirty_tracking_is_validated(struct dirty_tracking_validation *validation);

/* Returns whether all of it is as it was when its digest was taken, behind dirty_tracking_begin():
 * by that digest's edges. */
bool dirty_tracking_is_unchanged(const struct accel_span *x, uint64_t watch,
                                 const struct gpu_edges *edges);

/* The same of a part of it, whose memory begins and ends within x's. Nothing is read of pages that
 * the part is not in: x's memory may be gone there. */
bool dirty_tracking_part_is_unchanged(const struct accel_span *x, const struct accel_span *part,
                                      uint64_t watch, const struct gpu_edges *edges);

#endif
