/*
 * Runs a call over several devices at the same time (dispatch/cost/split.h): the first part on the
 * calling thread, each of the others on a thread of libaccel's own, or on the calling thread if
 * none can be started. The other devices do what one does not finish, then the original does, which
 * runs on the calling thread alone. While others work on the program's memory, the calling thread
 * takes no signals except those of its own faults. Thread-safe.
 */
#ifndef ACCEL_GANG_H
#define ACCEL_GANG_H

#include "device.h"
#include "dispatch/cost/factorisation.h"
#include "report/record.h"

/* A call's split, and the devices that its numbers stand for. */
struct gang_plan {
    struct split split;
    bool factors; /* LAPACK: the parts are members of a factorisation, which is all or nothing */
    struct panels_shared shared; /* with factors */
    struct dispatch_device *device[SPLIT_MOST];
};

/* If a device fails in a factorisation, or a device or the host lacks memory or threads for it, the
 * first device that is well does all of it, in panels, if it can: nothing has been written then.
 * One of them runs at a time. */

/* Does what gpu_run() does, with the same meaning of the status and of *host, of which `rates` and
 * `caches` do not count. A device that fails is left alone from here on, as run.h does it for one.
 * Fills in record->ran and record->gpu, if a device has done a part. */
enum gpu_status gang_run(const struct gang_plan *plan, const struct accel_call *call,
                         struct gpu_host *host, struct accel_record *record);

#endif
