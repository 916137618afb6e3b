/*
 * Where users have the CUDA libraries, beyond what the dynamic linker finds: toolkits, PyPI wheels
 * in the Python environment of the running program, conda.
 */
#ifndef ACCEL_FIND_CUDA_H
#define ACCEL_FIND_CUDA_H

#include <stdbool.h>

/* Calls `visit` with each existing folder, best first, until it returns true. */
void find_cuda_folders(bool (*visit)(const char *folder, void *context), void *context);

#endif
