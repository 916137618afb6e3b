#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void host_name(char name[HOST_BYTES])
{
    const int saved = errno;
    if (gethostname(name, HOST_BYTES) != 0)
        strcpy(name, "localhost");
    name[HOST_BYTES - 1] = 0;
    errno = saved;
}
