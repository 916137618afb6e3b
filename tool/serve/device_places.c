#include "device_places.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "base/thread/clock.h"
#include "base/thread/monotonic_wait.h"

/* A thread that waits. */
struct waiting {
    struct fair_call *call;
    pthread_cond_t told;
    bool runs;
    struct waiting *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fair_order order = {.places = DEVICE_PLACES, .large_places = DEVICE_LARGE_PLACES};
static struct waiting *all;
static bool closed;

struct fair_process *device_places_join(uint64_t user, double weight, int pid)
{
    pthread_mutex_lock(&lock);
    struct fair_process *const process = fair_order_join(&order, user, weight, pid);
    pthread_mutex_unlock(&lock);
    return process;
}

void device_places_leave(struct fair_process *process)
{
    pthread_mutex_lock(&lock);
    fair_order_leave(process);
    pthread_mutex_unlock(&lock);
}

/* With the lock: has those run that may. */
static void tell_next(void)
{
    const struct fair_call *next;
    while (!closed && (next = fair_order_next(&order, accel_now_ms())))
        for (struct waiting *w = all; w; w = w->next)
            if (w->call == next) {
                w->runs = true;
                pthread_cond_signal(&w->told);
            }
}

/* With the lock: gets a place, or does not. */
static void await_turn(struct waiting *w, double most_ms)
{
    const struct timespec until = monotonic_deadline(most_ms);
    monotonic_condition(&w->told);
    w->next = all;
    all = w;
    tell_next();
    while (!w->runs && !closed && pthread_cond_timedwait(&w->told, &lock, &until) != ETIMEDOUT)
        continue;
    struct waiting **at = &all;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_cond_destroy(&w->told);
}

bool device_places_take(struct fair_process *process, bool large, double most_ms,
                        struct fair_call *call, double *waited_ms)
{
    struct waiting w = {.call = call};
    const double came_ms = accel_now_ms();
    pthread_mutex_lock(&lock);
    fair_order_wait(&order, call, process, large, came_ms);
    await_turn(&w, most_ms);
    if (!w.runs)
        fair_order_cancel(call);
    pthread_mutex_unlock(&lock);
    *waited_ms = accel_now_ms() - came_ms;
    return w.runs;
}

void device_places_give(struct fair_call *call, bool counts)
{
    pthread_mutex_lock(&lock);
    fair_order_end(&order, call, counts, accel_now_ms());
    tell_next();
    pthread_mutex_unlock(&lock);
}

void device_places_close(void)
{
    pthread_mutex_lock(&lock);
    closed = true;
    for (struct waiting *w = all; w; w = w->next)
        pthread_cond_signal(&w->told);
    pthread_mutex_unlock(&lock);
}

struct device_places_count device_places_count(void)
{
    pthread_mutex_lock(&lock);
    struct device_places_count count = {.running = order.running};
    for (const struct waiting *w = all; w; w = w->next)
        *(w->call->large ? &count.waiting_large : &count.waiting_small) += 1;
    pthread_mutex_unlock(&lock);
    return count;
}
