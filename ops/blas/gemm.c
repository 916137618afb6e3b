/*
 * C := alpha op(A) op(B) + beta C on the device, in tiles where the operands do not fit: tiles of C
 * are computed one after the other, each as a sum over panels of k.
 */
#include <limits.h>

#include "blas.h"
#include "gpu/cuda/kernels.h"

/* The smallest tile: below this, memory is short for something else. */
#define TILE_MIN 64

struct gemm {
    struct gpu_work *work;
    const struct accel_operand *a, *b, *c;
    int64_t m, n, k;
    int64_t mt, nt, kt; /* tile sizes */
    /* Device memory for tiles of the operands that are not in place, and what is in it. */
    CUdeviceptr memory_a, memory_b, memory_c;
    CUdeviceptr zeros;                  /* where C is scaled alone: k = 0 */
    int64_t a_row, a_col, b_row, b_col; /* -1: nothing yet */
};

static bool transposed(char flag)
{
    return flag != 'N';
}

/* ---- Tile sizes ---- */

static int64_t bytes_a(const struct gemm *g)
{
    bool t = transposed(g->work->call->flag[ACCEL_transa]);
    return gpu_tile_bytes(g->a, t ? g->kt : g->mt, t ? g->mt : g->kt);
}

static int64_t bytes_b(const struct gemm *g)
{
    bool t = transposed(g->work->call->flag[ACCEL_transb]);
    return gpu_tile_bytes(g->b, t ? g->nt : g->kt, t ? g->kt : g->nt);
}

static int64_t bytes_c(const struct gemm *g)
{
    return gpu_tile_bytes(g->c, g->mt, g->nt);
}

static int64_t bytes_all(const struct gemm *g)
{
    return bytes_a(g) + bytes_b(g) + bytes_c(g);
}

static int64_t half(int64_t size)
{
    return (size + 1) / 2;
}

/* Halves the size whose halving frees most, until the tiles fit. n before m before k where they are
 * equal: then A stays on the device for all tiles, and no product is split into a sum. */
static bool fit_tiles(struct gemm *g, int64_t available)
{
    int64_t *const sizes[] = {&g->nt, &g->mt, &g->kt};
    while (bytes_all(g) > available) {
        int64_t *best = NULL, least = bytes_all(g);
        for (int i = 0; i < 3; i++) {
            int64_t size = *sizes[i];
            if (size <= TILE_MIN)
                continue;
            *sizes[i] = half(size);
            if (bytes_all(g) < least) {
                least = bytes_all(g);
                best = sizes[i];
            }
            *sizes[i] = size;
        }
        if (!best)
            return false;
        *best = half(*best);
    }
    return true;
}

static int plan_tiles(void *plan, int64_t available, struct gpu_need need[WORK_BLOCKS])
{
    struct gemm *g = plan;
    const int64_t most = INT_MAX / 64 * 64; /* without the 64-bit functions */
    g->mt = g->m;
    g->nt = g->n;
    g->kt = g->k;
    if (!kernels_fit(INT64_MAX)) {
        g->mt = g->mt < most ? g->mt : most;
        g->nt = g->nt < most ? g->nt : most;
        g->kt = g->kt < most ? g->kt : most;
    }
    if (!fit_tiles(g, available))
        return -1;
    need[0] = (struct gpu_need){bytes_a(g), &g->memory_a};
    need[1] = (struct gpu_need){bytes_b(g), &g->memory_b};
    need[2] = (struct gpu_need){bytes_c(g), &g->memory_c};
    return 3;
}

/* ---- The products ---- */

/* op(x)'s part [row, row + rows) x [col, col + cols), on the device: where it is, or copied into
 * the tile's memory unless it is there already. */
static enum gpu_status operand_tile(struct gemm *g, const struct accel_operand *x, char flag,
                                    int64_t row, int64_t col, int64_t rows, int64_t cols,
                                    CUdeviceptr memory, int64_t *kept_row, int64_t *kept_col,
                                    struct gpu_tile *tile)
{
    bool t = transposed(flag), kept = *kept_row == row && *kept_col == col;
    *kept_row = row;
    *kept_col = col;
    return gpu_work_tile(g->work, x, t ? col : row, t ? row : col, t ? cols : rows, t ? rows : cols,
                         memory, kept ? GPU_TILE_KEPT : GPU_TILE_COPIED, tile);
}

/* One tile of C: everything but the way back. */
static enum gpu_status compute_tile(struct gemm *g, int64_t row, int64_t col, int64_t rows,
                                    int64_t cols, struct gpu_tile *c)
{
    const struct accel_call *call = g->work->call;
    const struct accel_complex one = {1, 0};
    enum gpu_status status = gpu_work_tile(
        g->work, g->c, row, col, rows, cols, g->memory_c,
        accel_is_zero(call->scalar[ACCEL_beta]) ? GPU_TILE_UNREAD : GPU_TILE_COPIED, c);
    /* Then A and B are not to be read, alpha may be 0. */
    if (status == GPU_OK && g->k == 0)
        return kernel_scale(g->work, rows, cols, call->scalar[ACCEL_beta], g->zeros, *c);
    for (int64_t p = 0; status == GPU_OK && p < g->k; p += g->kt) {
        int64_t depth = g->kt < g->k - p ? g->kt : g->k - p;
        struct gpu_tile a, b;
        status = operand_tile(g, g->a, call->flag[ACCEL_transa], row, p, rows, depth, g->memory_a,
                              &g->a_row, &g->a_col, &a);
        if (status == GPU_OK)
            status = operand_tile(g, g->b, call->flag[ACCEL_transb], p, col, depth, cols,
                                  g->memory_b, &g->b_row, &g->b_col, &b);
        if (status == GPU_OK)
            status = kernel_gemm(g->work, call->flag[ACCEL_transa], call->flag[ACCEL_transb], rows,
                                 cols, depth, call->scalar[ACCEL_alpha], a, b,
                                 p == 0 ? call->scalar[ACCEL_beta] : one, *c);
    }
    return status;
}

/* ---- What the device did not do ---- */

/* The part [row, row + rows) x [col, col + cols) of C, by the original. */
static bool part_by_original(const struct gemm *g, int64_t row, int64_t col, int64_t rows,
                             int64_t cols)
{
    struct accel_call part = *g->work->call;
    struct accel_operand *a = &part.operand[ACCEL_a], *b = &part.operand[ACCEL_b],
                         *c = &part.operand[ACCEL_c];
    bool ta = transposed(part.flag[ACCEL_transa]), tb = transposed(part.flag[ACCEL_transb]);
    if (rows == 0 || cols == 0)
        return true;
    part.size[ACCEL_m] = rows;
    part.size[ACCEL_n] = cols;
    a->ptr = gpu_element(a, ta ? 0 : row, ta ? row : 0);
    b->ptr = gpu_element(b, tb ? col : 0, tb ? 0 : col);
    c->ptr = gpu_element(c, row, col);
    *(ta ? &a->cols : &a->rows) = rows;
    *(tb ? &b->rows : &b->cols) = cols;
    c->rows = rows;
    c->cols = cols;
    return gpu_work_by_original(g->work, &part);
}

/* Tiles are computed down the columns of tiles. Of the tile at (row, col), done_cols columns and
 * done_rows rows of the next are in place, of those before it everything, of those behind it
 * nothing. */
static bool rest_by_original(const struct gemm *g, int64_t row, int64_t col, int64_t done_cols,
                             int64_t done_rows)
{
    int64_t rows = g->mt < g->m - row ? g->mt : g->m - row;
    int64_t cols = g->nt < g->n - col ? g->nt : g->n - col;
    bool right = true;
    if (done_rows > 0) {
        right = part_by_original(g, row + done_rows, col + done_cols, rows - done_rows, 1);
        done_cols++;
    }
    return right && part_by_original(g, row, col + done_cols, rows, cols - done_cols) &&
           part_by_original(g, row + rows, col, g->m - row - rows, cols) &&
           part_by_original(g, 0, col + cols, g->m, g->n - col - cols);
}

/* What a failure on the way means: nothing was written, or the original can do the rest, or neither. damaged: C
 * is where the program has it, and a kernel may have changed it. */
static enum gpu_status after_failure(const struct gemm *g, enum gpu_status status, int64_t row,
                                     int64_t col, int64_t done_cols, int64_t done_rows,
                                     bool damaged)
{
    bool nothing_done = row == 0 && col == 0 && done_cols == 0 && done_rows == 0;
    if (!damaged && nothing_done)
        return status;
    /* Where C was not needed, all of it can be computed, once nobody else writes to it. */
    bool right = !damaged ? rest_by_original(g, row, col, done_cols, done_rows)
                          : accel_is_zero(g->work->call->scalar[ACCEL_beta]) &&
                                lane_wait(g->work->lane) == GPU_OK &&
                                part_by_original(g, 0, 0, g->m, g->n);
    return right ? gpu_finished_else(status) : GPU_LOST;
}

static enum gpu_status run_gemm(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    struct gemm g = {.work = work,
                     .a = &call->operand[ACCEL_a],
                     .b = &call->operand[ACCEL_b],
                     .c = &call->operand[ACCEL_c],
                     .m = call->size[ACCEL_m],
                     .n = call->size[ACCEL_n],
                     .k = accel_adds_nothing(call) ? 0 : call->size[ACCEL_k],
                     .a_row = -1,
                     .b_row = -1};
    if (g.m == 0 || g.n == 0)
        return GPU_OK;
    if (g.a->dtype == ACCEL_BFLOAT16 && !kernels_have_bfloat16(work))
        return GPU_UNSUPPORTED;
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (gpu_in_place(&call->operand[i]) && !kernels_fit(call->operand[i].ld))
            return GPU_UNSUPPORTED;
    if (g.k == 0 && accel_is_one(call->scalar[ACCEL_beta]))
        return GPU_OK;
    enum gpu_status status = gpu_work_prepare(work, plan_tiles, &g);
    if (status == GPU_OK && g.k == 0)
        status = kernel_zeros(work, accel_max(g.mt, g.nt), &g.zeros);
    for (int64_t col = 0; status == GPU_OK && col < g.n; col += g.nt) {
        int64_t cols = g.nt < g.n - col ? g.nt : g.n - col;
        for (int64_t row = 0; status == GPU_OK && row < g.m; row += g.mt) {
            int64_t rows = g.mt < g.m - row ? g.mt : g.m - row;
            int64_t done_cols = 0, done_rows = 0;
            struct gpu_tile c;
            status = compute_tile(&g, row, col, rows, cols, &c);
            if (!gpu_in_place(g.c) && status == GPU_OK)
                status =
                    gpu_work_download(work, g.c, row, col, rows, cols, c, &done_cols, &done_rows);
            else if (gpu_in_place(g.c) && status == GPU_OK)
                /* The caller may look at C as soon as we return. */
                status = gpu_work_settle(work);
            if (status != GPU_OK)
                return after_failure(&g, status, row, col, done_cols, done_rows,
                                     gpu_in_place(g.c) && work->launched);
        }
    }
    return status;
}

const struct accel_op op_gemm = {BLAS_LEVEL_3, .run = run_gemm, .equation = equation_gemm};
const struct accel_op op_gemm3m = {BLAS_LEVEL_3, .three_products = true, .run = run_gemm,
                                   .equation = equation_gemm};
