#define _GNU_SOURCE
#include "estimate.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/thread/signal_mask.h"
#include "base/text/text.h"
#include "ops/op.h"
#include "report.h"

/* Constant after the start: */
static const char *folder;
static const struct simulated_start_rules *rules;

static struct estimate_sums *sums; /* by routine; NULL: no call yet, or no room for the file */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static struct simulated_start start; /* under it */

/* With CUDA's start, products of real numbers are loaded (dispatch/device.c). */
static struct simulated_kernels kernels_of(const struct accel_routine *routine)
{
    const bool product = accel_op_of(routine)->cost->sample == ACCEL_SAMPLE_PRODUCT;
    return (struct simulated_kernels){.with_start = product && !accel_is_complex(routine->dtype),
                                      .solver = accel_uses_solver(routine)};
}

/* Opens this process's file; a process that has executed another program goes on with it. Under the
 * lock. */
static struct estimate_sums *open_sums(void)
{
    const size_t bytes = accel_routine_count * sizeof *sums;
    char path[PATH_MAX];
    struct accel_text text;
    struct signal_mask held;
    void *pages = MAP_FAILED;
    if (!folder)
        return NULL;
    text_start(&text, path, sizeof path);
    text_string(&text, folder);
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

static void count_estimate(const struct accel_record *record)
{
    const struct accel_decision *decision = &record->decision;
    if (record->ms < 0)
        return;
    /* Calls inside one that stays on the CPU are counted for themselves. */
    const double cpu_ms = record->ms - (decision->gpu ? 0 : record->in.ms);
    pthread_mutex_lock(&lock);
    if (!sums)
        sums = open_sums();
    struct estimate_sums *s = sums ? &sums[record->call->routine - accel_routines] : NULL;
    if (s) {
        s->calls++;
        s->cpu_ms += cpu_ms;
    }
    if (s && decision->gpu) {
        if (s->gpu_calls++ == 0)
            s->kernels = kernels_of(record->call->routine);
        s->gpu_cpu_ms += cpu_ms;
        s->est_gpu_ms += decision->est_gpu_ms;
        if (decision->est_gpu_ms > cpu_ms) {
            s->lost_calls++;
            s->lost_ms += decision->est_gpu_ms - cpu_ms;
        }
        s->saved_ms += simulated_start_call(&start, &s->kernels, rules, record->start_ms, cpu_ms,
                                            decision->est_gpu_ms);
    }
    pthread_mutex_unlock(&lock);
}

/* The child of a fork has a file of its own; the parent's stays mapped, and is not touched. CUDA
 * cannot be used in the child of a process that has started it. */
static void leave_to_parent(void)
{
    if (!sums)
        return;
    sums = NULL;
    start = (struct simulated_start){.never = start.began || start.never};
}
FORKS_CHILD(leave_to_parent);

void estimate_start(const char *in, const struct simulated_start_rules *with)
{
    static const struct report_sink sink = {.decision = count_estimate, .whole_calls = true};
    folder = in;
    rules = with;
    report_subscribe(&sink);
}
