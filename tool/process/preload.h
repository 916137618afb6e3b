/*
 * Runs programs with libaccel.so preloaded.
 */
#ifndef ACCEL_TOOL_PRELOAD_H
#define ACCEL_TOOL_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

/* Finds libaccel.so: the given path, or (NULL) beside this program, where `make install` puts it as
 * seen from there, or in libdir. Returns NULL, or what is wrong: preload_missing, or another
 * constant that goes on behind the path, which is set then. */
const char *preload_find(char path[PATH_MAX], const char *given);
extern const char preload_missing[];

/* Says on stderr what preload_find() returned, as the command's ("accel run"). Returns `status`. */
int preload_complain(int status, const char *command, const char *given, const char *path,
                     const char *wrong);

/* Puts the shim in front of LD_PRELOAD, in place of every libaccel.so there; all others stay. In
 * front, because a BLAS that is preloaded would get the calls before it. By a name that leads
 * programs which could not load it elsewhere, if the shim's folder has accel-preload/. A program
 * with AddressSanitizer and options of its own gets one more of these by the environment, as
 * libaccel cannot give it to that. False if memory runs out. */
bool preload_set(const char *shim, const char *program);

/* Puts an option behind those of a sanitizer's variable. */
bool preload_add_option(const char *variable, const char *option);

/* How a program ended. */
struct preload_end {
    int status; /* waitpid()'s */
    int asked;  /* the first of SIGINT, SIGQUIT, SIGTERM and SIGHUP that came to this process
                   meanwhile; 0: none */
};

/* Runs a program to its end, with the shim in front of LD_PRELOAD. This process stands by meanwhile
 * (supervise.h). The child calls prepare(context) first, for its environment and files. Returns 0
 * and how it ended, or the errno if the program cannot be started. */
int preload_run(char **program, const char *shim, void (*prepare)(const void *context),
                const void *context, struct preload_end *end);

/* In a child: starts the program, which closes the pipe, or writes the errno to it. */
_Noreturn void preload_become(char **program, const char *shim,
                              void (*prepare)(const void *context), const void *context, int pipe);

/* Takes every libaccel.so out of LD_PRELOAD. */
void preload_remove(void);

#endif
