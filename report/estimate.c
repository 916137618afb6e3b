#define _GNU_SOURCE
#include "estimate.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/forks.h"
#include "dispatch/cost/figures.h"
#include "base/held_signals.h"
#include "base/say.h"
#include "base/text.h"

static const struct accel_settings *settings;
static bool on; /* constant after the start */
static int64_t memory;
static struct estimate_sums *sums; /* by routine; NULL: not yet, or there is no room */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

void estimate_start(const struct accel_settings *with)
{
    int64_t bytes = 0;
    settings = with;
    if (!figures_set_gpu_named(settings->estimate, &bytes)) {
        accel_say("no GPU is known as %s: nothing is estimated", settings->estimate);
        return;
    }
    memory = settings->memory_bytes ? settings->memory_bytes
             : bytes                ? (int64_t)((double)bytes * settings->memory_share)
                                    : INT64_MAX;
    on = true;
}

bool estimate_is_on(void)
{
    return on;
}

int64_t estimate_memory(void)
{
    return memory;
}

/* Under the lock: this process's own file. One that has executed another program goes on with it. */
static struct estimate_sums *open_sums(void)
{
    const size_t bytes = accel_routine_count * sizeof *sums;
    char path[PATH_MAX];
    struct accel_text text;
    struct held_signals held;
    void *pages = MAP_FAILED;
    if (!settings->estimate_dir)
        return NULL;
    text_start(&text, path, sizeof path);
    text_string(&text, settings->estimate_dir);
    text_char(&text, '/');
    text_integer(&text, getpid());
    text_end(&text);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    signals_hold(&held);
    bool room = fd >= 0 && posix_fallocate(fd, 0, (off_t)bytes) == 0;
    signals_release(&held, !room);
    if (room)
        pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return pages == MAP_FAILED ? NULL : pages;
}

void estimate_count(const struct accel_routine *routine, const struct accel_decision *decision,
                    double cpu_ms)
{
    pthread_mutex_lock(&lock);
    if (!sums)
        sums = open_sums();
    struct estimate_sums *s = sums ? &sums[routine - accel_routines] : NULL;
    if (s) {
        s->calls++;
        s->cpu_ms += cpu_ms;
    }
    if (s && decision->gpu) {
        s->gpu_calls++;
        s->gpu_cpu_ms += cpu_ms;
        s->est_gpu_ms += decision->est_gpu_ms;
        if (decision->est_gpu_ms > cpu_ms) {
            s->lost_calls++;
            s->lost_ms += decision->est_gpu_ms - cpu_ms;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The child of a fork counts for itself. */
static void leave_to_parent(void)
{
    sums = NULL; /* the parent's stay mapped, and are not touched */
}
FORKS_CHILD(leave_to_parent);
