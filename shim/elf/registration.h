/*
 * R's tables of compiled functions (R_ext/Rdynload.h). A package hands R a table with pointers to
 * its own functions; the dynamic linker has filled it by name, so that a pointer may lead to one of
 * our entries. R calls all packages' functions from one place, and so a call alone does not tell
 * whose function is meant: the table does.
 */
#ifndef ACCEL_REGISTRATION_H
#define ACCEL_REGISTRATION_H

#include <stdint.h>

/* Of R 3.4 and newer. The last one has no name. */
struct accel_r_method {
    const char *name;
    void *function;
    int arguments;
    unsigned *types;
};

/* Returns a copy of the table of the object that it lies in, or else of the one that has called
 * from `ret`. Our entries have been replaced by such as lead to that object's own functions. The
 * caller frees it. NULL: the table has none, or cannot be read, or there is no memory. */
struct accel_r_method *accel_registration_of(const struct accel_r_method *table, uintptr_t ret);

/* The function behind ours: the caller may have R in its own scope alone. NULL: there is none. */
void *accel_registration_real(uintptr_t ret);

#endif
