/*
 * Finds CUDA's libraries that the dynamic linker does not: toolkits, PyPI wheels in the Python
 * environment of the running program, conda.
 */
#ifndef ACCEL_FIND_CUDA_H
#define ACCEL_FIND_CUDA_H

#include <stdbool.h>

/* Each calls `visit` with the folders that exist, the best first, until it returns true.
 * The packages beside modules that the program has loaded, then the environments of the running
 * program: that of its executable, VIRTUAL_ENV, CONDA_PREFIX. Of a program of Python, also the
 * user's own packages and the system's. */
void find_cuda_environment(bool (*visit)(const char *folder, void *context), void *context);

/* Folders that have only the driver. */
void find_cuda_driver(bool (*visit)(const char *folder, void *context), void *context);

/* Toolkits, the driver's folders, the user's own packages, the system's packages. */
void find_cuda_system(bool (*visit)(const char *folder, void *context), void *context);

#endif
