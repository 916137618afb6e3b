#define _GNU_SOURCE
#include "provider.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void accel_provider_name(char name[ACCEL_PROVIDER_NAME_BYTES], const char *path)
{
    char real[PATH_MAX];
    struct stat st = {.st_size = 0};
    int saved = errno;
    path = *path ? path : "/proc/self/exe";
    if (!realpath(path, real))
        snprintf(real, sizeof real, "%s", path);
    stat(real, &st);
    const char *slash = strrchr(real, '/');
    snprintf(name, ACCEL_PROVIDER_NAME_BYTES, "%.150s %lld", slash ? slash + 1 : real,
             (long long)st.st_size);
    errno = saved;
}

/* isamax of three elements, with a size whose lower half is 3 and which is negative as 64 bits:
 * an LP64 provider finds the third, an ILP64 one sees n < 0 and returns 0.
 * After libblastrampoline, src/autodetection.c. */
static const int64_t probe_n = (int64_t)0xffffffff00000003;

int accel_provider_width(void *isamax, enum accel_abi abi)
{
    static const float x[3] = {1, 2, 3};
    const int64_t one = 1;
    uint32_t index, third;
    if (abi == ACCEL_ABI_FORTRAN) {
        int64_t (*f)(const int64_t *, const float *, const int64_t *);
        memcpy(&f, &isamax, sizeof f);
        index = (uint32_t)f(&probe_n, x, &one);
        third = 3;
    } else {
        size_t (*f)(int64_t, const float *, int64_t);
        memcpy(&f, &isamax, sizeof f);
        index = (uint32_t)f(probe_n, x, 1);
        third = 2;
    }
    return index == third ? 32 : index == 0 ? 64 : 0;
}

/* Sources: OpenBLAS's cblas.h with its prefixes and suffixes, oneMKL's reference, BLIS's documentation of multithreading,
 * flexiblas_api.h, OpenMP. */
const struct accel_thread_functions accel_thread_functions[] = {
    {"openblas_get_num_threads", "openblas_set_num_threads"},
    {"openblas_get_num_threads64_", "openblas_set_num_threads64_"},
    {"openblas_get_num_threads_64", "openblas_set_num_threads_64"},
    {"scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"},
    {"scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"},
    {"MKL_Get_Max_Threads", "MKL_Set_Num_Threads"},
    {"bli_thread_get_num_threads", "bli_thread_set_num_threads"},
    {"flexiblas_get_num_threads", "flexiblas_set_num_threads"},
    {"omp_get_max_threads", "omp_set_num_threads"},
    {NULL, NULL}};
