/*
 * Keeps our use of the dynamic linker and the program's forks apart.
 *
 * A forked child gets the linker as another thread left it in the middle of its work. In glibc 2.36
 * dl_iterate_phdr() in such a child waits for a lock that has no owner (fork() resets dl_load_lock,
 * but not dl_load_write_lock), and dlopen() finds half-made lists. So a fork waits until libaccel's
 * own work with the linker is done, and that work does not begin during a fork. Both wait for a
 * bounded time and hold no lock: each may need a lock that the other holds (the allocator's, or the
 * linker's).
 *
 * All functions are thread-safe and keep errno.
 */
#ifndef ACCEL_LINKER_H
#define ACCEL_LINKER_H

#include <stdbool.h>

/* Call these around each dlopen(). A pair within a pair does nothing. */
void linker_enter(void);
void linker_leave(void);

/* Call these around each dl_iterate_phdr(). linker_enter_iteration_now() does not wait: during a
 * fork it returns false, and there is nothing to leave. */
void linker_enter_iteration(void);
bool linker_enter_iteration_now(void);
void linker_leave_iteration(void);

/* Waits at most 1 s for running forks. Call it after loading a library and before calling it: a
 * fork that began before the library's pthread_atfork(3) does not run that handler, and the child
 * would find the library's locks taken. */
void linker_await_forks(void);

/* For pthread_atfork(3). Waits for other threads' work with the linker: 10 ms, and up to 1 s as
 * long as the linker maps a library (maps() returns true) or a thread iterates. The rest of a load
 * does no harm to a child. */
void linker_before_fork(bool (*maps)(void));
/* The same in the parent, which lets that work go on, and in the child, where no other thread is at
 * work. */
void linker_after_fork(void);
void linker_fork_child(void);

/* Whether this process or its parent has forked. */
bool linker_has_forked(void);

#endif
