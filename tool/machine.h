/*
 * accel doctor's rows about the machine: the library, the settings, the GPU and its libraries, the
 * calibration.
 */
#ifndef ACCEL_TOOL_MACHINE_H
#define ACCEL_TOOL_MACHINE_H

#include "in_force.h"
#include "rows.h"

void machine_examine(struct rows *rows, const struct in_force *in_force);

#endif
