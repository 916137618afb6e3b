/*
 * A call that a client of `accel serve` asks for. Nothing that the client has written is believed:
 * the request is the server's own copy, and each number of it is checked here.
 */
#ifndef ACCEL_SERVED_CALL_H
#define ACCEL_SERVED_CALL_H

#include "device_places.h"
#include "served_copies.h"

/* Makes the call of a user's request, its operands in the client's area, or of the client's own.
 * Returns false if that is no call that a client makes: one of BLAS or LAPACK, valid, not empty,
 * with its operands in the area. */
bool served_call_read(struct accel_call *call, const struct wire_request *request, uint64_t user,
                      char *area, int64_t area_bytes);

/* For whom, and where, a call runs. */
struct served_run {
    const struct gpu_user *user;
    struct device_lane *lane;
    struct served_copies *copies; /* of the client's lane */
    double most_ms;               /* that it may wait for a place there */
    atomic_int *doing;            /* WIRE_RUNS, when it has one */
    double waited_ms;             /* filled in: that it has waited */
};

/* Runs it when it has a place on the device, as the request says. One that gets none in time is
 * refused: GPU_BUSY. */
void served_call_run(struct wire_reply *reply, struct served_run *run,
                     const struct accel_call *call, const struct wire_request *request);

/* Writes down what the device keeps of a user's inputs. */
void served_call_list_kept(struct wire_kept *kept, struct gpu_device *device, uint64_t user);

/* Whether the client copies its matrices under way. */
bool served_call_asks(const struct wire_request *request);

#endif
