#include "own.h"

static bool is_here(const struct gpu_work *work)
{
    (void)work;
    return false;
}

static enum gpu_status fit(struct gpu_work *work, const char *kernel, unsigned threads,
                           unsigned shared_bytes, struct gpu_fit *result)
{
    (void)work, (void)kernel, (void)threads, (void)shared_bytes, (void)result;
    return GPU_UNSUPPORTED;
}

static enum gpu_status launch(struct gpu_work *work, const char *kernel, struct gpu_grid grid,
                              void **arguments)
{
    (void)work, (void)kernel, (void)grid, (void)arguments;
    return GPU_UNSUPPORTED;
}

const struct gpu_own_kernels gpu_own_none = {.is_here = is_here, .fit = fit, .launch = launch};
