#include "fair_order.h"

#include <stdlib.h>

void fair_order_begin(struct fair_order *order, int devices, int places, int large_places)
{
    *order =
        (struct fair_order){.places = places, .large_places = large_places, .devices = devices};
}

/* ---- Who shares ---- */

static bool is_active(const struct fair_share *share)
{
    return share->waiting + share->running > 0;
}

/* With the calls that run. */
static double had_by(const struct fair_share *share, double now_ms)
{
    return share->had + (share->running * now_ms - share->begun_ms) / share->weight;
}

static void count_begin(struct fair_share *share, double now_ms)
{
    share->waiting--;
    share->running++;
    share->begun_ms += now_ms;
}

/* Who comes has had what the least of those has that are there: no less, as nobody is owed for time
 * in which nothing was asked for. */
static void catch_up(struct fair_share *share, double clock)
{
    if (!is_active(share) && share->had < clock)
        share->had = clock;
}

/* clock: of those among whom it shares. */
static void count_end(struct fair_share *share, const struct fair_call *call, bool counts,
                      double clock, double now_ms)
{
    share->running--;
    share->begun_ms = share->running > 0 ? share->begun_ms - call->began_ms : 0;
    if (counts)
        share->had += (now_ms - call->began_ms) / share->weight;
    else if (share->had < clock)
        share->had = clock;
}

/* ---- The clocks ---- */

/* A clock is the least that those have had who are active; what the last one has had, when none
 * is. It never goes back. */
static void advance(double *clock, bool any, double least, double of_last)
{
    const double now = any ? least : of_last;
    if (now > *clock)
        *clock = now;
}

static void advance_users(struct fair_order *order, double of_last, double now_ms)
{
    bool any = false;
    double least = 0;
    for (const struct fair_user *user = order->users; user; user = user->next)
        if (is_active(&user->share) && (!any || had_by(&user->share, now_ms) < least)) {
            any = true;
            least = had_by(&user->share, now_ms);
        }
    advance(&order->clock, any, least, of_last);
}

static void advance_processes(struct fair_user *user, double of_last, double now_ms)
{
    bool any = false;
    double least = 0;
    for (const struct fair_process *process = user->processes; process; process = process->next)
        if (is_active(&process->share) && (!any || had_by(&process->share, now_ms) < least)) {
            any = true;
            least = had_by(&process->share, now_ms);
        }
    advance(&user->share.clock, any, least, of_last);
}

/* ---- Devices ---- */

static bool has_room(const struct fair_order *order, const struct fair_device *device, bool large)
{
    return !device->is_out && device->running < order->places &&
           (!large || device->large_running < order->large_places);
}

/* Whether a process had better go from one device to another: others compute on its own, nobody on
 * that, and where it goes there are no more then than where it comes from. */
static bool had_better_go(const struct fair_device *from, const struct fair_device *to)
{
    return from->running > 0 && to->running == 0 && to->processes + 2 <= from->processes;
}

/* Whether a has fewer calls that run than b, or as many and fewer processes. */
static bool is_freer(const struct fair_device *a, const struct fair_device *b)
{
    return a->running < b->running || (a->running == b->running && a->processes < b->processes);
}

bool fair_order_has_place(const struct fair_order *order, const struct fair_process *process,
                          bool large, int *device)
{
    const struct fair_device *const own = &order->device[process->device], *freest = NULL;
    for (int i = 0; i < order->devices; i++) {
        const struct fair_device *const other = &order->device[i];
        if (has_room(order, other, large) && (!freest || is_freer(other, freest)))
            freest = other;
    }
    if (freest && has_room(order, own, large) && !had_better_go(own, freest))
        freest = own;
    *device = (int)((freest ? freest : own) - order->device);
    return freest != NULL;
}

/* Returns the device with the fewest processes. */
static int emptiest(const struct fair_order *order)
{
    const struct fair_device *found = NULL;
    for (int i = 0; i < order->devices; i++) {
        const struct fair_device *const device = &order->device[i];
        if (!device->is_out && (!found || device->processes < found->processes))
            found = device;
    }
    return found ? (int)(found - order->device) : 0;
}

static void go_to(struct fair_order *order, struct fair_process *process, int device)
{
    order->device[process->device].processes--;
    order->device[device].processes++;
    process->device = device;
}

bool fair_order_leave_out(struct fair_order *order, int device)
{
    const bool is_news = !order->device[device].is_out;
    order->device[device].is_out = true;
    for (struct fair_user *user = order->users; user; user = user->next)
        for (struct fair_process *process = user->processes; process; process = process->next)
            if (process->device == device)
                go_to(order, process, emptiest(order));
    return is_news;
}

/* ---- Users and processes ---- */

static struct fair_user *find_user(struct fair_order *order, uint64_t id, double weight)
{
    struct fair_user *user = order->users;
    while (user && user->id != id)
        user = user->next;
    if (user || !(user = calloc(1, sizeof *user)))
        return user;
    *user = (struct fair_user){.share = {.weight = weight}, .id = id, .next = order->users};
    return order->users = user;
}

void fair_order_free(struct fair_order *order)
{
    for (struct fair_user *user = order->users, *next; user; user = next) {
        next = user->next;
        free(user);
    }
    order->users = NULL;
}

struct fair_process *fair_order_join(struct fair_order *order, uint64_t id, double weight, int pid)
{
    struct fair_user *const user = find_user(order, id, weight);
    struct fair_process *process = user ? user->processes : NULL;
    while (process && process->pid != pid)
        process = process->next;
    if (!process && user && (process = calloc(1, sizeof *process))) {
        *process = (struct fair_process){
            .share = {.weight = 1}, .user = user, .pid = pid, .next = user->processes};
        process->last = &process->first;
        process->device = emptiest(order);
        order->device[process->device].processes++;
        user->processes = process;
    }
    if (process)
        process->lanes++;
    return process;
}

void fair_order_leave(struct fair_order *order, struct fair_process *process)
{
    if (--process->lanes > 0)
        return;
    order->device[process->device].processes--;
    struct fair_process **at = &process->user->processes;
    while (*at != process)
        at = &(*at)->next;
    *at = process->next;
    free(process);
}

/* ---- Calls ---- */

void fair_order_wait(struct fair_order *order, struct fair_call *call, struct fair_process *process,
                     bool large, double now_ms)
{
    struct fair_user *const user = process->user;
    *call = (struct fair_call){
        .process = process, .number = order->calls++, .came_ms = now_ms, .large = large};
    advance_users(order, 0, now_ms);
    advance_processes(user, 0, now_ms);
    catch_up(&user->share, order->clock);
    catch_up(&process->share, user->share.clock);
    user->share.waiting++;
    process->share.waiting++;
    *process->last = call;
    process->last = &call->next;
}

/* Returns a process's first call that has a place. */
static struct fair_call *first_of(const struct fair_order *order,
                                  const struct fair_process *process)
{
    struct fair_call *call = process->first;
    int device;
    while (call && !fair_order_has_place(order, process, call->large, &device))
        call = call->next;
    return call;
}

/* Whether a comes before b: it has had less, or as much and has fewer calls that run, or its call
 * has come first. */
static bool comes_before(const struct fair_share *a, const struct fair_call *call_of_a,
                         const struct fair_share *b, const struct fair_call *call_of_b,
                         double now_ms)
{
    const double had_a = had_by(a, now_ms), had_b = had_by(b, now_ms);
    const double running_a = a->running / a->weight, running_b = b->running / b->weight;
    return had_a < had_b ||
           (!(had_b < had_a) && (running_a < running_b || (!(running_b < running_a) &&
                                                           call_of_a->number < call_of_b->number)));
}

static struct fair_call *next_of_user(const struct fair_order *order, const struct fair_user *user,
                                      double now_ms)
{
    struct fair_call *next = NULL;
    for (const struct fair_process *process = user->processes; process; process = process->next) {
        struct fair_call *const call = first_of(order, process);
        if (call &&
            (!next || comes_before(&process->share, call, &next->process->share, next, now_ms)))
            next = call;
    }
    return next;
}

static void take_out(struct fair_call *call)
{
    struct fair_process *const process = call->process;
    struct fair_call **at = &process->first;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (!call->next)
        process->last = at;
    call->next = NULL;
}

struct fair_call *fair_order_next(struct fair_order *order, double now_ms)
{
    struct fair_call *next = NULL;
    for (const struct fair_user *user = order->users; user; user = user->next) {
        struct fair_call *const call = next_of_user(order, user, now_ms);
        if (call &&
            (!next || comes_before(&user->share, call, &next->process->user->share, next, now_ms)))
            next = call;
    }
    if (!next)
        return NULL;
    take_out(next);
    count_begin(&next->process->share, now_ms);
    count_begin(&next->process->user->share, now_ms);
    fair_order_has_place(order, next->process, next->large, &next->device);
    go_to(order, next->process, next->device);
    order->device[next->device].running++;
    order->device[next->device].large_running += next->large;
    next->began_ms = now_ms;
    return next;
}

void fair_order_cancel(struct fair_call *call)
{
    take_out(call);
    call->process->share.waiting--;
    call->process->user->share.waiting--;
}

void fair_order_end(struct fair_order *order, struct fair_call *call, bool counts, double now_ms)
{
    struct fair_process *const process = call->process;
    struct fair_user *const user = process->user;
    count_end(&process->share, call, counts, user->share.clock, now_ms);
    count_end(&user->share, call, counts, order->clock, now_ms);
    order->device[call->device].running--;
    order->device[call->device].large_running -= call->large;
    advance_users(order, user->share.had, now_ms);
    advance_processes(user, process->share.had, now_ms);
}
