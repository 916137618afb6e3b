#include "file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

ssize_t file_read(int fd, void *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, (char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int file_write(int fd, const void *bytes, size_t length, size_t *written)
{
    *written = 0;
    while (*written < length) {
        ssize_t n = write(fd, (const char *)bytes + *written, length - *written);
        if (n > 0)
            *written += (size_t)n;
        else if (n == 0)
            return EIO;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

bool file_folder(const char *path, char folder[PATH_MAX], const char **name)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    *name = slash ? slash + 1 : path;
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (length == 0) {
        strcpy(folder, slash ? "/" : ".");
        return true;
    }
    memcpy(folder, path, length);
    folder[length] = 0;
    return true;
}
