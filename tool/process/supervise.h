/*
 * Stands by a program that this process has started, so that it looks as if the program had taken
 * this process's place: it stops with the program, passes signals on, and ends as the program has
 * ended. One at a time in a process.
 */
#ifndef ACCEL_TOOL_STAND_BY_H
#define ACCEL_TOOL_STAND_BY_H

#include <signal.h>
#include <sys/types.h>

/* The process's signals as they were. */
struct supervised {
    sigset_t mask;
    struct sigaction child;
    pid_t self;
};

/* Holds the signals back; before fork(). */
void supervise_begin(struct supervised *before);

/* In the child: gives it the signals that this process had, and makes it end if this process is
 * killed. */
void supervise_child(const struct supervised *before);

/* Waits for the child's end, whose waitpid() status it sets, and gives this process its signals
 * back. A signal that comes to this process alone goes to the child, once: another process's, an
 * alarm's, and of a terminal that is gone that for a session's leader. A signal by a terminal's
 * keys goes to both anyway. Returns the first of SIGINT, SIGQUIT, SIGTERM and SIGHUP that came to
 * this process, whether or not it went to the child too; 0: none. */
int supervise_wait(const struct supervised *before, pid_t child, int *status);

/* Ends this process by the signal that has ended the child, or returns the child's exit status. */
int supervise_end(int status);

#endif
