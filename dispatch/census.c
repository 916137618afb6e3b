#define _GNU_SOURCE
#include "census.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/thread/signal_mask.h"
#include "base/text/text.h"

static const char *file; /* constant after the start */

/* The records of the file that this process has written. */
enum { NOTED = 64 };
static struct {
    const struct dispatch_library *library;
    int threads;
    bool known;
} noted[NOTED];
static int count;
static bool is_held;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

void census_start(const struct accel_settings *settings)
{
    file = settings->called;
}

bool census_is_on(void)
{
    return file;
}

/* Returns the path in a form that is right in another folder and another process. Links in an
 * absolute path stay: a library looks for other libraries beside the name that it was found by. */
static const char *whole_path(const char *path, char whole[PATH_MAX])
{
    if (!*path)
        path = "/proc/self/exe"; /* the program itself */
    else if (*path == '/')
        return path;
    return realpath(path, whole) ? whole : path;
}

/* One write(): records of several processes do not mix. */
static bool write_record(int number, int other, const char *symbol, const char *path)
{
    char record[PATH_MAX + 300], whole[PATH_MAX];
    struct accel_text text;
    struct signal_mask held;
    text_start(&text, record, sizeof record);
    text_integer(&text, number);
    text_char(&text, ' ');
    text_integer(&text, other);
    text_char(&text, ' ');
    text_string(&text, symbol);
    text_char(&text, ' ');
    text_string(&text, whole_path(path, whole));
    text_char(&text, '\0');
    int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    signals_hold(&held);
    bool written = write(fd, record, text.length) == (ssize_t)text.length;
    signals_release(&held, !written);
    close(fd);
    return written;
}

void census_note(const struct dispatch_library *library, const char *symbol, int width)
{
    const bool known = width != CENSUS_UNKNOWN;
    int threads = library->threads(library), i = 0;
    if (!library->path)
        return;
    pthread_mutex_lock(&lock);
    while (i < count &&
           (noted[i].library != library || noted[i].threads != threads || noted[i].known != known))
        i++;
    if (i == count && i < NOTED && write_record(threads, width, symbol, library->path)) {
        noted[i].library = library;
        noted[i].threads = threads;
        noted[i].known = known;
        count++;
    }
    pthread_mutex_unlock(&lock);
}

void census_note_hold(bool held)
{
    pthread_mutex_lock(&lock);
    if (held != is_held && write_record(-1, held, "-", ""))
        is_held = held;
    pthread_mutex_unlock(&lock);
}
