#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/forks.h"
#include "ops/blas/pass.h"
#include "shim/arch/entry.h"
#include "base/thread/linker.h"
#include "kernels.h"
#include "provider.h"
#include "real_linker.h"

struct library {
    struct dispatch_library base;
    char name[ACCEL_PROVIDER_NAME_BYTES];
    char *path, *file; /* the dynamic linker's; without symbolic links */
    struct accel_kernels kernels;
    Lmid_t space;
    _Atomic(void *) threads; /* the function that returns the number of threads; NULL: none */
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

static const struct dispatch_library unknown = {
    .name = "unknown", .threads = one_thread, .run = run_nothing};

static int count_threads(const struct dispatch_library *base)
{
    const struct library *library = (const struct library *)base;
    return accel_provider_thread_count(
        atomic_load_explicit(&library->threads, memory_order_acquire));
}

static bool run_in_library(const struct dispatch_library *base, const struct accel_call *call)
{
    const struct library *library = (const struct library *)base;
    struct accel_words words;
    int width;
    linker_enter();
    void *handle =
        dlmopen(library->space, library->path[0] ? library->path : NULL, RTLD_NOLOAD | RTLD_LAZY);
    void *function = handle ? accel_provider_find(handle, false, call->routine, &width) : NULL;
    if (handle)
        accel_real_dlclose(handle);
    linker_leave();
    dlerror();
    if (!function)
        return false;
    const struct accel_passed passed = blas_pass(&words, ACCEL_ABI_FORTRAN, width, call);
    accel_invoke(function, &passed);
    return true;
}

/* Call it under the lock. */
static struct library *library_of(const struct link_map *object, Lmid_t space,
                                  const struct accel_kernels *kernels)
{
    char file[PATH_MAX];
    struct library *library = libraries;
    while (library && (library->space != space || strcmp(library->path, object->l_name) != 0))
        library = library->next;
    if (library)
        return library;
    library = calloc(1, sizeof *library);
    if (!library)
        return NULL;
    accel_provider_name(library->name, file, object->l_name);
    library->path = strdup(object->l_name);
    library->file = strdup(*object->l_name ? file : "");
    if (!library->path || !library->file) {
        free(library->path);
        free(library->file);
        free(library);
        return NULL;
    }
    library->space = space;
    library->kernels = *kernels;
    library->base = (struct dispatch_library){
        .name = library->name,
        .path = library->path,
        .file = library->file,
        .threads = count_threads,
        .run = run_in_library,
        .kernels = kernels->kernels,
        .kernels_name = *kernels->name ? library->kernels.name : NULL,
    };
    library->next = libraries;
    libraries = library;
    return library;
}

const struct dispatch_library *accel_library_at(const void *function, bool blas)
{
    const struct link_map *object = accel_object_of(function);
    if (!object)
        return &unknown;
    /* The dynamic linker's locks before ours. */
    linker_enter();
    void *handle = accel_real_handle(object);
    void *threads = NULL;
    struct accel_kernels kernels = {KERNELS_TUNED, ""};
    Lmid_t space = LM_ID_BASE;
    if (handle) {
        if (blas)
            kernels = accel_kernels_of(handle, object);
        /* Plain loops have one thread, also where OpenMP's library is about. */
        if (blas && kernels.kernels != KERNELS_LOOPS)
            threads = accel_provider_threads(handle).get;
        dlinfo(handle, RTLD_DI_LMID, &space);
        accel_real_dlclose(handle);
    }
    linker_leave();
    dlerror();
    pthread_mutex_lock(&lock);
    struct library *library = library_of(object, space, &kernels);
    if (library && blas) /* it may have been loaded again, elsewhere */
        atomic_store_explicit(&library->threads, threads, memory_order_release);
    pthread_mutex_unlock(&lock);
    return library ? &library->base : &unknown;
}

const struct dispatch_library *accel_library_of(const struct accel_original *original)
{
    struct accel_original *own = (struct accel_original *)(uintptr_t)original;
    const struct dispatch_library *known =
        atomic_load_explicit(&own->library, memory_order_acquire);
    if (!known) {
        known = accel_library_at(original->computes, original->width != 0);
        atomic_store_explicit(&own->library, known, memory_order_release);
    }
    return known;
}
