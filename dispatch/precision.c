#include "precision.h"

#include "base/output/message.h"
#include "dispatch/cost/cost.h"
#include "ops/op.h"

static void say_lacking(const struct gpu_info *info, enum gpu_precision precision)
{
    static atomic_uint said; /* as bits 1 << enum gpu_precision */
    const unsigned bit = 1u << precision;
    if (!(atomic_fetch_or(&said, bit) & bit))
        accel_message("ACCEL_PRECISION: gpu%d (%s) cannot compute in %s, which needs %s; native "
                      "precision is used",
                      info->index, info->name, gpu_precision_names[precision],
                      gpu_precision_needs(precision));
}

enum gpu_precision precision_asked(const struct accel_settings *settings,
                                   const struct accel_routine *routine)
{
    return (enum gpu_precision)settings->precision[routine - accel_routines];
}

enum gpu_precision precision_of(const struct accel_settings *settings,
                                const struct dispatch_device *device, const struct accel_call *call)
{
    const enum gpu_precision asked = precision_asked(settings, call->routine);
    const enum gpu_products products = accel_product_kind(call);
    if (asked == GPU_NATIVE || !gpu_precision_exists(asked, products))
        return GPU_NATIVE;
    const struct gpu_device *gpu = device_gpu(device);
    if (!gpu || gpu_info(gpu)->precisions[products] & 1u << asked)
        return asked;
    if (!(gpu_info(gpu)->precisions[GPU_GEMM] & 1u << asked))
        say_lacking(gpu_info(gpu), asked);
    return GPU_NATIVE;
}

enum gpu_precision precision_offered(const struct accel_settings *settings,
                                     const struct dispatch_device *device,
                                     const struct accel_call *call)
{
    const struct gpu_device *gpu = device_gpu(device);
    const enum gpu_precision proposed =
        gpu_precision_proposed(accel_is_double(call->routine->dtype));
    const enum gpu_products products = accel_product_kind(call);
    return gpu && gpu_info(gpu)->precisions[products] & 1u << proposed &&
                   precision_asked(settings, call->routine) == GPU_NATIVE &&
                   cost_precision_gain(atomic_load(&device->curves), proposed) >=
                       GPU_PRECISION_WORTH
               ? proposed
               : GPU_NATIVE;
}
