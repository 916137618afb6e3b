/* Threads of libaccel's own. */
#ifndef ACCEL_QUIET_THREAD_H
#define ACCEL_QUIET_THREAD_H

#include <stdbool.h>

/* Starts a detached thread that takes none of the program's signals, nor do the threads that it starts. False where there can
 * be none. Thread-safe. */
bool quiet_thread(void *(*run)(void *unused));

#endif
