#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/text/error_text.h"
#include "base/file/file.h"
#include "base/file/file_identity.h"
#include "base/thread/forks.h"
#include "base/thread/signal_mask.h"
#include "base/host/host.h"
#include "log_file.h"
#include "base/host/ranks.h"
#include "message.h"
#include "base/text/text.h"
#include "base/thread/monotonic_wait.h"

/* ---- Files ---- */

/* file_write() without SIGPIPE and SIGXFSZ. */
static int write_all(int fd, const char *bytes, size_t length, size_t *written)
{
    struct signal_mask held;
    signals_hold(&held);
    int error = file_write(fd, bytes, length, written);
    signals_release(&held, error != 0);
    return error;
}

/* ---- stderr ---- */

static bool has_stderr;
static struct file_identity stderr_file;

static bool is_stderr_there(void)
{
    return has_stderr && file_is(STDERR_FILENO, &stderr_file);
}

void output_stderr(const char *bytes, size_t length)
{
    int saved = errno;
    size_t written;
    if (is_stderr_there())
        write_all(STDERR_FILENO, bytes, length, &written);
    errno = saved;
}

/* ---- The log's file ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static int log_fd = -1;
static struct file_identity log_file;
static atomic_bool log_is_stderr;
/* The processes that opened it, and that said that it cannot be opened */
static pid_t opened_by, named_by;
static bool full_said[OUTPUT_KINDS];
static bool cut;                  /* the file ends with a part of a line */
static _Thread_local bool writes; /* this thread holds the lock */
static struct accel_ranks ranks;

void output_start(void)
{
    has_stderr = file_identify(STDERR_FILENO, &stderr_file);
    ranks_read(&ranks);
}

bool output_expand(const char *pattern, char *path, size_t size)
{
    struct accel_text text;
    char host[HOST_BYTES];
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
            host_name(host);
            text_string(&text, host);
            break;
        case 'r':
            text_integer(&text, ranks.rank);
            break;
        case '%':
            text_char(&text, '%');
            break;
        default: /* unknown: copied as it stands */
            text_char(&text, '%');
            continue;
        }
        pattern++;
    }
    return text_end(&text);
}

/* Prints one line about the log's file; a long path is cut, so that the reason has room. */
static void say_of_file(const char *pattern, const char *what, const char *wrong,
                        const char *outcome)
{
    char buffer[404];
    struct accel_text shown;
    bool whole = strlen(pattern) < sizeof buffer - 4;
    text_start(&shown, buffer, sizeof buffer - 4);
    text_string(&shown, pattern);
    strcpy(buffer + shown.length, whole ? "" : "…");
    accel_message("ACCEL_LOG_FILE: %s cannot be %s (%s); %s", buffer, what, wrong, outcome);
}

/* Opens the pattern's file, or returns -1 and says why, once. */
static int open_named(const char *pattern)
{
    char path[PATH_MAX];
    const char *wrong = "File name too long";
    int fd = output_expand(pattern, path, sizeof path) ? log_file_open(path, &wrong) : -1;
    if (fd < 0 && named_by != getpid()) {
        named_by = getpid();
        say_of_file(pattern, "opened", wrong, "the log goes to stderr");
    }
    return fd;
}

static void open_output(const char *pattern)
{
    int fd = pattern ? open_named(pattern) : -1;
    cut = false;
    log_is_stderr = fd < 0;
    /* A high number: programs close and reuse the low ones. */
    int from = fd >= 0 ? fd : is_stderr_there() ? STDERR_FILENO : -1;
    log_fd = fcntl(from, F_DUPFD_CLOEXEC, 200);
    if (log_fd < 0) /* the limit on descriptors is low */
        log_fd = fcntl(from, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0)
        close(fd);
    file_identify(log_fd, &log_file);
    opened_by = getpid();
}

/* Ends a cut line first, so that this one stands alone. Returns 0 or an errno value. */
static int put_line(const char *bytes, size_t length)
{
    size_t written;
    int error = cut ? write_all(log_fd, "\n", 1, &written) : 0;
    if (error != 0)
        return error;
    error = write_all(log_fd, bytes, length, &written);
    cut = written > 0 && written < length;
    return error;
}

/* Under the lock, which it releases. */
static void write_log(const char *pattern, enum output_kind kind, const char *bytes, size_t length)
{
    static const char *const lost[OUTPUT_KINDS] = {"lines of the log are lost",
                                                   "the summary is lost"};
    writes = true;
    bool ours = file_is(log_fd, &log_file);
    bool child = opened_by && pattern && strstr(pattern, "%p") && opened_by != getpid();
    if (child && ours)
        close(log_fd);
    /* The program has closed it, or fork() has copied descriptors before memory: the child's memory
     * may name a descriptor that another thread opened in between. */
    if (!ours || child) {
        open_output(pattern);
        ours = file_is(log_fd, &log_file);
    }
    int error = ours ? put_line(bytes, length) : 0;
    if (error != 0 && !log_is_stderr && !full_said[kind]) {
        full_said[kind] = true;
        say_of_file(pattern, "written", error_text(error), lost[kind]);
    }
    writes = false;
    pthread_mutex_unlock(&lock);
}

void output_log(const char *pattern, const char *bytes, size_t length)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    write_log(pattern, OUTPUT_LINES, bytes, length);
    errno = saved;
}

bool output_log_is_stderr(void)
{
    return log_is_stderr;
}

atomic_int output_patience = 1;

bool output_log_in_time(const char *pattern, enum output_kind kind, const char *bytes,
                        size_t length)
{
    if (writes || !monotonic_timed_lock(&lock, 1e3 * atomic_load(&output_patience)))
        return false;
    write_log(pattern, kind, bytes, length);
    return true;
}
