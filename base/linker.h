/*
 * The dynamic linker's work and the program's forks, apart from each other.
 *
 * glibc gives a forked child the linker as another thread has left it in the middle of its work: in 2.36, dl_iterate_phdr() in
 * such a child waits for a lock without an owner (dl_load_write_lock is not made anew by fork(), as dl_load_lock is), and
 * dlopen() finds lists half made. So a fork waits until libaccel's own work with the linker is done, and that does not begin
 * while a fork is under way. No lock is held over either: each waits for a bounded time, for what it waits for may itself need
 * what the other has (an allocator's lock, or the linker's).
 *
 * All functions are thread-safe, and leave errno alone.
 */
#ifndef ACCEL_LINKER_H
#define ACCEL_LINKER_H

#include <stdbool.h>

/* Around each use of dlopen(); within another pair they are nothing. */
void linker_enter(void);
void linker_leave(void);

/* The same around each use of dl_iterate_phdr(). The second does not wait: false, and nothing to leave, while a fork is under
 * way. */
void linker_enter_iteration(void);
bool linker_enter_iteration_now(void);
void linker_leave_iteration(void);

/* Waits for the forks that are under way, for 1 s at most, after a library was loaded and before it is called: if it has asked for
 * pthread_atfork(3) since a fork began, that fork will not call it, and the child would find a lock taken that is held now. */
void linker_await_forks(void);

/* For pthread_atfork(3). Before a fork: waits for the other threads' work; for 10 ms, and after that for no more than 1 s while
 * the linker maps what it loads, as maps() tells, or a thread iterates, which takes longer where it is off its processor: the rest
 * of a load does a child no harm. */
void linker_before_fork(bool (*maps)(void));
/* Whether there has been a fork in this process, or the one it is a child of. */
bool linker_has_forked(void);

void linker_after_fork(void);
void linker_fork_child(void);

#endif
