/*
 * CUDA's libraries, opened at run time: a table of functions with their prototypes.
 */
#ifndef ACCEL_CUDA_API_H
#define ACCEL_CUDA_API_H

#include "abi.h"

#include <stdbool.h>

struct cuda_api {
#define POINTER(function, need, result, ...) result (*function##_p)(__VA_ARGS__);
#define DRIVER                               POINTER
#define CUBLAS                               POINTER
#define CUSOLVER                             POINTER
#include "cuda_functions.def"
#undef DRIVER
#undef CUBLAS
#undef CUSOLVER
#undef POINTER
};

/* Filled by cuda_api_open(), constant afterwards. */
extern struct cuda_api cuda_api;

/* A function of the table, by its name in cuda_functions.def. */
#define CUDA(function) cuda_api.function##_p

/* Opens the driver and cuBLAS and fills the table. Takes the copies that the program has loaded,
 * then those in first_dir (NULL: none), in the program's environment, where the linker finds them,
 * in the system's folders (find_cuda.h). first_dir must stay valid. Returns NULL, or the reason why
 * there is no CUDA, in static memory; later calls return the same. When the process ends, stops
 * after the library that it is opening. Not thread-safe. */
const char *cuda_api_open(const char *first_dir);

/* Opens the cuSOLVER that belongs to the cuBLAS in use, at the first call: most programs need none.
 * Returns whether there is one; later calls return the same. After cuda_api_open() has succeeded.
 * Thread-safe. */
bool cuda_api_open_cusolver(void);

/* Fills in the version of cuBLAS: major, minor, patch; 0 if it does not say. After cuda_api_open()
 * has succeeded. */
void cuda_api_cublas_version(int version[3]);

/* The same of cuSOLVER. After cuda_api_open_cusolver() has succeeded. */
void cuda_api_cusolver_version(int version[3]);

/* Writes the version and the file of the cuBLAS in use and the driver's version, for a message.
 * After cuda_api_open() has succeeded. */
void cuda_api_describe_cublas(char *text, size_t size);

/* Returns an attribute of a device, 0 if the driver does not tell. After cuda_api_open() has
 * succeeded. */
int cuda_attribute(CUdevice device, CUdevice_attribute which);

/* Returns a handle of the driver's library if we or the program have loaded it already, else
 * NULL. */
void *cuda_api_loaded_driver(void);

#endif
