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

#include "base/thread/forks.h"
#include "code.h"
#include "objects.h"
#include "own_lock.h"
#include "real_linker.h"
#include "sizes.h"

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

/* ---- The sizes of INTEGER and of elements ---- */

/* A library that has fewer of the names is not BLAS: its functions may have other arguments. */
enum { NAMES_OF_A_LIBRARY = 8 };

static bool has_enough_names(const struct link_map *object, uint32_t mangling)
{
    int names = 0;
    for (uint32_t i = mangling; names < NAMES_OF_A_LIBRARY && i < accel_blas_name_count;
         i += accel_mangling_count)
        names += accel_object_defines(object->l_addr, object->l_ld, accel_names[i].sibling);
    return names == NAMES_OF_A_LIBRARY;
}

/* PyTorch's library has MKL in itself, and few of CBLAS's names beside a hundred of Fortran's. */
static bool is_library_of(const struct link_map *object, uint32_t entry)
{
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    const bool may_be_few = mangling->abi == ACCEL_ABI_CBLAS && !mangling->width;
    return has_enough_names(object, entry % accel_mangling_count) ||
           (may_be_few && has_enough_names(object, 0));
}

/* The same routine under its plain Fortran name, which comes first. */
static uint32_t plain(uint32_t entry)
{
    return entry - entry % accel_mangling_count;
}

static void fill_sizes(struct accel_sizes *sizes, const struct accel_sizes *more)
{
    sizes->integer = sizes->integer ? sizes->integer : more->integer;
    sizes->real = sizes->real ? sizes->real : more->real;
    sizes->double_precision =
        sizes->double_precision ? sizes->double_precision : more->double_precision;
}

static bool is_filled(const struct accel_sizes *sizes, uint32_t entry)
{
    return sizes->integer && accel_sizes_fit(sizes, accel_name_routine(entry)) >= 0;
}

/* The code of the last few libraries, which does not change: for one interface, and one precision.
 * All names of an interface have the same probe. */
static struct probed_library {
    const struct link_map *object;
    const char *probe;
    bool is_double;
    unsigned long long unloads; /* at that time; later, the pointer may be another object's */
    struct accel_sizes sizes;
} known[32];
static unsigned known_next;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(known_lock);

static bool recall_sizes(const struct probed_library *wanted, struct accel_sizes *sizes)
{
    bool found = false;
    if (!own_lock(&known_lock))
        return false;
    for (size_t i = 0; !found && i < sizeof known / sizeof *known; i++) {
        found = known[i].object == wanted->object && known[i].probe == wanted->probe &&
                known[i].is_double == wanted->is_double && known[i].unloads == wanted->unloads;
        if (found)
            *sizes = known[i].sizes;
    }
    own_unlock(&known_lock);
    return found;
}

static void note_known(const struct probed_library *own)
{
    if (!own_lock(&known_lock))
        return;
    known[known_next++ % (sizeof known / sizeof *known)] = *own;
    own_unlock(&known_lock);
}

/* Libraries whose elements have the usual sizes, whatever a compiler was told: they are written in
 * C or in assembler. A function that each exports. */
static const char *const usual[] = {
    "openblas_get_config",       "openblas_get_config64_",       "openblas_get_config_64",
    "scipy_openblas_get_config", "scipy_openblas_get_config64_", "MKL_Get_Version_String",
    "bli_info_get_version_str",  "flexiblas_get_version",        "nvpl_blas_get_version"};

static bool is_usual(const struct link_map *object)
{
    bool found = false;
    for (size_t i = 0; !found && i < sizeof usual / sizeof *usual; i++)
        found = accel_object_function(object->l_addr, object->l_ld, usual[i]);
    return found;
}

/* Reads the code of an object. function: the one of this name, or NULL. */
static struct accel_sizes own_sizes(const struct link_map *object, uint32_t entry,
                                    const void *function)
{
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    const struct accel_sizes elements = {.real = 4, .double_precision = 8};
    struct probed_library own = {.object = object,
                                 .probe = mangling->probe,
                                 .is_double = accel_is_double(accel_name_routine(entry)->dtype),
                                 .unloads = accel_objects_unloads(),
                                 .sizes = {.integer = mangling->width}};
    struct accel_code code;
    const bool known_before = recall_sizes(&own, &own.sizes);
    if (known_before && (!function || is_filled(&own.sizes, entry)))
        return own.sizes;
    const bool readable = accel_code_of_object(&code, object);
    if (known_before) { /* the others have been read */
        if (readable)
            accel_sizes_add_function(&own.sizes, &code, entry, function);
        return own.sizes;
    }
    if (readable)
        accel_sizes_add(&own.sizes, &code, entry, function);
    if (is_usual(object))
        fill_sizes(&own.sizes, &elements);
    note_known(&own);
    return own.sizes;
}

/* oneMKL's library of all layers has functions that load others at their first call. Which ones, a
 * program chooses before that: by MKL_Set_Interface_Layer(), else by MKL_INTERFACE_LAYER. That
 * function begins with the load of the choice, whose lowest bit is that of ILP64, -1: none (oneMKL
 * 2019 to 2025). It is read, not called: the first question would be the choice. */
static int width_of_layer(const struct link_map *object)
{
    const unsigned char *code =
        accel_object_function(object->l_addr, object->l_ld, "MKL_Set_Interface_Layer");
    const char *named = getenv("MKL_INTERFACE_LAYER");
    int32_t offset, layer;
    if (!code)
        return 0;
    code += memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0; /* endbr64 */
    if (code[0] != 0x8b || code[1] != 0x05)                   /* mov variable(%rip), %eax */
        return 0;
    memcpy(&offset, code + 2, sizeof offset);
    memcpy(&layer, code + 6 + offset, sizeof layer);
    if (layer >= 0)
        return layer & 1 ? 64 : 32;
    return named && strcasestr(named, "ILP64") ? 64 : 32;
}

/* FlexiBLAS passes arguments on through tables of its own. Its library for 64 bits has another
 * file, and the same names. */
static int width_of_file(const struct link_map *object)
{
    const char *slash = strrchr(object->l_name, '/'), *name = slash ? slash + 1 : object->l_name;
    if (!accel_object_function(object->l_addr, object->l_ld, "flexiblas_get_version"))
        return 0;
    return strncmp(name, "libflexiblas64", 14) == 0 ? 64 : 32;
}

/* Returns the width that the library's names in other manglings imply, else 0: scipy-openblas
 * 0.3.31 has only plain names for its batches. */
static int width_of_others(const struct link_map *object)
{
    for (uint32_t i = 0; i < accel_mangling_count; i++) {
        const struct accel_mangling *mangling = accel_name_mangling(i);
        if (mangling->width && accel_object_defines(object->l_addr, object->l_ld, mangling->probe))
            return mangling->width;
    }
    return 0;
}

/* Functions by which the library that another one calls is found. */
static const char *const called[] = {"isamax_", "idamax_", "ilaver_"};
enum { CALLED = sizeof called / sizeof *called };

/* Of a library whose code does not tell: those of the libraries that it is linked to, which it
 * calls with its own arguments. */
static void add_linked(struct accel_sizes *sizes, const struct link_map *object, uint32_t entry)
{
    for (int i = 0; !is_filled(sizes, entry) && i < CALLED; i++) {
        void *function = accel_real_lookup_in(object, called[i]);
        const struct link_map *other = function ? accel_object_of(function) : NULL;
        if (!other || other == object)
            continue;
        const struct accel_sizes more = own_sizes(other, plain(entry), NULL);
        fill_sizes(sizes, &more);
    }
}

/* Of the library that it would call, which it is not linked to. Libraries of another namespace
 * call none of ours. */
static void add_following(struct accel_sizes *sizes, const struct link_map *object, uint32_t entry)
{
    for (int i = 0; !is_filled(sizes, entry) && i < CALLED; i++) {
        void *function =
            accel_is_in_our_namespace(object) ? accel_real_lookup(RTLD_NEXT, called[i]) : NULL;
        const struct link_map *other = function ? accel_object_of(function) : NULL;
        if (!other || other == accel_own_object())
            continue;
        const struct accel_sizes more = own_sizes(other, plain(entry), NULL);
        fill_sizes(sizes, &more);
    }
    dlerror();
}

/* C's types are those that its names say: only INTEGER's is left to find. A library that has the
 * Fortran functions, too, passes on to them. */
static void add_of_c(struct accel_sizes *sizes, uint32_t entry)
{
    const struct accel_sizes elements = {.real = 4, .double_precision = 8};
    if (accel_name_mangling(entry)->abi != ACCEL_ABI_FORTRAN)
        fill_sizes(sizes, &elements);
}

static struct accel_sizes find_sizes(const struct link_map *object, uint32_t entry,
                                     const void *function)
{
    struct accel_sizes sizes = own_sizes(object, entry, function), more = {.integer = 0};
    if (is_filled(&sizes, entry))
        return sizes;
    more.integer = width_of_layer(object);
    fill_sizes(&sizes, &more);
    more.integer = width_of_file(object);
    fill_sizes(&sizes, &more);
    if (!is_filled(&sizes, entry)) {
        more = own_sizes(object, plain(entry), NULL);
        fill_sizes(&sizes, &more);
    }
    add_linked(&sizes, object, entry);
    if (!sizes.integer)
        sizes.integer = width_of_others(object);
    add_following(&sizes, object, entry);
    add_of_c(&sizes, entry);
    return sizes;
}

/* Returns the object of a function that may be of BLAS or LAPACK by its name, and by the other
 * names that its library has; else NULL. */
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

static bool may_be_library(uint32_t entry, void *function)
{
    const struct link_map *object = object_by_names(entry, function);
    return object && (accel_name_mangling(entry)->width || is_library_of(object, entry));
}

/* ---- Wrappers ---- */

static bool looks_up(const char *name)
{
    return strcmp(name, "dlsym") == 0 || strcmp(name, "dlvsym") == 0;
}

/* The function that a preload which uses dlsym may pass calls on to. */
static void *next_one(uint32_t entry, const struct link_map *object)
{
    const char *const name = accel_names[entry].symbol;
    if (accel_name_mangling(entry)->abi == ACCEL_ABI_OWN || !object || is_usual(object) ||
        !accel_is_in_our_namespace(object) || !accel_objects_preloaded(object->l_ld) ||
        !accel_object_imports(object->l_addr, object->l_ld, looks_up))
        return NULL;
    void *next = (void *)(uintptr_t)accel_objects_function(name, object->l_ld);
    const int number = next ? accel_objects_number(next) : -1;
    const unsigned start = accel_objects_at_start();
    const bool at_start = number >= 0 && (!start || (unsigned)number < start);
    return at_start && !accel_is_own(next) ? next : NULL;
}

void *accel_provider_behind(uint32_t entry, void *function)
{
    const struct link_map *object = accel_object_of(function);
    void *next = next_one(entry, object);
    if (!next || !may_be_library(entry, function))
        return next;
    /* A whole library, whose code tells all: it computes by itself. */
    const struct accel_sizes own = own_sizes(object, entry, function);
    return is_filled(&own, entry) ? NULL : next;
}

/* The program's calls were made for the library behind a preload, which has its arguments. The
 * preload's own code may tell that it has others. */
static int width_of_preload(uint32_t entry, void *function, void *next)
{
    const int width = accel_provider_width(entry, next);
    const struct accel_sizes own = own_sizes(accel_object_of(function), entry, function);
    const bool differs = (own.integer && own.integer != width) ||
                         accel_sizes_fit(&own, accel_name_routine(entry)) == 0;
    return differs ? 0 : width;
}

int accel_provider_width(uint32_t entry, void *function)
{
    const struct link_map *object = accel_object_of(function);
    void *next = next_one(entry, object);
    if (next)
        return width_of_preload(entry, function, next);
    if (!may_be_library(entry, function))
        return 0;
    const struct accel_sizes sizes = find_sizes(object, entry, function);
    return accel_sizes_fit(&sizes, accel_name_routine(entry)) > 0 ? sizes.integer : 0;
}

bool accel_provider_may_be(uint32_t entry, void *function)
{
    return may_be_library(entry, function) || next_one(entry, accel_object_of(function));
}

/* Returns whether a library, or what it is linked to, has a function of this mangling that every
 * whole BLAS has. */
static bool has_probe(void *handle, const struct accel_mangling *mangling)
{
    return accel_real_lookup(handle, mangling->probe) ||
           (strcmp(mangling->probe, "isamax_") == 0 && accel_real_lookup(handle, "idamax_"));
}

/* Returns whether it has that function in manglings that tell the width alone. */
static bool is_named_otherwise(void *handle, const struct accel_mangling *mangling)
{
    bool has = false;
    for (uint32_t i = 0; !has && i < accel_mangling_count; i++)
        has = accel_name_mangling(i)->width && has_probe(handle, accel_name_mangling(i));
    return has && !has_probe(handle, mangling);
}

void *accel_provider_find(void *handle, bool own, const struct accel_routine *routine, int *width)
{
    const uint32_t first = (uint32_t)(routine - accel_routines) * accel_mangling_count;
    for (uint32_t i = first; i < first + accel_mangling_count; i++) {
        const struct accel_mangling *mangling = accel_name_mangling(i);
        if (mangling->abi != ACCEL_ABI_FORTRAN)
            continue;
        /* A name unlike the library's others, such as sgemm_batch_ beside scipy_sgemm_64_ in
         * OpenBLAS 0.3.31, which fails. */
        if (!mangling->width && is_named_otherwise(handle, mangling))
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

/* In the order of the look-ups: first a library's own functions, then OpenMP's. get returns, and
 * set takes, an int, or an int64 whose lower half is it. Sources: OpenBLAS's cblas.h with its
 * prefixes and suffixes, oneMKL's reference, BLIS's documentation of multithreading,
 * flexiblas_api.h, OpenMP. */
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
