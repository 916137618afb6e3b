/*
 * Runs a program three times with the same input: without libaccel, with another number of BLAS
 * threads, with libaccel. A folder holds what the runs leave until runs_close(). One at a time in a
 * process, whose signals it handles.
 */
#ifndef ACCEL_TOOL_RUNS_H
#define ACCEL_TOOL_RUNS_H

#include <limits.h>

#include "compare.h"

struct runs {
    char **program; /* a NULL ends its arguments */
    const char *shim;
    int threads[2]; /* BLAS threads of the two runs without libaccel; 0: runs_open() chooses */
    char folder[PATH_MAX]; /* this user's alone */
    char input[PATH_MAX], output[RUNS][PATH_MAX], decisions[PATH_MAX];
    double seconds[RUNS];
    int made; /* runs that have ended */
};

/* Makes the folder in TMPDIR, and reads stdin to its end for the program, unless it is a terminal.
 * From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT end the program, not this process: see
 * runs_signal(). False with a message on stderr. */
bool runs_open(struct runs *runs);

/* Runs the program to its end. Returns its exit status; 128 and the number of the signal that ended
 * it; 127 if it cannot be started; -1 if this process cannot start another. */
int runs_program(struct runs *runs, enum run which);

/* Returns the signal that asks this process to end; 0: none came. */
int runs_signal(void);

/* Removes the folder. If a signal came, ends this process by it. */
void runs_close(struct runs *runs);

#endif
