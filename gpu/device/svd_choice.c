/* Chooses among a device's algorithms for singular values. */
#include <stdatomic.h>

#include "device.h"

const char *const gpu_svd_names[GPU_SVDS] = {
    [GPU_SVD_GESVD] = "gesvd", [GPU_SVD_GESVDP] = "gesvdp", [GPU_SVD_GESVDJ] = "gesvdj"};

int gpu_svd_octave(int64_t order)
{
    int octave = order > 1 ? 63 - __builtin_clzll((unsigned long long)order) : 0;
    return octave < GPU_SVD_OCTAVES ? octave : GPU_SVD_OCTAVES - 1;
}

void gpu_svd_choose(struct gpu_device *device, enum accel_dtype dtype, bool vectors, int octave,
                    enum gpu_svd algorithm)
{
    atomic_store_explicit(&device->svd[dtype][vectors][octave], (unsigned char)algorithm,
                          memory_order_relaxed);
}

enum gpu_svd gpu_svd_chosen(const struct gpu_device *device, enum accel_dtype dtype, bool vectors,
                            int64_t order)
{
    return (enum gpu_svd)atomic_load_explicit(&device->svd[dtype][vectors][gpu_svd_octave(order)],
                                              memory_order_relaxed);
}
