/*
 * accel doctor's rows about the machine: the library, the settings, the GPU and its libraries, the
 * calibration.
 */
#ifndef ACCEL_TOOL_MACHINE_H
#define ACCEL_TOOL_MACHINE_H

#include "effective_config.h"
#include "checks.h"

void machine_examine(struct checks *checks, const struct effective_config *config);

#endif
