/*
 * Which of a process's objects the dynamic linker has bound to a library past libaccel: opened with
 * RTLD_DEEPBIND, or in a namespace of their own (dlmopen).
 */
#ifndef ACCEL_TOOL_BOUND_H
#define ACCEL_TOOL_BOUND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A part of a file that a process has mapped. */
struct bound_mapping {
    uint64_t from, to, offset; /* addresses, and where in the file that is */
    char path[PATH_MAX];
};

/* Opens the list of them; NULL if it cannot be read. The caller closes it. */
FILE *bound_maps(pid_t pid);

/* Reads the next one. False at the list's end. */
bool bound_next(FILE *maps, struct bound_mapping *mapping);

/* Gets the path of an object, other than the library itself, whose slot for a name of BLAS or
 * LAPACK has an address in the library: if possible, of one that is no such library, too. Empty:
 * there is none, or the process cannot be read. The process is stopped (ptrace). A slot that is
 * bound at the first call is seen once that has been made. */
void bound_past(char object[PATH_MAX], pid_t pid, const char *library);

#endif
