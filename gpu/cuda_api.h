/*
 * CUDA, opened at run time: a table of functions with CUDA's own prototypes.
 */
#ifndef ACCEL_CUDA_API_H
#define ACCEL_CUDA_API_H

#include <cuda.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cuda_api {
#define DRIVER(function, need)   __typeof__(&function) function##_p;
#define CUBLAS(function, need)   __typeof__(&function) function##_p;
#define CUSOLVER(function, need) __typeof__(&function) function##_p;
#include "cuda_functions.def"
#undef DRIVER
#undef CUBLAS
#undef CUSOLVER
};

/* Filled by cuda_api_open(), constant afterwards. */
extern struct cuda_api cuda_api;

/* A function of the table, by the name that is written in cuda_functions.def. */
#define CUDA(function) cuda_api.function##_p

/* Opens the driver and cuBLAS and fills the table: the copies that the program has loaded, then
 * those in first_dir (NULL: none), in the program's environment, where the linker finds them, in the
 * system's folders (find_cuda.h). first_dir stays. Sticky: the first result holds. Returns NULL, or the reason why
 * there is no CUDA, in static memory. */
const char *cuda_api_open(const char *first_dir);

/* Set when the process ends: libraries are opened one by one, and no further ones then. Who ends the process waits for the
 * dynamic linker's lock, which each takes. */
extern atomic_bool cuda_api_ending;

/* Opens the cuSOLVER that belongs to the cuBLAS in use, at the first call: most programs need none. Returns whether there
 * is one. After cuda_api_open() has succeeded; thread-safe, sticky. */
bool cuda_api_open_cusolver(void);

/* The driver's library if it is loaded already, opened by us or by the program, else NULL. */
void *cuda_api_loaded_driver(void);

#endif
