#include "kernels.h"

static const struct accel_complex one = {1, 0};

bool kernels_fit(const struct gpu_work *work, const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if (!gpu_kernels(work)->takes(call->blas.size[i]))
            return false;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (gpu_in_place(&call->span[i]) && !gpu_kernels(work)->takes(call->span[i].ld))
            return false;
    return true;
}

enum gpu_status kernels_zeros(struct gpu_work *work, int64_t count, gpu_address *zeros)
{
    const int64_t bytes = count * (int64_t)accel_dtype_size(work->call->routine->dtype);
    const enum gpu_status status = gpu_memory(work)->take(work, bytes, zeros);
    return status == GPU_OK ? gpu_memory(work)->zero(work, *zeros, bytes) : status;
}

enum gpu_status kernels_scale(struct gpu_work *work, int64_t m, int64_t n,
                              struct accel_complex beta, gpu_address zeros, struct dmat c)
{
    const struct dmat column = {zeros, m}, row = {zeros, 1};
    return gpu_kernels(work)->gemm(work, 'N', 'N', m, n, 1, one, column, row, beta, c);
}

enum gpu_status kernels_scale_triangle(struct gpu_work *work, bool hermitian, char uplo, int64_t n,
                                       struct accel_complex beta, gpu_address zeros, struct dmat c)
{
    const struct dmat column = {zeros, n};
    return gpu_kernels(work)->syrk(work, hermitian, uplo, 'N', n, 1, one, column, beta, c);
}
