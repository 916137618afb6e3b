/*
 * Takes the pages of large fresh memory from the kernel ahead of those who write to it. To clear a
 * page takes as long as to write it; and threads that touch the same huge page for the first time
 * at once each clear one, of which all but one are thrown away. It is no failure if that cannot be
 * done: whoever writes takes the pages then. (Linux 5.14; MADV_POPULATE_WRITE in madvise(2).)
 */
#ifndef ACCEL_PREFAULT_H
#define ACCEL_PREFAULT_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs of memory, `bytes` long, and so many bytes apart from one's begin to the next one's. */
struct prefault_runs {
    char *first;
    int64_t bytes, step, count;
};

/* In the caller's memory, from prefault_begin() to prefault_end(). */
struct prefault {
    const struct prefault_runs *runs;
    int sets;
    _Atomic int64_t next; /* chunk of runs, by number over all sets */
    atomic_bool stop;
    int threads; /* at work, with the lock */
    pthread_mutex_t lock;
    pthread_cond_t done;
    sigset_t before; /* the caller's signals */
};

enum { PREFAULT_MOST = 8 }; /* threads */

/* Starts `threads` threads that take the pages of `sets` sets of runs, the first set first, and
 * returns at once. Until prefault_end() the calling thread handles no signals, except for its own
 * faults: a handler that jumped out of the call would leave the threads at work. The caller keeps
 * the runs and their memory until then. The contents of the memory do not change. */
void prefault_begin(struct prefault *p, const struct prefault_runs *runs, int sets, int threads);

/* Ends within some milliseconds, whether or not all pages are there. */
void prefault_end(struct prefault *p);

#endif
