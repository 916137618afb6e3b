/*
 * The end of the process, and threads that are inside CUDA's libraries, apart from each other.
 *
 * exit() runs the handlers that libraries have registered, newest first, and their destructors, beside whatever other threads do: a
 * thread that is inside such a library then uses what its handlers destroy. So each thread enters before it calls CUDA, and whoever runs
 * exit() waits, before the first of those handlers, until all have left; nobody enters after that. The libraries register their handlers
 * while they load and start, after ours (cuBLAS, cuBLASLt and cuSOLVER 13 through __cxa_atexit, as `objdump -T` shows), and a program's own
 * may reset the device: so each that is registered after ours is wrapped in one that waits first. Those of atexit(3), of which a program
 * may have many, need no memory for that, and none has more registrations than without libaccel.
 *
 * All functions are thread-safe. Nothing is told, and nobody waits, at _exit(), quick_exit() and abort(), which run no handlers of
 * libraries.
 */
#ifndef ACCEL_ENDING_H
#define ACCEL_ENDING_H

#include <stdbool.h>

/* How long exit() waits. A step that cannot be interrupted (a library, the driver, the context, a handle) takes a second at most on the
 * machines that we know of; a driver that hangs must not keep a program from its end. */
#define ENDING_MS 3000

/* Around each use of CUDA; within another pair they are nothing. false: the process ends, and nothing is to be left. */
bool ending_enter(void);
void ending_leave(void);

/* Whether the process ends. */
bool ending_has_begun(void);

/* exit() shall wait from here on; once CUDA is going to be opened. */
void ending_watch(void);

/* __cxa_atexit(3), where `real` is the C library's. */
typedef int ending_register_function(void (*function)(void *), void *argument, void *object);
int ending_register(ending_register_function *real, void (*function)(void *), void *argument,
                    void *object);

/* Around each dlclose(), also of CUDA's libraries: a library's handlers run where it goes, and that is no end of the process. */
void ending_before_close(void);
void ending_after_close(void);

/* In the child of a fork: no other thread is inside. */
void ending_fork_child(void);

#endif
