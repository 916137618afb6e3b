#define _GNU_SOURCE
#include "kernels.h"

#include <string.h>

#include "objects.h"
#include "ops/op.h"
#include "provider.h"
#include "real_linker.h"

/* OpenBLAS's function that names the core, with its prefixes and suffixes (cblas.h). It returns
 * a constant. In arrays, here and below: pointers would have to be relocated when a program
 * starts. */
static const char core_functions[][32] = {
    "openblas_get_corename",       "openblas_get_corename64_",       "openblas_get_corename_64",
    "scipy_openblas_get_corename", "scipy_openblas_get_corename64_",
};

/* Copies a name of letters, digits and underscores. False if it is another text. */
static bool take_name(char name[ACCEL_CORE_BYTES], const char *from)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const size_t length = from ? strnlen(from, ACCEL_CORE_BYTES) : 0;
    if (length == 0 || length == ACCEL_CORE_BYTES || strspn(from, characters) != length)
        return false;
    memcpy(name, from, length + 1);
    return true;
}

static bool ask_for_core(void *handle, char name[ACCEL_CORE_BYTES])
{
    for (size_t i = 0; i < sizeof core_functions / sizeof *core_functions; i++) {
        void *found = accel_real_lookup(handle, core_functions[i]);
        const char *(*function)(void);
        memcpy(&function, &found, sizeof function);
        if (found)
            return take_name(name, function());
    }
    return false;
}

/*
 * What a tuned library cannot do without: threads, memory for its panels, the machine's
 * properties, the environment, other parts of itself. The reference library, and others of plain
 * loops, use libc, libm and their Fortran compiler's library for messages and square roots. An
 * asterisk: all names that begin so.
 */
static bool is_of_tuned(const char *name)
{
    static const char names[][20] = {
        "pthread_*", "sched_*",        "omp_*",         "GOMP_*",        "__kmpc_*",
        "getenv",    "sysconf",        "secure_getenv", "get_nprocs*",   "mmap*",
        "shmget",    "posix_memalign", "memalign",      "aligned_alloc", "dlopen",
        "dlsym",     "__cpu_*",        "ATL_*",         "mkl_*",         "_Z*",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strcspn(names[i], "*");
        if (strncmp(name, names[i], length) == 0 && (names[i][length] || !name[length]))
            return true;
    }
    return false;
}

/* Returns the object that multiplies for a library: its own, or that of a BLAS that it is linked
 * to. */
static const struct link_map *multiplying(void *handle, const struct link_map *object)
{
    int width;
    for (int i = 0; i < ACCEL_DTYPES; i++) {
        const struct accel_routine *product =
            accel_sample_of(ACCEL_SAMPLE_PRODUCT, (enum accel_dtype)i);
        void *function = product ? accel_provider_find(handle, false, product, &width) : NULL;
        if (function)
            return accel_object_of(function);
    }
    return object;
}

struct accel_kernels accel_kernels_of(void *handle, const struct link_map *object)
{
    struct accel_kernels kernels = {KERNELS_TUNED, ""};
    if (ask_for_core(handle, kernels.name)) {
        kernels.kernels = kernels_of_core(kernels.name);
        return kernels;
    }
    if (accel_provider_names_threads(handle))
        return kernels;
    const struct link_map *const product = multiplying(handle, object);
    if (product && !accel_object_imports(product->l_addr, product->l_ld, is_of_tuned)) {
        kernels.kernels = KERNELS_LOOPS;
        strcpy(kernels.name, KERNELS_REFERENCE);
    }
    return kernels;
}
