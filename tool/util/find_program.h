/*
 * Finds a program as a shell does.
 */
#ifndef ACCEL_TOOL_FIND_PROGRAM_H
#define ACCEL_TOOL_FIND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Gets the path of the program that execvp(3) would run. False: there is none. */
bool find_program(char path[PATH_MAX], const char *name);

#endif
