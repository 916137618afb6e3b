#define _GNU_SOURCE
#include "registration.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "real_linker.h"
#include "slots.h"

/* Returns the number of methods; 0: there is none of ours, or they are of an older R, whose methods
 * are longer. */
static size_t count_of(const struct accel_r_method *table)
{
    size_t count = 0;
    bool ours = false;
    for (; table && table[count].name; count++)
        ours = ours || accel_is_own(table[count].function);
    return ours && !table[count].function ? count : 0;
}

/* Returns what a package calls that looks its own function up, as dlsym gives it to a program. */
static void *own_function(const struct link_map *object, void *entry)
{
    Dl_info info;
    if (!dladdr(entry, &info) || !info.dli_sname || info.dli_saddr != entry)
        return entry;
    const int number = accel_name_find(info.dli_sname);
    void *const found = number < 0 ? NULL : accel_real_lookup_in(object, info.dli_sname);
    if (!found || accel_object_of(found) != object)
        return entry;
    return dispatch_is_on() ? accel_slots_bind((uint32_t)number, found) : found;
}

struct accel_r_method *accel_registration_of(const struct accel_r_method *table, uintptr_t ret)
{
    const size_t count = count_of(table);
    const struct link_map *object = accel_object_of(table);
    struct accel_r_method *copy = NULL;
    if (!object)
        object = accel_object_of((const void *)(ret - 1));
    if (count > 0 && object)
        copy = malloc((count + 1) * sizeof *copy);
    if (!copy)
        return NULL;
    memcpy(copy, table, (count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        if (accel_is_own(copy[i].function))
            copy[i].function = own_function(object, copy[i].function);
    dlerror(); /* drops our look-ups' messages */
    return copy;
}

void *accel_registration_real(uintptr_t ret)
{
    static const char name[] = "R_registerRoutines";
    const struct link_map *caller = accel_object_of((const void *)(ret - 1));
    /* Anew each time: the program may close an R, and open another one. */
    void *found = accel_real_lookup(RTLD_NEXT, name);
    if (!found && caller)
        found = accel_real_lookup_in(caller, name);
    dlerror(); /* drops our look-ups' messages */
    return found && !accel_is_own(found) ? found : NULL;
}
