/*
 * Finds the libraries that a program calls: runs it with libaccel, which notes them (dispatch/called.h).
 */
#ifndef ACCEL_TOOL_PROGRAM_H
#define ACCEL_TOOL_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "libraries.h"

/* A library that was called with several numbers of threads has an entry for each. */
struct program_library {
    char path[PATH_MAX];
    char symbol[64]; /* the first name that was called in it */
    int threads;
    int width; /* bits of INTEGER in that call; 0: it was none of BLAS */
};

struct program_libraries {
    struct program_library one[LIBRARIES_MAX];
    int count;
    bool whole; /* none is missing: the program did not fail, nor call more than LIBRARIES_MAX */
};

/* In a process that becomes a program: has it note its calls in a file (a path), run all on the CPU, and write its stdout to stderr. */
void program_note_calls(const void *file);

/* Reads that file. False with errno. */
bool program_read_calls(struct program_libraries *found, const char *file);

/* Runs the program and its children to their end, with its stdout on stderr. Says on stderr what is wrong. False if nothing can
 * be measured. */
bool program_run(struct program_libraries *found, char **program);

#endif
