/* Whether the long forms of tests were asked for. */
#ifndef ACCEL_TEST_LONG_H
#define ACCEL_TEST_LONG_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool test_is_long(void)
{
    const char *value = getenv("TEST_LONG");
    return value && strcmp(value, "1") == 0;
}

#endif
