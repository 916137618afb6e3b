/*
 * Finds the libraries that a program calls: runs it with libaccel, which notes them
 * (dispatch/census.h).
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
    int width; /* bits of its INTEGER; 0: it is no BLAS */
};

/* A program that CUDA is left to (dispatch/fork_policy.h). */
struct program_held {
    char path[PATH_MAX];
    bool released; /* later on, it was not any more: the program has started CUDA itself */
};

struct program_libraries {
    struct program_library one[LIBRARIES_MAX], passed[LIBRARIES_MAX];
    struct program_held held[LIBRARIES_MAX];
    int count;     /* in one[]: those whose calls libaccel takes */
    int passed_on; /* in passed[]: others, of names that it knows */
    int helds;
    bool whole; /* none is missing: the program did not fail, nor call more than LIBRARIES_MAX */
};

/* In a process that becomes a program: has it note its calls in a file (a path), run all on the
 * CPU, and write its stdout to stderr. */
void program_note_calls(const void *file);

/* Reads that file. False with errno. */
bool program_read_calls(struct program_libraries *found, const char *file);

/* Runs the program and its children to their end, with its stdout on stderr. Says on stderr what is
 * wrong. False if nothing can be measured. */
bool program_run(struct program_libraries *found, char **program);

#endif
