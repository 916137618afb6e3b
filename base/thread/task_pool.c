#define _GNU_SOURCE
#include "task_pool.h"

#include <pthread.h>

#include "forks.h"
#include "signal_mask.h"
#include "thread_spawn.h"
#include "monotonic_wait.h"

/* A thread that has had nothing to do for so long ends. */
#define IDLE_MS 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static pthread_cond_t tasks_come;
static bool made;                                 /* tasks_come */
static struct pooled_task *first, **end = &first; /* that no thread has begun */
static int waiting;                               /* of these tasks */
static int threads, idle;

/* With the lock. */
static struct pooled_task *take_first(void)
{
    struct pooled_task *task = first;
    if (!task)
        return NULL;
    first = task->next;
    if (!first)
        end = &first;
    waiting--;
    return task;
}

/* With the lock, which it releases meanwhile. Returns whether there is a task. */
static bool wait_for_task(void)
{
    const struct timespec until = monotonic_deadline(IDLE_MS);
    int result = 0;
    idle++;
    while (!first && result == 0)
        result = pthread_cond_timedwait(&tasks_come, &lock, &until);
    idle--;
    return first != NULL;
}

static void *run_task_thread(void *unused)
{
    sigset_t signals;
    (void)unused;
    thread_spawn_begin("accel-part");
    signals_but_faults(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    pthread_mutex_lock(&lock);
    do {
        for (struct pooled_task *task; (task = take_first()) != NULL;) {
            pthread_mutex_unlock(&lock);
            task->run(task);
            pthread_mutex_lock(&lock);
        }
    } while (wait_for_task());
    threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool task_pool_give(struct pooled_task *task)
{
    bool has_thread = true;
    pthread_mutex_lock(&lock);
    if (!made)
        monotonic_condition(&tasks_come);
    made = true;
    task->next = NULL;
    *end = task;
    end = &task->next;
    waiting++;
    if (waiting > idle) {
        has_thread = threads < TASK_POOL_MOST && thread_spawn(run_task_thread, NULL, 0);
        threads += has_thread;
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&tasks_come);
    return has_thread;
}

bool task_pool_take_back(struct pooled_task *task)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (struct pooled_task **at = &first; *at && !found; at = &(*at)->next)
        if (*at == task) {
            *at = task->next;
            if (!*at)
                end = at;
            waiting--;
            found = true;
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

/* The child of a fork has none of the threads, and none of the tasks' callers. */
static void forget_all(void)
{
    made = false;
    first = NULL;
    end = &first;
    waiting = threads = idle = 0;
}
FORKS_CHILD(forget_all);
