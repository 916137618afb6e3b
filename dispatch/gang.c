#include "gang.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/signal_mask.h"
#include "base/text/text.h"
#include "base/thread/task_pool.h"
#include "base/thread/forks.h"
#include "gpu/exec/blas/peer_tiles.h"
#include "gpu/plan/scheduled.h"
#include "gpu/exec/lapack/solver_shared.h"
#include "report/report.h"

struct gang;

/* A part, the device that is to do it, and what has become of it. */
struct gang_member {
    struct pooled_task task;
    struct gang *gang;
    struct dispatch_device *device;
    double ms; /* estimated */
    struct accel_call call;
    struct gpu_host host;
    enum gpu_status status;
    bool did; /* the device has computed something of the result */
    /* With the gang's lock: */
    /* The part waits until the calling thread has had this computed */
    const struct accel_call *asked;
    bool answer, ended;
    /* What the part tells, until the calling thread passes it on: */
    struct gpu_event *event;
    int events, room;
    struct gpu_steps steps;
};

struct gang {
    const struct accel_call *call;
    struct gpu_host *host; /* the call's link to the layer above */
    struct accel_record *record;
    pthread_t caller;
    pthread_mutex_t lock;
    pthread_cond_t news, answers; /* for the calling thread; for the others */
    int count;
    bool on_cpu;     /* the original has computed a part */
    bool failed;     /* a part, and not for lack of memory alone */
    bool in_other;   /* a part was computed in another precision than native */
    bool threadless; /* a member of a factorisation could not begin */
    void *copy;      /* host memory for accel_cut_by_original(), used after a failure alone */
    struct solver_shared *shared;  /* NULL, or the parts are members of this */
    struct peer_tiles *peer_tiles; /* NULL, or they lend each other operands' tiles */
    struct gang_member member[SPLIT_MOST];
};

/* ---- What parts tell ---- */

/* Without memory, the log lacks the line. */
static void keep_event(struct gang_member *m, const struct gpu_event *event)
{
    if (m->events == m->room) {
        const int room = 2 * m->room + 16;
        struct gpu_event *more = realloc(m->event, (size_t)room * sizeof *more);
        if (!more)
            return;
        m->event = more;
        m->room = room;
    }
    m->event[m->events++] = *event;
}

static void on_event(void *context, const struct gpu_event *event)
{
    keep_event(context, event);
}

static void on_steps(void *context, const struct gpu_steps *steps)
{
    struct gang_member *m = context;
    const size_t bytes = (size_t)steps->count * sizeof *steps->step;
    struct gpu_step *copy = malloc(bytes + 1);
    if (!copy)
        return;
    memcpy(copy, steps->step, bytes);
    free((void *)(uintptr_t)m->steps.step);
    m->steps = *steps;
    m->steps.step = copy;
}

/* Passes on, on the calling thread, what a part has told, and forgets it. */
static void pass_on(struct gang *gang, struct gang_member *m)
{
    for (int i = 0; i < m->events; i++)
        report_event(gang->record, &m->event[i]);
    if (m->steps.step)
        report_steps(gang->record, m->device->name, &m->steps);
    free(m->event);
    free((void *)(uintptr_t)m->steps.step);
    m->event = NULL;
    m->events = m->room = 0;
    m->steps.step = NULL;
}

/* ---- A device's run ---- */

/* Notes what the run of a call, or of a part of one, on a member's device means for that device. On
 * the calling thread. */
static void note_run(struct gang *gang, struct gang_member *m, const struct accel_call *call,
                     const struct gpu_host *host, enum gpu_status status)
{
    m->did = m->did || gpu_is_finished(status);
    gang->host->up_bytes += host->up_bytes;
    gang->host->down_bytes += host->down_bytes;
    gang->host->peer_bytes += host->peer_bytes;
    gang->host->set_up = gang->host->set_up || host->set_up;
    if (status == GPU_OK)
        warm_up_note(m->device, call->routine);
    gang->in_other |= gpu_is_finished(status) && host->precision != GPU_NATIVE;
    quarantine_by_status(m->device, call, host, status);
    device_tidy(m->device);
}

static enum gpu_status run_on(const struct gang_member *m, const struct accel_call *call,
                              struct gpu_host *host)
{
    struct contention *load = &m->device->contention;
    const int number = contention_enter_gpu(load, m->ms);
    const enum gpu_status status = gpu_run(device_gpu(m->device), call, host);
    contention_leave_gpu(load, number);
    return status;
}

/* ---- What a device does not finish; on the calling thread ---- */

static bool by_original(void *context, const struct accel_call *part)
{
    struct gang *gang = context;
    gang->on_cpu = true;
    return accel_cut_by_original(part, gang->copy, gang->host->original, gang->host->context);
}

/* Returns whether a member's device is well, and may compute such calls. */
static bool may_go_on(const struct gang_member *m, const struct accel_call *call)
{
    return device_state(m->device) == DEVICE_READY &&
           !quarantine_has(&m->device->quarantine, call->routine, QUARANTINE_FAILED);
}

static bool all_ended(const struct gang *gang)
{
    for (int i = 0; i < gang->count; i++)
        if (!gang->member[i].ended)
            return false;
    return true;
}

/* Whether a member may be waiting for the calling thread. */
static bool is_waited_for(struct gang *gang)
{
    pthread_mutex_lock(&gang->lock);
    const bool waited = !all_ended(gang);
    pthread_mutex_unlock(&gang->lock);
    return waited;
}

/* Has another device compute a part of the call, or else the original. */
static bool finish_elsewhere(struct gang *gang, const struct gang_member *failing,
                             const struct accel_call *part)
{
    for (int i = 0; i < gang->count; i++) {
        struct gang_member *m = &gang->member[i];
        if (m == failing || !may_go_on(m, part))
            continue;
        struct gpu_host host = {
            .original = by_original,
            .context = gang,
            .hurries = is_waited_for(gang), /* perhaps by who has all stream contexts */
            .precision = failing->host.precision,
            .rates = m->host.rates};
        const enum gpu_status status = run_on(m, part, &host);
        note_run(gang, m, part, &host, status);
        if (status == GPU_LOST)
            return false;
        if (gpu_is_finished(status))
            return true;
    }
    return by_original(gang, part);
}

/* ---- The parts ---- */

/* Has the calling thread see to a part's rest. */
static bool ask_caller(void *context, const struct accel_call *part)
{
    struct gang_member *m = context;
    struct gang *gang = m->gang;
    if (pthread_equal(pthread_self(), gang->caller))
        return finish_elsewhere(gang, m, part);
    pthread_mutex_lock(&gang->lock);
    m->asked = part;
    pthread_cond_signal(&gang->news);
    while (m->asked)
        pthread_cond_wait(&gang->answers, &gang->lock);
    const bool answer = m->answer;
    pthread_mutex_unlock(&gang->lock);
    return answer;
}

static int member_number(const struct gang_member *m)
{
    return (int)(m - m->gang->member);
}

static void run_member(struct gang_member *m)
{
    struct gang *gang = m->gang;
    m->status = run_on(m, &m->call, &m->host);
    if (gang->shared && m->status != GPU_OK)
        solver_shared_stop(gang->shared);
    if (gang->peer_tiles) /* it may not have come to that */
        peer_tiles_leave(gang->peer_tiles, member_number(m), true);
    pthread_mutex_lock(&gang->lock);
    m->ended = true;
    pthread_cond_signal(&gang->news);
    pthread_mutex_unlock(&gang->lock);
}

static void run_task(struct pooled_task *task)
{
    run_member((struct gang_member *)task);
}

/* With the lock, which it releases meanwhile. Returns whether a part asked. */
static bool answer_one(struct gang *gang)
{
    for (int i = 0; i < gang->count; i++) {
        struct gang_member *m = &gang->member[i];
        if (!m->asked)
            continue;
        pthread_mutex_unlock(&gang->lock);
        const bool answer = finish_elsewhere(gang, m, m->asked);
        pthread_mutex_lock(&gang->lock);
        m->answer = answer;
        m->asked = NULL;
        pthread_cond_broadcast(&gang->answers);
        return true;
    }
    return false;
}

/* Runs a part that no thread has begun. With the lock, which it releases meanwhile. Returns whether
 * there was one. */
static bool take_back_one(struct gang *gang)
{
    for (int i = 1; i < gang->count; i++) {
        struct gang_member *m = &gang->member[i];
        if (m->ended || !task_pool_take_back(&m->task))
            continue;
        pthread_mutex_unlock(&gang->lock);
        run_member(m);
        pthread_mutex_lock(&gang->lock);
        return true;
    }
    return false;
}

static void run_members(struct gang *gang)
{
    sigset_t signals, before;
    signals_but_faults(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    bool all_run = true;
    for (int i = 1; i < gang->count; i++)
        all_run &= task_pool_give(&gang->member[i].task);
    gang->threadless = gang->shared && !all_run;
    if (gang->threadless) /* members wait for each other */
        solver_shared_stop(gang->shared);
    if (gang->peer_tiles && !all_run)
        peer_tiles_stop(gang->peer_tiles);
    run_member(&gang->member[0]);
    pthread_mutex_lock(&gang->lock);
    while (!all_ended(gang))
        if (!answer_one(gang) && !take_back_one(gang))
            pthread_cond_wait(&gang->news, &gang->lock);
    pthread_mutex_unlock(&gang->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- Members that wait for each other ---- */

/* Those of a factorisation, and those that lend, with a stream context each: those of two calls at
 * once could wait for each other's. */
static pthread_mutex_t one_waits = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(one_waits);

/* ---- Tiles that the parts lend each other ---- */

/* Adds a member's tiles, by the schedule of which the plan says that its part's be made. */
static bool add_tiles(struct peer_tiles *table, const struct gang_member *m,
                      const struct split_part *part)
{
    struct scheduled scheduled;
    struct schedule s = {.count = 0};
    if (!scheduled_describe(&m->call, &scheduled))
        return false;
    memcpy(scheduled.call.lent, part->lent, sizeof part->lent);
    const int64_t bytes = gpu_info(device_gpu(m->device))->memory_bytes;
    const bool added = schedule_make_by(&s, &part->by, &scheduled.call, &part->rates,
                                        scheduled_memory(&scheduled, bytes)) &&
                       peer_tiles_add(table, member_number(m), &scheduled, &s, part->rates.up);
    schedule_free(&s);
    return added;
}

/* If nothing is lent, or without memory, each part brings all of its operands up. */
static void plan_peer_tiles(struct gang *gang, const struct gang_plan *plan)
{
    _Static_assert((int)PEER_MEMBERS_MOST >= (int)SPLIT_MOST, "a table has all parts of a call");
    int tiles = 0;
    bool added = true;
    if (!split_any_lends(&plan->split))
        return;
    gang->peer_tiles = peer_tiles_new(gang->count);
    for (int i = 0; gang->peer_tiles && i < gang->count; i++) {
        const struct split_part *part = &plan->split.part[i];
        if (split_lends(part)) {
            added = added && add_tiles(gang->peer_tiles, &gang->member[i], part);
            gang->member[i].host.peer_tiles = gang->peer_tiles;
        } else {
            peer_tiles_leave(gang->peer_tiles, i, true);
        }
    }
    if (gang->peer_tiles && added) {
        tiles = peer_tiles_deal(gang->peer_tiles);
        peer_tiles_set_ahead(gang->peer_tiles, plan->split.ahead);
    }
    if (tiles == 0 && gang->peer_tiles) {
        peer_tiles_free(gang->peer_tiles);
        gang->peer_tiles = NULL;
        for (int i = 0; i < gang->count; i++)
            gang->member[i].host.peer_tiles = NULL;
    }
}

/* ---- The whole ---- */

static struct gang *new_gang(const struct gang_plan *plan, const struct accel_call *call,
                             struct gpu_host *host, struct accel_record *record)
{
    struct gang *gang = calloc(1, sizeof *gang);
    if (!gang)
        return NULL;
    gang->call = call;
    gang->host = host;
    gang->record = record;
    gang->caller = pthread_self();
    gang->count = plan->split.count;
    gang->shared = plan->factors ? solver_shared_new(&plan->shared) : NULL;
    pthread_mutex_init(&gang->lock, NULL);
    pthread_cond_init(&gang->news, NULL);
    pthread_cond_init(&gang->answers, NULL);
    for (int i = 0; i < gang->count; i++) {
        const struct split_part *part = &plan->split.part[i];
        struct gang_member *m = &gang->member[i];
        m->task.run = run_task;
        m->gang = gang;
        m->device = plan->device[part->device];
        m->ms = part->ms;
        m->call = plan->factors ? *call : accel_cut_part(call, &part->region);
        m->host = (struct gpu_host){.original = ask_caller,
                                    .event = host->event ? on_event : NULL,
                                    .steps = host->steps ? on_steps : NULL,
                                    .context = m,
                                    .precision = host->precision,
                                    .rates = part->rates,
                                    .shared = gang->shared,
                                    .member = i};
    }
    return gang;
}

static void free_gang(struct gang *gang)
{
    if (gang->shared)
        solver_shared_free(gang->shared);
    if (gang->peer_tiles)
        peer_tiles_free(gang->peer_tiles);
    free(gang->copy);
    pthread_mutex_destroy(&gang->lock);
    pthread_cond_destroy(&gang->news);
    pthread_cond_destroy(&gang->answers);
    free(gang);
}

/* Notes what has become of the parts. Returns the status of the call if no device has done anything
 * of it; else GPU_OK. */
static enum gpu_status note_parts(struct gang *gang)
{
    enum gpu_status none_done = gang->member[0].status;
    for (int i = 0; i < gang->count; i++) {
        struct gang_member *m = &gang->member[i];
        pass_on(gang, m);
        note_run(gang, m, &m->call, &m->host, m->status);
        gang->failed |=
            m->status != GPU_OK && m->status != GPU_NO_MEMORY && m->status != GPU_SHORT_ELSE;
    }
    for (int i = 0; i < gang->count; i++) {
        if (gang->member[i].status == GPU_LOST)
            return GPU_LOST;
        if (gpu_is_finished(gang->member[i].status))
            none_done = GPU_OK;
    }
    return none_done;
}

/* Returns the device behind the one with this number that has done a part, or NULL. */
static const struct dispatch_device *next_named(const struct gang *gang, int number)
{
    const struct dispatch_device *next = NULL;
    for (int i = 0; i < gang->count; i++) {
        const struct dispatch_device *device = gang->member[i].device;
        const int own = gpu_info(device_gpu(device))->index;
        if (gang->member[i].did && own > number &&
            (!next || own < gpu_info(device_gpu(next))->index))
            next = device;
    }
    return next;
}

/* Fills in where the call ran: "gpu0+gpu1", "gpu0+gpu1+cpu". */
static void name_devices(const struct gang *gang)
{
    struct accel_record *record = gang->record;
    struct accel_text text;
    int number = -1;
    text_start(&text, record->devices, sizeof record->devices);
    for (const struct dispatch_device *device; (device = next_named(gang, number)) != NULL;) {
        number = gpu_info(device_gpu(device))->index;
        record->gpu = record->gpu ? record->gpu : gpu_info(device_gpu(device));
        text_string(&text, text.length > 0 ? "+" : "");
        text_string(&text, device->name);
    }
    text_string(&text, gang->on_cpu ? text.length > 0 ? "+cpu" : "cpu" : "");
    text_end(&text);
    record->ran = record->devices;
}

static enum gpu_status run_gang(struct gang *gang)
{
    run_members(gang);
    const enum gpu_status none_done = note_parts(gang);
    if (none_done != GPU_OK)
        return none_done;
    for (int i = 0; i < gang->count; i++) {
        const struct gang_member *m = &gang->member[i];
        if (!gpu_is_finished(m->status) && !finish_elsewhere(gang, m, &m->call))
            return GPU_LOST;
    }
    name_devices(gang);
    if (!gang->in_other)
        gang->host->precision = GPU_NATIVE;
    return !gang->on_cpu ? GPU_OK : gang->failed ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

/* ---- Factorisations ---- */

/* Has one device do all of it, in panels. */
static enum gpu_status run_alone(struct gang *gang, struct gang_member *m)
{
    struct gpu_host host = *gang->host;
    host.up_bytes = host.down_bytes = 0; /* note_run() adds them up */
    host.original = ask_caller;
    host.context = m;
    host.event = m->host.event;
    host.steps = m->host.steps;
    const enum gpu_status status = run_on(m, gang->call, &host);
    pass_on(gang, m);
    note_run(gang, m, gang->call, &host, status);
    if (gpu_is_finished(status))
        name_devices(gang);
    return status;
}

/* The members have left the matrix as it was: has the first device that is well do all of it, and
 * if that fails, the next one. Returns GPU_ERROR if there is none. */
static enum gpu_status run_on_any(struct gang *gang)
{
    for (int i = 0; i < gang->count; i++) {
        struct gang_member *m = &gang->member[i];
        if (!may_go_on(m, gang->call))
            continue;
        const enum gpu_status status = run_alone(gang, m);
        if (status != GPU_ERROR)
            return status;
    }
    return GPU_ERROR;
}

/* The leader has written the result if it has succeeded, whatever has become of the others
 * since. */
static enum gpu_status run_factorisation(struct gang *gang)
{
    run_members(gang);
    bool in_need = gang->threadless, failed = false;
    for (int i = 0; i < gang->count; i++) {
        struct gang_member *m = &gang->member[i];
        pass_on(gang, m);
        note_run(gang, m, &m->call, &m->host, m->status);
        in_need |= m->status == GPU_NO_MEMORY;
        failed |= m->status == GPU_ERROR;
    }
    const enum gpu_status lead = gang->member[0].status;
    if (lead == GPU_OK) {
        for (int i = 0; i < gang->count; i++)
            gang->member[i].did = true;
        name_devices(gang);
        return GPU_OK;
    }
    return lead != GPU_LOST && (failed || in_need) ? run_on_any(gang) : lead;
}

/* Returns false without memory. */
static bool take_copy(struct gang *gang)
{
    const int64_t bytes = accel_cut_copy_bytes(gang->call);
    if (bytes > 0)
        gang->copy = malloc((size_t)bytes);
    return bytes == 0 || gang->copy;
}

/* Where other members wait for each other, these do not: they bring all of their operands up, in
 * the same tiles, so that kernels round alike. */
static enum gpu_status run_parts(struct gang *gang, const struct gang_plan *plan)
{
    plan_peer_tiles(gang, plan);
    const bool lends = gang->peer_tiles && pthread_mutex_trylock(&one_waits) == 0;
    if (gang->peer_tiles && !lends)
        peer_tiles_stop(gang->peer_tiles);
    const enum gpu_status status = run_gang(gang);
    if (lends)
        pthread_mutex_unlock(&one_waits);
    return status;
}

enum gpu_status gang_run(const struct gang_plan *plan, const struct accel_call *call,
                         struct gpu_host *host, struct accel_record *record)
{
    struct gang *gang = new_gang(plan, call, host, record);
    if (!gang)
        return GPU_NO_MEMORY;
    enum gpu_status status = GPU_NO_MEMORY;
    if (gang->shared) {
        pthread_mutex_lock(&one_waits);
        status = run_factorisation(gang);
        pthread_mutex_unlock(&one_waits);
    } else if (!plan->factors && take_copy(gang)) {
        status = run_parts(gang, plan);
    }
    free_gang(gang);
    return status;
}
