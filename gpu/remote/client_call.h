/*
 * A call that a server does for its client, on a lane. Small operands, and those of Level 2 and of
 * batches, are packed into the lane's area before it, and results fetched after it; others are
 * copied under way (client_copies.h).
 */
#ifndef ACCEL_CLIENT_CALL_H
#define ACCEL_CLIENT_CALL_H

#include "client_copies.h"

/* Returns a vector, or matrix number k of an operand. */
struct host_rectangle client_call_rectangle(const struct accel_span *x, int64_t k);

/* Whether a call's operands have room in an area of so many bytes, apart from matrices that go in
 * chunks. */
bool client_call_fits(const struct accel_call *call, int64_t area_bytes, int64_t chunked_from);

/* Has the server do a call of its device, like gpu_run(). Returns false if it has gone; then
 * *status is GPU_ERROR, if nothing was written, or what the original has made of results that were
 * written in part. */
bool client_call_run(struct lane *lane, struct gpu_device *device, const struct accel_call *call,
                     struct gpu_host *host, enum gpu_status *status);

/* Has the server do the request that is in the lane: the reply is in *reply then. copies: what the
 * client does under way, or NULL. Returns false if the server has ended, or gives no sign of life
 * (is_silent). The lane is of no use any more then. */
bool lane_call(struct lane *lane, struct wire_reply *reply, struct client_copies *copies);

#endif
