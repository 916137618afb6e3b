#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "ops/blas/pass.h"
#include "shim/arch/x86_64/entry.h"
#include "base/linker.h"
#include "provider.h"

struct library {
    struct dispatch_library base;
    char name[ACCEL_PROVIDER_NAME_BYTES];
    char *path; /* the dynamic linker's */
    Lmid_t space;
    _Atomic(void *) threads;
    struct library *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static struct library *libraries; /* never freed */

static int one_thread(const struct dispatch_library *library)
{
    (void)library;
    return 1;
}

static bool run_nothing(const struct dispatch_library *library, const struct accel_call *call)
{
    (void)library;
    (void)call;
    return false;
}

static const struct dispatch_library unknown = {"unknown", NULL, one_thread, run_nothing};

static int count_threads(const struct dispatch_library *base)
{
    const struct library *library = (const struct library *)base;
    void *found = atomic_load_explicit(&library->threads, memory_order_acquire);
    int (*function)(void);
    if (!found)
        return 1;
    memcpy(&function, &found, sizeof function);
    int threads = function();
    return threads > 0 ? threads : 1; /* BLIS says -1 where nothing is set */
}

static void *find_threads(void *handle)
{
    void *found = NULL;
    for (int i = 0; !found && accel_thread_functions[i].get; i++)
        found = accel_real_lookup(handle, accel_thread_functions[i].get);
    return found;
}

/* The routine's Fortran name in the library, in whatever mangling it has. */
static const struct accel_original *find_routine(const struct library *library,
                                                 const struct accel_routine *routine)
{
    const struct accel_original *original = NULL;
    uint32_t names = accel_mangling_count;
    uint32_t first = (uint32_t)(routine - accel_routines) * names;
    linker_enter();
    void *handle =
        dlmopen(library->space, library->path[0] ? library->path : NULL, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) {
        linker_leave();
        return NULL;
    }
    for (uint32_t i = first; !original && i < first + names; i++) {
        if (accel_name_mangling(i)->abi != ACCEL_ABI_FORTRAN)
            continue;
        void *function = accel_real_lookup(handle, accel_names[i].symbol);
        if (!function || accel_is_own(function))
            continue;
        original = accel_resolve_known(i, function);
        if (original && !original->width) {
            accel_original_free(original);
            original = NULL;
        }
    }
    accel_real_dlclose(handle);
    linker_leave();
    dlerror();
    return original;
}

static bool run(const struct dispatch_library *base, const struct accel_call *call)
{
    const struct accel_original *original =
        find_routine((const struct library *)base, call->routine);
    struct blas_words words;
    if (!original)
        return false;
    const struct accel_passed passed = blas_pass(&words, ACCEL_ABI_FORTRAN, original->width, call);
    accel_invoke(original->function, &passed);
    accel_original_free(original);
    return true;
}

/* Under the lock. */
static struct library *library_of(const struct link_map *object, Lmid_t space)
{
    struct library *library = libraries;
    while (library && (library->space != space || strcmp(library->path, object->l_name) != 0))
        library = library->next;
    if (library)
        return library;
    library = calloc(1, sizeof *library);
    if (!library)
        return NULL;
    library->path = strdup(object->l_name);
    if (!library->path) {
        free(library);
        return NULL;
    }
    library->space = space;
    accel_provider_name(library->name, library->path);
    library->base = (struct dispatch_library){library->name, library->path, count_threads, run};
    library->next = libraries;
    libraries = library;
    return library;
}

const struct dispatch_library *accel_library_of(const struct accel_original *original)
{
    struct accel_original *own = (struct accel_original *)(uintptr_t)original;
    const struct dispatch_library *known =
        atomic_load_explicit(&own->library, memory_order_acquire);
    if (known)
        return known;
    const struct link_map *object = accel_object_of(original->function);
    if (!object)
        return &unknown;
    /* The dynamic linker's locks before ours. */
    linker_enter();
    void *handle = accel_resolve_handle(object);
    void *threads = handle ? find_threads(handle) : NULL;
    Lmid_t space = LM_ID_BASE;
    if (handle)
        dlinfo(handle, RTLD_DI_LMID, &space);
    if (handle)
        accel_real_dlclose(handle);
    linker_leave();
    dlerror();
    pthread_mutex_lock(&lock);
    struct library *library = library_of(object, space);
    if (library) /* loaded anew, perhaps, and elsewhere */
        atomic_store_explicit(&library->threads, threads, memory_order_release);
    pthread_mutex_unlock(&lock);
    known = library ? &library->base : &unknown;
    atomic_store_explicit(&own->library, known, memory_order_release);
    return known;
}
