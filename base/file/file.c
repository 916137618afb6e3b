#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"

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

bool file_temporary(char path[PATH_MAX], const char *name)
{
    const char *tmp = getenv("TMPDIR");
    struct accel_text text;
    if (!realpath(tmp && *tmp ? tmp : "/tmp", path))
        return false;
    text_start(&text, path, PATH_MAX);
    text.length = strlen(path);
    text_string(&text, "/accel-");
    text_string(&text, name);
    text_string(&text, "-XXXXXX");
    errno = ENAMETOOLONG;
    return text_end(&text);
}

bool file_program(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}
