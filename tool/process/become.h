/*
 * Becomes a program, as execvp(3) does, and says why that has failed.
 */
#ifndef ACCEL_TOOL_BECOME_H
#define ACCEL_TOOL_BECOME_H

#include <limits.h>

/* Makes this process the program. Unlike execvp(3), does not give a shell what it could not read: a
 * program for another machine, or a script of another language. Returns the errno. */
int become_program(char **program);

enum { BECOME_FAULT_BYTES = 3 * PATH_MAX };

/* Returns what is wrong with a program that could not be started, and if that helps, what to type:
 * the program's words behind those of `command`, "accel run". error: become_program()'s. */
const char *become_fault(char text[BECOME_FAULT_BYTES], const char *command, const char *program,
                         int error);

#endif
