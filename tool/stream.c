#include "stream.h"

#include <errno.h>
#include <stddef.h>

/* A write that failed earlier has left a mark in the stream, and fflush() has nothing more to write then. Its errno is still there, unless
 * another failure has come between. */
int stream_flush(FILE *stream)
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
