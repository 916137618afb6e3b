/*
 * A client's inputs that the server keeps on its device: which ones, by the admission policy of a
 * process that has the device itself (gpu/cache/admission.h), and whether anybody has written to
 * them since. One whose watch says that nobody has is not read: the request carries its key, by
 * which the server finds it. Else the server may have it digested, or brought, which validates its
 * watch.
 */
#ifndef ACCEL_CLIENT_INPUTS_H
#define ACCEL_CLIENT_INPUTS_H

#include "gpu/cache/dirty_tracking.h"
#include "gpu/cache/admission.h"
#include "gpu/device/work.h"
#include "wire.h"

struct client_input {
    struct accel_span part; /* what of it may be kept; ptr is NULL: nothing */
    struct admission_watch watch;
    bool may;       /* be watched, if it is not */
    bool known;     /* nobody has written to it, as the watch says */
    bool brings;    /* the call is to bring it, whatever it has of it */
    bool begins;    /* the watch, before this call */
    bool validates; /* the watch, if this call digests it: */
    struct dirty_tracking_validation validation;
    bool holds; /* it has, as far as its edges say */
};

struct client_inputs {
    struct gpu_work work; /* the call, and the device for which it is weighed */
    struct client_input input[ACCEL_SPANS];
    bool settled; /* no watch is to be validated any more */
};

/* Before a call whose operands have their places in the request: asks the watches, and begins some.
 * Fills in what the request says of inputs. Returns GPU_CHANGED if the call pays only with inputs
 * that have been written to, as gpu_run() does. */
enum gpu_status client_inputs_begin(struct client_inputs *inputs, struct gpu_device *device,
                                    const struct accel_call *call, struct gpu_host *host,
                                    struct wire_request *request);

/* Sees each task before it is done: inputs that share a page with a result must be validated before
 * that comes down. NULL may see, too. */
void client_inputs_see(struct client_inputs *inputs, const struct wire_task *task);

/* Behind it, before other results are written: takes over what the reply says is kept. reply: NULL:
 * the call has not been done. */
void client_inputs_end(struct client_inputs *inputs, const struct wire_reply *reply);

/* Returns whether the server keeps what a key tells, as far as it has said on this lane. */
bool client_inputs_are_kept(const struct wire_kept *kept, const struct gpu_key *key);

#endif
