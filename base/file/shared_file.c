#define _GNU_SOURCE
#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"

static char folder[PATH_MAX - 128]; /* empty: /dev/shm */

void shared_file_prepare(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool usable = runtime && runtime[0] == '/' && strlen(runtime) < sizeof folder;
    if (usable)
        strcpy(folder, runtime);
}

const char *shared_file_runtime(void)
{
    return folder;
}

/* The name has the user in it: every user can write to /dev/shm. */
static void put_path(char *path, size_t size, const char *name)
{
    struct accel_text text;
    text_start(&text, path, size);
    text_string(&text, folder[0] ? folder : "/dev/shm");
    text_string(&text, "/accel-");
    text_integer(&text, (int64_t)geteuid());
    text_char(&text, '-');
    text_string(&text, name);
    text_end(&text);
}

static bool is_ours(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

int shared_file_open(const char *name)
{
    char path[PATH_MAX];
    int saved = errno;
    put_path(path, sizeof path, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && !is_ours(fd)) {
        close(fd);
        fd = -1;
    }
    errno = saved;
    return fd;
}
