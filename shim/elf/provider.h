/*
 * What a CPU library says of itself: its file, the width of its integers, its threads. Nothing here allocates or takes a lock of
 * ours. Shared by the shim and the command-line tool, so that a calibration and a program know a library by the same name.
 */
#ifndef ACCEL_PROVIDER_H
#define ACCEL_PROVIDER_H

#include "ops/names.h"

enum { ACCEL_PROVIDER_NAME_BYTES = 200 };

/* The name in a model file, such as "libopenblasp-r0.3.21.so 36384320": of the file that the path leads to, its base name (as
 * much as there is room for) and its size in bytes, 0 where it is not there. An empty path, as the dynamic linker has it for the
 * program: that. Keeps errno. Thread-safe. */
void accel_provider_name(char name[ACCEL_PROVIDER_NAME_BYTES], const char *path);

/* The bits of INTEGER, 32 or 64, of the library that this isamax (or cblas_isamax) is of; 0 where it answers with neither. */
int accel_provider_width(void *isamax, enum accel_abi abi);

/* Functions that say how many threads a library computes with, and that set it: names, ending with NULL, in the order in which they
 * are to be looked for in it and what it is linked to: its own ones first, then what OpenMP says, where it is built on that. The first
 * return an integer of 32 bits, or one of 64 whose lower half is it, not above 0 where nothing is set; the others take such a one. */
struct accel_thread_functions {
    const char *get, *set;
};
extern const struct accel_thread_functions accel_thread_functions[];

#endif
