#define _GNU_SOURCE
#include "mps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *mps_folder(void)
{
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    return folder && *folder ? folder : "/tmp/nvidia-mps";
}

bool mps_has_pipe(void)
{
    char control[GPU_PATH_BYTES];
    const int length = snprintf(control, sizeof control, "%s/control", mps_folder());
    const int saved = errno;
    const bool is_there = length < GPU_PATH_BYTES && access(control, F_OK) == 0;
    errno = saved;
    return is_there;
}

bool mps_serves(CUdevice device)
{
    int serves;
    if (CUDA(cuDeviceGetAttribute)(&serves, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) ==
        CUDA_SUCCESS)
        return serves > 0;
    return mps_has_pipe();
}
