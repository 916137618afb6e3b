/* What errno says, where the program may hold any lock: no malloc, no locale. Thread-safe. */
#ifndef ACCEL_ERROR_TEXT_H
#define ACCEL_ERROR_TEXT_H

#include <string.h>

/* Returns the description, in English: a constant. File systems have numbers of their own, which
 * glibc does not know. Needs _GNU_SOURCE. */
static inline const char *error_text(int error)
{
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
}

#endif
