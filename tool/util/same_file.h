/* Whether two paths are one file. */
#ifndef ACCEL_SAME_FILE_H
#define ACCEL_SAME_FILE_H

#include <stdbool.h>

/* Follows links. False if there is no file at one of the paths. Thread-safe. */
bool is_same_file(const char *one, const char *other);

#endif
