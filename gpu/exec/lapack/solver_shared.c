#include "solver_shared.h"

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
struct panels_member {
    struct panel_run run;
    struct solver_shared *shared;
    int64_t seen; /* shared->count when it last waited */
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

static void leave_shared(struct solver_shared *shared)
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

/* The outcome of a panel comes down last. One that could not be factored ends the call. */
static void note_unpacked(void *context, const struct schedule_step *step)
{
    const struct panels_member *m = context;
    struct solver_shared *shared = m->shared;
    if (step->operand != PANELS_INFO)
        return;
    if (!panel_steps_succeeded(&m->run.steps, &shared->outcome[step->j])) {
        solver_shared_stop(shared);
        return;
    }
    atomic_store_explicit(&shared->there[step->j], true, memory_order_release);
    tell(shared);
}

static bool source_is_there(void *context, const struct schedule_step *step)
{
    const struct panels_member *m = context;
    return step->operand == PANELS_PANEL || is_there(m->shared, step->i);
}

static bool wait_for_news(void *context)
{
    struct panels_member *m = context;
    struct solver_shared *shared = m->shared;
    pthread_mutex_lock(&shared->lock);
    while (shared->count == m->seen && !atomic_load(&shared->stopped))
        pthread_cond_wait(&shared->news, &shared->lock);
    m->seen = shared->count;
    pthread_mutex_unlock(&shared->lock);
    return !atomic_load(&shared->stopped);
}

static enum gpu_status compute_shared(void *context, const struct schedule_step *step)
{
    struct panels_member *m = context;
    return panel_run_compute(&m->run, step, !atomic_load(&m->shared->stopped));
}

/* ---- Memory ---- */

/* Makes the steps for so much memory. */
static bool make_steps(void *panel_run, int64_t bytes)
{
    struct panel_run *r = panel_run;
    panels_free(&r->panels);
    return panels_shared_part(&r->panels, r->steps.shared, r->steps.member,
                              bytes - solver_panels_others(&r->job->call) -
                                  (int64_t)r->reserve.device_bytes);
}

/* Makes the steps for the device's memory, whose workspaces are measured, then for what there is of
 * it. */
static void prepare_shared(struct panel_run *r)
{
    r->steps.panels = &r->panels;
    if (!make_steps(r, gpu_info(r->s->work->device)->memory_bytes)) {
        solver_note(r->s, GPU_NO_MEMORY);
        return;
    }
    panel_steps_measure(&r->steps, &r->reserve);
    panel_run_prepare(r, make_steps);
}

/* ---- The whole ---- */

static void run_member(struct solver *s, struct solver_shared *shared, int me,
                       const struct panels_job *job)
{
    struct panels_member m = {.run = panel_run_begin(s, job), .shared = shared};
    struct panel_run *r = &m.run;
    struct pipeline_job pipeline = {.copy_of = panel_copies_of,
                                    .is_there = source_is_there,
                                    .wait = wait_for_news,
                                    .unpacked = note_unpacked,
                                    .compute = compute_shared};
    r->steps.shared = shared->plan;
    r->steps.member = me;
    r->outcome = shared->outcome;
    if (solver_is_well(s))
        prepare_shared(r);
    if (solver_is_well(s))
        panel_run_pipeline(r, &pipeline);
    if (solver_is_well(s) && !all_there(shared, me))
        solver_note(s, GPU_UNSUPPORTED);
    panels_free(&r->panels);
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
    leave_shared(shared);
}

enum gpu_status solver_run_call(struct gpu_work *work)
{
    const struct accel_gpu *const gpu = work->call->op->gpu;
    void (*const in_panels)(struct solver *) = gpu->in_panels ? gpu->in_panels->steps : NULL;
    if (!work->host->shared)
        return solver_run(work, gpu->steps, in_panels);
    return solver_run(work, work->host->member == 0 ? in_panels : solver_shared_help, NULL);
}
