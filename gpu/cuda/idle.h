/*
 * A thread that gives idle memory of all devices back after a while. It starts when memory becomes
 * idle and ends when none is, so that it keeps no process alive. It takes none of the program's
 * signals; a fork's child does not have it; it enters CUDA as calls do, so exit() waits for it
 * (exit_guard.h).
 */
#ifndef ACCEL_IDLE_H
#define ACCEL_IDLE_H

#include "device.h"

/* Makes the thread watch a device that has idle memory. If the thread cannot be started, gives the
 * memory back at once. The device's context must be current. Thread-safe. */
void idle_watch(struct cuda_device *device);

/* Makes the thread forget the device; waits until it has left it. */
void idle_forget(struct cuda_device *device);

#endif
