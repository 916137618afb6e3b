#include "own_lock.h"

#include <stdatomic.h>

/* Read by handlers of this thread: true from before the lock is taken until after it is given
 * back. */
static _Thread_local volatile bool held __attribute__((tls_model("initial-exec")));

bool own_lock(pthread_mutex_t *lock)
{
    if (held)
        return false;
    held = true;
    atomic_signal_fence(memory_order_seq_cst);
    pthread_mutex_lock(lock);
    return true;
}

void own_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    atomic_signal_fence(memory_order_seq_cst);
    held = false;
}
