/*
 * The shim that programs are run with.
 */
#ifndef ACCEL_TOOL_PRELOAD_H
#define ACCEL_TOOL_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

/* Its whole path: the given one, or where given is NULL the one beside this program as it is built, or in the lib folder of
 * where it is installed. False where it is not there. */
bool preload_find(char path[PATH_MAX], const char *given);

/* Puts it in front of LD_PRELOAD. False without memory. */
bool preload_set(const char *shim);

/* Runs a program to its end with the shim in front of LD_PRELOAD; what the terminal sends is for the program alone. prepare: called
 * in the child, for its environment and files. Returns 0 and what waitpid() says of it, or the errno with which it cannot be
 * started. */
int preload_run(char **program, const char *shim, void (*prepare)(const void *context),
                const void *context, int *status);

/* Takes any libaccel.so out of LD_PRELOAD. */
void preload_remove(void);

#endif
