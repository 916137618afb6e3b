#define _GNU_SOURCE
#include "file_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool file_identify(int fd, struct file_identity *identity)
{
    struct statx stx;
    struct stat st;
    *identity = (struct file_identity){0, 0, 0, 0};
    if (fd < 0)
        return false;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stx) == 0) {
        identity->dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
        identity->ino = stx.stx_ino;
        if (stx.stx_mask & STATX_BTIME) {
            identity->seconds = stx.stx_btime.tv_sec;
            identity->nanoseconds = stx.stx_btime.tv_nsec;
        }
        return true;
    }
    /* A sandbox may forbid it. */
    if (fstat(fd, &st) != 0)
        return false;
    identity->dev = st.st_dev;
    identity->ino = st.st_ino;
    return true;
}

bool file_is(int fd, const struct file_identity *wanted)
{
    struct file_identity is;
    return file_identify(fd, &is) && is.dev == wanted->dev && is.ino == wanted->ino &&
           is.seconds == wanted->seconds && is.nanoseconds == wanted->nanoseconds;
}

enum { HIGH_NUMBER = 200, BEHIND_STDERR = 3 };

int file_move_high(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_NUMBER);
    if (high < 0 && fd >= 0) /* the limit on descriptors is low */
        high = fcntl(fd, F_DUPFD_CLOEXEC, BEHIND_STDERR);
    if (high < 0 && fd >= BEHIND_STDERR)
        return fd;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return high;
}
