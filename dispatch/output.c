#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"
#include "say.h"
#include "text.h"

void output_write(int fd, const char *bytes, size_t length)
{
    int saved = errno;
    sigset_t pipe_set, before, pending;
    /* A closed pipe would kill a program that never wrote to it: the signal is held back, and taken
     * off again if it is ours. */
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    ssize_t n;
    do
        n = write(fd, bytes, length);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec none = {0, 0};
        sigtimedwait(&pipe_set, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}

/* ---- The log's file ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static bool opened;
static pid_t opened_by;
static dev_t log_dev;
static ino_t log_ino;
static struct accel_ranks ranks;
static bool has_stderr;
static dev_t stderr_dev;
static ino_t stderr_ino;

static bool same_file(int fd, dev_t dev, ino_t ino)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void output_stderr(const char *bytes, size_t length)
{
    int saved = errno;
    if (has_stderr && same_file(STDERR_FILENO, stderr_dev, stderr_ino))
        output_write(STDERR_FILENO, bytes, length);
    errno = saved;
}

void output_start(void)
{
    struct stat st;
    if (fstat(STDERR_FILENO, &st) == 0) {
        has_stderr = true;
        stderr_dev = st.st_dev;
        stderr_ino = st.st_ino;
    }
    ranks_read(&ranks);
}

static bool expand(const char *pattern, char *path, size_t size)
{
    struct accel_text text;
    char host[HOST_NAME_MAX + 1];
    text_start(&text, path, size);
    for (; *pattern; pattern++) {
        if (pattern[0] != '%') {
            text_char(&text, *pattern);
            continue;
        }
        switch (pattern[1]) {
        case 'p':
            text_integer(&text, getpid());
            break;
        case 'h':
            if (gethostname(host, sizeof host) != 0)
                strcpy(host, "localhost");
            host[sizeof host - 1] = 0;
            text_string(&text, host);
            break;
        case 'r':
            text_integer(&text, ranks.rank);
            break;
        case '%':
            text_char(&text, '%');
            break;
        default: /* no such sequence: as it stands */
            text_char(&text, '%');
            continue;
        }
        pattern++;
    }
    if (text.length == size)
        return false;
    path[text.length] = 0;
    return true;
}

/* A symbolic link is followed only where its owner could do as much without it: /dev/stderr, or the
 * user's own. Somebody else's, in a shared folder, is not. */
static int open_log(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
    struct stat link;
    int fd = open(path, flags | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ELOOP && lstat(path, &link) == 0 &&
        (link.st_uid == 0 || link.st_uid == geteuid()))
        fd = open(path, flags, 0666);
    return fd;
}

static void open_output(const char *pattern)
{
    char path[PATH_MAX];
    int fd = -1;
    bool again = opened && opened_by == getpid();
    opened = true;
    opened_by = getpid();
    if (pattern) {
        if (!expand(pattern, path, sizeof path))
            errno = ENAMETOOLONG;
        else
            fd = open_log(path);
        if (fd < 0 && !again)
            accel_say("ACCEL_LOG_FILE: %s cannot be opened (%s); the log goes to stderr", pattern,
                      strerrorname_np(errno));
    }
    /* A number of its own, high up: programs close and reuse the low ones. */
    int from = fd >= 0 ? fd : same_file(STDERR_FILENO, stderr_dev, stderr_ino) ? STDERR_FILENO : -1;
    log_fd = fcntl(from, F_DUPFD_CLOEXEC, 200);
    if (log_fd < 0) /* too few descriptors allowed */
        log_fd = fcntl(from, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0)
        close(fd);
    struct stat st;
    if (log_fd >= 0 && fstat(log_fd, &st) == 0) {
        log_dev = st.st_dev;
        log_ino = st.st_ino;
    }
}

/* Under the lock. */
static void write_log(const char *pattern, const char *bytes, size_t length)
{
    bool ours = same_file(log_fd, log_dev, log_ino);
    bool child = opened && pattern && strstr(pattern, "%p") && opened_by != getpid();
    if (child && ours)
        close(log_fd);
    if (!opened || child || (pattern && !ours)) {
        open_output(pattern);
        ours = same_file(log_fd, log_dev, log_ino);
    }
    if (ours)
        output_write(log_fd, bytes, length);
}

void output_log(const char *pattern, const char *bytes, size_t length)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    write_log(pattern, bytes, length);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void output_log_at_exit(const char *pattern, const char *bytes, size_t length)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return;
    write_log(pattern, bytes, length);
    pthread_mutex_unlock(&lock);
}

void output_fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
}
