/* Threads of libaccel's own. */
#ifndef ACCEL_QUIET_THREAD_H
#define ACCEL_QUIET_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Runs run(context) on a detached thread with all signals blocked, also for the threads that it
 * starts. stack_bytes: 0 for the program's default. False if it cannot be started. Thread-safe. */
bool quiet_thread(void *(*run)(void *context), void *context, size_t stack_bytes);

/* The thread calls this first: gives it a name of at most 15 characters, and keeps it from being
 * cancelled while it has a lock. */
void quiet_thread_begin(const char *name);

#endif
