/*
 * Runs programs with libaccel.so preloaded.
 */
#ifndef ACCEL_TOOL_PRELOAD_H
#define ACCEL_TOOL_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

/* Finds libaccel.so: the given path, or (NULL) beside this program, where `make install` puts it as seen from there, or in libdir.
 * False if it is not there. */
bool preload_find(char path[PATH_MAX], const char *given);

/* Puts the shim in front of LD_PRELOAD, in place of every libaccel.so there; all others stay. In front, because a BLAS that is
 * preloaded would get the calls before it. False if memory runs out. */
bool preload_set(const char *shim);

/* Runs a program to its end, with the shim in front of LD_PRELOAD. This process stands by meanwhile (stand_by.h). The child calls prepare(context) first, for its environment and files. Returns 0 and
 * waitpid()'s status, or the errno if the program cannot be started. */
int preload_run(char **program, const char *shim, void (*prepare)(const void *context),
                const void *context, int *status);

/* Takes every libaccel.so out of LD_PRELOAD. */
void preload_remove(void);

#endif
