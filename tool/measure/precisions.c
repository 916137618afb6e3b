#include "precisions.h"

#include "ops/op.h"

enum { SMALLEST = 256, LARGEST = 4096 };
/* A product that takes so long in native precision tells the rate. */
#define ENOUGH_MS 2.0

/* Returns the least milliseconds of some products of this order on the device; negative if they
 * fail, or are not in this precision. */
static double product_ms(struct gpu_device *device, struct workload_memory *memory,
                         const struct accel_routine *routine, int64_t order,
                         enum gpu_precision precision)
{
    const int64_t size[ACCEL_DIMENSIONS] = {order, order, order};
    struct workload workload;
    struct timing timing = {.warm = 1, .most = 3};
    if (!workload_make(&workload, memory, routine, size, NULL))
        return -1;
    while (timing_add(&timing, workload_compute_ms(&workload, device, precision)))
        ;
    return timing.best_ms;
}

struct precision_gains precisions_measure(struct gpu_device *device, struct workload_memory *memory)
{
    struct precision_gains gains = {{0}};
    for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++) {
        const enum gpu_precision precision = (enum gpu_precision)i;
        const bool in_double = gpu_precision_suits(precision, true);
        const struct accel_routine *routine =
            accel_sample_of(ACCEL_SAMPLE_PRODUCT, in_double ? ACCEL_FLOAT64 : ACCEL_FLOAT32);
        double native = -1;
        int64_t order = SMALLEST / 2;
        if (!(gpu_info(device)->precisions[GPU_GEMM] & 1u << precision))
            continue;
        while (order < LARGEST && native < ENOUGH_MS) {
            const double ms = product_ms(device, memory, routine, 2 * order, GPU_NATIVE);
            if (ms < 0) /* no memory for more */
                break;
            native = ms;
            order *= 2;
        }
        const double other =
            native > 0 ? product_ms(device, memory, routine, order, precision) : -1;
        if (other > 0)
            gains.gain[i] = native / other;
    }
    return gains;
}
