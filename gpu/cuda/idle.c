#define _GNU_SOURCE
#include "idle.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/thread/thread_spawn.h"

/* Milliseconds from one look at idle memory to the next. */
#define LOOK_MS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while the thread is in CUDA */
/* With the lock: the devices that the thread will look at again; whether it runs, and will look
 * again. */
static struct cuda_device *watched;
static bool running;

/* With the lock. Returns whether the device has still idle memory. A call that leaves a block idle
 * reads `watched` afterwards, and this looks for idle blocks after it clears `watched`: one of the
 * two sees the other. */
static bool look_at(struct cuda_device *device)
{
    struct gpu_scope scope;
    bool more = false, well = true;
    if (pool_has_idle(device)) {
        well = gpu_enter(device, &scope) == GPU_OK; /* fails if the process ends */
        if (well) {
            more = pool_give_back(device);
            gpu_leave(&scope);
        }
    }
    if (more)
        return true;
    atomic_store(&device->watched, false);
    if (!well || !pool_has_idle(device))
        return false;
    atomic_store(&device->watched, true);
    return true;
}

/* With the lock. */
static void look(void)
{
    struct cuda_device **at = &watched;
    while (*at)
        if (look_at(*at))
            at = &(*at)->next_watched;
        else
            *at = (*at)->next_watched;
    running = watched != NULL;
}

static void *run_idle_thread(void *unused)
{
    const struct timespec pause = {LOOK_MS / 1000, LOOK_MS % 1000 * 1000000};
    bool more = true;
    (void)unused;
    thread_spawn_begin("accel-idle");
    while (more) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        look();
        more = running;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* With the lock. */
static bool watch(struct cuda_device *device)
{
    if (atomic_load(&device->watched))
        return true;
    running = running || thread_spawn(run_idle_thread, NULL, 0);
    if (!running)
        return false;
    device->next_watched = watched;
    watched = device;
    atomic_store(&device->watched, true);
    return true;
}

void idle_watch(struct cuda_device *device)
{
    if (atomic_load(&device->watched))
        return;
    int saved = errno;
    pthread_mutex_lock(&lock);
    bool made = watch(device);
    pthread_mutex_unlock(&lock);
    if (!made)
        pool_trim(device);
    errno = saved;
}

void idle_forget(struct cuda_device *device)
{
    pthread_mutex_lock(&lock);
    struct cuda_device **at = &watched;
    while (*at && *at != device)
        at = &(*at)->next_watched;
    if (*at)
        *at = device->next_watched;
    atomic_store(&device->watched, false);
    pthread_mutex_unlock(&lock);
}
