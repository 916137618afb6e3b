#include "in_place.h"

#include "ops/names.h"

enum { SMALLEST = 512, LARGEST = 4096 };

double in_place_measure(struct gpu_device *device, struct workload_memory *memory)
{
    const struct accel_routine *dgemv = accel_name_called("dgemv_");
    struct workload workload;
    struct timing timing = {.warm = 1, .most = 3};
    int64_t order = LARGEST;
    if (!gpu_info(device)->host_page_tables || !dgemv)
        return 0;
    for (; order >= SMALLEST; order /= 2) {
        const int64_t size[ACCEL_DIMENSIONS] = {order, order};
        if (workload_make(&workload, memory, dgemv, size, NULL))
            break;
    }
    while (order >= SMALLEST && timing_add(&timing, workload_in_place_ms(&workload, device)))
        ;
    return timing.best_ms > 0 ? (double)(order * order) * sizeof(double) / timing.best_ms * 1e-6
                              : 0;
}
