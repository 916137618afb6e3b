/*
 * accel doctor's row about `accel serve`, the process that owns the GPU for others.
 */
#ifndef ACCEL_TOOL_DOCTOR_SERVER_H
#define ACCEL_TOOL_DOCTOR_SERVER_H

#include "checks.h"
#include "effective_config.h"
#include "gpu/device/gpu.h"

/* Adds the row. Returns the server's device, for gpu_stop(); NULL: programs have none of a server.
 * Once in a process. */
struct gpu_device *doctor_server(struct checks *checks, const struct effective_config *config);

#endif
