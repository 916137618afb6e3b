#include "quarantine.h"

#include <stdatomic.h>

#include "base/output/message.h"
#include "base/text/text.h"
#include "devices.h"
#include "ops/op.h"

static uint32_t index_of_routine(const struct accel_routine *routine)
{
    return (uint32_t)(routine - accel_routines);
}

bool quarantine_add(struct quarantine *quarantine, const struct accel_routine *routine,
                    enum quarantine_reason reason)
{
    uint32_t i = index_of_routine(routine);
    uint64_t bit = (uint64_t)1 << i % 64;
    return i < QUARANTINE_WORDS * 64 &&
           !(atomic_fetch_or(&quarantine->bits[reason][i / 64], bit) & bit);
}

bool quarantine_has(const struct quarantine *quarantine, const struct accel_routine *routine,
                    enum quarantine_reason reason)
{
    uint32_t i = index_of_routine(routine);
    return i < QUARANTINE_WORDS * 64 &&
           (atomic_load_explicit(&quarantine->bits[reason][i / 64], memory_order_relaxed) >>
                i % 64 &
            1);
}

/* A name for messages of what computes in place of the device. */
static const char *name_instead(const struct dispatch_device *device,
                                const struct accel_routine *routine)
{
    const struct dispatch_device *other = devices_another(device, routine);
    return other ? other->name : "the CPU";
}

static void leave_routine(struct dispatch_device *device, const struct accel_routine *routine,
                          const char *failure)
{
    if (quarantine_add(&device->quarantine, routine, QUARANTINE_FAILED))
        accel_message("%s is left to %s from here on, %s goes on with other routines: %s",
                      routine->name, name_instead(device, routine), device->name, failure);
}

static void leave_lapack(struct dispatch_device *device, const struct accel_routine *routine,
                         const char *failure)
{
    bool news = false;
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_is_lapack(&accel_routines[i]) &&
            quarantine_add(&device->quarantine, &accel_routines[i], QUARANTINE_FAILED))
            news = true;
    if (news)
        accel_message("LAPACK is left to %s from here on, %s goes on with BLAS: %s",
                      name_instead(device, routine), device->name, failure);
}

static void leave_device(struct dispatch_device *device)
{
    const struct dispatch_device *other = devices_another(device, NULL);
    char instead[64];
    struct accel_text text;
    text_start(&text, instead, sizeof instead);
    text_string(&text, other                      ? other->name
                       : devices_may_grow(device) ? "another one is tried"
                                                  : "the CPU computes");
    text_string(&text, other ? " goes on" : "");
    text_end(&text);
    device_give_up(device, instead);
}

static void leave_what_failed(struct dispatch_device *device, const struct accel_routine *routine,
                              const struct gpu_host *host)
{
    switch (host->blame) {
    case GPU_BLAME_DEVICE:
        leave_device(device);
        break;
    case GPU_BLAME_LAPACK:
        leave_lapack(device, routine, host->failure);
        break;
    case GPU_BLAME_SERVER:
        device_lose_server(device, host->failure);
        break;
    case GPU_BLAME_ROUTINE:
        leave_routine(device, routine, host->failure);
        break;
    }
}

void quarantine_by_status(struct dispatch_device *device, const struct accel_call *call,
                          const struct gpu_host *host, enum gpu_status status)
{
    if (status == GPU_NO_MEMORY || status == GPU_SHORT_ELSE)
        oom_backoff_note(&device->oom_backoff, call);
    if (status == GPU_ERROR || status == GPU_FINISHED_ELSE)
        leave_what_failed(device, call->routine, host);
}
