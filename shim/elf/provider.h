/*
 * What a CPU library says of itself: its file, the width of its integers, its threads. Nothing here allocates. Thread-safe.
 * Shared by the shim and the command-line tool, so that a calibration and a program know a library by the same name.
 */
#ifndef ACCEL_PROVIDER_H
#define ACCEL_PROVIDER_H

#include "ops/names.h"

enum { ACCEL_PROVIDER_NAME_BYTES = 200 };

/* The name in a model file, such as "libopenblasp-r0.3.21.so 36384320": of the file that the path leads to, its base name (as
 * much as there is room for) and its size in bytes, 0 where it is not there. An empty path, as the dynamic linker has it for the
 * program: that. Keeps errno. */
void accel_provider_name(char name[ACCEL_PROVIDER_NAME_BYTES], const char *path);

/* The bits of INTEGER, 32 or 64, of the library that defines an exported entry's function; 0 where it cannot be told, or where that is
 * no library of BLAS or LAPACK. */
int accel_provider_width(uint32_t entry, void *function);

/* A routine's Fortran function in a library, under whatever name it has it, and the bits of its INTEGER; own: not in what the library is
 * linked to. NULL: there is none, or only libaccel's. */
void *accel_provider_find(void *handle, bool own, const struct accel_routine *routine, int *width);

/* How many threads a library computes with, and what sets that. */
struct accel_thread_functions {
    void *get, *set; /* NULL: it does not say */
};

/* Those of a library, and of what it is linked to. */
struct accel_thread_functions accel_provider_threads(void *handle);

/* What the first of them says, at least 1; NULL: 1. */
int accel_provider_thread_count(void *get);

#endif
