#include "solver_panels.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/host_memory.h"
#include "flow.h"

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* A job under way. */
struct run {
    struct solver *s;
    struct panels_job *job;
    struct panels panels;
    struct solver_reserve reserve;
    gpu_address panel, block;
    struct array list, swaps, infos; /* on the device */
    int32_t *info;                   /* of each panel, once it has come down */
    struct gpu_scan scan;
    bool refused; /* a panel cannot be factored */
};

static struct gpu_tile tile_of(struct array x)
{
    return (struct gpu_tile){x.ptr, x.ld};
}

static int64_t size_of(const struct run *r)
{
    return r->job->call.size;
}

/* ---- Panels and blocks ---- */

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

static struct array panel_of(const struct run *r, const struct schedule_step *step)
{
    const int place = step->j % r->panels.buffers;
    return array_at(r, r->panel + (gpu_address)(place * r->panels.panel_bytes),
                    stored(r, panels_panel(&r->panels, step->j)));
}

static struct array block_of(const struct run *r, const struct schedule_step *step, int place)
{
    return array_at(r, r->block + (gpu_address)(place * r->panels.block_bytes),
                    stored(r, panels_block(&r->panels, step)));
}

/* ---- Copies ---- */

static bool is_cholesky(const struct run *r)
{
    return r->job->call.kind == PANELS_CHOLESKY;
}

static bool is_applied(const struct run *r)
{
    return r->job->call.kind == PANELS_APPLY;
}

static struct lane_rectangle rectangle_of(const char *matrix, int64_t ld, int64_t size,
                                          const struct schedule_cell *cell, const char *name)
{
    char *at = (char *)(uintptr_t)matrix + (cell->row + cell->col * ld) * size;
    struct lane_rectangle rectangle = lane_whole(at, cell->rows, cell->cols, ld, size);
    rectangle.name = name;
    return rectangle;
}

static void note_copy(struct run *r, const struct accel_span *x, bool up, int64_t rows,
                      int64_t cols, int64_t size)
{
    const int64_t bytes = rows * cols * size;
    *(up ? &r->s->work->host->up_bytes : &r->s->work->host->down_bytes) += bytes;
    gpu_work_event(r->s->work, up ? GPU_EVENT_H2D : GPU_EVENT_D2H, x, rows, cols, bytes);
}

/* The operand for pivots or scalars of reflectors; NULL: the call has none. */
static const struct accel_span *list_operand(const struct run *r)
{
    const struct accel_span *x = &r->s->call->span[ACCEL_x];
    return x->ptr ? x : NULL;
}

static void copy_panel(struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_cell cell = stored(r, panels_panel(&r->panels, step->j));
    const struct array x = panel_of(r, step);
    const bool up = step->engine == SCHEDULE_UP;
    copy->host = rectangle_of(up ? job->from : job->to, up ? job->from_ld : job->call.m, size_of(r),
                              &cell, job->x->name);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    if (is_cholesky(r))
        copy->host.uplo = job->call.across ? 'U' : 'L';
    if (!up)
        return;
    copy->host.hermitian = is_cholesky(r) && accel_is_complex(r->s->dtype);
    copy->host.scan = &r->scan;
    note_copy(r, job->x, true, cell.rows, cell.cols, size_of(r));
}

/* The panel that the block is of is in host memory, and so is its INFO. */
static void copy_block(struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_cell cell = stored(r, panels_block(&r->panels, step));
    const struct array x = block_of(r, step, step->place);
    const struct accel_span *span = is_applied(r) ? job->other : job->x;
    copy->host =
        rectangle_of(is_applied(r) ? job->factors : job->to,
                     is_applied(r) ? job->factors_ld : job->call.m, size_of(r), &cell, span->name);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    r->refused = r->refused || (!is_applied(r) && r->info[step->i] != 0);
    note_copy(r, span, true, cell.rows, cell.cols, size_of(r));
}

static struct array list_of(const struct run *r, const struct schedule_step *step)
{
    return solver_part(r->list, r->panels.first[step->j], 0, panels_factored(&r->panels, step->j),
                       1);
}

static void copy_list(const struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct array list = list_of(r, step);
    const int64_t size = (int64_t)accel_dtype_size(list.dtype);
    copy->host = lane_whole((char *)r->job->list + r->panels.first[step->j] * size, list.rows, 1,
                            list.rows, size);
    copy->device = list.ptr;
    copy->device_ld = list.rows;
}

static void copy_info(const struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    copy->host = lane_whole(&r->info[step->j], 1, 1, 1, sizeof(int32_t));
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
    struct run *r = context;
    const struct schedule_cell cell = stored(r, panels_panel(&r->panels, step->j));
    const struct array list = list_of(r, step);
    if (step->operand == PANELS_PANEL)
        note_copy(r, r->job->x, false, cell.rows, cell.cols, size_of(r));
    else if (step->operand == PANELS_LIST)
        note_copy(r, list_operand(r), false, 1, list.rows, (int64_t)accel_dtype_size(list.dtype));
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

/* C := C - L L^H in the panel, from its diagonal on. */
static void update_cholesky(struct solver *s, struct array c, struct array l)
{
    const char adjoint = solver_adjoint(s);
    const int64_t cols = c.cols;
    if (solver_is_well(s))
        solver_note(s, kernel_syrk(s->work, accel_is_complex(s->dtype), 'L', 'N', cols, l.cols,
                                   minus_one, tile_of(l), one, tile_of(c)));
    product(s, 'N', adjoint, below(l, cols), solver_part(l, 0, 0, cols, l.cols), below(c, cols));
}

/* The same of an upper triangle: C := C - U^H U. */
static void update_cholesky_across(struct solver *s, struct array c, struct array u)
{
    const char adjoint = solver_adjoint(s);
    const int64_t rows = c.rows;
    if (solver_is_well(s))
        solver_note(s, kernel_syrk(s->work, accel_is_complex(s->dtype), 'U', adjoint, rows, u.rows,
                                   minus_one, tile_of(u), one, tile_of(c)));
    product(s, adjoint, 'N', solver_part(u, 0, 0, u.rows, rows), beyond(u, rows), beyond(c, rows));
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

/* L is a block of a panel that has been factored; its exchanges come before its first block. */
static void update_lu(struct run *r, const struct schedule_step *step, struct array c,
                      struct array l)
{
    const int64_t from = r->panels.first[step->i], row = r->job->call.m - l.rows;
    const int64_t exchanged = panels_factored(&r->panels, step->i);
    if (step->p == 0)
        solver_laswp(r->s, below(c, from), solver_part(r->swaps, from, 0, exchanged, 1), 1,
                     exchanged);
    struct array u = solver_part(c, row, 0, l.cols, c.cols);
    solve(r->s, 'L', 'L', 'N', 'U', l, u);
    product(r->s, 'N', 'N', below(l, l.cols), u, below(c, row + l.cols));
}

/* laswp takes int: the lower halves of cuSOLVER's int64 (devices are little-endian). */
static void factor_lu(struct run *r, const struct schedule_step *step, struct array c)
{
    struct solver *s = r->s;
    const struct array pivots = list_of(r, step);
    solver_getrf(s, below(c, r->panels.first[step->j]), pivots);
    if (solver_is_well(s) && !s->reserve->measuring)
        solver_note(
            s, lane_copy(s->work->lane,
                         solver_part(r->swaps, r->panels.first[step->j], 0, pivots.rows, 1).ptr, 1,
                         pivots.ptr, 2, 1, pivots.rows, sizeof(int32_t)));
}

/* A block has the columns `col` .. of a triangle, and what is below or above that. */
static void solve_by_block(struct solver *s, const struct panels_action *action, int64_t col,
                           struct array x, struct array t)
{
    const bool lower = action->uplo == 'L';
    const int64_t k = t.cols;
    const struct array diagonal = lower ? t : below(t, col),
                       other = lower ? below(t, k) : solver_part(t, 0, 0, col, k);
    const struct array mine = solver_part(x, col, 0, k, x.cols);
    const struct array rest =
        lower ? solver_part(x, col + k, 0, other.rows, x.cols) : solver_part(x, 0, 0, col, x.cols);
    if (action->trans == 'N') {
        solve(s, 'L', action->uplo, 'N', action->diag, diagonal, mine);
        product(s, 'N', 'N', other, mine, rest);
    } else {
        product(s, action->trans, 'N', other, rest, mine);
        solve(s, 'L', action->uplo, action->trans, action->diag, diagonal, mine);
    }
}

static void apply_block(struct run *r, const struct schedule_step *step, struct array x,
                        struct array t)
{
    const struct panels_action *action = &r->job->action[step->i];
    const int64_t col = panels_block(&r->panels, step).col;
    if (action->reflects) {
        solver_ormqr(r->s, 'L', action->trans, t, solver_part(r->list, col, 0, t.cols, 1),
                     below(x, col));
        return;
    }
    if (r->job->pivots && step->first)
        solver_laswp(r->s, x, r->swaps, 1, r->job->call.order);
    solve_by_block(r->s, action, col, x, t);
}

/* Steps of cuSOLVER that need workspaces. */
static bool needs_work(const struct run *r, const struct schedule_step *step)
{
    return step->engine == SCHEDULE_COMPUTE &&
           (step->p < 0 || r->job->call.kind == PANELS_QR ||
            (is_applied(r) && r->job->action[step->i].reflects));
}

static void factor_panel(struct run *r, const struct schedule_step *step, struct array c)
{
    const int64_t from = r->panels.first[step->j];
    switch (r->job->call.kind) {
    case PANELS_CHOLESKY:
        factor_cholesky(r->s, r->job->call.across, c);
        break;
    case PANELS_LU:
        factor_lu(r, step, c);
        break;
    default:
        solver_geqrf(r->s, below(c, from), list_of(r, step));
        break;
    }
}

static void update_panel(struct run *r, const struct schedule_step *step, struct array c,
                         struct array block)
{
    const int64_t col = panels_block(&r->panels, step).col;
    switch (r->job->call.kind) {
    case PANELS_CHOLESKY:
        (r->job->call.across ? update_cholesky_across : update_cholesky)(r->s, c, block);
        break;
    case PANELS_LU:
        update_lu(r, step, c, block);
        break;
    case PANELS_QR:
        solver_ormqr(r->s, 'L', solver_adjoint(r->s), block,
                     solver_part(r->list, col, 0, block.cols, 1), below(c, col));
        break;
    default:
        apply_block(r, step, c, block);
        break;
    }
}

/* place: of the block. */
static void put_kernels(struct run *r, const struct schedule_step *step, int place)
{
    const struct array c = panel_of(r, step);
    r->s->info = solver_part(r->infos, step->j, 0, 1, 1).ptr;
    if (step->p < 0)
        factor_panel(r, step, c);
    else
        update_panel(r, step, c, block_of(r, step, place));
}

static enum gpu_status compute(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    if (r->refused || !r->scan.finite)
        return GPU_UNSUPPORTED;
    put_kernels(r, step, step->place);
    return r->s->status;
}

/* ---- Memory ---- */

/* Gives back what the steps before had. */
static void restart(struct solver *s)
{
    if (!solver_note(s, gpu_work_settle(s->work)))
        return;
    gpu_work_drop(s->work);
    free(s->host);
    s->host = NULL;
    s->strip = 0;
    s->strip_bytes = 0;
    s->reserve = NULL;
}

/* Asks cuSOLVER for the workspaces of all steps. */
static void measure(struct run *r)
{
    const struct schedule *schedule = &r->panels.schedule;
    r->reserve = (struct solver_reserve){.measuring = true};
    r->s->reserve = &r->reserve;
    for (int n = 0; n < schedule->count && solver_is_well(r->s); n++)
        if (needs_work(r, &schedule->step[n]))
            put_kernels(r, &schedule->step[n], 0);
    r->s->reserve = NULL;
}

/* Makes a schedule for so much memory, and the workspaces that it needs. */
static bool plan(struct run *r, const struct schedule_rates *rates, int64_t available)
{
    int64_t reserved = 0;
    for (int attempt = 0; attempt < 4 && solver_is_well(r->s); attempt++) {
        panels_free(&r->panels);
        if (!panels_make(&r->panels, &r->job->call, rates, available - reserved))
            return false;
        measure(r);
        if (r->reserve.device_bytes > (size_t)available)
            return false;
        if ((int64_t)r->reserve.device_bytes <= reserved)
            return true;
        reserved = (int64_t)r->reserve.device_bytes;
    }
    return false;
}

static void take_device_memory(struct run *r)
{
    struct solver *s = r->s;
    const struct panels *p = &r->panels;
    const int64_t most =
        accel_min(r->job->call.m, is_applied(r) ? r->job->call.order : r->job->call.n);
    const bool lu = r->job->call.kind == PANELS_LU;
    if (lu || r->job->pivots)
        r->swaps = solver_vector(s, most, ACCEL_INT32);
    if (lu || r->job->call.kind == PANELS_QR || r->job->scalars)
        r->list = solver_vector(s, most, lu ? ACCEL_INT64 : s->dtype);
    r->infos = solver_vector(s, p->count, ACCEL_INT32);
    r->panel = solver_work(s, (size_t)(accel_min(p->buffers, p->count) * p->panel_bytes)).ptr;
    r->block = solver_work(s, (size_t)(2 * p->block_bytes)).ptr;
    r->reserve.device = solver_work(s, r->reserve.device_bytes).ptr;
    r->reserve.measuring = false;
}

int64_t solver_panels_reserve(const struct panels_call *call)
{
    const int64_t list = call->kind == PANELS_CHOLESKY ? 0 : 16, columns = 16;
    return call->m * (columns * call->size + list);
}

/* Vectors take a little, and each block that the pool gives is a whole number of its units. */
static int64_t other_bytes(const struct run *r)
{
    return solver_panels_reserve(&(struct panels_call){
               .kind = r->job->call.kind, .m = r->job->call.m, .n = r->job->call.n}) +
           4096;
}

/* Makes a schedule for the device's memory, then for what is free of it, less what the pool may round up, and last for half of that, and so
 * on: other threads and programs take memory meanwhile. */
static void prepare(struct run *r)
{
    struct solver *s = r->s;
    const struct schedule_rates *rates =
        s->work->host->rates.up > 0 ? &s->work->host->rates : &schedule_nominal;
    int64_t available = gpu_info(s->work->device)->memory_bytes;
    for (int attempt = 0; attempt < 6 && solver_is_well(s); attempt++) {
        if (attempt == 1)
            gpu_work_trim(s->work);
        if (attempt > 0)
            available = attempt == 1 ? gpu_work_available(s->work) / 9 * 8 : available / 2;
        if (!plan(r, rates, available - other_bytes(r)))
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
    r->info = calloc((size_t)r->panels.count, sizeof *r->info);
    if (r->reserve.host_bytes > 0)
        s->host = malloc(r->reserve.host_bytes);
    r->reserve.host = s->host;
    if (!r->info || (r->reserve.host_bytes > 0 && !s->host))
        solver_note(s, GPU_NO_MEMORY);
}

/* What the other matrix has besides goes up as a whole. */
static void put_lists(struct run *r)
{
    const struct panels_job *job = r->job;
    if (job->scalars) {
        solver_put(r->s, r->list, job->scalars);
        note_copy(r, list_operand(r), true, 1, job->call.order, size_of(r));
    }
    if (!job->pivots)
        return;
    int32_t *swaps = malloc((size_t)job->call.order * sizeof *swaps);
    if (!swaps)
        solver_note(r->s, GPU_NO_MEMORY);
    for (int64_t i = 0; swaps && i < job->call.order; i++)
        swaps[i] = (int32_t)job->pivots[i];
    if (swaps) {
        solver_put(r->s, r->swaps, swaps);
        note_copy(r, list_operand(r), true, 1, job->call.order, sizeof *swaps);
    }
    free(swaps);
}

/* ---- Exchanges of rows on the host ---- */

struct exchange {
    char *matrix;
    int64_t rows, cols, size;
    const int64_t *pivots;
    int64_t first, last;
    bool backwards;
};

enum { EXCHANGED_COLUMNS = 16 };

static void exchange_rows(char *column, int64_t size, int64_t i, int64_t j)
{
    char kept[16], *x = column + i * size, *y = column + j * size;
#define EXCHANGE(bytes)                                                                            \
    case bytes:                                                                                    \
        memcpy(kept, x, bytes);                                                                    \
        memcpy(x, y, bytes);                                                                       \
        memcpy(y, kept, bytes);                                                                    \
        break;
    if (i == j)
        return;
    switch (size) {
        EXCHANGE(4)
        EXCHANGE(8)
        EXCHANGE(16)
    }
#undef EXCHANGE
}

static void exchange_item(void *context, int64_t number)
{
    const struct exchange *e = context;
    const int64_t end = accel_min(e->cols, (number + 1) * EXCHANGED_COLUMNS);
    for (int64_t col = number * EXCHANGED_COLUMNS; col < end; col++) {
        char *column = e->matrix + col * e->rows * e->size;
        for (int64_t i = e->first; i < e->last; i++) {
            const int64_t row = e->backwards ? e->last - 1 - (i - e->first) : i;
            exchange_rows(column, e->size, row, e->pivots[row] - 1);
        }
    }
}

void solver_panels_exchange(char *matrix, int64_t rows, int64_t cols, int64_t size,
                            const int64_t *pivots, int64_t first, int64_t last, bool backwards)
{
    struct exchange e = {matrix, rows, cols, size, pivots, first, last, backwards};
    struct crew_job job = {.item = exchange_item, .context = &e};
    const int64_t items = (cols + EXCHANGED_COLUMNS - 1) / EXCHANGED_COLUMNS;
    if (first >= last)
        return;
    crew_begin(&job, rows * cols * size >= 1 << 20);
    for (int64_t done = 0; done < items; done = crew_done(&job)) {
        crew_open(&job, accel_min(items, done + CREW_ITEMS));
        crew_finish(&job, done + 1);
    }
    crew_end(&job);
}

/* The pivots of a panel count from its diagonal. A panel has the exchanges of those before it, and lacks those after it. */
static void end_lu(const struct run *r)
{
    const struct panels *p = &r->panels;
    const int64_t count = accel_min(r->job->call.m, r->job->call.n);
    int64_t *pivots = r->job->list;
    for (int j = 0; j < p->count; j++)
        for (int64_t i = p->first[j]; i < accel_min(p->first[j + 1], count); i++)
            pivots[i] += p->first[j];
    for (int j = 0; j < p->count; j++)
        solver_panels_exchange(r->job->to + p->first[j] * r->job->call.m * size_of(r),
                               r->job->call.m, p->first[j + 1] - p->first[j], size_of(r), pivots,
                               p->first[j + 1], count, false);
}

/* ---- The whole ---- */

static void run_flow(struct run *r)
{
    struct solver *s = r->s;
    struct flow flow = {.schedule = &r->panels.schedule,
                        .result_bytes = r->job->call.m * r->job->call.n * size_of(r),
                        .reads_results = true,
                        .context = r,
                        .copy_of = copy_of,
                        .arrived = note_arrival,
                        .compute = compute};
    if (!solver_is_well(s))
        return;
    s->reserve = &r->reserve;
    solver_note(s, lane_flow(s->work->lane, &flow));
    if (!r->scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    for (int j = 0; solver_is_well(s) && j < r->panels.count; j++)
        if (r->info[j] != 0)
            solver_note(s, GPU_UNSUPPORTED);
    s->largest = r->scan.largest > s->largest ? r->scan.largest : s->largest;
    s->reserve = NULL;
}

void solver_panels(struct solver *s, struct panels_job *job)
{
    struct run r = {.s = s, .job = job, .scan = gpu_scan_begin(accel_is_double(s->dtype))};
    if (job->call.m > INT_MAX || job->call.n > INT_MAX) /* cuSOLVER's laswp and ormqr take int */
        solver_note(s, GPU_UNSUPPORTED);
    if (!solver_is_well(s))
        return;
    restart(s);
    prepare(&r);
    if (solver_is_well(s))
        take_host_memory(&r);
    put_lists(&r);
    run_flow(&r);
    if (solver_is_well(s) && job->call.kind == PANELS_LU)
        end_lu(&r);
    free(r.info);
    panels_free(&r.panels);
    if (solver_is_well(s))
        restart(s);
}

void *solver_panels_memory(struct solver *s, int64_t rows, int64_t cols, int64_t size)
{
    int64_t bytes;
    void *memory = NULL;
    if (!solver_is_well(s))
        return NULL;
    if (accel_mul(rows, cols, &bytes) && accel_mul(bytes, size, &bytes))
        memory = host_memory_take(bytes);
    if (!memory)
        solver_note(s, GPU_NO_MEMORY);
    return memory;
}
