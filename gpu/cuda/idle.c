#define _GNU_SOURCE
#include "idle.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "pool.h"
#include "base/quiet_thread.h"

/* From one look at what lies idle to the next. */
#define LOOK_MS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while the thread is in CUDA */
static atomic_bool running; /* there is a thread, and it will look again */

/* With the lock. Whether there is more to wait for. A call that lets something lie looks for `running` after that, and this looks
 * for something idle after `running` is taken back: one of the two sees the other. */
static bool look(void)
{
    struct gpu_scope scope;
    bool more = false, well = true;
    if (pool_has_idle()) {
        well = gpu_enter(&scope) == GPU_OK; /* not while the process ends */
        if (well) {
            more = pool_give_back();
            gpu_leave(&scope);
        }
    }
    if (more)
        return true;
    atomic_store(&running, false);
    if (!well || !pool_has_idle())
        return false;
    atomic_store(&running, true);
    return true;
}

static void *run_thread(void *unused)
{
    const struct timespec pause = {LOOK_MS / 1000, LOOK_MS % 1000 * 1000000};
    bool more = true;
    int none;
    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &none);
    pthread_setname_np(pthread_self(), "accel-idle");
    while (more) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        more = look();
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

void idle_watch(void)
{
    if (atomic_load(&running))
        return;
    int saved = errno;
    pthread_mutex_lock(&lock);
    bool made = atomic_load(&running) || quiet_thread(run_thread);
    atomic_store(&running, made);
    pthread_mutex_unlock(&lock);
    if (!made)
        pool_trim();
    errno = saved;
}

void idle_await(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}
