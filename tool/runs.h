/*
 * Running a program several times with the same input: without the shim, with another number of BLAS threads, with the shim.
 * What the runs leave is in a folder of their own until the end. One at a time in a process, as signals are the process's.
 */
#ifndef ACCEL_TOOL_RUNS_H
#define ACCEL_TOOL_RUNS_H

#include <limits.h>

#include "compare.h"

struct runs {
    char **program; /* NULL behind the last argument */
    const char *shim;
    int threads[2];        /* of the two runs without the shim; 0: as the environment says */
    char folder[PATH_MAX]; /* private */
    char input[PATH_MAX], output[RUNS][PATH_MAX], decisions[PATH_MAX];
    double seconds[RUNS];
    int made; /* runs that have come to their end */
};

/* Makes the folder in TMPDIR, and reads what the program is to be given on its stdin, unless that is a terminal. Signals that
 * would end this process (SIGINT, SIGTERM, SIGHUP, SIGQUIT) end the program from here on: see runs_signal(). False: it is
 * said on stderr why not. */
bool runs_open(struct runs *runs);

/* Runs the program to its end. Returns its exit status, 128 and the signal's number where one ended it, 127 where it cannot be
 * run; -1 where this process cannot start another. */
int runs_program(struct runs *runs, enum run which);

/* The signal that this process is asked to end by; 0: none. */
int runs_signal(void);

/* Removes the folder. Where a signal was asked for, ends by it. */
void runs_close(struct runs *runs);

#endif
