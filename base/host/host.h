/* The name of this machine, as all outputs have it. */
#ifndef ACCEL_HOST_H
#define ACCEL_HOST_H

#include <limits.h>

enum { HOST_BYTES = HOST_NAME_MAX + 1 };

/* Writes the name, "localhost" if the system has none. Thread-safe; keeps errno. */
void host_name(char name[HOST_BYTES]);

#endif
