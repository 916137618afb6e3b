#define _GNU_SOURCE
#include "estimate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "figures.h"
#include "say.h"
#include "text.h"

struct sums {
    int64_t calls, gpu_calls, lost_calls;
    double cpu_ms, gpu_cpu_ms, est_gpu_ms, lost_ms;
};

static const struct accel_settings *settings;
static bool on; /* constant after the start */
static int64_t memory;
static struct sums *sums; /* by routine */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void estimate_start(const struct accel_settings *with)
{
    int64_t bytes = 0;
    settings = with;
    if (!figures_set_gpu_named(settings->estimate, &bytes)) {
        accel_say("no GPU is known as %s: nothing is estimated", settings->estimate);
        return;
    }
    void *pages = mmap(NULL, accel_routine_count * sizeof *sums, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return;
    sums = pages;
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

void estimate_count(const struct accel_routine *routine, const struct accel_decision *decision,
                    double cpu_ms)
{
    struct sums *s = &sums[routine - accel_routines];
    pthread_mutex_lock(&lock);
    s->calls++;
    s->cpu_ms += cpu_ms;
    if (decision->gpu) {
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

static void put_sums(struct accel_text *text, const char *name, const struct sums *s)
{
    const int64_t calls[] = {s->calls, s->gpu_calls, s->lost_calls};
    const double ms[] = {s->cpu_ms, s->gpu_cpu_ms, s->est_gpu_ms, s->lost_ms};
    text_string(text, name);
    text_char(text, ' ');
    text_integer(text, calls[0]);
    text_char(text, ' ');
    text_decimal(text, ms[0]);
    text_char(text, ' ');
    text_integer(text, calls[1]);
    text_char(text, ' ');
    text_decimal(text, ms[1]);
    text_char(text, ' ');
    text_decimal(text, ms[2]);
    text_char(text, ' ');
    text_integer(text, calls[2]);
    text_char(text, ' ');
    text_decimal(text, ms[3]);
    text_char(text, '\n');
}

/* A descriptor of this process's own file, -1 where there is none. */
static int open_file(void)
{
    char path[PATH_MAX];
    struct accel_text text;
    text_start(&text, path, sizeof path - 1);
    text_string(&text, settings->estimate_dir);
    text_char(&text, '/');
    text_integer(&text, getpid());
    path[text.length] = 0;
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void estimate_end(void)
{
    int fd = -1;
    if (!on || !settings->estimate_dir || pthread_mutex_trylock(&lock) != 0)
        return;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        char line[256];
        struct accel_text text;
        if (sums[i].calls == 0)
            continue;
        if (fd < 0 && (fd = open_file()) < 0)
            break;
        text_start(&text, line, sizeof line);
        put_sums(&text, accel_routines[i].name, &sums[i]);
        if (write(fd, line, text.length) != (ssize_t)text.length)
            break; /* the tool sees a line cut short */
    }
    if (fd >= 0)
        close(fd);
    pthread_mutex_unlock(&lock);
}

void estimate_fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
    if (on)
        memset(sums, 0, accel_routine_count * sizeof *sums);
}
