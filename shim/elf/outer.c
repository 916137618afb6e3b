#define _GNU_SOURCE
#include "outer.h"

#include <dlfcn.h>

#include "objects.h"
#include "ops/names.h"

/* The thread's last answer: a program predicts in a loop, and dladdr() looks at all symbols of the
 * object. */
static _Thread_local struct {
    uintptr_t ret;
    unsigned long long unloads; /* as of the look-up: later, other code may be there */
    const struct accel_routine *routine, *outer;
} last __attribute__((tls_model("initial-exec")));

static const struct accel_routine *find_outer(const struct accel_routine *routine,
                                              const struct accel_provider *provider, uintptr_t ret)
{
    Dl_info info;
    if (!dladdr((const void *)(ret - 1), &info) || !info.dli_sname)
        return routine;
    const struct accel_routine *const outer = accel_name_outer(routine, info.dli_sname);
    return outer && provider->symbol(provider, outer->name) == info.dli_saddr ? outer : routine;
}

const struct accel_routine *accel_outer_of(const struct accel_routine *routine,
                                           const struct accel_provider *provider, uintptr_t ret)
{
    if (!accel_name_has_outer(routine))
        return routine;
    const unsigned long long unloads = accel_objects_unloads();
    if (last.ret != ret || last.unloads != unloads || last.routine != routine) {
        last.outer = find_outer(routine, provider, ret);
        last.routine = routine;
        last.unloads = unloads;
        last.ret = ret;
    }
    return last.outer;
}
