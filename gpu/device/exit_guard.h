/*
 * Keeps the process's end apart from threads that are inside CUDA's libraries.
 *
 * exit() runs the handlers that libraries have registered, newest first, and their destructors,
 * while other threads run: a thread that is inside such a library then uses what its handlers
 * destroy. So each thread enters before it calls CUDA, and whoever runs exit() waits, before the
 * first of those handlers, until all have left; nobody enters after that. The libraries register
 * their handlers while they load and start, after ours (cuBLAS, cuBLASLt and cuSOLVER 13 through
 * __cxa_atexit, as `objdump -T` shows), and a program's own may reset the device: so each handler
 * that is registered after ours is wrapped in one that waits first. Those of atexit(3), which may
 * be many, need no memory for that, and no program has more registrations than without libaccel.
 *
 * All functions are thread-safe. Nobody waits at _exit(), quick_exit() and abort(), which run no
 * handlers of libraries.
 */
#ifndef ACCEL_EXIT_GUARD_H
#define ACCEL_EXIT_GUARD_H

#include <stdbool.h>

/* How long exit() waits, in milliseconds. A step that cannot be interrupted (to open a library, the
 * driver, a context, a handle) takes a second at most on the machines that we know of; a driver
 * that hangs must not keep a program from its end. */
#define ENDING_MS 3000

/* Enclose each use of CUDA; an inner pair does nothing. exit_guard_enter() returns false if the
 * process ends: then CUDA must not be used, and exit_guard_leave() not be called. */
bool exit_guard_enter(void);
void exit_guard_leave(void);

/* Enclose a call that may use CUDA, from before that is decided; an inner pair does nothing. exit()
 * waits for it, too: a call that has waited for CUDA in vain is computed by its library, which
 * exit() would take down meanwhile. Such a call is still held while its library computes, and only
 * such a call. The end of a thread that has been cancelled within a call ends its hold; so does its
 * next call that is outermost, inside no other one of the thread's, if it has left the one before
 * by longjmp(3). */
void exit_guard_hold(bool outermost);
void exit_guard_release(void);

/* Returns whether the process has begun to end. */
bool exit_guard_has_begun(void);

/* Makes exit() wait from here on. Call it before CUDA is opened. */
void exit_guard_watch(void);

/* Does what __cxa_atexit(3) does; `real` is the C library's. */
typedef int exit_guard_register_function(void (*function)(void *), void *argument, void *object);
int exit_guard_register(exit_guard_register_function *real, void (*function)(void *),
                        void *argument, void *object);

/* Enclose each dlclose(), also of CUDA's libraries: a library's handlers then run though the
 * process does not end. */
void exit_guard_before_close(void);
void exit_guard_after_close(void);

/* Tells it in the child of a fork, where no other thread is inside. */
void exit_guard_fork_child(void);

#endif
