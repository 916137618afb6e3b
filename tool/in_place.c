#include "in_place.h"

#include <math.h>

#include "ops/names.h"

enum { SMALLEST = 512, LARGEST = 4096, RUNS = 4 }; /* the first run warms up */

double in_place_measure(struct gpu_device *device, struct workload_memory *memory)
{
    const struct accel_routine *dgemv = accel_name_called("dgemv_");
    struct workload workload;
    double least = INFINITY;
    int64_t order = LARGEST;
    if (!gpu_info(device)->host_page_tables || !dgemv)
        return 0;
    for (; order >= SMALLEST; order /= 2) {
        const int64_t size[ACCEL_DIMENSIONS] = {order, order};
        if (workload_make(&workload, memory, dgemv, size, NULL))
            break;
    }
    for (int run = 0; order >= SMALLEST && run < RUNS; run++) {
        const double ms = workload_in_place_ms(&workload, device);
        if (!(ms > 0))
            return 0;
        if (run > 0)
            least = fmin(least, ms);
    }
    return isinf(least) ? 0 : (double)(order * order) * sizeof(double) / least * 1e-6;
}
