#define _GNU_SOURCE
#include "fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/thread/forks.h"

enum { UNKNOWN, NONE, SERVER };
static atomic_int known;

static bool is_start(const char *option, const char *argument)
{
    return (strcmp(option, "-c") == 0 &&
            strstr(argument, "from multiprocessing.forkserver import main;")) ||
           (strcmp(option, "-m") == 0 && strcmp(argument, "pyspark.daemon") == 0);
}

/* The options of Python's that come before are few. */
static bool was_started_as_server(void)
{
    char words[2048] = "";
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t read = file < 0 ? -1 : file_read(file, words, sizeof words - 1);
    if (file >= 0)
        close(file);
    const char *const end = words + (read > 0 ? read : 0);
    for (const char *word = words; word < end;) {
        const char *next = word + strlen(word) + 1;
        if (next < end && is_start(word, next))
            return true;
        word = next;
    }
    return false;
}

bool fork_server_is_this(void)
{
    int now = atomic_load(&known);
    if (now == UNKNOWN) {
        const int error = errno;
        now = was_started_as_server() ? SERVER : NONE;
        atomic_store(&known, now);
        errno = error;
    }
    return now == SERVER;
}

static void be_none(void)
{
    atomic_store(&known, NONE);
}
FORKS_CHILD(be_none);
