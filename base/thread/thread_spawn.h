/* Threads of libaccel's own. */
#ifndef ACCEL_THREAD_SPAWN_H
#define ACCEL_THREAD_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

/* Runs run(context) on a detached thread with all signals blocked, also for the threads that it
 * starts. stack_bytes: 0 for the program's default. False if it cannot be started. Thread-safe. */
bool thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes);

/* The thread calls this first: gives it a name of at most 15 characters, and keeps it from being
 * cancelled while it has a lock. */
void thread_spawn_begin(const char *name);

#endif
