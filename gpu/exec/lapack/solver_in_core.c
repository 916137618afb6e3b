#include "solver_in_core.h"

#include <limits.h>
#include <stdlib.h>

#include "panel_copies.h"
#include "solver_parts.h"

/* A factorisation under way. */
struct in_core_run {
    struct solver *s;
    const struct accel_span *x;
    struct panels panels;
    struct panel_steps steps;
    struct solver_reserve reserve;
    struct gpu_scan scan;
    /* Cholesky: panels come up to places of their own, since in the matrix a column is longer than
     * that of a panel; 0: they do not. */
    gpu_address places;
};

static bool is_cholesky(const struct in_core_run *r)
{
    return r->panels.call.kind == PANELS_CHOLESKY;
}

static struct schedule_tile panel_at(const struct in_core_run *r, int j)
{
    return panel_steps_stored(&r->steps, panels_panel(&r->panels, j));
}

/* Returns where panel j comes up; of panel number `count`, where its place would be: the end of the
 * others. */
static struct array place_of_panel(const struct in_core_run *r, int j)
{
    const int64_t size = r->panels.call.size;
    struct array place = {{r->places, 0}, 0, 0, r->s->dtype};
    for (int i = 0; i <= j; i++) {
        place.at.ptr += (gpu_address)(place.at.ld * place.cols * size);
        if (i == r->panels.count)
            break;
        const struct schedule_tile tile = panel_at(r, i);
        place.rows = tile.rows;
        place.cols = tile.cols;
        place.at.ld = gpu_device_ld(tile.rows, r->s->dtype);
    }
    return place;
}

/* ---- While it comes up ---- */

static void copy_of_panel(void *context, const struct schedule_step *step, struct tile_copy *copy)
{
    struct in_core_run *r = context;
    const struct schedule_tile tile = panel_at(r, step->j);
    const struct array to =
        r->places ? place_of_panel(r, step->j) : panel_steps_panel(&r->steps, step->j);
    const int64_t size = r->panels.call.size;
    *copy = (struct tile_copy){.device = to.at};
    copy->host =
        host_whole(gpu_element(r->x, tile.row, tile.col), tile.rows, tile.cols, r->x->ld, size);
    copy->host.name = r->x->name;
    copy->host.scan = &r->scan;
    if (is_cholesky(r)) {
        copy->host.uplo = r->panels.call.across ? 'U' : 'L';
        copy->host.hermitian = accel_is_complex(r->s->dtype);
    }
    panel_copies_note(r->s, r->x, true, tile.rows, tile.cols, size);
}

static enum gpu_status compute_in_core(void *context, const struct schedule_step *step)
{
    struct in_core_run *r = context;
    if (!r->scan.finite)
        return GPU_UNSUPPORTED;
    if (r->places && step->first)
        solver_copy(r->s, panel_steps_panel(&r->steps, step->j), place_of_panel(r, step->j));
    panel_steps_put(&r->steps, step);
    return r->s->status;
}

static void run_pipeline(struct in_core_run *r)
{
    struct solver *s = r->s;
    struct pipeline_job pipeline = {.schedule = &r->panels.schedule,
                                    .result_bytes = 0,
                                    .context = r,
                                    .copy_of = copy_of_panel,
                                    .compute = compute_in_core};
    solver_note(s, gpu_copies(s->work)->pipeline(s->work->ctx, &pipeline));
    if (!r->scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    s->largest = r->scan.largest > s->largest ? r->scan.largest : s->largest;
}

/* The matrix is there already. The kernels are the same, and so is the result. */
static void run_kernels(struct in_core_run *r)
{
    const struct schedule *schedule = &r->panels.schedule;
    for (int n = 0; n < schedule->count && solver_is_well(r->s); n++)
        if (schedule->step[n].engine == SCHEDULE_COMPUTE)
            panel_steps_put(&r->steps, &schedule->step[n]);
}

/* ---- Behind the last panel ---- */

/* A panel of LU has the exchanges of those before it, and lacks those after it. */
static void exchange_finished(struct in_core_run *r)
{
    const struct panels *p = &r->panels;
    const struct array a = r->steps.whole;
    for (int i = 1; i < p->count; i++) {
        const int64_t from = p->first[i], rows = panels_factored(p, i);
        if (rows > 0)
            solver_library(r->s)->laswp(r->s, solver_part(a, from, 0, a.rows - from, from),
                                        solver_part(r->steps.swaps, from, 0, rows, 1), 1, rows);
    }
}

static void require_success(struct in_core_run *r)
{
    struct solver_outcome *outcome = malloc((size_t)r->panels.count * sizeof *outcome);
    if (!outcome)
        solver_note(r->s, GPU_NO_MEMORY);
    else
        solver_get(r->s, outcome, r->steps.outcomes);
    for (int j = 0; j < r->panels.count && solver_is_well(r->s); j++)
        if (panels_factored(&r->panels, j) > 0 && !panel_steps_succeeded(&r->steps, &outcome[j]))
            solver_note(r->s, GPU_UNSUPPORTED);
    free(outcome);
}

/* The pivots of a panel count from its diagonal; the matrix's from its first row. */
static void count_from_first_row(struct in_core_run *r)
{
    const struct panels *p = &r->panels;
    const struct array list = r->steps.list;
    int64_t *pivots = malloc((size_t)list.rows * sizeof *pivots);
    if (!pivots)
        solver_note(r->s, GPU_NO_MEMORY);
    else
        solver_get(r->s, pivots, list);
    for (int j = 0; j < p->count && solver_is_well(r->s); j++)
        for (int64_t i = 0; i < panels_factored(p, j); i++)
            pivots[p->first[j] + i] += p->first[j];
    if (pivots)
        solver_put(r->s, list, pivots);
    free(pivots);
}

/* ---- The whole ---- */

/* Takes what the kernels need besides the matrix. Returns whether there is memory for that. */
static bool alloc_workspace(struct in_core_run *r, bool comes_up)
{
    struct solver *s = r->s;
    panel_steps_measure(&r->steps, &r->reserve);
    if (is_cholesky(r) && comes_up && solver_is_well(s)) {
        const int64_t bytes = (int64_t)place_of_panel(r, r->panels.count).at.ptr;
        const enum gpu_status status = gpu_memory(s->work)->take(s->work, bytes, &r->places);
        if (status == GPU_NO_MEMORY)
            return false;
        solver_note(s, status);
    }
    panel_steps_take_lists(&r->steps, false);
    panel_steps_take_reserve(&r->steps, &r->reserve);
    return true;
}

static void factor_in_panels(struct in_core_run *r, bool is_there)
{
    struct solver *s = r->s;
    const gpu_address info = s->info; /* of the steps that come next */
    s->reserve = &r->reserve;
    if (!is_there && solver_is_well(s))
        run_pipeline(r);
    else
        run_kernels(r);
    if (r->panels.call.kind == PANELS_LU)
        exchange_finished(r);
    s->reserve = NULL;
    s->info = info;
    require_success(r);
    if (r->panels.call.kind == PANELS_LU)
        count_from_first_row(r);
}

static void factor_whole(struct solver *s, const struct panels_call *call, struct array a,
                         struct array list)
{
    switch (call->kind) {
    case PANELS_CHOLESKY:
        solver_library(s)->potrf(s, call->across ? 'U' : 'L', a);
        break;
    case PANELS_LU:
        solver_library(s)->getrf(s, a, list);
        break;
    default:
        solver_library(s)->geqrf(s, a, list);
        break;
    }
}

/* Returns whether there is a schedule: only of what is in host memory, and not for cuSOLVER's laswp
 * and ormqr beyond the sizes that they take. */
static bool make_schedule(struct in_core_run *r, const struct panels_call *call)
{
    const struct schedule_rates *rates = &r->s->work->host->rates;
    return solver_is_well(r->s) && r->x->place == ACCEL_HOST && rates->up > 0 &&
           r->steps.whole.at.ld <= INT_MAX && call->n <= INT_MAX &&
           panels_make_in_core(&r->panels, call, rates);
}

struct array solver_factor(struct solver *s, const struct panels_call *call,
                           const struct accel_span *x, struct array list)
{
    struct in_core_run r = {.s = s, .x = x, .scan = gpu_scan_begin(accel_is_double(s->dtype))};
    const struct array a = solver_array(s, x->rows, x->cols);
    const bool cholesky = call->kind == PANELS_CHOLESKY;
    const char uplo = !cholesky ? 0 : call->across ? 'U' : 'L';
    const bool hermitian = cholesky && accel_is_complex(s->dtype);
    r.steps = (struct panel_steps){.s = s, .panels = &r.panels, .whole = a, .list = list};
    const bool in_panels = make_schedule(&r, call);
    const bool is_there = solver_bring(s, a, x, uplo, hermitian, in_panels);
    if (in_panels && alloc_workspace(&r, !is_there)) {
        factor_in_panels(&r, is_there);
    } else {
        if (!is_there)
            solver_bring(s, a, x, uplo, hermitian, false);
        factor_whole(s, call, a, list);
    }
    if (in_panels)
        panels_free(&r.panels);
    return a;
}
