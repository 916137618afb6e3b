/*
 * Threads of libaccel's own that help a calling thread with work in numbered tasks, such as to pack
 * the chunks of a matrix. They start at the first job that may be helped, stay awake for some
 * microseconds between its tasks, and end when they have had nothing to do for a while. They take
 * no signal of the program's except those of their own faults: a handler of the program's may
 * provide pages when they are touched. A fork's child starts with none.
 *
 * All callers share the threads in turn. There are at most COPY_POOL_MOST. With the calling thread
 * they are no more than the CPUs that the process may use, and no more than its share of the
 * machine's CPUs among the MPI ranks there. Fewer help, or none, while others compute on these CPUs
 * (helper_limit.h). If no thread can be started, the calling thread does all tasks.
 */
#ifndef ACCEL_COPY_POOL_H
#define ACCEL_COPY_POOL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* On an H100's host with 16 CPUs, calls took as long with 11 and 15 threads as with 13
 * (docs/measurements). */
enum { COPY_POOL_MOST = 13, COPY_POOL_TASKS = 128 };

/* The work of one calling thread. */
struct copy_pool_job {
    /* Does a task. Several threads call it at once, for different tasks. */
    void (*task)(void *context, int64_t number);
    void *context;
    /* For copy_pool.c alone. Tasks below `open` may be begun, those below `claimed` have been
     * begun, those below `done` are done, as far as the calling thread has looked. finished[i %
     * COPY_POOL_TASKS]: task i, from `done` on, is done. */
    _Atomic int64_t open, claimed;
    int64_t done;
    atomic_bool finished[COPY_POOL_TASKS];
    atomic_bool waiting; /* the calling thread sleeps until more are done */
    atomic_int workers;  /* threads that are at it */
    int helpers;         /* that may help, as it began; 0: nobody */
    double looked_ms;    /* since when copy_pool_attend() has looked in vain; 0: it has not */
    pthread_cond_t news;
    sigset_t before;
};

/* Sets the number of processes that share this machine's CPUs: MPI ranks. 1 without a call. */
void copy_pool_share(int processes);

/* Returns how many threads could help now, as far as CPUs go. Cheap. */
int copy_pool_size(void);

/* Returns how many threads may help at the moment, so that they do not take CPUs from the program's
 * own. */
int copy_pool_allowed(void);

/* Begin and end a job. The caller has set `task` and `context`; no task is open yet.
 * copy_pool_begin() returns how many threads may help; if some do, the calling thread gets no
 * signals until copy_pool_end(), except those of its own faults: a handler must not leave while
 * others work on the program's memory. copy_pool_end() waits until no thread works on the job, and
 * leaves open tasks undone that none has begun. */
int copy_pool_begin(struct copy_pool_job *job, bool helped);
void copy_pool_end(struct copy_pool_job *job);

/* Lets the tasks below `open` be done. At most COPY_POOL_TASKS of them are not done yet. */
void copy_pool_open(struct copy_pool_job *job, int64_t open);

/* Returns the number of tasks, from the first on, that are done: their results are written. */
int64_t copy_pool_done(struct copy_pool_job *job);

/* Does the next open task on the calling thread. Returns false if all open ones have been begun. */
bool copy_pool_help(struct copy_pool_job *job);

/* Does open tasks, and waits for those that other threads have begun, until the first `done` tasks
 * are done. They must be open. */
void copy_pool_finish(struct copy_pool_job *job, int64_t done);

/* For a calling thread that has other things to look after, until the first `done` tasks are done:
 * they are open. If few threads help, does an open task, or waits. If many do, looks for some
 * microseconds whether the tasks are done; after a while in vain, it does as if few helped. */
void copy_pool_attend(struct copy_pool_job *job, int64_t done);

/* Does a whole job of so many tasks, from its begin to its end. */
void copy_pool_do(struct copy_pool_job *job, int64_t tasks, bool helped);

#endif
