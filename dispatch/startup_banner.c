#include "startup_banner.h"

#include <string.h>

#include "base/output/message.h"
#include "base/text/text.h"
#include "dispatch/cost/cost.h"
#include "report/banner.h"
#include "report/report.h"

static const struct accel_settings *settings;
static char precision[40]; /* constant after the start */

void startup_banner_start(const struct accel_settings *with)
{
    struct accel_text text;
    settings = with;
    text_start(&text, precision, sizeof precision);
    for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++) {
        if (!memchr(settings->precision, i, sizeof settings->precision))
            continue;
        text_string(&text, text.length ? "," : "");
        text_string(&text, gpu_precision_names[i]);
    }
    if (!text.length)
        text_string(&text, gpu_precision_names[GPU_NATIVE]);
    text_end(&text);
}

void startup_banner_no_gpu(const char *why)
{
    const bool logs = settings->log != ACCEL_LOG_OFF;
    if (logs)
        accel_message("no GPU is used: %s", why);
    banner_no_gpu(why, logs);
}

void startup_banner_device(const struct dispatch_device *device)
{
    const enum device_state state = device_state(device);
    if (settings->policy == ACCEL_POLICY_CPU)
        banner_no_gpu(settings->devices.kind == ACCEL_DEVICES_NONE ? "ACCEL_DEVICES=none"
                                                                   : "ACCEL_POLICY=cpu",
                      false);
    else if (state == DEVICE_READY)
        banner_gpu(gpu_info(device_gpu(device)), cost_figures_of(atomic_load(&device->curves)),
                   device->start_ms);
    else if (state == DEVICE_FORKED)
        banner_no_gpu("the process that this one was forked from uses CUDA, which does not survive "
                      "a fork",
                      false);
    else if (state == DEVICE_ABSENT && device_has_failure(device))
        banner_no_gpu(device_failure(device), settings->log != ACCEL_LOG_OFF);
}

void startup_banner_process(const struct dispatch_device *device,
                            const struct dispatch_library *library, int threads)
{
    if (!report_is_on() || !banner_lacks_program())
        return;
    const struct banner_program program = {
        .precision = precision,
        .cpu_path = library ? library->file : NULL,
        .cpu_threads = library ? threads : 0,
        .cpu_kernels = library ? library->kernels_name : NULL,
        .cpu_is_slow = library && library->kernels != KERNELS_TUNED,
        .figures = library ? cost_figures_of_cpu(library, threads) : (struct banner_figures){0}};
    banner_program(&program);
    startup_banner_device(device);
}
