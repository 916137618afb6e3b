#include "precision.h"

#include "base/say.h"
#include "ops/op.h"

static void say_lacking(const struct gpu_info *info, enum gpu_precision precision)
{
    static atomic_uint said; /* as bits 1 << enum gpu_precision */
    const unsigned bit = 1u << precision;
    if (!(atomic_fetch_or(&said, bit) & bit))
        accel_say("ACCEL_PRECISION: gpu%d (%s) cannot compute in %s, which needs %s; native "
                  "precision is used",
                  info->index, info->name, gpu_precision_names[precision],
                  gpu_precision_needs(precision));
}

enum gpu_precision precision_of(const struct accel_settings *settings,
                                const struct dispatch_device *device, const struct accel_call *call)
{
    if (!accel_has_precisions(call))
        return GPU_NATIVE;
    const enum gpu_precision asked = (enum gpu_precision)settings->precision[call->routine->dtype];
    const struct gpu_device *gpu = device_gpu(device);
    if (!gpu || gpu_info(gpu)->precisions & 1u << asked)
        return asked;
    say_lacking(gpu_info(gpu), asked);
    return GPU_NATIVE;
}
