/*
 * The libraries that a program has: it is run with the shim, which notes those that it calls (dispatch/called.h).
 */
#ifndef ACCEL_TOOL_PROGRAM_H
#define ACCEL_TOOL_PROGRAM_H

#include <stdbool.h>

#include "libraries.h"

struct program_library {
    const char *path;
    const char *symbol; /* the first name that was called in it */
    int threads; /* a library that was called with several numbers of threads comes several times */
};

struct program_libraries {
    struct program_library one[LIBRARIES_MAX];
    int count;
    bool whole;    /* these are all: the program has not failed, nor called more */
    char *records; /* what they point into */
};

/* Runs the program to its end, with its stdout on stderr, and its children with it. Says on stderr what is wrong; false where
 * nothing is left to be measured. */
bool program_run(struct program_libraries *found, char **program);
void program_free(struct program_libraries *found);

#endif
