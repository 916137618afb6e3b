/*
 * A device that a test plays itself, on the host and without a driver: it says what becomes of each
 * call. For unit tests of dispatch/.
 */
#ifndef ACCEL_TEST_PLAYED_DEVICE_H
#define ACCEL_TEST_PLAYED_DEVICE_H

#include "dispatch/device.h"
#include "gpu/device/device.h"

struct played_device {
    struct gpu_device gpu; /* first: its functions get a pointer to it */
    struct dispatch_device *device;
    /* Runs a call; NULL: nothing is written, and the status is GPU_OK. Called on the caller's
     * thread, or a worker's. */
    enum gpu_status (*run)(struct played_device *played, const struct accel_call *call,
                           struct gpu_host *host);
    /* Memory of this device, and of another one: the host can reach both here. */
    char *own, *remote;
    size_t own_bytes, remote_bytes;
    bool fails;                   /* to fetch and to store */
    int fetched, stored, trimmed; /* so often */
    int number;                   /* for the test */
};

/* Makes the device ready, as number `index` of those that can be had, with an eighth of a terabyte
 * and no curves of its own. */
void play_device(struct played_device *played, struct dispatch_device *device, int index);

#endif
