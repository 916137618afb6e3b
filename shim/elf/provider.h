/*
 * A CPU library's own properties: its file, the width of its integers, its threads. The shim and
 * the command-line tool share this, so that a calibration and a program know a library by the same
 * name. Nothing here allocates. Thread-safe.
 */
#ifndef ACCEL_PROVIDER_H
#define ACCEL_PROVIDER_H

#include <limits.h>
#include <stdbool.h>

#include "ops/names.h"

enum { ACCEL_PROVIDER_NAME_BYTES = 200 };

/* Writes the library's name in a calibration, such as "libopenblasp-r0.3.21.so 36384320": the base
 * name (its first 150 bytes) and the size in bytes (0 if there is no file) of the file that the
 * path leads to. An empty path is the program, as for the dynamic linker. Also writes that file's
 * path, without symbolic links. Keeps errno. */
void accel_provider_name(char name[ACCEL_PROVIDER_NAME_BYTES], char real[PATH_MAX],
                         const char *path);

/* Returns the bits of INTEGER, 32 or 64, of the library that defines an exported entry's function;
 * 0 if they cannot be told, its elements have another size than the name promises, or it is no
 * library of BLAS or LAPACK. Calls nothing of the library. */
int accel_provider_width(uint32_t entry, void *function);

/* Returns the function that a wrapper, such as a profiler's preload, passes its calls on to; NULL
 * if the function is no wrapper. */
void *accel_provider_behind(uint32_t entry, void *function);

/* Returns whether that could be 32 or 64, by the library's names alone. */
bool accel_provider_may_be(uint32_t entry, void *function);

/* Returns a routine's Fortran function in a library, under any of its names, and the bits of its
 * INTEGER in *width; NULL if there is none, or only libaccel's. own: leaves out the libraries that
 * it is linked to. */
void *accel_provider_find(void *handle, bool own, const struct accel_routine *routine, int *width);

/* The functions that get and set a library's number of threads. NULL: it has none. */
struct accel_thread_functions {
    void *get, *set;
};

/* Finds them in a library and in those that it is linked to. */
struct accel_thread_functions accel_provider_threads(void *handle);

/* Returns whether they have such a function of their own, not OpenMP's. */
bool accel_provider_names_threads(void *handle);

/* Calls `get`: returns the number of threads, at least 1; 1 if `get` is NULL. */
int accel_provider_thread_count(void *get);

#endif
