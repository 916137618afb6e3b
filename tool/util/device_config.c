#include "device_config.h"

struct gpu_config device_config(const struct accel_settings *settings)
{
    const bool listed = settings->devices.kind == ACCEL_DEVICES_LIST;
    return (struct gpu_config){.cuda_dir = settings->cuda_dir,
                               .memory_share = settings->memory_share,
                               .memory_bytes = settings->memory_bytes,
                               .devices = listed ? settings->devices.number : NULL,
                               .device_count = listed ? settings->devices.count : 0,
                               .local_size = 1};
}
