#include "precision.h"

#include <stddef.h>

const char *const gpu_precision_names[GPU_PRECISIONS] = {"native", "emulated", "tf32", "bf16x9"};

const char *gpu_precision_needs(enum gpu_precision precision)
{
    static const char *const needs[GPU_PRECISIONS] = {
        NULL, "compute capability 8.0 and cuBLAS of CUDA 13.0 update 2", "compute capability 8.0",
        "compute capability 10.0 or 10.3 and cuBLAS 12.9"};
    return needs[precision];
}

bool gpu_precision_suits(enum gpu_precision precision, bool in_double)
{
    return precision == GPU_NATIVE || in_double == (precision == GPU_EMULATED);
}

enum gpu_precision gpu_precision_proposed(bool in_double)
{
    return in_double ? GPU_EMULATED : GPU_BF16X9;
}

bool gpu_precision_exists(enum gpu_precision precision, enum gpu_products products)
{
    return precision == GPU_NATIVE || products == GPU_GEMM || products == GPU_RANK_K ||
           (products == GPU_OTHERS && precision == GPU_TF32);
}

static int64_t up_to(int64_t size, int64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

int64_t gpu_emulation_bytes(int64_t m, int64_t n, int64_t k, int64_t batch, bool is_complex)
{
    const int64_t slices = (79 + 1) / 8, parts = is_complex ? 2 : 1, most = INT64_C(1) << 32;
    const int64_t rows = up_to(m, 1024), cols = up_to(n, 1024), depth = up_to(k, 128);
    const int64_t blocks = (k + 63) / 64, sums = (k + 8191) / 8192;
    int64_t inputs = (rows + cols) * depth * parts * slices + 4 * (rows + cols) * parts;
    int64_t result = 4 * rows * cols * parts * parts * slices;
    result = (result < most ? result : most) * sums;
    if (is_complex && result < 8 * m * n * parts * parts)
        result = 8 * m * n * parts * parts;
    const int64_t scan = 4 * (m * blocks + n * blocks + m * n) * parts;
    const int64_t all = (inputs + result > scan ? inputs + result : scan) * batch;
    return up_to(all + all / 4, 256) + (INT64_C(128) << 20);
}
