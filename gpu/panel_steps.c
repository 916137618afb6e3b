#include "panel_steps.h"

#include <stdlib.h>

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* ---- Where things are ---- */

struct schedule_cell panel_steps_stored(const struct panel_steps *k, struct schedule_cell cell)
{
    return k->panels->call.across ? (struct schedule_cell){cell.col, cell.row, cell.cols, cell.rows}
                                  : cell;
}

/* A cell by itself, or as a part of the whole matrix. */
static struct array array_at(const struct panel_steps *k, gpu_address at, struct schedule_cell cell)
{
    const enum accel_dtype dtype = k->s->dtype;
    if (k->panels->in_core)
        return solver_part(k->whole, cell.row, cell.col, cell.rows, cell.cols);
    return (struct array){at, cell.rows, cell.cols, gpu_device_ld(cell.rows, dtype), dtype};
}

struct array panel_steps_panel(const struct panel_steps *k, int j)
{
    const int place = (k->shared ? panels_shared_ordinal(k->shared, j) : j) % k->panels->buffers;
    return array_at(k, k->panel + (gpu_address)(place * k->panels->panel_bytes),
                    panel_steps_stored(k, panels_panel(k->panels, j)));
}

struct array panel_steps_block(const struct panel_steps *k, const struct schedule_step *step,
                               int place)
{
    return array_at(k, k->block + (gpu_address)(place * k->panels->block_bytes),
                    panel_steps_stored(k, panels_block(k->panels, step)));
}

struct array panel_steps_list(const struct panel_steps *k, int j)
{
    return solver_part(k->list, k->panels->first[j], 0, panels_factored(k->panels, j), 1);
}

static bool is_applied(const struct panel_steps *k)
{
    return k->panels->call.kind == PANELS_APPLY;
}

/* ---- BLAS ---- */

static struct gpu_tile tile_of(struct array x)
{
    return (struct gpu_tile){x.ptr, x.ld};
}

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

/* ---- Steps ---- */

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

/* laswp takes int: the lower halves of cuSOLVER's int64 (devices are little-endian). */
static void take_swaps(struct panel_steps *k, int j)
{
    const struct array pivots = panel_steps_list(k, j);
    if (solver_is_well(k->s))
        solver_note(k->s,
                    lane_copy(k->s->work->lane,
                              solver_part(k->swaps, k->panels->first[j], 0, pivots.rows, 1).ptr, 1,
                              pivots.ptr, 2, 1, pivots.rows, sizeof(int32_t)));
}

/* L is a block of a panel that has been factored; its exchanges come before its first block. */
static void update_lu(struct panel_steps *k, const struct schedule_step *step, struct array c,
                      struct array l)
{
    const int64_t from = k->panels->first[step->i], row = k->panels->call.m - l.rows;
    const int64_t exchanged = panels_factored(k->panels, step->i);
    if (step->p == 0 && k->shared && k->shared->owner[step->i] != k->member)
        take_swaps(k, step->i);
    if (step->p == 0)
        solver_laswp(k->s, below(c, from), solver_part(k->swaps, from, 0, exchanged, 1), 1,
                     exchanged);
    struct array u = solver_part(c, row, 0, l.cols, c.cols);
    solve(k->s, 'L', 'L', 'N', 'U', l, u);
    product(k->s, 'N', 'N', below(l, l.cols), u, below(c, row + l.cols));
}

static void factor_lu(struct panel_steps *k, const struct schedule_step *step, struct array c)
{
    solver_getrf(k->s, below(c, k->panels->first[step->j]), panel_steps_list(k, step->j));
    if (!k->s->reserve->measuring)
        take_swaps(k, step->j);
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

static void apply_block(struct panel_steps *k, const struct schedule_step *step, struct array x,
                        struct array t)
{
    const struct panels_action *action = &k->action[step->i];
    const int64_t col = panels_block(k->panels, step).col;
    if (action->reflects) {
        solver_ormqr(k->s, 'L', action->trans, t, solver_part(k->list, col, 0, t.cols, 1),
                     below(x, col));
        return;
    }
    if (k->exchanges && step->first)
        solver_laswp(k->s, x, k->swaps, 1, k->panels->call.order);
    solve_by_block(k->s, action, col, x, t);
}

/* Steps of cuSOLVER that need workspaces. */
static bool needs_work(const struct panel_steps *k, const struct schedule_step *step)
{
    return step->engine == SCHEDULE_COMPUTE && (step->p < 0 || k->panels->call.kind == PANELS_QR ||
                                                (is_applied(k) && k->action[step->i].reflects));
}

static void factor_panel(struct panel_steps *k, const struct schedule_step *step, struct array c)
{
    switch (k->panels->call.kind) {
    case PANELS_CHOLESKY:
        factor_cholesky(k->s, k->panels->call.across, c);
        break;
    case PANELS_LU:
        factor_lu(k, step, c);
        break;
    default:
        solver_geqrf(k->s, below(c, k->panels->first[step->j]), panel_steps_list(k, step->j));
        break;
    }
}

static void update_panel(struct panel_steps *k, const struct schedule_step *step, struct array c,
                         struct array block)
{
    const int64_t col = panels_block(k->panels, step).col;
    switch (k->panels->call.kind) {
    case PANELS_CHOLESKY:
        (k->panels->call.across ? update_cholesky_across : update_cholesky)(k->s, c, block);
        break;
    case PANELS_LU:
        update_lu(k, step, c, block);
        break;
    case PANELS_QR:
        solver_ormqr(k->s, 'L', solver_adjoint(k->s), block,
                     solver_part(k->list, col, 0, block.cols, 1), below(c, col));
        break;
    default:
        apply_block(k, step, c, block);
        break;
    }
}

void panel_steps_put(struct panel_steps *k, const struct schedule_step *step)
{
    const struct array c = panel_steps_panel(k, step->j);
    k->s->info = solver_part(k->infos, step->j, 0, 1, 1).ptr;
    if (step->p < 0)
        factor_panel(k, step, c);
    else
        update_panel(k, step, c, panel_steps_block(k, step, step->place));
}

/* ---- Memory ---- */

void panel_steps_take_lists(struct panel_steps *k, bool has_scalars)
{
    const struct panels_call *call = &k->panels->call;
    const int64_t most = accel_min(call->m, is_applied(k) ? call->order : call->n);
    const bool lu = call->kind == PANELS_LU;
    if (lu || k->exchanges)
        k->swaps = solver_vector(k->s, most, ACCEL_INT32);
    if (!k->list.ptr && (lu || call->kind == PANELS_QR || has_scalars))
        k->list = solver_vector(k->s, most, lu ? ACCEL_INT64 : k->s->dtype);
    k->infos = solver_vector(k->s, k->panels->count, ACCEL_INT32);
}

void panel_steps_measure(struct panel_steps *k, struct solver_reserve *reserve)
{
    const struct schedule *schedule = &k->panels->schedule;
    const gpu_address info = k->s->info;
    *reserve = (struct solver_reserve){.measuring = true};
    k->s->reserve = reserve;
    for (int n = 0; n < schedule->count && solver_is_well(k->s); n++)
        if (needs_work(k, &schedule->step[n]))
            panel_steps_put(k, &schedule->step[n]);
    k->s->reserve = NULL;
    k->s->info = info;
}

void panel_steps_take_reserve(struct panel_steps *k, struct solver_reserve *reserve)
{
    struct solver *s = k->s;
    reserve->device = solver_work(s, reserve->device_bytes).ptr;
    reserve->host = solver_host_work(s, reserve->host_bytes);
    reserve->measuring = false;
}
