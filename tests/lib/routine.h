/*
 * The rows of the routine table, for unit tests.
 */
#ifndef ROUTINE_H
#define ROUTINE_H

#include "call/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Returns the routine of this name; fails the test if there is none. */
static inline const struct accel_routine *routine(const char *name)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (strcmp(accel_routines[i].name, name) == 0)
            return &accel_routines[i];
    fail_msg("no routine %s", name);
    return NULL;
}

#endif
