/*
 * The CPU library that a function lies in: its name in a calibration, its number of threads, and
 * calls of its routines. Thread-safe; takes the dynamic linker's locks.
 */
#ifndef ACCEL_LIBRARY_H
#define ACCEL_LIBRARY_H

#include "dispatch/dispatch.h"
#include "resolve.h"

/* Returns the library of a function. Never NULL: "unknown", with a single thread, if the library
 * cannot be told or memory is short. The struct is never freed. Do not call its functions after the
 * library is unloaded. blas: the function is of BLAS or LAPACK. All others have one thread, however
 * many the BLAS has that their library is linked to. */
const struct dispatch_library *accel_library_at(const void *function, bool blas);

/* Returns the same for an original, which keeps the answer. */
const struct dispatch_library *accel_library_of(const struct accel_original *original);

#endif
