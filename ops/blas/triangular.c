/*
 * trmm, trsm: a triangle A at one side of a rectangle, which is overwritten.
 *
 * The rectangle goes through in panels: of columns if A is at the left, of rows if it is at the right. Panels do not depend on
 * each other, nor do their columns (rows): after a failure the original does the rest. If A does not fit beside a panel, it comes
 * in blocks; those of the other triangle are never read.
 */
#include "blas.h"
#include "gpu/tiles.h"

#define BLOCK_MIN 64

/* The operands' parts. How much of A's order, and of the rectangle's other side, comes at once. */
enum { A, OUT };
enum { BLOCK, WIDTH };

struct triangular {
    struct tiles tiles;
    struct gpu_work *work;
    const struct accel_call *call;
    bool left;
    bool solve; /* trsm */
    char uplo, trans, diag;
    int64_t order; /* of A */
};

/* A panel of the rectangle on the device. */
struct panel {
    int64_t width; /* along the side that A does not touch */
    struct gpu_tile at;
};

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* Narrows the panel before it splits A into blocks: each panel loads all blocks again. */
static bool shrink(struct tiles *t)
{
    bool panels = tiles_part_bytes(t, OUT) > 0;
    return (panels && tiles_halve(&t->size[WIDTH], BLOCK_MIN)) ||
           (tiles_part_bytes(t, A) > 0 && tiles_halve(&t->size[BLOCK], BLOCK_MIN)) ||
           (panels && tiles_halve(&t->size[WIDTH], 1));
}

/* ---- Blocks ---- */

static int64_t block_size(const struct triangular *s, int64_t first)
{
    return tiles_length(s->tiles.size[BLOCK], first, s->order);
}

/* Loads the block [row, …) x [col, …) of A as it is stored. */
static enum gpu_status stored_block(struct triangular *s, int64_t row, int64_t col,
                                    struct gpu_tile *tile)
{
    return tiles_load(&s->tiles, A, row, col, block_size(s, row), block_size(s, col), tile);
}

/* Returns the part of a panel that block row (or column) `at` of A meets. */
static struct gpu_tile slice(const struct triangular *s, struct gpu_tile panel, int64_t at)
{
    return gpu_tile_from(s->work, panel, s->left ? at : 0, s->left ? 0 : at);
}

/* X[i] := alpha op(A)[i, p] X[p] + beta X[i], or the same from the right, for i != p. */
static enum gpu_status off_diagonal(struct triangular *s, int64_t i, int64_t p,
                                    const struct panel *panel, struct accel_complex alpha,
                                    struct accel_complex beta)
{
    struct gpu_tile a;
    int64_t row = s->left ? i : p, col = s->left ? p : i; /* of op(A) */
    const char flag = s->trans;
    enum gpu_status status =
        flag == 'N' ? stored_block(s, row, col, &a) : stored_block(s, col, row, &a);
    if (status != GPU_OK)
        return status;
    struct gpu_tile x = slice(s, panel->at, p), y = slice(s, panel->at, i);
    int64_t depth = block_size(s, p), length = block_size(s, i);
    return s->left
               ? kernel_gemm(s->work, flag, 'N', length, panel->width, depth, alpha, a, x, beta, y)
               : kernel_gemm(s->work, 'N', flag, panel->width, length, depth, alpha, x, a, beta, y);
}

/* The block on the diagonal, in place. */
static enum gpu_status on_diagonal(struct triangular *s, int64_t i, const struct panel *panel,
                                   struct accel_complex alpha)
{
    struct gpu_tile a;
    char side = s->left ? 'L' : 'R';
    int64_t m = s->left ? block_size(s, i) : panel->width;
    int64_t n = s->left ? panel->width : block_size(s, i);
    enum gpu_status status = stored_block(s, i, i, &a);
    if (status != GPU_OK)
        return status;
    struct gpu_tile x = slice(s, panel->at, i);
    return s->solve ? kernel_trsm(s->work, side, s->uplo, s->trans, s->diag, m, n, alpha, a, x)
                    : kernel_trmm(s->work, side, s->uplo, s->trans, s->diag, m, n, alpha, a, x);
}

/* ---- One panel ---- */

/* Returns whether op(A) couples block i to those after it (upper at the left, lower at the right). */
static bool looks_ahead(const struct triangular *s)
{
    bool upper = (s->uplo == 'U') == (s->trans == 'N');
    return upper == s->left;
}

/* trmm reads blocks that it has not overwritten yet: each block comes before those that it needs. trsm reads blocks that it
 * has solved: each comes after those. */
static enum gpu_status triangular_panel(struct triangular *s, const struct panel *panel)
{
    enum gpu_status status = GPU_OK;
    struct accel_complex alpha = s->call->blas.scalar[ACCEL_alpha];
    bool solve = s->solve, ahead = looks_ahead(s);
    bool ascending = solve ? !ahead : ahead;
    int64_t last = (s->order - 1) / s->tiles.size[BLOCK] * s->tiles.size[BLOCK];
    for (int64_t step = 0; status == GPU_OK && step <= last; step += s->tiles.size[BLOCK]) {
        int64_t i = ascending ? step : last - step;
        bool first = true;
        if (!solve)
            status = on_diagonal(s, i, panel, alpha);
        for (int64_t p = ahead ? i + s->tiles.size[BLOCK] : 0;
             status == GPU_OK && p < (ahead ? s->order : i); p += s->tiles.size[BLOCK]) {
            status = off_diagonal(s, i, p, panel, solve ? minus_one : alpha,
                                  solve && first ? alpha : one);
            first = false;
        }
        if (solve && status == GPU_OK)
            status = on_diagonal(s, i, panel, first ? alpha : one);
    }
    return status;
}

/* With alpha = 0, reads nothing. */
static enum gpu_status compute(struct tiles *t, struct tile *out)
{
    const struct accel_complex zero = {0, 0};
    struct triangular *s = (struct triangular *)t;
    struct panel panel = {s->left ? out->cols : out->rows, out->at};
    return t->scales ? kernel_scale(s->work, out->rows, out->cols, zero, t->zeros, out->at)
                     : triangular_panel(s, &panel);
}

static enum gpu_status run_triangular(struct gpu_work *work, bool solve)
{
    const struct accel_call *call = work->call;
    bool left = call->blas.flag[ACCEL_side] == 'L', nothing_added = accel_adds_nothing(call);
    const struct accel_span *out = &call->span[ACCEL_b];
    int64_t order = left ? out->rows : out->cols, free = left ? out->cols : out->rows;
    if (order == 0 || free == 0)
        return GPU_OK;
    if (!kernels_fit_call(call))
        return GPU_UNSUPPORTED;
    int64_t widest = gpu_in_place(out) ? free : tiles_panel(order, gpu_size_of(out));
    struct triangular s = {.tiles = {.work = work,
                                     .most = {[BLOCK] = order, [WIDTH] = accel_min(free, widest)},
                                     .shrink = shrink,
                                     .over = OUT,
                                     .out = OUT,
                                     .rows = out->rows,
                                     .cols = out->cols,
                                     .unit = left ? TILE_COLUMNS : TILE_WHOLE,
                                     .scales = nothing_added,
                                     .compute = compute},
                           .work = work,
                           .call = call,
                           .left = left,
                           .solve = solve,
                           .uplo = call->blas.flag[ACCEL_uplo],
                           .trans = call->blas.flag[ACCEL_trans],
                           .diag = call->blas.flag[ACCEL_diag],
                           .order = order};
    const int64_t *block = &s.tiles.size[BLOCK], *width = &s.tiles.size[WIDTH];
    const int64_t *rows = left ? &s.order : width, *cols = left ? width : &s.order;
    s.tiles.part[A] = tile_part_of(&call->span[ACCEL_a], false, block, block);
    s.tiles.part[OUT] = tile_part_of(out, false, rows, cols);
    return tiles_run(&s.tiles);
}

static enum gpu_status run_trmm(struct gpu_work *work)
{
    return run_triangular(work, false);
}

static enum gpu_status run_trsm(struct gpu_work *work)
{
    return run_triangular(work, true);
}

const struct accel_op op_trmm = {BLAS_LEVEL_3, .products = GPU_OTHERS, .definite = 1 << ACCEL_a,
                                 .run = run_trmm, .equation = equation_trmm};
const struct accel_op op_trsm = {BLAS_LEVEL_3, .products = GPU_OTHERS, .definite = 1 << ACCEL_a,
                                 .run = run_trsm, .equation = equation_trsm};
