#define _GNU_SOURCE
#include "contention.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/shared_file.h"
#include "base/thread/clock.h"
#include "base/thread/forks.h"
#include "base/thread/signal_mask.h"

enum { PAGE = CONTENTION_ENTRIES * sizeof(struct contention_entry) };

static _Atomic int cpu_calls;

/* ---- The page ---- */

/* A file of another length is another version's. */
static bool is_of_this_version(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_size == PAGE || st.st_size == 0);
}

/* Allocates the file now: a write into the page of a file on a full file system would end the
 * process. */
static bool has_room(int fd)
{
    struct signal_mask held;
    signals_hold(&held);
    bool room = posix_fallocate(fd, 0, PAGE) == 0;
    signals_release(&held, !room);
    return room;
}

void contention_start(struct contention *load, const char *device)
{
    int saved = errno;
    int fd = shared_file_open(device);
    if (fd >= 0 && is_of_this_version(fd) && has_room(fd)) {
        void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory != MAP_FAILED)
            atomic_store(&load->page, memory);
    }
    if (fd >= 0)
        close(fd);
    errno = saved;
}

/* ---- The GPU ---- */

static struct contention_entry *entries_of(struct contention *load)
{
    struct contention_entry *shared = atomic_load(&load->page);
    return shared ? shared : load->own;
}

int contention_enter_gpu(struct contention *load, double ms)
{
    struct contention_entry *entries = entries_of(load);
    int32_t self = (int32_t)getpid();
    for (int i = 0; i < CONTENTION_ENTRIES; i++) {
        int32_t nobody = 0;
        if (atomic_load_explicit(&entries[i].owner, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&entries[i].owner, &nobody, self)) {
            const double end_ms = accel_now_ms() + (ms < 1e9 ? ms : 1e9);
            atomic_store(&entries[i].end_us, (int64_t)(end_ms * 1e3));
            return i;
        }
    }
    return -1;
}

void contention_leave_gpu(struct contention *load, int number)
{
    struct contention_entry *entries = entries_of(load);
    if (number < 0)
        return;
    /* A process that took this one for dead may have given the entry to another. */
    int32_t self = (int32_t)getpid();
    atomic_compare_exchange_strong(&entries[number].owner, &self, 0);
}

/* Frees the entry of a process that was killed. */
static bool is_dead(struct contention_entry *entry, int32_t owner)
{
    int saved = errno;
    bool dead = owner <= 0 || (kill(owner, 0) != 0 && errno == ESRCH);
    errno = saved;
    if (dead)
        atomic_compare_exchange_strong(&entry->owner, &owner, 0);
    return dead;
}

double contention_gpu_ms(struct contention *load)
{
    struct contention_entry *entries = entries_of(load);
    int32_t self = 0;
    double now_ms = 0, sum_ms = 0;
    for (int i = 0; i < CONTENTION_ENTRIES; i++) {
        int32_t owner = atomic_load_explicit(&entries[i].owner, memory_order_relaxed);
        if (owner == 0)
            continue;
        if (self == 0) {
            self = (int32_t)getpid();
            now_ms = accel_now_ms();
        }
        if (owner != self && is_dead(&entries[i], owner))
            continue;
        const int64_t end_us = atomic_load_explicit(&entries[i].end_us, memory_order_relaxed);
        const double left_ms = (double)end_us * 1e-3 - now_ms;
        if (left_ms > 0)
            sum_ms += left_ms;
    }
    return sum_ms;
}

/* ---- The CPU ---- */

int contention_enter_cpu(void)
{
    return atomic_fetch_add(&cpu_calls, 1) + 1;
}

void contention_leave_cpu(void)
{
    atomic_fetch_sub(&cpu_calls, 1);
}

int contention_cpu_calls(void)
{
    return atomic_load_explicit(&cpu_calls, memory_order_relaxed);
}

void contention_fork_child(struct contention *load)
{
    atomic_store(&load->page, NULL);
    for (int i = 0; i < CONTENTION_ENTRIES; i++)
        atomic_store(&load->own[i].owner, 0);
}

/* The child of a fork has none of the other threads. */
static void count_alone(void)
{
    if (atomic_load(&cpu_calls))
        atomic_store(&cpu_calls, 0);
}
FORKS_CHILD(count_alone);
