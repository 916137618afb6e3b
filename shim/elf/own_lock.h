/*
 * The shim's locks, and signal handlers. A handler may call a name of BLAS for the first time while the thread that it has interrupted
 * holds one of these: waiting for it would be for ever. So it does without: what the lock guards is a store of what has been found, and is
 * found again. (Blocking signals instead would be a system call, which a sandbox may not have.) A thread holds one of them at a time.
 */
#ifndef ACCEL_OWN_LOCK_H
#define ACCEL_OWN_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* false, and nothing to give back: the calling thread holds one already. */
bool own_lock(pthread_mutex_t *lock);
void own_unlock(pthread_mutex_t *lock);

#endif
