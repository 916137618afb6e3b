#define _GNU_SOURCE
#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/error_text.h"
#include "base/file/file.h"

static bool is_trusted(uid_t owner)
{
    return owner == 0 || owner == geteuid();
}

/* Opens the path's folder, and points *name to the name in it; -1 with errno. */
static int open_folder(const char *path, const char **name)
{
    char folder[PATH_MAX];
    if (!file_folder(path, folder, name))
        return -1;
    if (!**name) {
        errno = EISDIR;
        return -1;
    }
    return open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Whether only root and this user can have made the link, and only they can replace it. Where all
 * may write, that needs the folder's sticky bit. */
static bool may_follow(int folder, const char *name)
{
    struct stat st, link;
    return fstat(folder, &st) == 0 && fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
           (!(st.st_mode & S_IWOTH) || (st.st_mode & S_ISVTX)) && S_ISLNK(link.st_mode) &&
           is_trusted(link.st_uid) && link.st_nlink == 1;
}

static const char *objection(int folder, int fd)
{
    struct stat st, file;
    if (fstat(folder, &st) != 0 || fstat(fd, &file) != 0)
        return "its owner cannot be told";
    if (!(st.st_mode & S_IWOTH))
        return NULL;
    if (!is_trusted(file.st_uid))
        return "it is another user's, in a folder where all may write";
    return file.st_nlink > 1 ? "it has several names, in a folder where all may write" : NULL;
}

/* Does not wait for a FIFO's reader, nor for a device. */
static int open_in(int folder, const char *name, const char **wrong)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = openat(folder, name, flags | O_NOFOLLOW, 0666);
    bool link = fd < 0 && errno == ELOOP;
    if (link && !may_follow(folder, name)) {
        *wrong = "it is a symbolic link that another user may have made";
        return -1;
    }
    if (link)
        fd = openat(folder, name, flags, 0666);
    if (fd < 0) {
        *wrong = errno == ENXIO ? "nobody reads from it" : error_text(errno);
        return -1;
    }
    *wrong = link ? NULL : objection(folder, fd);
    if (*wrong) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_APPEND); /* writes wait for a slow reader */
    return fd;
}

int log_file_open(const char *path, const char **wrong)
{
    const char *name;
    int folder = open_folder(path, &name);
    if (folder < 0) {
        *wrong = error_text(errno);
        return -1;
    }
    int fd = open_in(folder, name, wrong);
    close(folder);
    return fd;
}
