/*
 * A call that a client of `accel serve` asks for. Nothing that the client has written is believed:
 * the request is the server's own copy, and each number of it is checked here.
 */
#ifndef ACCEL_SERVED_CALL_H
#define ACCEL_SERVED_CALL_H

#include "served_copies.h"

/* Makes the call of a user's request, its operands in the client's area, or of the client's own.
 * Returns false if that is no call that a client makes: one of BLAS or LAPACK, valid, not empty,
 * with its operands in the area. */
bool served_call_read(struct accel_call *call, const struct wire_request *request, uint64_t user,
                      char *area, int64_t area_bytes);

/* Runs it on a device for a user, as the request says. */
void served_call_run(struct wire_reply *reply, struct gpu_device *device,
                     const struct gpu_user *user, const struct accel_call *call,
                     const struct wire_request *request, struct served_copies *copies);

/* Whether the client copies its matrices under way. */
bool served_call_asks(const struct wire_request *request);

#endif
