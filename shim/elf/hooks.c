/*
 * The functions that libaccel stands in front of, besides BLAS: dlsym, because programs look BLAS
 * up (ctypes, JNI, plug-ins); dlclose, because an original may be unloaded; dlerror, because of the
 * messages that dlsym leaves; the C library's __cxa_atexit, because the handlers that CUDA's
 * libraries register there must not run while a thread of ours is inside these libraries; R's
 * R_registerRoutines, because packages look their functions up so; and __asan_default_options,
 * because a program with AddressSanitizer's shared runtime does not start behind a preload
 * otherwise.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "bindings.h"
#include "dispatch/dispatch.h"
#include "gpu/device/exit_guard.h"
#include "keep.h"
#include "real_linker.h"
#include "registration.h"
#include "slots.h"

/* A suffix to a name that only libaccel has. The real dlsym looks the longer name up in the
 * program's own way, does not find it, and leaves the message that there would be without libaccel,
 * with this suffix; our dlerror removes the suffix. */
#define UNKNOWN " (seen by libaccel)"

/* The longer name, until the thread's next such look-up. */
static _Thread_local char unknown_name[sizeof accel_names->symbol + sizeof UNKNOWN]
    __attribute__((tls_model("initial-exec")));

static struct accel_dlsym_answer pass_on(const char *name)
{
    return (struct accel_dlsym_answer){ACCEL_DLSYM_NEXT, (void *)(uintptr_t)name};
}

static struct accel_dlsym_answer find_nothing(const char *name)
{
    strcpy(unknown_name, name);
    strcat(unknown_name, UNKNOWN);
    return (struct accel_dlsym_answer){ACCEL_DLSYM_REAL, unknown_name};
}

/* Finds what a program would find for an exported name without us. The real look-up finds functions
 * that come before us in the global scope (the program's own, another preload's). */
static void *find_without_us(void *handle, uint32_t entry, uintptr_t ret)
{
    const char *name = accel_names[entry].symbol;
    void *passed;
    /* Another preload's dlsym is asked once for each look-up, as it would be without us. */
    const bool other = accel_next_lookup(handle, name, &passed);
    if (other && !accel_is_own(passed) && (passed || handle != RTLD_DEFAULT))
        return passed;
    if (handle == RTLD_NEXT) {
        /* The caller comes before us: look between it and us, then behind us. */
        void *found = accel_resolve_between(name, ret);
        if (found)
            return found;
        ret = 0;
    } else {
        void *found = accel_real_lookup(handle, name);
        if (!accel_is_own(found) && (found || handle != RTLD_DEFAULT))
            return found;
        if (handle != RTLD_DEFAULT)
            ret = 0; /* a handle of the global scope: the caller's own scope is no part of it */
    }
    /* We come first in the global scope. A program that checks whether there is a BLAS at all must
     * not find ours. */
    return accel_resolve_scopes(entry, ret);
}

struct accel_dlsym_answer accel_dlsym_hook(void *handle, const char *name, uintptr_t ret)
{
    accel_real_init();
    int entry = accel_name_find(name);
    /* A library that has just been opened may be bound to us by mistake. Allocators ask for the
     * next function, perhaps while they hold locks of their own. */
    if (entry >= 0 || handle != RTLD_NEXT)
        accel_bindings_follow(handle);
    /* RTLD_NEXT is relative to the caller: for a caller behind us, the real dlsym's answer is never
     * in us. */
    if (entry < 0 || (handle == RTLD_NEXT && !accel_resolve_is_before_us(ret)))
        return pass_on(name);
    void *found = find_without_us(handle, (uint32_t)entry, ret);
    if (!found)
        return find_nothing(name);
    /* A function that comes before us is never reached through us: the program gets it as it is. */
    if (accel_resolve_is_before_us((uintptr_t)found + 1))
        return (struct accel_dlsym_answer){ACCEL_DLSYM_FOUND, found};
    if (dispatch_is_on())
        found = accel_slots_bind((uint32_t)entry, found);
    return (struct accel_dlsym_answer){ACCEL_DLSYM_FOUND, found};
}

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    accel_keep_bound();
    int result = accel_next_dlclose(handle);
    accel_bindings_forget();
    accel_keep_release();
    accel_slots_drop_if_unloaded();
    return result;
}

__attribute__((visibility("default"))) char *dlerror(void)
{
    char *message = accel_real_dlerror();
    const size_t length = message ? strlen(message) : 0, added = strlen(UNKNOWN);
    if (length > added && strcmp(message + length - added, UNKNOWN) == 0)
        message[length - added] = 0;
    return message;
}

/* atexit(3) calls this, too: it is linked into each library. */
__attribute__((visibility("default"))) exit_guard_register_function __cxa_atexit;

int __cxa_atexit(void (*function)(void *), void *argument, void *object)
{
    static _Atomic(void *) real;
    void *found = accel_real_next(&real, "__cxa_atexit");
    exit_guard_register_function *next;
    memcpy(&next, &found, sizeof next);
    return exit_guard_register(next, function, argument, object);
}

/* The tables are those of .C, .Call, .Fortran and .External. */
typedef int register_routines(void *package, const struct accel_r_method *c, const void *call,
                              const void *fortran, const void *external);
__attribute__((visibility("default"))) register_routines R_registerRoutines;

int R_registerRoutines(void *package, const struct accel_r_method *c, const void *call,
                       const void *fortran, const void *external)
{
    const uintptr_t ret = (uintptr_t)__builtin_return_address(0);
    void *found = accel_registration_real(ret);
    register_routines *real;
    memcpy(&real, &found, sizeof real);
    if (!real)
        return 0; /* as R's own does if it fails */
    struct accel_r_method *bound = accel_registration_of(c, ret);
    const int done = real(package, bound ? bound : c, call, fortran, external);
    free(bound);
    return done;
}

/* The runtime asks for the program's options before it looks whether it is the first library, which
 * it is not behind a preload (sanitizer/asan_interface.h; verify_asan_link_order of its flags). The
 * options of a library of the program's stay. Those of the executable itself go before ours, as all
 * of its names do. The runtime has not started when it asks: functions that it stands in front of,
 * such as strcpy, end the program now. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    static const char ours[] = "verify_asan_link_order=0";
    static char asan_options[1024]; /* shim/start.ld: away from what a start touches */
    static _Atomic(void *) real;
    void *found = accel_real_next(&real, "__asan_default_options");
    const char *(*next)(void);
    memcpy(&next, &found, sizeof next);
    const char *const theirs = next ? next() : "";
    struct accel_text text;
    if (!*theirs)
        return ours;
    text_start(&text, asan_options, sizeof asan_options);
    text_string(&text, ours);
    text_char(&text, ':');
    text_string(&text, theirs);
    return text_end(&text) ? asan_options : theirs;
}
