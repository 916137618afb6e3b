#include "threads.h"

#include <stddef.h>

/* Sources: OpenBLAS's cblas.h with its prefixes and suffixes, oneMKL's reference, BLIS's documentation of multithreading,
 * flexiblas_api.h, OpenMP. */
const char *const accel_thread_functions[] = {"openblas_get_num_threads",
                                              "openblas_get_num_threads64_",
                                              "openblas_get_num_threads_64",
                                              "scipy_openblas_get_num_threads",
                                              "scipy_openblas_get_num_threads64_",
                                              "MKL_Get_Max_Threads",
                                              "bli_thread_get_num_threads",
                                              "flexiblas_get_num_threads",
                                              "omp_get_max_threads",
                                              NULL};
