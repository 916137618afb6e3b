#define _GNU_SOURCE
#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/text/error_text.h"
#include "base/file/file_identity.h"
#include "base/thread/forks.h"
#include "base/thread/signal_mask.h"
#include "base/host/host.h"
#include "base/output/output.h"
#include "base/output/message.h"
#include "base/text/text.h"
#include "base/host/version.h"

static const char *pattern; /* constant after the start, as `most` */
static int64_t most;

/* ---- The file; under the lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static pid_t owner; /* the process whose file it is */
static int fd = -1;
static struct file_identity identity;
static char path[PATH_MAX];
static int64_t size;    /* the bytes before the array's end */
static int64_t slot_at; /* where the number of events that are left out stands */
static int64_t left_out;
static const char *full; /* why no more events fit, or NULL */

static const char array_end[] = "\n]\n";
enum { ARRAY_END = sizeof array_end - 1, SLOT = 96 };

/* The name that attempt number 0, 1, ... takes: the pattern's, then with the process, then with the
 * attempt, too. */
static bool name_it(int attempt)
{
    static const char ending[] = ".json";
    struct accel_text text;
    if (!output_expand(pattern, path, sizeof path) || attempt == 0)
        return attempt == 0;
    text_start(&text, path, sizeof path);
    text.length = strlen(path);
    const bool has_ending = text.length >= sizeof ending - 1 &&
                            strcmp(path + text.length - (sizeof ending - 1), ending) == 0;
    text.length -= has_ending ? sizeof ending - 1 : 0;
    text_char(&text, '.');
    text_integer(&text, getpid());
    if (attempt > 1) {
        text_char(&text, '-');
        text_integer(&text, attempt);
    }
    text_string(&text, has_ending ? ending : "");
    return text_end(&text);
}

/* Makes a file that was not there, so that no process overwrites another's. Returns 0 or an errno
 * value. */
static int make_file(void)
{
    enum { ATTEMPTS = 100 };
    int made = -1;
    for (int attempt = 0; made < 0 && attempt < ATTEMPTS; attempt++) {
        if (!name_it(attempt))
            return ENAMETOOLONG;
        made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (made < 0 && errno != EEXIST)
            return errno;
    }
    if (made < 0)
        return EEXIST;
    fd = file_move_high(made);
    const int error = fd < 0 ? errno : file_identify(fd, &identity) ? 0 : EIO;
    if (error != 0)
        unlink(path);
    return error;
}

/* Writes `events`, a comma before them unless they are the first, and the array's end. Returns 0 or
 * an errno value; then the file is as before. */
static int write_events(const char *events, size_t length)
{
    const bool first = size == 0;
    const struct iovec parts[] = {{(void *)(uintptr_t)(first ? "[\n" : ",\n"), 2},
                                  {(void *)(uintptr_t)events, length},
                                  {(void *)(uintptr_t)array_end, ARRAY_END}};
    const int64_t bytes = 2 + (int64_t)length + ARRAY_END;
    ssize_t written;
    do
        written = pwritev(fd, parts, 3, size);
    while (written < 0 && errno == EINTR);
    if (written == bytes) {
        size += bytes - ARRAY_END;
        return 0;
    }
    /* Of a write that was cut, the next one tells the reason. */
    const bool is_told = written < 0 || pwrite(fd, array_end, 1, size + written) < 0;
    const int error = is_told ? errno : ENOSPC;
    if (written > 0 && !first && pwrite(fd, array_end, ARRAY_END, size) == ARRAY_END &&
        ftruncate(fd, size + ARRAY_END) != 0)
        return error;
    return error;
}

/* Writes the first event, which has room for the number of those that are left out. */
static int write_head(void)
{
    char buffer[512], host[HOST_BYTES];
    struct accel_text text;
    host_name(host);
    text_start(&text, buffer, sizeof buffer - SLOT);
    text_string(&text, "{\"ph\": \"M\", \"name\": \"process_labels\", \"pid\": ");
    text_integer(&text, getpid());
    text_string(&text, ", \"tid\": 0, \"args\": {\"labels\": ");
    text_json_string(&text, host);
    text.length--; /* the slot begins with the quotation mark */
    text_string(&text, ", libaccel ");
    text_string(&text, accel_version());
    slot_at = 2 + (int64_t)text.length;
    memset(buffer + text.length, ' ', SLOT);
    memcpy(buffer + text.length, "\"}}", 3);
    return write_events(buffer, text.length + SLOT);
}

static void write_left_out(void)
{
    char buffer[SLOT + 1];
    struct accel_text text;
    text_start(&text, buffer, SLOT - 3);
    text_string(&text, "; ");
    text_integer(&text, left_out);
    text_string(&text, " events left out: ");
    text_string(&text, full);
    text.size = sizeof buffer;
    text_string(&text, "\"}}");
    if (pwrite(fd, buffer, text.length, slot_at) < 0)
        return; /* the disk is gone, too */
}

/* Returns 0 or an errno value; then there is no file. */
static int begin_file(void)
{
    int error = make_file();
    if (error != 0)
        return error;
    error = write_head();
    if (error != 0)
        unlink(path);
    return error;
}

/* Returns whether it could. */
static bool open_file(void)
{
    const bool child = owner != 0;
    owner = getpid();
    if (fd >= 0 && file_is(fd, &identity)) /* a parent's */
        close(fd);
    fd = -1;
    size = left_out = 0;
    full = NULL;
    const int error = begin_file();
    if (error != 0) {
        accel_message("ACCEL_TRACE: %s cannot be written (%s); there is no trace", path,
                      error_text(error));
        if (fd >= 0)
            close(fd);
        fd = -1;
        return false;
    }
    char asked[PATH_MAX];
    if (!child && output_expand(pattern, asked, sizeof asked) && strcmp(asked, path) != 0)
        accel_message("ACCEL_TRACE: %s is there already; the trace goes to %s", asked, path);
    return true;
}

/* Returns whether the file is open: the program may have closed it. */
static bool is_open(void)
{
    if (fd < 0 || file_is(fd, &identity))
        return fd >= 0;
    fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && !file_is(fd, &identity)) {
        close(fd);
        fd = -1;
    }
    return fd >= 0;
}

/* Returns whether all was written that was to be. */
static bool put_events(const char *events, size_t length, int count)
{
    if (owner != getpid() && !open_file())
        return false;
    if (!is_open())
        return true;
    if (!full && size + 2 + (int64_t)length + ARRAY_END > most)
        full = "the file has its full size";
    if (!full) {
        const int error = write_events(events, length);
        full = error != 0 ? error_text(error) : NULL;
    }
    if (full) {
        left_out += count;
        write_left_out();
    }
    return !full;
}

void trace_file_put(const char *events, size_t length, int count)
{
    const int saved = errno;
    struct signal_mask held;
    signals_hold_all(&held);
    pthread_mutex_lock(&lock);
    const bool written = put_events(events, length, count);
    pthread_mutex_unlock(&lock);
    signals_release(&held, !written);
    errno = saved;
}

void trace_file_start(const char *to, int64_t most_bytes)
{
    pattern = to;
    most = most_bytes;
}
