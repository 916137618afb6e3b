/*
 * A thread that gives idle memory of all devices back after a while. It is made when something lies idle and ends when nothing does,
 * so that it keeps no process alive. The program's signals are not for it; a fork's child does not have it; it enters CUDA as calls do,
 * so exit() waits for it (ending.h).
 */
#ifndef ACCEL_IDLE_H
#define ACCEL_IDLE_H

#include "device.h"

/* Something of a device lies idle. Where there can be no thread, it is given back at once. The device's context must be current;
 * thread-safe. */
void idle_watch(struct cuda_device *device);

/* The thread does not look at the device any more; waits until it is out of it. */
void idle_forget(struct cuda_device *device);

#endif
