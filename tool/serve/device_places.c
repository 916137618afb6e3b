#include "device_places.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "base/thread/clock.h"
#include "base/thread/monotonic_wait.h"
#include "recent_calls.h"

/* A thread that waits. */
struct waiting {
    struct fair_call *call;
    pthread_cond_t told;
    bool runs;
    struct waiting *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fair_order order;
static struct waiting *all;
static struct device_lane *lanes;
static struct recent_calls recent;
static bool closed;

void device_places_open(int devices)
{
    fair_order_begin(&order, devices, DEVICE_PLACES, DEVICE_LARGE_PLACES);
}

/* ---- What lanes are told ---- */

/* With the lock: processes that have calls which wait, small ones and large ones. */
static void count_processes(int count[2])
{
    count[0] = count[1] = 0;
    for (const struct fair_user *user = order.users; user; user = user->next)
        for (const struct fair_process *process = user->processes; process; process = process->next)
            for (int large = 0; large < 2; large++) {
                const struct fair_call *call = process->first;
                while (call && call->large != large)
                    call = call->next;
                count[large] += call != NULL;
            }
}

static int running_calls(const struct fair_device *device, bool large)
{
    return large ? device->large_running : device->running - device->large_running;
}

/* With the lock: for a call that finds no place. Before it, a call of each other process gets one
 * that has calls which wait, and those of its own do. */
static double wait_ms(const struct fair_process *process, bool large, const int processes[2])
{
    int running[2] = {0, 0}, own = 0;
    for (int i = 0; i < order.devices; i++)
        for (int k = 0; k < 2; k++)
            running[k] += running_calls(&order.device[i], k);
    for (const struct fair_call *call = process->first; call; call = call->next)
        own += call->large == large;
    return recent_calls_wait_ms(&recent, large, running, processes[large] - (own > 0) + own);
}

/* With the lock. */
static void tell_lane(const struct device_lane *lane, const int processes[2])
{
    for (int large = 0; large < 2; large++) {
        int device;
        const bool at_once = fair_order_has_place(&order, lane->process, large, &device);
        const int running = order.device[device].running;
        const double us = at_once ? 0 : 1e3 * wait_ms(lane->process, large, processes);
        atomic_store_explicit(&lane->load->call[large].wait_us,
                              us < UINT32_MAX ? (uint32_t)us : UINT32_MAX, memory_order_relaxed);
        /* One that waits has the place of one that has ended. */
        atomic_store_explicit(&lane->load->call[large].beside,
                              (uint32_t)(at_once || running == 0 ? running : running - 1),
                              memory_order_relaxed);
    }
    atomic_store_explicit(&lane->load->slower_percent,
                          (uint32_t)(100 * recent_calls_slower(&recent)), memory_order_relaxed);
}

/* A lane whose call comes or ends is told at once, others at most so often. */
#define TELL_MS 1

/* With the lock. own: the lane; NULL: all. */
static void tell_lanes(const struct device_lane *own, double now_ms)
{
    static double told_ms;
    int processes[2];
    count_processes(processes);
    const bool tells_all = !own || now_ms - told_ms >= TELL_MS;
    if (tells_all)
        told_ms = now_ms;
    else
        tell_lane(own, processes);
    for (const struct device_lane *lane = tells_all ? lanes : NULL; lane; lane = lane->next)
        tell_lane(lane, processes);
}

void device_places_tell(void)
{
    pthread_mutex_lock(&lock);
    tell_lanes(NULL, accel_now_ms());
    pthread_mutex_unlock(&lock);
}

/* ---- Who has places ---- */

bool device_places_join(struct device_lane *lane, uint64_t user, double weight, int pid,
                        struct wire_load *load)
{
    pthread_mutex_lock(&lock);
    *lane = (struct device_lane){
        .process = fair_order_join(&order, user, weight, pid), .load = load, .next = lanes};
    if (lane->process) {
        lanes = lane;
        tell_lanes(lane, accel_now_ms());
    }
    pthread_mutex_unlock(&lock);
    return lane->process != NULL;
}

void device_places_leave(struct device_lane *lane)
{
    if (!lane->process)
        return;
    pthread_mutex_lock(&lock);
    struct device_lane **at = &lanes;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    fair_order_leave(&order, lane->process);
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
static void await_turn(struct waiting *w, const struct device_lane *lane, double most_ms)
{
    const struct timespec until = monotonic_deadline(most_ms);
    monotonic_condition(&w->told);
    w->next = all;
    all = w;
    tell_next();
    if (!w->runs)
        tell_lanes(lane, accel_now_ms());
    while (!w->runs && !closed && pthread_cond_timedwait(&w->told, &lock, &until) != ETIMEDOUT)
        continue;
    struct waiting **at = &all;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_cond_destroy(&w->told);
}

bool device_places_take(struct device_lane *lane, bool large, double most_ms,
                        struct fair_call *call, double *waited_ms)
{
    struct waiting w = {.call = call};
    const double came_ms = accel_now_ms();
    pthread_mutex_lock(&lock);
    fair_order_wait(&order, call, lane->process, large, came_ms);
    await_turn(&w, lane, most_ms);
    if (!w.runs)
        fair_order_cancel(call);
    *waited_ms = accel_now_ms() - came_ms;
    tell_lanes(lane, came_ms + *waited_ms);
    pthread_mutex_unlock(&lock);
    return w.runs;
}

int device_places_device(const struct device_lane *lane)
{
    pthread_mutex_lock(&lock);
    const int device = lane->process->device;
    pthread_mutex_unlock(&lock);
    return device;
}

void device_places_give(struct device_lane *lane, struct fair_call *call, bool counts,
                        double alone_ms)
{
    pthread_mutex_lock(&lock);
    const double now_ms = accel_now_ms();
    fair_order_end(&order, call, counts, now_ms);
    if (counts)
        recent_calls_note(&recent, call->large, now_ms - call->began_ms, alone_ms, DEVICE_PLACES);
    tell_next();
    tell_lanes(lane, now_ms);
    pthread_mutex_unlock(&lock);
}

bool device_places_leave_out(int device)
{
    pthread_mutex_lock(&lock);
    const bool is_news = fair_order_leave_out(&order, device);
    tell_next();
    pthread_mutex_unlock(&lock);
    return is_news;
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
    struct device_places_count count = {.running = 0};
    for (int i = 0; i < order.devices; i++) {
        count.device[i] = order.device[i];
        count.running += order.device[i].running;
    }
    for (const struct waiting *w = all; w; w = w->next)
        *(w->call->large ? &count.waiting_large : &count.waiting_small) += 1;
    pthread_mutex_unlock(&lock);
    return count;
}
