/*
 * Runs a program with libaccel, and looks at it and its children when each ends: which program it
 * was, and what it had loaded. By ptrace(2).
 */
#ifndef ACCEL_TOOL_WATCH_H
#define ACCEL_TOOL_WATCH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { WATCH_MAX = 64 };

/* A program that processes ran, under libaccel or not. */
struct watch_program {
    char path[PATH_MAX];
    int processes;
    bool reached, first; /* libaccel was in it; the program that was started has ended as this */
};

/* A library that a program had loaded. */
struct watch_library {
    char path[PATH_MAX];
    const char *by;      /* the first program that had it */
    char past[PATH_MAX]; /* of BLAS: an object that calls it past libaccel; empty: none is seen */
};

struct watch {
    struct watch_program program[WATCH_MAX];
    struct watch_library blas[WATCH_MAX], cuda[WATCH_MAX];
    int programs, blases, cudas;
    bool is_watched; /* false: ptrace is not permitted here, and nothing was seen */
    int status;      /* of the program that was started, as waitpid() has it */
};

/* Runs the program to its end; its children may go on behind it. prepare(context) as in
 * preload_run(). Returns 0, or the errno if it cannot be started. */
int watch_run(struct watch *watch, char **program, const char *shim,
              void (*prepare)(const void *context), const void *context);

#endif
