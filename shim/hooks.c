/*
 * The two functions of the dynamic linker that libaccel stands in front of: dlsym, because programs
 * bind BLAS by look-up (ctypes, JNI, plug-ins), and dlclose, because what was found may go.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "dispatch/dispatch.h"
#include "slots.h"

/* What a program would have found for an exported name without us. What comes before us in the global scope (the
 * program's own, another preload) is found by the real look-up. */
static void *find_without_us(void *handle, uint32_t entry, uintptr_t ret)
{
    const char *name = accel_names[entry].symbol;
    if (handle == RTLD_NEXT) {
        /* The caller comes before us: what is between, then what is behind us. */
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
    /* We come first in the global scope. A program that looks whether there is a BLAS at all must
     * not find one in us. The second look-up leaves the message for dlerror(). */
    void *found = accel_resolve_scopes(entry, ret);
    return found ? found : accel_real_lookup(RTLD_NEXT, name);
}

struct accel_dlsym_answer accel_dlsym_hook(void *handle, const char *name, uintptr_t ret)
{
    struct accel_dlsym_answer answer = {0, NULL};
    accel_resolve_init();
    int entry = accel_name_find(name);
    /* RTLD_NEXT is relative to the caller: behind us, the real dlsym's answer is never in us. */
    if (entry < 0 || (handle == RTLD_NEXT && !accel_resolve_is_before_us(ret)))
        return answer;
    answer.known = 1;
    answer.address = find_without_us(handle, (uint32_t)entry, ret);
    /* What comes before us is never reached through us, so the program gets it as it is. */
    if (answer.address && dispatch_is_on() &&
        !accel_resolve_is_before_us((uintptr_t)answer.address + 1))
        answer.address = accel_slots_bind((uint32_t)entry, answer.address);
    return answer;
}

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    int result = accel_real_dlclose(handle);
    accel_slots_drop_if_unloaded();
    return result;
}
