/*
 * The CPU library that a function lies in: what a calibration knows it by, how many threads it computes with, and calls
 * of its own. Thread-safe; takes the dynamic linker's locks.
 */
#ifndef ACCEL_LIBRARY_H
#define ACCEL_LIBRARY_H

#include "dispatch/dispatch.h"
#include "resolve.h"

/* Never NULL: of a library that cannot be told, or where there is no memory, one with a single thread. What is returned
 * stays, also when the library is unloaded; then it is not to be asked, as the originals are not to be called. */
const struct dispatch_library *accel_library_at(const void *function);

/* The same, kept in the original. */
const struct dispatch_library *accel_library_of(const struct accel_original *original);

#endif
