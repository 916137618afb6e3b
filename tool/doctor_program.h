/*
 * accel doctor's rows about a program: whether a preload can reach it and its children, which BLAS
 * it calls and how.
 */
#ifndef ACCEL_TOOL_DOCTOR_PROGRAM_H
#define ACCEL_TOOL_DOCTOR_PROGRAM_H

#include "effective_config.h"
#include "checks.h"

/* Runs the program on the CPU, with its stdout on stderr, if it can be preloaded. */
void doctor_program(struct checks *checks, char **program, const struct effective_config *config);

#endif
