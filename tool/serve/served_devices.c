#include "served_devices.h"

#include <stdatomic.h>
#include <stdio.h>

#include "device_places.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "tool/util/complain.h"
#include "tool/util/device_config.h"

enum { DEVICES_MOST = WIRE_DEVICES_MOST };
_Static_assert((int)DEVICES_MOST == (int)FAIR_DEVICES_MOST, "each has places");

static struct gpu_device *devices[DEVICES_MOST];
static atomic_int count;

/* ---- The start ---- */

/* Starts all there are. Returns how many; says why a further one cannot be had. */
static int start_all(struct gpu_device *started[DEVICES_MOST], const struct gpu_config *config,
                     char why[GPU_FAILURE_BYTES])
{
    int all = 0, share = 1;
    for (; all < share && all < DEVICES_MOST && (started[all] = gpu_start(config, why)); all++)
        share = gpu_info(started[0])->share;
    if (all > 0 && all < share && all < DEVICES_MOST)
        complain(0, "accel serve: no further GPU is used: %s\n", why);
    return all;
}

/* Clients decide by what they know of the first. One that is of another kind is taken all the same
 * until all have been started: else each start would find it again. */
static int keep_kind(struct gpu_device *const started[DEVICES_MOST], int all)
{
    int kept = 0;
    for (int i = 0; i < all; i++) {
        const struct gpu_info *const info = gpu_info(started[i]), *const first =
                                                                      gpu_info(started[0]);
        if (wire_is_of_kind(first, info)) {
            devices[kept++] = started[i];
            continue;
        }
        complain(0,
                 "accel serve: gpu%d is left out: %s with %.1f GB, and gpu%d is %s with %.1f GB\n",
                 info->index, info->name, (double)info->memory_bytes * 1e-9, first->index,
                 first->name, (double)first->memory_bytes * 1e-9);
        gpu_stop(started[i]);
    }
    return kept;
}

bool served_devices_start(void)
{
    struct gpu_device *started[DEVICES_MOST];
    struct accel_settings settings;
    char why[GPU_FAILURE_BYTES];
    settings_read_whole(&settings, NULL);
    complaints_say();
    struct gpu_config config = device_config(&settings);
    config.several = true;
    const int kept = keep_kind(started, start_all(started, &config, why));
    if (kept == 0)
        return complain(false, "accel serve: no GPU: %s\n", why);
    device_places_open(kept);
    atomic_store(&count, kept);
    return true;
}

/* ---- Those that are there ---- */

int served_devices_count(void)
{
    return atomic_load(&count);
}

struct gpu_device *served_devices_at(int i)
{
    return devices[i];
}

struct gpu_device *served_devices_first(void)
{
    const int all = served_devices_count();
    for (int i = 0; i < all; i++)
        if (!gpu_has_failure(devices[i]))
            return devices[i];
    return devices[0];
}

bool served_devices_have_failed(void)
{
    return served_devices_count() > 0 && gpu_has_failure(served_devices_first());
}

bool served_devices_leave_out(int i)
{
    const bool is_news = device_places_leave_out(i), others = !served_devices_have_failed();
    if (is_news && others)
        complain(0, "accel serve: gpu%d has failed, the others go on: %s\n",
                 gpu_info(devices[i])->index, gpu_failure(devices[i]));
    return others;
}

void served_devices_describe(struct wire_state *state, const uint64_t *user)
{
    const struct device_places_count places = device_places_count();
    state->waiting_small = places.waiting_small;
    state->waiting_large = places.waiting_large;
    state->running = places.running;
    state->devices = served_devices_count();
    for (int i = 0; i < state->devices; i++) {
        struct wire_device *const to = &state->device[i];
        *to = (struct wire_device){.index = gpu_info(devices[i])->index,
                                   .running = places.device[i].running,
                                   .processes = places.device[i].processes,
                                   .has_failed = gpu_has_failure(devices[i])};
        gpu_count_memory(devices[i], user, &to->device_bytes, &to->cached_bytes);
        state->device_bytes += to->device_bytes;
        state->cached_bytes += to->cached_bytes;
    }
}

void served_devices_stop(void)
{
    const int all = served_devices_count();
    for (int i = 0; i < all; i++)
        if (!gpu_has_failure(devices[i]))
            gpu_stop(devices[i]);
}
