/*
 * The environment of a unit test.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdlib.h>
#include <string.h>

/* Removes all variables except cmocka's, which sets the form of its results. */
static inline void clear_environment(void)
{
    static char format[16];
    const char *wanted = getenv("CMOCKA_MESSAGE_OUTPUT");
    if (wanted)
        strncpy(format, wanted, sizeof format - 1);
    clearenv();
    if (format[0])
        setenv("CMOCKA_MESSAGE_OUTPUT", format, 1);
}

#endif
