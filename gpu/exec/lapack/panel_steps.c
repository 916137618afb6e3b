#include "panel_steps.h"

#include <stdlib.h>

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* ---- Where things are ---- */

static bool is_applied(const struct panel_steps *k)
{
    return k->panels->call.kind == PANELS_APPLY;
}

static struct schedule_tile turned_if(bool across, struct schedule_tile tile)
{
    return across ? (struct schedule_tile){tile.col, tile.row, tile.cols, tile.rows} : tile;
}

struct schedule_tile panel_steps_stored(const struct panel_steps *k, struct schedule_tile tile)
{
    return turned_if(k->panels->call.across, tile);
}

struct schedule_tile panel_steps_stored_block(const struct panel_steps *k,
                                              struct schedule_tile tile)
{
    const struct panels_call *call = &k->panels->call;
    return turned_if(is_applied(k) ? call->other_across : call->across, tile);
}

/* A tile by itself, or as a part of the whole matrix. */
static struct array array_at(const struct panel_steps *k, gpu_address at, struct schedule_tile tile)
{
    const enum accel_dtype dtype = k->s->dtype;
    if (k->panels->in_core)
        return solver_part(k->whole, tile.row, tile.col, tile.rows, tile.cols);
    return (struct array){{at, gpu_device_ld(tile.rows, dtype)}, tile.rows, tile.cols, dtype};
}

struct array panel_steps_panel(const struct panel_steps *k, int j)
{
    const int slot = (k->shared ? panels_shared_ordinal(k->shared, j) : j) % k->panels->buffers;
    return array_at(k, k->panel + (gpu_address)(slot * k->panels->panel_bytes),
                    panel_steps_stored(k, panels_panel(k->panels, j)));
}

struct array panel_steps_block(const struct panel_steps *k, const struct schedule_step *step,
                               int slot)
{
    if (slot < 0 && !k->panels->in_core) {
        const struct schedule_tile panel = panel_steps_stored(k, panels_panel(k->panels, step->i)),
                                   tile = panel_steps_stored(k, panels_block(k->panels, step));
        return solver_part(panel_steps_panel(k, step->i), tile.row - panel.row,
                           tile.col - panel.col, tile.rows, tile.cols);
    }
    return array_at(k, k->block + (gpu_address)(slot * k->panels->block_bytes),
                    panel_steps_stored_block(k, panels_block(k->panels, step)));
}

struct array panel_steps_list(const struct panel_steps *k, int j)
{
    return solver_part(k->list, k->panels->first[j], 0, panels_factored(k->panels, j), 1);
}

/* ---- BLAS ---- */

/* C := C + alpha op(A) op(B) */
static void add_product(struct solver *s, struct accel_complex alpha, char transa, char transb,
                        struct array a, struct array b, struct array c)
{
    const int64_t k = transa == 'N' ? a.cols : a.rows;
    if (solver_is_well(s) && c.rows > 0 && c.cols > 0 && k > 0)
        solver_note(s, gpu_kernels(s->work)->gemm(s->work, transa, transb, c.rows, c.cols, k, alpha,
                                                  a.at, b.at, one, c.at));
}

static void product(struct solver *s, char transa, char transb, struct array a, struct array b,
                    struct array c)
{
    add_product(s, minus_one, transa, transb, a, b, c);
}

static void solve_triangle(struct solver *s, char side, char uplo, char trans, char diag,
                           struct array a, struct array b)
{
    if (solver_is_well(s) && b.rows > 0 && b.cols > 0)
        solver_note(s, gpu_kernels(s->work)->trsm(s->work, side, uplo, trans, diag, b.rows, b.cols,
                                                  one, a.at, b.at));
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
    GPU_DO(s, gpu_kernels(s->work)->syrk(s->work, accel_is_complex(s->dtype), 'L', 'N', cols,
                                         l.cols, minus_one, l.at, one, c.at));
    product(s, 'N', adjoint, below(l, cols), solver_part(l, 0, 0, cols, l.cols), below(c, cols));
}

/* The same of an upper triangle: C := C - U^H U. */
static void update_cholesky_across(struct solver *s, struct array c, struct array u)
{
    const char adjoint = solver_adjoint(s);
    const int64_t rows = c.rows;
    GPU_DO(s, gpu_kernels(s->work)->syrk(s->work, accel_is_complex(s->dtype), 'U', adjoint, rows,
                                         u.rows, minus_one, u.at, one, c.at));
    product(s, adjoint, 'N', solver_part(u, 0, 0, u.rows, rows), beyond(u, rows), beyond(c, rows));
}

static void factor_cholesky(struct solver *s, bool across, struct array c)
{
    const int64_t order = accel_min(c.rows, c.cols);
    const char uplo = across ? 'U' : 'L', adjoint = solver_adjoint(s);
    solver_library(s)->potrf(s, uplo, solver_part(c, 0, 0, order, order));
    if (s->reserve->measuring)
        return;
    solve_triangle(s, across ? 'L' : 'R', uplo, adjoint, 'N', c,
                   across ? beyond(c, order) : below(c, order));
}

/* laswp takes int: the lower halves of cuSOLVER's int64 (devices are little-endian). */
static void take_swaps(struct panel_steps *k, int j)
{
    const struct array pivots = panel_steps_list(k, j),
                       swaps = solver_part(k->swaps, k->panels->first[j], 0, pivots.rows, 1);
    GPU_DO(k->s, gpu_copies(k->s->work)
                     ->copy(k->s->work->ctx, (struct dmat){swaps.at.ptr, 1},
                            (struct dmat){pivots.at.ptr, 2}, 1, pivots.rows, sizeof(int32_t)));
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
        solver_library(k->s)->laswp(k->s, below(c, from),
                                    solver_part(k->swaps, from, 0, exchanged, 1), 1, exchanged);
    struct array u = solver_part(c, row, 0, l.cols, c.cols);
    solve_triangle(k->s, 'L', 'L', 'N', 'U', l, u);
    product(k->s, 'N', 'N', below(l, l.cols), u, below(c, row + l.cols));
}

static void factor_lu(struct panel_steps *k, const struct schedule_step *step, struct array c)
{
    solver_library(k->s)->getrf(k->s, below(c, k->panels->first[step->j]),
                                panel_steps_list(k, step->j));
    if (!k->s->reserve->measuring)
        take_swaps(k, step->j);
}

/* ---- What blocks of another matrix do ---- */

/* The parts that a block of a triangle consists of, and those of the panel that they meet: rows, or
 * columns if it is seen transposed. */
struct triangle_parts {
    const struct panels_action *action;
    bool across;
    /* Of the block: the triangle on its diagonal, and what is below or above that */
    struct array diagonal, other;
    struct array mine, rest; /* of the panel */
};

/* Rows from `first` on, or columns. */
static struct array lines(bool across, struct array x, int64_t first, int64_t count)
{
    return across ? solver_part(x, 0, first, x.rows, count)
                  : solver_part(x, first, 0, count, x.cols);
}

/* x: some columns of the panel, which begins in row `top` of the matrix; the block begins in that
 * of its diagonal, or in the first one. */
static struct triangle_parts meet(const struct panels_call *call,
                                  const struct panels_action *action, struct schedule_tile block,
                                  int64_t top, struct array x, struct array t)
{
    const bool above = block.row < block.col, turned = call->other_across;
    const int64_t behind = block.col + block.cols, first = above ? top : behind,
                  others = above ? block.col - top : block.rows - block.cols;
    return (struct triangle_parts){
        .action = action,
        .across = call->across,
        .diagonal = lines(turned, t, block.col - block.row, block.cols),
        .other = lines(turned, t, above ? top : block.cols, others),
        .mine = lines(call->across, x, block.col - top, block.cols),
        .rest = lines(call->across, x, first - top, others),
    };
}

/* to := to + alpha op(T) from, with the block's part beside its diagonal. */
static void add_other(struct solver *s, const struct triangle_parts *m, struct accel_complex alpha,
                      char trans, struct array from, struct array to)
{
    if (m->across)
        add_product(s, alpha, 'N', trans, from, m->other, to);
    else
        add_product(s, alpha, trans, 'N', m->other, from, to);
}

static void solve_by_diagonal(struct solver *s, const struct triangle_parts *m)
{
    const struct panels_action *action = m->action;
    solve_triangle(s, m->across ? 'R' : 'L', action->uplo, action->trans, action->diag, m->diagonal,
                   m->mine);
}

static void solve_by_block(struct solver *s, const struct triangle_parts *m)
{
    if (m->action->trans == 'N') {
        solve_by_diagonal(s, m);
        add_other(s, m, minus_one, 'N', m->mine, m->rest);
    } else {
        add_other(s, m, minus_one, m->action->trans, m->rest, m->mine);
        solve_by_diagonal(s, m);
    }
}

/* By a transposed lower triangle, from its first block on: what is below a block has not been
 * multiplied yet. */
static void multiply_by_block(struct solver *s, const struct triangle_parts *m)
{
    const struct panels_action *action = m->action;
    if (solver_is_well(s) && m->mine.rows > 0 && m->mine.cols > 0)
        solver_note(s, gpu_kernels(s->work)->trmm(s->work, m->across ? 'R' : 'L', action->uplo,
                                                  action->trans, action->diag, m->mine.rows,
                                                  m->mine.cols, one, m->diagonal.at, m->mine.at));
    add_other(s, m, one, action->trans, m->rest, m->mine);
}

static void apply_block(struct panel_steps *k, const struct schedule_step *step, struct array x,
                        struct array t)
{
    const struct panels_call *call = &k->panels->call;
    const struct panels_action *action = &k->action[step->i];
    const struct schedule_tile block = panels_block(k->panels, step);
    const struct panels_columns changed = panels_changed(k->panels, step);
    if (k->exchanges && step->first)
        solver_library(k->s)->laswp(k->s, x, k->swaps, 1, call->order);
    x = lines(!call->across, x, changed.first, changed.end - changed.first);
    if (action->deed == PANELS_REFLECTS) {
        solver_library(k->s)->ormqr(k->s, call->across ? 'R' : 'L', action->trans, t,
                                    solver_part(k->list, block.col, 0, t.cols, 1),
                                    call->across ? beyond(x, block.col) : below(x, block.col));
        return;
    }
    const struct triangle_parts m =
        meet(call, action, block, panels_panel(k->panels, step->j).row, x, t);
    (action->deed == PANELS_SOLVES ? solve_by_block : multiply_by_block)(k->s, &m);
}

/* Steps of cuSOLVER that need workspaces. */
static bool needs_work(const struct panel_steps *k, const struct schedule_step *step)
{
    return step->engine == SCHEDULE_COMPUTE &&
           (step->p < 0 || k->panels->call.kind == PANELS_QR ||
            (is_applied(k) && k->action[step->i].deed == PANELS_REFLECTS));
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
        solver_library(k->s)->geqrf(k->s, below(c, k->panels->first[step->j]),
                                    panel_steps_list(k, step->j));
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
        solver_library(k->s)->ormqr(k->s, 'L', solver_adjoint(k->s), block,
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
    k->s->info = solver_outcome_at(k->outcomes, step->j).at.ptr;
    if (step->p < 0)
        factor_panel(k, step, c);
    else
        update_panel(k, step, c, panel_steps_block(k, step, step->slot));
}

bool panel_steps_succeeded(const struct panel_steps *k, const struct solver_outcome *outcome)
{
    return k->panels->call.kind == PANELS_CHOLESKY ? solver_is_definite(k->s, outcome)
                                                   : outcome->info == 0;
}

/* ---- Memory ---- */

void panel_steps_take_lists(struct panel_steps *k, bool has_scalars)
{
    const struct panels_call *call = &k->panels->call;
    const int64_t most = accel_min(call->m, is_applied(k) ? call->order : call->n);
    const bool lu = call->kind == PANELS_LU;
    if (lu || k->exchanges)
        k->swaps = solver_vector(k->s, most, ACCEL_INT32);
    if (!k->list.at.ptr && (lu || call->kind == PANELS_QR || has_scalars))
        k->list = solver_vector(k->s, most, lu ? ACCEL_INT64 : k->s->dtype);
    k->outcomes = solver_outcomes(k->s, k->panels->count);
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
    reserve->device = solver_work(s, reserve->device_bytes).at.ptr;
    reserve->host = solver_host_work(s, reserve->host_bytes);
    reserve->measuring = false;
}
