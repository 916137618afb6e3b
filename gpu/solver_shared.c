#include "solver_shared.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "exchange.h"
#include "flow.h"

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

struct solver_shared {
    const struct panels_shared *plan;
    atomic_bool stopped;
    atomic_bool there[PANELS_MOST]; /* panels in host memory */
    int32_t info[PANELS_MOST];      /* of these */
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
    struct solver_reserve reserve;
    gpu_address panel, block;
    struct array list, swaps, infos; /* on the device */
    struct gpu_scan scan;
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

/* ---- Panels and blocks ---- */

static struct gpu_tile tile_of(struct array x)
{
    return (struct gpu_tile){x.ptr, x.ld};
}

/* A cell as it is stored. */
static struct schedule_cell stored(const struct run *r, struct schedule_cell cell)
{
    return r->job->call.across ? (struct schedule_cell){cell.col, cell.row, cell.cols, cell.rows}
                               : cell;
}

static struct array array_at(const struct run *r, gpu_address at, struct schedule_cell cell)
{
    const enum accel_dtype dtype = r->s->dtype;
    return (struct array){at, cell.rows, cell.cols, gpu_device_ld(cell.rows, dtype), dtype};
}

static struct array panel_of(const struct run *r, int j)
{
    const int place = panels_shared_ordinal(r->shared->plan, j) % r->panels.buffers;
    return array_at(r, r->panel + (gpu_address)(place * r->panels.panel_bytes),
                    stored(r, panels_panel(&r->panels, j)));
}

static struct array block_of(const struct run *r, const struct schedule_step *step)
{
    return array_at(r, r->block + (gpu_address)(step->place * r->panels.block_bytes),
                    stored(r, panels_block(&r->panels, step)));
}

static struct array list_of(const struct run *r, int j)
{
    return solver_part(r->list, r->panels.first[j], 0, panels_factored(&r->panels, j), 1);
}

static struct array swaps_of(const struct run *r, int j)
{
    return solver_part(r->swaps, r->panels.first[j], 0, panels_factored(&r->panels, j), 1);
}

/* ---- Copies ---- */

static void note_copy(const struct run *r, const struct accel_span *x, bool up, int64_t rows,
                      int64_t cols, int64_t size)
{
    const int64_t bytes = rows * cols * size;
    *(up ? &r->s->work->host->up_bytes : &r->s->work->host->down_bytes) += bytes;
    gpu_work_event(r->s->work, up ? GPU_EVENT_H2D : GPU_EVENT_D2H, x, rows, cols, bytes);
}

static struct lane_rectangle rectangle_of(const char *matrix, int64_t ld, int64_t size,
                                          const struct schedule_cell *cell, const char *name)
{
    char *at = (char *)(uintptr_t)matrix + (cell->row + cell->col * ld) * size;
    struct lane_rectangle rectangle = lane_whole(at, cell->rows, cell->cols, ld, size);
    rectangle.name = name;
    return rectangle;
}

static void copy_panel(struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_cell cell = stored(r, panels_panel(&r->panels, step->j));
    const struct array x = panel_of(r, step->j);
    const bool up = step->engine == SCHEDULE_UP;
    copy->host = rectangle_of(up ? job->from : job->to, up ? job->from_ld : job->call.m,
                              job->call.size, &cell, job->x->name);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    if (job->call.kind == PANELS_CHOLESKY)
        copy->host.uplo = job->call.across ? 'U' : 'L';
    if (!up)
        return;
    copy->host.hermitian = job->call.kind == PANELS_CHOLESKY && accel_is_complex(r->s->dtype);
    copy->host.scan = &r->scan;
    note_copy(r, job->x, true, cell.rows, cell.cols, job->call.size);
}

static void copy_block(struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_cell cell = stored(r, panels_block(&r->panels, step));
    const struct array x = block_of(r, step);
    copy->host = rectangle_of(job->to, job->call.m, job->call.size, &cell, job->x->name);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    note_copy(r, job->x, true, cell.rows, cell.cols, job->call.size);
}

/* Of LU, the pivots: of another member's panel on their way up. */
static void copy_list(const struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const int j = step->engine == SCHEDULE_UP ? step->i : step->j;
    const struct array list = list_of(r, j);
    copy->host = lane_whole((int64_t *)r->job->list + r->panels.first[j], list.rows, 1, list.rows,
                            sizeof(int64_t));
    copy->device = list.ptr;
    copy->device_ld = list.rows;
    if (step->engine == SCHEDULE_UP)
        note_copy(r, &r->s->call->span[ACCEL_x], true, 1, list.rows, sizeof(int64_t));
}

static void copy_info(const struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    copy->host = lane_whole(&r->shared->info[step->j], 1, 1, 1, sizeof(int32_t));
    copy->device = solver_part(r->infos, step->j, 0, 1, 1).ptr;
    copy->device_ld = 1;
}

static void copy_of(void *context, const struct schedule_step *step, struct flow_copy *copy)
{
    *copy = (struct flow_copy){.device_ld = 1};
    switch (step->operand) {
    case PANELS_PANEL:
        copy_panel(context, step, copy);
        break;
    case PANELS_BLOCK:
        copy_block(context, step, copy);
        break;
    case PANELS_LIST:
        copy_list(context, step, copy);
        break;
    default:
        copy_info(context, step, copy);
        break;
    }
}

static void note_arrival(void *context, const struct schedule_step *step)
{
    const struct run *r = context;
    const struct schedule_cell cell = stored(r, panels_panel(&r->panels, step->j));
    if (step->operand == PANELS_PANEL)
        note_copy(r, r->job->x, false, cell.rows, cell.cols, r->job->call.size);
    else if (step->operand == PANELS_LIST)
        note_copy(r, &r->s->call->span[ACCEL_x], false, 1, panels_factored(&r->panels, step->j),
                  sizeof(int64_t));
}

/* The INFO of a panel comes down last. One that could not be factored ends the call. */
static void note_unpacked(void *context, const struct schedule_step *step)
{
    const struct run *r = context;
    struct solver_shared *shared = r->shared;
    if (step->operand != PANELS_INFO)
        return;
    if (shared->info[step->j] != 0) {
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

/* ---- Kernels ---- */

static void product(struct solver *s, char transa, char transb, struct array a, struct array b,
                    struct array c)
{
    const int64_t k = transa == 'N' ? a.cols : a.rows;
    if (solver_is_well(s) && c.rows > 0 && c.cols > 0 && k > 0)
        solver_note(s, kernel_gemm(s->work, transa, transb, c.rows, c.cols, k, minus_one,
                                   tile_of(a), tile_of(b), one, tile_of(c)));
}

static void solve(struct solver *s, char side, char uplo, char trans, char diag, struct array a,
                  struct array b)
{
    if (solver_is_well(s) && b.rows > 0 && b.cols > 0)
        solver_note(s, kernel_trsm(s->work, side, uplo, trans, diag, b.rows, b.cols, one,
                                   tile_of(a), tile_of(b)));
}

/* Rows from `row` on; columns from `col` on. */
static struct array below(struct array x, int64_t row)
{
    return solver_part(x, row, 0, x.rows - row, x.cols);
}

static struct array beyond(struct array x, int64_t col)
{
    return solver_part(x, 0, col, x.rows, x.cols - col);
}

/* C := C - L L^H in the panel, from its diagonal on; of an upper triangle C := C - U^H U. */
static void update_cholesky(struct solver *s, bool across, struct array c, struct array l)
{
    const char adjoint = solver_adjoint(s);
    const int64_t order = accel_min(c.rows, c.cols);
    if (solver_is_well(s))
        solver_note(s, kernel_syrk(s->work, accel_is_complex(s->dtype), across ? 'U' : 'L',
                                   across ? adjoint : 'N', order, across ? l.rows : l.cols,
                                   minus_one, tile_of(l), one, tile_of(c)));
    if (across)
        product(s, adjoint, 'N', solver_part(l, 0, 0, l.rows, order), beyond(l, order),
                beyond(c, order));
    else
        product(s, 'N', adjoint, below(l, order), solver_part(l, 0, 0, order, l.cols),
                below(c, order));
}

static void factor_cholesky(struct solver *s, bool across, struct array c)
{
    const int64_t order = accel_min(c.rows, c.cols);
    const char uplo = across ? 'U' : 'L', adjoint = solver_adjoint(s);
    solver_potrf(s, uplo, solver_part(c, 0, 0, order, order));
    if (s->reserve->measuring)
        return;
    solve(s, across ? 'L' : 'R', uplo, adjoint, 'N', c,
          across ? beyond(c, order) : below(c, order));
}

/* laswp takes int: the lower halves of cuSOLVER's int64 (devices are little-endian). */
static void take_swaps(const struct run *r, int j)
{
    const struct array pivots = list_of(r, j);
    if (solver_is_well(r->s))
        solver_note(r->s, lane_copy(r->s->work->lane, swaps_of(r, j).ptr, 1, pivots.ptr, 2, 1,
                                    pivots.rows, sizeof(int32_t)));
}

/* L is a block of a panel that has been factored; its exchanges come before its first block. */
static void update_lu(const struct run *r, const struct schedule_step *step, struct array c,
                      struct array l)
{
    const int64_t from = r->panels.first[step->i], row = r->job->call.m - l.rows;
    if (step->p == 0 && r->shared->plan->owner[step->i] != r->me)
        take_swaps(r, step->i);
    if (step->p == 0)
        solver_laswp(r->s, below(c, from), swaps_of(r, step->i), 1,
                     panels_factored(&r->panels, step->i));
    const struct array u = solver_part(c, row, 0, l.cols, c.cols);
    solve(r->s, 'L', 'L', 'N', 'U', l, u);
    product(r->s, 'N', 'N', below(l, l.cols), u, below(c, row + l.cols));
}

static void factor(struct run *r, int j)
{
    const struct array c = panel_of(r, j);
    r->s->info = solver_part(r->infos, j, 0, 1, 1).ptr;
    if (r->job->call.kind == PANELS_CHOLESKY) {
        factor_cholesky(r->s, r->job->call.across, c);
        return;
    }
    solver_getrf(r->s, below(c, r->panels.first[j]), list_of(r, j));
    if (!r->reserve.measuring)
        take_swaps(r, j);
}

static enum gpu_status compute(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    if (!r->scan.finite || atomic_load(&r->shared->stopped))
        return GPU_UNSUPPORTED;
    if (step->p < 0)
        factor(r, step->j);
    else if (r->job->call.kind == PANELS_CHOLESKY)
        update_cholesky(r->s, r->job->call.across, panel_of(r, step->j), block_of(r, step));
    else
        update_lu(r, step, panel_of(r, step->j), block_of(r, step));
    return r->s->status;
}

/* ---- Memory ---- */

/* Asks cuSOLVER for the workspaces of the member's panels. */
static void measure(struct run *r)
{
    r->reserve = (struct solver_reserve){.measuring = true};
    r->s->reserve = &r->reserve;
    for (int j = 0; j < r->panels.count && solver_is_well(r->s); j++)
        if (r->shared->plan->owner[j] == r->me && panels_factored(&r->panels, j) > 0)
            factor(r, j);
    r->s->reserve = NULL;
}

static void take_device_memory(struct run *r)
{
    struct solver *s = r->s;
    const struct panels *p = &r->panels;
    const int64_t most = accel_min(r->job->call.m, r->job->call.n),
                  info_bytes = p->count * (int64_t)sizeof(int32_t);
    if (r->job->call.kind == PANELS_LU) {
        r->swaps = solver_vector(s, most, ACCEL_INT32);
        r->list = solver_vector(s, most, ACCEL_INT64);
    }
    r->infos = solver_vector(s, p->count, ACCEL_INT32);
    if (solver_is_well(s))
        solver_note(s, gpu_work_zero(s->work, r->infos.ptr, info_bytes));
    r->panel = solver_work(s, (size_t)(p->buffers * p->panel_bytes)).ptr;
    r->block = solver_work(s, (size_t)(2 * p->block_bytes)).ptr;
    r->reserve.device = solver_work(s, r->reserve.device_bytes).ptr;
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

/* Makes the steps for the device's memory, then for what is free of it, less what the pool may round up, and last for three quarters of that:
 * other threads and programs take memory meanwhile. */
static void prepare(struct run *r)
{
    struct solver *s = r->s;
    int64_t available = gpu_info(s->work->device)->memory_bytes;
    const bool has_room = make_steps(r, available);
    if (has_room)
        measure(r);
    for (int attempt = 0; has_room && attempt < 3 && solver_is_well(s); attempt++) {
        if (attempt == 1)
            gpu_work_trim(s->work);
        if (attempt > 0)
            available = attempt == 1 ? gpu_work_available(s->work) / 9 * 8 : available / 4 * 3;
        if (!make_steps(r, available))
            break;
        take_device_memory(r);
        if (s->status != GPU_NO_MEMORY)
            return;
        gpu_work_drop(s->work);
        s->status = GPU_OK;
    }
    solver_note(s, GPU_NO_MEMORY);
}

static void take_host_memory(struct run *r)
{
    struct solver *s = r->s;
    if (r->reserve.host_bytes > 0)
        s->host = malloc(r->reserve.host_bytes);
    if (r->reserve.host_bytes > 0 && !s->host)
        solver_note(s, GPU_NO_MEMORY);
    r->reserve.host = s->host;
    r->reserve.measuring = false;
}

/* ---- The whole ---- */

static void run_member(struct solver *s, struct solver_shared *shared, int me,
                       const struct panels_job *job)
{
    struct run r = {.s = s,
                    .shared = shared,
                    .job = job,
                    .me = me,
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
    if (solver_is_well(s))
        take_host_memory(&r);
    if (solver_is_well(s)) {
        s->reserve = &r.reserve;
        solver_note(s, lane_flow(s->work->lane, &flow));
        s->reserve = NULL;
    }
    if (solver_is_well(s) && !all_there(shared, me))
        solver_note(s, GPU_UNSUPPORTED);
    s->largest = r.scan.largest > s->largest ? r.scan.largest : s->largest;
    panels_free(&r.panels);
    if (!solver_is_well(s))
        solver_shared_stop(shared);
}

/* The pivots of a panel count from its diagonal. A panel has the exchanges of those before it, and lacks those after it. */
static void end_lu(const struct panels_shared *plan, const struct panels_job *job)
{
    const int64_t count = accel_min(job->call.m, job->call.n), m = job->call.m;
    int64_t *pivots = job->list;
    for (int j = 0; j < plan->count; j++)
        for (int64_t i = plan->first[j]; i < accel_min(plan->first[j + 1], count); i++)
            pivots[i] += plan->first[j];
    for (int j = 0; j < plan->count; j++)
        exchange_rows(job->to + plan->first[j] * m * job->call.size, m,
                      plan->first[j + 1] - plan->first[j], job->call.size, pivots,
                      plan->first[j + 1], count, false);
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
        end_lu(shared->plan, job);
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
