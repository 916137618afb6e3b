#ifndef ACCEL_TOOL_DEVICE_CONFIG_H
#define ACCEL_TOOL_DEVICE_CONFIG_H

#include "dispatch/settings/settings.h"
#include "gpu/device/gpu.h"

/* Returns how the tool starts a device: as the settings say, for one process. Strings are the
 * settings'. */
struct gpu_config device_config(const struct accel_settings *settings);

#endif
