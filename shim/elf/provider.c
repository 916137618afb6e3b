#define _GNU_SOURCE
#include "provider.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/forks.h"
#include "objects.h"
#include "own_lock.h"
#include "real_linker.h"

void accel_provider_name(char name[ACCEL_PROVIDER_NAME_BYTES], char real[PATH_MAX],
                         const char *path)
{
    struct stat st = {.st_size = 0};
    int saved = errno;
    path = *path ? path : "/proc/self/exe";
    if (!realpath(path, real))
        snprintf(real, PATH_MAX, "%s", path);
    stat(real, &st);
    const char *slash = strrchr(real, '/');
    snprintf(name, ACCEL_PROVIDER_NAME_BYTES, "%.150s %lld", slash ? slash + 1 : real,
             (long long)st.st_size);
    errno = saved;
}

/* ---- The width of INTEGER ---- */

/* A size for isamax or idamax of three elements: its lower half is 3, and it is negative as 64 bits. An LP64 provider finds the third
 * element; an ILP64 one sees n < 0 and returns 0. After libblastrampoline, src/autodetection.c. */
static const int64_t probe_n = (int64_t)0xffffffff00000003;
static const float probe_floats[3] = {1, 2, 3};
static const double probe_doubles[3] = {1, 2, 3};

/* Returns 32 or 64, 0 for any other answer. x: three elements of the function's type. */
static int width_of_amax(void *amax, enum accel_abi abi, const void *x)
{
    const int64_t one = 1;
    uint32_t index, third;
    if (abi == ACCEL_ABI_FORTRAN) {
        int64_t (*f)(const int64_t *, const void *, const int64_t *);
        memcpy(&f, &amax, sizeof f);
        index = (uint32_t)f(&probe_n, x, &one);
        third = 3;
    } else {
        size_t (*f)(int64_t, const void *, int64_t);
        memcpy(&f, &amax, sizeof f);
        index = (uint32_t)f(probe_n, x, 1);
        third = 2;
    }
    return index == third ? 32 : index == 0 ? 64 : 0;
}

/* A library that has fewer of the names is not BLAS: its functions may have other arguments. */
enum { NAMES_OF_A_LIBRARY = 8 };

static bool is_library_of(const struct link_map *object, uint32_t entry)
{
    int names = 0;
    for (uint32_t i = entry % accel_mangling_count;
         names < NAMES_OF_A_LIBRARY && i < accel_blas_name_count; i += accel_mangling_count)
        names += accel_object_defines(object->l_addr, object->l_ld, accel_names[i].sibling);
    return names == NAMES_OF_A_LIBRARY;
}

/* Returns the width that the library's names in other manglings imply, else 0: scipy-openblas 0.3.31 has only plain names for its
 * batches. */
static int width_of_others(const struct link_map *object)
{
    for (uint32_t i = 0; i < accel_mangling_count; i++) {
        const struct accel_mangling *mangling = accel_name_mangling(i);
        void *isamax = mangling->width ? accel_real_lookup_in(object, mangling->probe) : NULL;
        if (isamax && accel_object_of(isamax) == object)
            return mangling->width;
    }
    return 0;
}

/* Returns an idamax_ that the object itself has, else NULL: where a program that needs no more than double precision brought parts of BLAS, there is no
 * isamax_ (SCIP's wheels). */
static void *own_idamax(const struct link_map *object)
{
    void *idamax = accel_real_lookup_in(object, "idamax_");
    return idamax && accel_object_of(idamax) == object ? idamax : NULL;
}

/* A library that has only part of BLAS may have neither: try the isamax_ of the libraries that it is linked to, then that of the library that it would call. */
static int probed_width(const struct accel_mangling *mangling, const struct link_map *object)
{
    void *isamax = accel_real_lookup_in(object, mangling->probe);
    void *idamax = isamax && accel_object_of(isamax) == object ? NULL : own_idamax(object);
    if (idamax)
        return width_of_amax(idamax, ACCEL_ABI_FORTRAN, probe_doubles);
    if (isamax)
        return width_of_amax(isamax, mangling->abi, probe_floats);
    isamax = accel_real_lookup_in(object, "isamax_");
    if (!isamax) {
        int width = width_of_others(object);
        /* Libraries of another namespace call none of ours. */
        if (width || !accel_is_in_our_namespace(object))
            return width;
        isamax = accel_real_lookup(RTLD_NEXT, "isamax_");
        dlerror();
    }
    return isamax && !accel_is_own(isamax) ? width_of_amax(isamax, ACCEL_ABI_FORTRAN, probe_floats)
                                           : 0;
}

/* The widths of the last few libraries. In a library that came in as another's dependency, a look-up takes some hundred
 * microseconds, and each name would need one. All names of an interface have the same probe. */
static struct {
    const struct link_map *object;
    const char *probe;
    unsigned long long unloads; /* at that time; later, the pointer may be another object's */
    int width;                  /* never 0: a library that comes later may still tell */
} known[16];
static unsigned known_next;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(known_lock);

static int probed_width_once(uint32_t entry, const struct link_map *object)
{
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    const unsigned long long unloads = accel_objects_unloads();
    int width = 0;
    const bool looked = own_lock(&known_lock);
    for (size_t i = 0; looked && !width && i < sizeof known / sizeof *known; i++)
        if (known[i].object == object && known[i].unloads == unloads &&
            known[i].probe == mangling->probe)
            width = known[i].width;
    if (looked)
        own_unlock(&known_lock);
    if (width)
        return width;
    width = is_library_of(object, entry) ? probed_width(mangling, object) : 0;
    if (!width)
        return 0;
    if (!own_lock(&known_lock))
        return width;
    unsigned at = known_next++ % (sizeof known / sizeof *known);
    known[at].object = object;
    known[at].probe = mangling->probe;
    known[at].unloads = unloads;
    known[at].width = width;
    own_unlock(&known_lock);
    return width;
}

/* Returns the object of a function that may be of BLAS or LAPACK by its name, and by the other names that its library has; else NULL. */
static const struct link_map *object_by_names(uint32_t entry, void *function)
{
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    if (mangling->abi == ACCEL_ABI_OWN)
        return NULL;
    const struct link_map *object = accel_object_of(function);
    return object && (mangling->trusted || accel_object_defines(object->l_addr, object->l_ld,
                                                                accel_names[entry].sibling))
               ? object
               : NULL;
}

int accel_provider_width(uint32_t entry, void *function)
{
    const struct link_map *object = object_by_names(entry, function);
    const int width = accel_name_mangling(entry)->width;
    if (!object)
        return 0;
    return width ? width : probed_width_once(entry, object);
}

bool accel_provider_may_be(uint32_t entry, void *function)
{
    const struct link_map *object = object_by_names(entry, function);
    return object && (accel_name_mangling(entry)->width || is_library_of(object, entry));
}

/* Returns whether a library or what it is linked to has the function that tells its width in this mangling. */
static bool has_probe(void *handle, const struct accel_mangling *mangling)
{
    return accel_real_lookup(handle, mangling->probe) ||
           (strcmp(mangling->probe, "isamax_") == 0 && accel_real_lookup(handle, "idamax_"));
}

void *accel_provider_find(void *handle, bool own, const struct accel_routine *routine, int *width)
{
    const uint32_t first = (uint32_t)(routine - accel_routines) * accel_mangling_count;
    for (uint32_t i = first; i < first + accel_mangling_count; i++) {
        const struct accel_mangling *mangling = accel_name_mangling(i);
        if (mangling->abi != ACCEL_ABI_FORTRAN)
            continue;
        /* A name unlike the library's others, such as sgemm_batch_ beside scipy_sgemm_64_ in OpenBLAS 0.3.31, which fails. */
        if (!mangling->width && !has_probe(handle, mangling))
            continue;
        void *function = accel_real_lookup(handle, accel_names[i].symbol);
        const struct link_map *object = function ? accel_object_of(function) : NULL;
        if (!object || object == accel_own_object() || (own && object != handle))
            continue; /* glibc's handles are link maps */
        *width = accel_provider_width(i, function);
        if (*width)
            return function;
    }
    return NULL;
}

/* ---- Threads ---- */

/* In the order of the look-ups: first a library's own functions, then OpenMP's. get returns, and set takes, an int, or an int64
 * whose lower half is it. Sources: OpenBLAS's cblas.h with its prefixes and suffixes, oneMKL's reference, BLIS's documentation
 * of multithreading, flexiblas_api.h, OpenMP. */
static const struct {
    const char *get, *set;
} thread_names[] = {
    {"openblas_get_num_threads", "openblas_set_num_threads"},
    {"openblas_get_num_threads64_", "openblas_set_num_threads64_"},
    {"openblas_get_num_threads_64", "openblas_set_num_threads_64"},
    {"scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"},
    {"scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"},
    {"MKL_Get_Max_Threads", "MKL_Set_Num_Threads"},
    {"bli_thread_get_num_threads", "bli_thread_set_num_threads"},
    {"flexiblas_get_num_threads", "flexiblas_set_num_threads"},
    {"omp_get_max_threads", "omp_set_num_threads"},
};

struct accel_thread_functions accel_provider_threads(void *handle)
{
    struct accel_thread_functions found = {NULL, NULL};
    for (size_t i = 0; !found.get && i < sizeof thread_names / sizeof *thread_names; i++) {
        found.get = accel_real_lookup(handle, thread_names[i].get);
        if (found.get)
            found.set = accel_real_lookup(handle, thread_names[i].set);
    }
    return found;
}

bool accel_provider_names_threads(void *handle)
{
    const size_t openmp = sizeof thread_names / sizeof *thread_names - 1; /* the last */
    for (size_t i = 0; i < openmp; i++)
        if (accel_real_lookup(handle, thread_names[i].get))
            return true;
    return false;
}

int accel_provider_thread_count(void *get)
{
    int (*function)(void);
    memcpy(&function, &get, sizeof function);
    int threads = function ? function() : 1;
    return threads > 0 ? threads : 1; /* BLIS returns -1 if nothing is set */
}
