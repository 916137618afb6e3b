/*
 * symm, hemm, trmm, trsm: a square matrix A (symmetric, Hermitian, triangular) at one side of a rectangular one.
 *
 * The rectangle goes through in panels along the side that A does not touch: columns where A is at the left, rows
 * where it is at the right. Panels do not depend on each other, nor do their columns (rows): so after a failure the
 * original does those that are left. Where A does not fit beside a panel, it is taken in blocks, of
 * which those of the other triangle are never read.
 */
#include "blas.h"
#include "gpu/cuda/kernels.h"

#define BLOCK_MIN 64

struct square {
    struct gpu_work *work;
    const struct accel_call *call;
    const struct accel_operand *a, *in, *out; /* in: symm's B; trmm and trsm: the same as out */
    bool left;
    bool triangular;    /* trmm and trsm */
    bool solve;         /* trsm */
    bool nothing_added; /* alpha is 0 */
    char uplo, trans, diag;
    int64_t order, free;  /* of A; of the rectangle's other side */
    int64_t block, width; /* what of them is taken at once */
    CUdeviceptr memory_a, memory_in, memory_out;
    CUdeviceptr zeros;    /* where nothing is added */
    int64_t a_row, a_col; /* the block in memory_a, -1: none */
};

/* A panel of the rectangle on the device. */
struct panel {
    int64_t first, width; /* along the free side */
    struct gpu_tile in, out;
};

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* ---- Memory ---- */

static int64_t panel_bytes(const struct square *s, const struct accel_operand *x)
{
    return gpu_tile_bytes(x, s->left ? s->order : s->width, s->left ? s->width : s->order);
}

static int64_t block_bytes(const struct square *s)
{
    return gpu_tile_bytes(s->a, s->block, s->block);
}

static int64_t all_bytes(const struct square *s)
{
    return block_bytes(s) + panel_bytes(s, s->out) + (s->triangular ? 0 : panel_bytes(s, s->in));
}

static void halve(int64_t *size)
{
    *size = (*size + 1) / 2;
}

/* A whole, and a narrow panel, rather than A in blocks: a block is loaded again for every panel. */
static bool fit(struct square *s, int64_t available)
{
    bool panels = panel_bytes(s, s->out) + panel_bytes(s, s->in) > 0;
    while (all_bytes(s) > available && panels && s->width > BLOCK_MIN)
        halve(&s->width);
    while (all_bytes(s) > available && block_bytes(s) > 0 && s->block > BLOCK_MIN)
        halve(&s->block);
    while (all_bytes(s) > available && panels && s->width > 1)
        halve(&s->width);
    return all_bytes(s) <= available;
}

static int plan_blocks(void *plan, int64_t available, struct gpu_need need[WORK_BLOCKS])
{
    struct square *s = plan;
    int64_t widest = gpu_work_panel(s->order, (int64_t)accel_dtype_size(s->call->routine->dtype));
    s->block = s->order;
    s->width = gpu_in_place(s->out) || s->free < widest ? s->free : widest;
    if (!fit(s, available))
        return -1;
    need[0] = (struct gpu_need){block_bytes(s), &s->memory_a};
    need[1] = (struct gpu_need){panel_bytes(s, s->out), &s->memory_out};
    need[2] = (struct gpu_need){s->triangular ? 0 : panel_bytes(s, s->in), &s->memory_in};
    return 3;
}

/* ---- Blocks ---- */

static int64_t block_size(const struct square *s, int64_t first)
{
    return s->block < s->order - first ? s->block : s->order - first;
}

/* The block [row, …) x [col, …) of A as it is stored. */
static enum gpu_status stored_block(struct square *s, int64_t row, int64_t col,
                                    struct gpu_tile *tile)
{
    bool kept = s->a_row == row && s->a_col == col;
    s->a_row = row;
    s->a_col = col;
    return gpu_work_tile(s->work, s->a, row, col, block_size(s, row), block_size(s, col),
                         s->memory_a, kept ? GPU_TILE_KEPT : GPU_TILE_COPIED, tile);
}

/* The part of a panel that block row (or column) `at` of A meets. */
static struct gpu_tile slice(const struct square *s, struct gpu_tile panel, int64_t at)
{
    int64_t size = (int64_t)accel_dtype_size(s->call->routine->dtype);
    panel.ptr += (CUdeviceptr)((s->left ? at : at * panel.ld) * size);
    return panel;
}

/* out[i] := alpha op(A)[i, p] in[p] + beta out[i], or the same from the right, for i != p; op(A) is A for symm and
 * hemm, whose blocks beyond the diagonal are the transposed ones of the stored triangle. */
static enum gpu_status off_diagonal(struct square *s, int64_t i, int64_t p,
                                    const struct panel *panel, struct accel_complex alpha,
                                    struct accel_complex beta)
{
    struct gpu_tile a;
    int64_t row = s->left ? i : p, col = s->left ? p : i; /* of op(A) */
    char flag = s->trans;
    if (!s->triangular)
        flag = (row < col) == (s->uplo == 'U')        ? 'N'
               : accel_is_hermitian(s->call->routine) ? 'C'
                                                      : 'T';
    enum gpu_status status =
        flag == 'N' ? stored_block(s, row, col, &a) : stored_block(s, col, row, &a);
    if (status != GPU_OK)
        return status;
    struct gpu_tile x = slice(s, panel->in, p), y = slice(s, panel->out, i);
    int64_t depth = block_size(s, p), length = block_size(s, i);
    return s->left
               ? kernel_gemm(s->work, flag, 'N', length, panel->width, depth, alpha, a, x, beta, y)
               : kernel_gemm(s->work, 'N', flag, panel->width, length, depth, alpha, x, a, beta, y);
}

/* The block on the diagonal: symm and hemm add to out[i], trmm and trsm work on it in place. */
static enum gpu_status on_diagonal(struct square *s, int64_t i, const struct panel *panel,
                                   struct accel_complex alpha, struct accel_complex beta)
{
    struct gpu_tile a;
    char side = s->left ? 'L' : 'R';
    int64_t m = s->left ? block_size(s, i) : panel->width;
    int64_t n = s->left ? panel->width : block_size(s, i);
    enum gpu_status status = stored_block(s, i, i, &a);
    if (status != GPU_OK)
        return status;
    struct gpu_tile x = slice(s, panel->in, i), y = slice(s, panel->out, i);
    if (s->solve)
        return kernel_trsm(s->work, side, s->uplo, s->trans, s->diag, m, n, alpha, a, y);
    if (s->triangular)
        return kernel_trmm(s->work, side, s->uplo, s->trans, s->diag, m, n, alpha, a, y);
    return kernel_symm(s->work, accel_is_hermitian(s->call->routine), side, s->uplo, m, n, alpha, a,
                       x, beta, y);
}

/* ---- One panel ---- */

static enum gpu_status symmetric_panel(struct square *s, const struct panel *panel)
{
    enum gpu_status status = GPU_OK;
    struct accel_complex alpha = s->call->scalar[ACCEL_alpha];
    for (int64_t i = 0; status == GPU_OK && i < s->order; i += s->block) {
        status = on_diagonal(s, i, panel, alpha, s->call->scalar[ACCEL_beta]);
        for (int64_t p = 0; status == GPU_OK && p < s->order; p += s->block)
            if (p != i)
                status = off_diagonal(s, i, p, panel, alpha, one);
    }
    return status;
}

/* Whether op(A)'s blocks couple block i to those after it (upper at the left, lower at the right). */
static bool looks_ahead(const struct square *s)
{
    bool upper = (s->uplo == 'U') == (s->trans == 'N');
    return upper == s->left;
}

/* trmm takes from blocks that it has not yet overwritten, so it starts where the others follow; trsm from those
 * that it has solved, so it starts where none precedes. */
static enum gpu_status triangular_panel(struct square *s, const struct panel *panel)
{
    enum gpu_status status = GPU_OK;
    struct accel_complex alpha = s->call->scalar[ACCEL_alpha];
    bool solve = s->solve, ahead = looks_ahead(s);
    bool ascending = solve ? !ahead : ahead;
    int64_t last = (s->order - 1) / s->block * s->block;
    for (int64_t step = 0; status == GPU_OK && step <= last; step += s->block) {
        int64_t i = ascending ? step : last - step;
        bool first = true;
        if (!solve)
            status = on_diagonal(s, i, panel, alpha, one);
        for (int64_t p = ahead ? i + s->block : 0; status == GPU_OK && p < (ahead ? s->order : i);
             p += s->block) {
            status = off_diagonal(s, i, p, panel, solve ? minus_one : alpha,
                                  solve && first ? alpha : one);
            first = false;
        }
        if (solve && status == GPU_OK)
            status = on_diagonal(s, i, panel, first ? alpha : one, one);
    }
    return status;
}

/* alpha is 0: nothing is read except C for its beta. */
static enum gpu_status scale_panel(struct square *s, const struct panel *panel)
{
    const struct accel_complex zero = {0, 0};
    int64_t rows = s->left ? s->order : panel->width, cols = s->left ? panel->width : s->order;
    return kernel_scale(s->work, rows, cols, s->triangular ? zero : s->call->scalar[ACCEL_beta],
                        s->zeros, panel->out);
}

static enum gpu_status load(struct square *s, const struct accel_operand *x, bool read,
                            const struct panel *panel, CUdeviceptr memory, struct gpu_tile *tile)
{
    int64_t row = s->left ? 0 : panel->first, col = s->left ? panel->first : 0;
    int64_t rows = s->left ? s->order : panel->width, cols = s->left ? panel->width : s->order;
    return gpu_work_tile(s->work, x, row, col, rows, cols, memory,
                         read ? GPU_TILE_COPIED : GPU_TILE_UNREAD, tile);
}

/* *done: how many of the panel's columns or rows are in place. *damaged: the caller's own memory may have been changed, and
 * the panel is not finished. */
static enum gpu_status run_panel(struct square *s, struct panel *panel, int64_t *done,
                                 bool *damaged)
{
    enum gpu_status status =
        load(s, s->out, accel_is_read(s->call, s->out), panel, s->memory_out, &panel->out);
    panel->in = panel->out;
    if (status == GPU_OK && !s->triangular && !s->nothing_added)
        status = load(s, s->in, true, panel, s->memory_in, &panel->in);
    if (status != GPU_OK)
        return status;
    status = s->nothing_added ? scale_panel(s, panel)
             : s->triangular  ? triangular_panel(s, panel)
                              : symmetric_panel(s, panel);
    *damaged = gpu_in_place(s->out) && s->work->launched;
    if (status != GPU_OK)
        return status;
    if (gpu_in_place(s->out))
        return gpu_work_settle(s->work);
    /* Columns do not depend on each other where A is at the left, rows where it is at the right. */
    if (s->left)
        return gpu_work_write_columns(s->work, s->out, 0, panel->first, s->order, panel->width,
                                      panel->out, 0, done);
    return gpu_work_write_whole(s->work, s->out, panel->first, 0, panel->width, s->order,
                                panel->out);
}

/* The panels from `first` on, by the original. */
static bool rest_by_original(const struct square *s, int64_t first)
{
    struct accel_call part = *s->call;
    struct accel_operand *const rectangles[] = {&part.operand[ACCEL_b], &part.operand[ACCEL_c]};
    part.size[s->left ? ACCEL_n : ACCEL_m] -= first;
    for (int i = 0; i < (s->triangular ? 1 : 2); i++) {
        struct accel_operand *x = rectangles[i];
        x->ptr = gpu_element(x, s->left ? 0 : first, s->left ? first : 0);
        *(s->left ? &x->cols : &x->rows) -= first;
    }
    return gpu_work_by_original(s->work, &part);
}

static enum gpu_status run_square(struct gpu_work *work, bool triangular, bool solve)
{
    const struct accel_call *call = work->call;
    struct square s = {.work = work,
                       .call = call,
                       .a = &call->operand[ACCEL_a],
                       .in = &call->operand[ACCEL_b],
                       .left = call->flag[ACCEL_side] == 'L',
                       .triangular = triangular,
                       .solve = solve,
                       .uplo = call->flag[ACCEL_uplo],
                       .trans = call->flag[ACCEL_trans],
                       .diag = call->flag[ACCEL_diag],
                       .nothing_added = accel_adds_nothing(call),
                       .a_row = -1};
    s.out = s.triangular ? s.in : &call->operand[ACCEL_c];
    s.order = call->size[s.left ? ACCEL_m : ACCEL_n];
    s.free = call->size[s.left ? ACCEL_n : ACCEL_m];
    if (s.order == 0 || s.free == 0)
        return GPU_OK;
    if (!kernels_fit_call(call))
        return GPU_UNSUPPORTED;
    if (s.nothing_added && !s.triangular && accel_is_one(call->scalar[ACCEL_beta]))
        return GPU_OK;
    enum gpu_status status = gpu_work_prepare(work, plan_blocks, &s);
    if (status == GPU_OK && s.nothing_added)
        status = kernel_zeros(work, accel_max(s.order, s.width), &s.zeros);
    for (int64_t first = 0; status == GPU_OK && first < s.free; first += s.width) {
        struct panel panel = {.first = first,
                              .width = s.width < s.free - first ? s.width : s.free - first};
        int64_t done = 0;
        bool damaged = false;
        status = run_panel(&s, &panel, &done, &damaged);
        if (status == GPU_OK || (first + done == 0 && !damaged))
            continue;
        bool right = !damaged && rest_by_original(&s, first + done);
        return right ? gpu_finished_else(status) : GPU_LOST;
    }
    return status;
}

static enum gpu_status run_symm(struct gpu_work *work)
{
    return run_square(work, false, false);
}

static enum gpu_status run_trmm(struct gpu_work *work)
{
    return run_square(work, true, false);
}

static enum gpu_status run_trsm(struct gpu_work *work)
{
    return run_square(work, true, true);
}

const struct accel_op op_symm = {BLAS_LEVEL_3, .run = run_symm, .equation = equation_symm};
const struct accel_op op_hemm = {BLAS_LEVEL_3, .hermitian = true, .run = run_symm,
                                 .equation = equation_symm};
const struct accel_op op_trmm = {BLAS_LEVEL_3, .definite = 1 << ACCEL_a, .run = run_trmm,
                                 .equation = equation_trmm};
const struct accel_op op_trsm = {BLAS_LEVEL_3, .definite = 1 << ACCEL_a, .run = run_trsm,
                                 .equation = equation_trsm};
