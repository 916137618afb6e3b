#include "ceilings.h"

#include <math.h>
#include <stdio.h>

#include "ops/op.h"
#include "ops/typical.h"

/* Returns the best rate that was measured of a product; 0: none was. */
static double best_gflops(const struct calibration_section *section, enum accel_dtype dtype,
                          bool device)
{
    const struct accel_routine *product = accel_sample_of(ACCEL_SAMPLE_PRODUCT, dtype);
    struct model_curve curve = {.device = device};
    double best = 0;
    if (!product || !calibration_section_curve(section, product, &curve))
        return 0;
    for (int i = 0; i < curve.points; i++) {
        int64_t size[ACCEL_DIMENSIONS];
        struct accel_call call;
        struct model_work work;
        for (int j = 0; j < ACCEL_DIMENSIONS; j++)
            size[j] = llround(exp2((double)curve.point[i].place[j]));
        shape_typical(&call, product, size);
        model_work_of(&call, curve.device, &work);
        const double ms = model_point_ms(&curve, &curve.point[i], &work);
        best = fmax(best, ms > 0 ? accel_flops(&call) / ms * 1e-6 : 0);
    }
    return best;
}

static void set_rates(double gflops[2], const struct calibration_section *section, bool device)
{
    gflops[0] = best_gflops(section, ACCEL_FLOAT32, device);
    gflops[1] = best_gflops(section, ACCEL_FLOAT64, device);
}

static void find_cpu(struct ceilings *ceilings, struct calibration rest)
{
    char prefix[CALIBRATION_KEY_BYTES];
    struct calibration_section section;
    struct calibration_line header;
    calibration_cpu_prefix(prefix);
    while (calibration_next_section(&rest, prefix, &header, &section)) {
        double gflops[2];
        set_rates(gflops, &section, false);
        if (gflops[1] <= ceilings->cpu_gflops[1] && *ceilings->cpu)
            continue;
        ceilings->cpu_gflops[0] = gflops[0];
        ceilings->cpu_gflops[1] = gflops[1];
        snprintf(ceilings->cpu, sizeof ceilings->cpu, "%.*s", (int)header.length, header.at);
    }
}

void ceilings_find(struct ceilings *ceilings, const struct calibration *file, const char *gpu_name)
{
    struct calibration rest = *file;
    struct calibration_section section;
    *ceilings = (struct ceilings){.up_gbps = 0};
    find_cpu(ceilings, *file);
    if (gpu_name ? calibration_find_gpu(file, gpu_name, &section)
                 : calibration_next_gpu(&rest, ceilings->gpu, &section)) {
        if (gpu_name)
            snprintf(ceilings->gpu, sizeof ceilings->gpu, "%s", gpu_name);
        set_rates(ceilings->gpu_gflops, &section, true);
        ceilings->up_gbps = calibration_section_value(&section, "up_gbps");
    } else {
        *ceilings->gpu = 0;
    }
}
