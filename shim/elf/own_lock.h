/*
 * The shim's locks, which a signal handler does without. A handler may call a name of BLAS for the
 * first time while the thread that it has interrupted holds one of these: it would wait for ever.
 * The locks guard only caches: the handler looks things up again. (Blocking signals instead would
 * need a system call, which a sandbox may forbid.) A thread holds one of them at a time.
 */
#ifndef ACCEL_OWN_LOCK_H
#define ACCEL_OWN_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* Returns false, and locks nothing, if the calling thread already holds one. */
bool own_lock(pthread_mutex_t *lock);
void own_unlock(pthread_mutex_t *lock);

#endif
