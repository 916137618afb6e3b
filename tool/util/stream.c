#include "stream.h"

#include <errno.h>
#include <stddef.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"

/* A write that failed earlier has left a mark in the stream, and fflush() has nothing more to write
 * then. Its errno is still there, unless another failure has come between. */
static int error_of(FILE *stream)
{
    static const int of_writes[] = {ENOSPC, EDQUOT, EFBIG, EPIPE, EBADF, ENXIO};
    const int before = errno;
    if (fflush(stream) != 0)
        return errno;
    if (!ferror(stream))
        return 0;
    for (size_t i = 0; i < sizeof of_writes / sizeof *of_writes; i++)
        if (before == of_writes[i])
            return before;
    return EIO;
}

int stream_flush(FILE *stream)
{
    const int error = error_of(stream);
    if (error != 0) {
        __fpurge(stream);
        clearerr(stream);
    }
    return error;
}

/* exit() must not be called again. */
static void check_stdout(void)
{
    const int error = stream_flush(stdout);
    if (error != 0)
        _exit(complain(2, "accel: stdout cannot be written: %s\n", strerror(error)));
}

void stream_check_at_exit(void)
{
    atexit(check_stdout);
}
