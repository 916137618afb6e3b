/*
 * Where users have the CUDA libraries, beyond what the dynamic linker finds: toolkits, PyPI wheels
 * in the Python environment of the running program, conda.
 */
#ifndef ACCEL_FIND_CUDA_H
#define ACCEL_FIND_CUDA_H

#include <stdbool.h>

/* Call `visit` with each existing folder, best first, until it returns true. The environment of the running
 * program: its own (as of how it was started), VIRTUAL_ENV, CONDA_PREFIX. */
void find_cuda_environment(bool (*visit)(const char *folder, void *context), void *context);

/* Those that have the driver alone. */
void find_cuda_driver(bool (*visit)(const char *folder, void *context), void *context);

/* Toolkits, those of the driver, the user's own packages, the system's. */
void find_cuda_system(bool (*visit)(const char *folder, void *context), void *context);

#endif
