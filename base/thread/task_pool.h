/*
 * Threads of libaccel's own that each run one task of a calling thread, such as a call's part on a
 * further device. They start when there is a task and no thread is idle, and end when they have had
 * nothing to do for a second. They take no signal of the program's except those of their own
 * faults: a handler of the program's may provide pages when they are touched. A fork's child starts
 * with none. All functions are thread-safe.
 */
#ifndef ACCEL_TASK_POOL_H
#define ACCEL_TASK_POOL_H

#include <stdbool.h>

enum { TASK_POOL_MOST = 64 };

/* A task, in memory of the caller's, which stays until it has run or was taken back. */
struct pooled_task {
    void (*run)(struct pooled_task *task); /* may free the task */
    struct pooled_task *next;              /* for task_pool.c alone */
};

/* Gives a task to a thread. If none can be started, it waits until one has time, and this returns
 * false. The caller blocks signals: a handler must not leave meanwhile. */
bool task_pool_give(struct pooled_task *task);

/* Returns whether no thread has begun it; then none will. */
bool task_pool_take_back(struct pooled_task *task);

#endif
