#define _GNU_SOURCE
#include "devices.h"

#include <sys/mman.h>

#include "base/thread/forks.h"

static struct dispatch_device first;
static struct dispatch_device *others; /* DEVICES_MOST - 1; NULL: this process uses one device */

static bool may_be_several(const struct accel_devices *devices)
{
    return devices->kind == ACCEL_DEVICES_ALL ||
           (devices->kind == ACCEL_DEVICES_LIST && devices->count > 1);
}

void devices_prepare(const struct accel_settings *settings, const struct accel_ranks *ranks)
{
    device_prepare(settings, ranks);
    if (!may_be_several(&settings->devices))
        return;
    /* Pages are there once they are written to. Without memory for them, one device serves. */
    void *memory = mmap(NULL, (DEVICES_MOST - 1) * sizeof *others, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        others = memory;
}

int devices_count(void)
{
    const struct gpu_device *gpu = others ? device_gpu(&first) : NULL;
    const int share = gpu ? gpu_info(gpu)->share : 1;
    return share < DEVICES_MOST ? share : DEVICES_MOST;
}

struct dispatch_device *devices_at(int i)
{
    return i == 0 ? &first : &others[i - 1];
}

bool devices_are_inherited(void)
{
    const int count = devices_count();
    for (int i = 0; i < count; i++)
        if (device_is_inherited(devices_at(i)))
            return true;
    return false;
}

struct dispatch_device *devices_first(void)
{
    const int count = devices_count();
    for (int i = 0; i < count; i++)
        if (!device_state_is_over(device_state(devices_at(i))))
            return devices_at(i);
    return &first;
}

const struct dispatch_device *devices_another(const struct dispatch_device *device,
                                              const struct accel_routine *routine)
{
    const int count = devices_count();
    for (int i = 0; i < count; i++) {
        const struct dispatch_device *const other = devices_at(i);
        if (other != device && device_state(other) == DEVICE_READY &&
            !(routine && quarantine_has(&other->quarantine, routine, QUARANTINE_FAILED)))
            return other;
    }
    return NULL;
}

bool devices_may_grow(const struct dispatch_device *device)
{
    const int count = devices_count();
    for (int i = 0; i < count; i++)
        if (devices_at(i) != device && device_state_is_open(device_state(devices_at(i))))
            return true;
    return false;
}

struct dispatch_device *devices_of_thread(void)
{
    static atomic_uint threads;
    /* 0: it has none yet. */
    static _Thread_local unsigned number __attribute__((tls_model("initial-exec")));
    const unsigned count = (unsigned)devices_count();
    if (count == 1)
        return &first;
    if (number == 0)
        number = atomic_fetch_add(&threads, 1) % DEVICES_MOST + 1;
    struct dispatch_device *mine = devices_at((int)((number - 1) % count));
    return device_state_is_over(device_state(mine)) ? devices_first() : mine;
}

bool devices_are_borrowed(void)
{
    const int count = devices_count();
    bool borrowed = false;
    for (int i = 0; i < count && !borrowed; i++)
        borrowed = device_is_borrowed(devices_at(i));
    return borrowed;
}

static void leave_devices(void)
{
    const int count = devices_count();
    bool any_begun = false; /* CUDA's driver is one for all devices */
    for (int i = 0; i < count; i++)
        any_begun = any_begun || device_is_begun(devices_at(i));
    for (int i = 0; i < count; i++)
        device_fork_child(devices_at(i), any_begun);
}
FORKS_CHILD(leave_devices);
