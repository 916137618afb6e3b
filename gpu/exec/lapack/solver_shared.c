#include "solver_shared.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct solver_shared {
    const struct panels_shared *plan;
    atomic_bool stopped;
    atomic_bool there[PANELS_MOST];             /* panels in host memory */
    struct solver_outcome outcome[PANELS_MOST]; /* of these */
    pthread_mutex_t lock;
    pthread_cond_t news;
    /* With the lock: */
    const struct panels_job *job; /* the leader's; NULL: not yet, or no more */
    bool over;
    int inside;    /* members at the job, without the leader */
    int64_t count; /* of what the members have told */
};

/* A member at its panels. */
struct run {
    struct solver *s;
    struct solver_shared *shared;
    const struct panels_job *job;
    int me;
    int64_t seen; /* shared->count when it last waited */
    struct panels panels;
    struct panel_steps steps;
    struct panel_copies copies;
    struct solver_reserve reserve;
};

/* ---- What members tell each other ---- */

struct solver_shared *solver_shared_new(const struct panels_shared *plan)
{
    struct solver_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    shared->plan = plan;
    pthread_mutex_init(&shared->lock, NULL);
    pthread_cond_init(&shared->news, NULL);
    return shared;
}

void solver_shared_free(struct solver_shared *shared)
{
    pthread_mutex_destroy(&shared->lock);
    pthread_cond_destroy(&shared->news);
    free(shared);
}

static void tell(struct solver_shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    shared->count++;
    pthread_cond_broadcast(&shared->news);
    pthread_mutex_unlock(&shared->lock);
}

void solver_shared_stop(struct solver_shared *shared)
{
    atomic_store(&shared->stopped, true);
    tell(shared);
}

static bool is_there(const struct solver_shared *shared, int j)
{
    return atomic_load_explicit(&shared->there[j], memory_order_acquire);
}

/* Whether a member's panels are there; of each of them if it is below 0. */
static bool all_there(const struct solver_shared *shared, int member)
{
    for (int j = 0; j < shared->plan->count; j++)
        if ((member < 0 || shared->plan->owner[j] == member) && !is_there(shared, j))
            return false;
    return true;
}

/* Waits for the leader's job. Returns NULL if there is none any more. */
static const struct panels_job *enter(struct solver_shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    while (!shared->job && !shared->over && !atomic_load(&shared->stopped))
        pthread_cond_wait(&shared->news, &shared->lock);
    const struct panels_job *job = shared->job;
    shared->inside += job != NULL;
    pthread_mutex_unlock(&shared->lock);
    return job;
}

static void leave(struct solver_shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    shared->inside--;
    pthread_cond_broadcast(&shared->news);
    pthread_mutex_unlock(&shared->lock);
}

static void open_job(struct solver_shared *shared, const struct panels_job *job)
{
    pthread_mutex_lock(&shared->lock);
    shared->job = job;
    pthread_cond_broadcast(&shared->news);
    pthread_mutex_unlock(&shared->lock);
}

/* Waits until all panels are there, or none will come any more, and the others have left. */
static void close_job(struct solver_shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    while (!all_there(shared, -1) && !atomic_load(&shared->stopped))
        pthread_cond_wait(&shared->news, &shared->lock);
    shared->job = NULL;
    shared->over = true;
    while (shared->inside > 0)
        pthread_cond_wait(&shared->news, &shared->lock);
    pthread_mutex_unlock(&shared->lock);
}

/* ---- Steps ---- */

static void copy_of(void *context, const struct schedule_step *step, struct flow_copy *copy)
{
    struct run *r = context;
    panel_copies_of(&r->copies, step, copy);
}

static void note_arrival(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    panel_copies_arrived(&r->copies, step);
}

/* The outcome of a panel comes down last. One that could not be factored ends the call. */
static void note_unpacked(void *context, const struct schedule_step *step)
{
    const struct run *r = context;
    struct solver_shared *shared = r->shared;
    if (step->operand != PANELS_INFO)
        return;
    if (!panel_steps_succeeded(&r->steps, &shared->outcome[step->j])) {
        solver_shared_stop(shared);
        return;
    }
    atomic_store_explicit(&shared->there[step->j], true, memory_order_release);
    tell(shared);
}

static bool source_is_there(void *context, const struct schedule_step *step)
{
    const struct run *r = context;
    return step->operand == PANELS_PANEL || is_there(r->shared, step->i);
}

static bool wait_for_news(void *context)
{
    struct run *r = context;
    struct solver_shared *shared = r->shared;
    pthread_mutex_lock(&shared->lock);
    while (shared->count == r->seen && !atomic_load(&shared->stopped))
        pthread_cond_wait(&shared->news, &shared->lock);
    r->seen = shared->count;
    pthread_mutex_unlock(&shared->lock);
    return !atomic_load(&shared->stopped);
}

static enum gpu_status compute(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    if (!r->copies.scan.finite || atomic_load(&r->shared->stopped))
        return GPU_UNSUPPORTED;
    panel_steps_put(&r->steps, step);
    return r->s->status;
}

/* ---- Memory ---- */

static void take_device_memory(struct run *r)
{
    struct solver *s = r->s;
    const struct panels *p = &r->panels;
    const int64_t outcome_bytes = p->count * (int64_t)sizeof(struct solver_outcome);
    r->steps.list = (struct array){.ptr = 0}; /* an attempt before may have had one */
    panel_steps_take_lists(&r->steps, false);
    r->steps.panel = solver_work(s, (size_t)(p->buffers * p->panel_bytes)).ptr;
    r->steps.block = solver_work(s, (size_t)(2 * p->block_bytes)).ptr;
    panel_steps_take_reserve(&r->steps, &r->reserve);
    /* Panels without a diagonal are not factored. Only now: what an attempt without memory gives
     * back must not be written any more. */
    if (solver_is_well(s))
        solver_note(s, gpu_memory(s->work)->zero(s->work, r->steps.outcomes.ptr, outcome_bytes));
}

/* Vectors take a little, and each block that the pool gives is a whole number of its units. */
static int64_t other_bytes(const struct run *r)
{
    return solver_panels_reserve(&r->job->call) - r->job->call.m * 16 * r->job->call.size + 4096;
}

/* Makes the steps for so much memory. */
static bool make_steps(struct run *r, int64_t memory_bytes)
{
    panels_free(&r->panels);
    return panels_shared_part(&r->panels, r->shared->plan, r->me,
                              memory_bytes - other_bytes(r) - (int64_t)r->reserve.device_bytes);
}

/* Makes the steps for the device's memory, then for what there is of it. */
static void prepare(struct run *r)
{
    struct solver *s = r->s;
    int64_t available = gpu_info(s->work->device)->memory_bytes;
    const bool has_room = make_steps(r, available);
    if (has_room)
        panel_steps_measure(&r->steps, &r->reserve);
    for (int attempt = 0; has_room && attempt < WORK_ATTEMPTS && solver_is_well(s); attempt++) {
        available = gpu_work_room(s->work, attempt, available);
        if (!make_steps(r, available))
            break;
        take_device_memory(r);
        if (s->status != GPU_NO_MEMORY)
            return;
        gpu_memory(s->work)->drop(s->work);
        s->status = GPU_OK;
    }
    solver_note(s, GPU_NO_MEMORY);
}

/* ---- The whole ---- */

static void run_member(struct solver *s, struct solver_shared *shared, int me,
                       const struct panels_job *job)
{
    struct run r = {.s = s, .shared = shared, .job = job, .me = me};
    r.steps =
        (struct panel_steps){.s = s, .panels = &r.panels, .shared = shared->plan, .member = me};
    r.copies = (struct panel_copies){.s = s,
                                     .job = job,
                                     .steps = &r.steps,
                                     .outcome = shared->outcome,
                                     .scan = gpu_scan_begin(accel_is_double(s->dtype))};
    struct flow flow = {.schedule = &r.panels.schedule,
                        .result_bytes = job->call.m * job->call.n * job->call.size,
                        .reads_results = true,
                        .context = &r,
                        .copy_of = copy_of,
                        .arrived = note_arrival,
                        .is_there = source_is_there,
                        .wait = wait_for_news,
                        .unpacked = note_unpacked,
                        .compute = compute};
    if (job->call.m > INT_MAX || job->call.n > INT_MAX) /* cuSOLVER's laswp takes int */
        solver_note(s, GPU_UNSUPPORTED);
    if (solver_is_well(s))
        prepare(&r);
    if (solver_is_well(s)) {
        s->reserve = &r.reserve;
        solver_note(s, gpu_copies(s->work)->flow(s->work->lane, &flow));
        s->reserve = NULL;
    }
    if (solver_is_well(s) && !all_there(shared, me))
        solver_note(s, GPU_UNSUPPORTED);
    s->largest = r.copies.scan.largest > s->largest ? r.copies.scan.largest : s->largest;
    panels_free(&r.panels);
    if (!solver_is_well(s))
        solver_shared_stop(shared);
}

void solver_shared_lead(struct solver *s, struct panels_job *job)
{
    struct solver_shared *shared = s->work->host->shared;
    if (!solver_is_well(s)) {
        solver_shared_stop(shared);
        return;
    }
    open_job(shared, job);
    run_member(s, shared, 0, job);
    close_job(shared);
    if (!all_there(shared, -1))
        solver_note(s, GPU_UNSUPPORTED);
    if (solver_is_well(s) && job->call.kind == PANELS_LU)
        panel_copies_end_lu(job, shared->plan->first, shared->plan->count);
}

void solver_shared_help(struct solver *s)
{
    struct solver_shared *shared = s->work->host->shared;
    const struct panels_job *job = solver_is_well(s) ? enter(shared) : NULL;
    if (!job) {
        solver_shared_stop(shared);
        solver_note(s, GPU_UNSUPPORTED);
        return;
    }
    run_member(s, shared, s->work->host->member, job);
    leave(shared);
}

enum gpu_status solver_run_call(struct gpu_work *work)
{
    const struct accel_op *const op = work->call->op;
    void (*const in_panels)(struct solver *) = op->in_panels ? op->in_panels->steps : NULL;
    if (!work->host->shared)
        return solver_run(work, op->steps, in_panels);
    return solver_run(work, work->host->member == 0 ? in_panels : solver_shared_help, NULL);
}
