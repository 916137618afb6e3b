/* What the layers above ask of the process beside its devices, where there is no CUDA. */
#include <string.h>

#include "gpu/device/own.h"

const char gpu_interface[] = "none";

void gpu_examine(struct gpu_findings *findings, const struct gpu_config *config)
{
    (void)config;
    memset(findings, 0, sizeof *findings);
}

const struct gpu_library_file *gpu_library(enum gpu_library which)
{
    (void)which;
    return NULL;
}

void gpu_look_for_devices(void) {}

bool gpu_may_exist(const struct gpu_config *config, bool has_cuda_library)
{
    (void)config, (void)has_cuda_library;
    return true;
}

bool gpu_program_uses_cuda(unsigned long long loads)
{
    (void)loads;
    return false;
}

bool gpu_program_pins(void)
{
    return false;
}

bool gpu_program_has_initialised(unsigned long long loads)
{
    (void)loads;
    return false;
}

bool gpu_is_cuda_library(const char *path)
{
    (void)path;
    return false;
}

void gpu_program_locate(struct accel_span *spans, int count, int64_t batch)
{
    (void)spans, (void)count, (void)batch; /* in host memory, as they are at first */
}

bool gpu_own_is_built(void)
{
    return false;
}

void gpu_fork_child(void) {}
