/*
 * syrk, herk, syr2k, her2k: a triangle of C := alpha op(A) op(A)' + beta C and its relatives.
 *
 * C goes through in panels of columns that begin on the diagonal: a triangle, and the rectangle below or above it.
 * They are taken in the order in which what is left is always a triangle that begins (uplo = L) or ends (U) with the
 * whole one: so after a failure the original does the rest by one call of its own. Each panel is a sum
 * over parts of k, and is written back whole.
 */
#include "kernels.h"

#define BLOCK_MIN 64

struct rank_k {
    struct gpu_work *work;
    const struct accel_call *call;
    const struct accel_operand *a, *b, *c; /* b: NULL for syrk and herk */
    bool hermitian, transposed, lower;
    int64_t n, k;
    int64_t width, depth; /* columns of C and parts of k that are taken at once */
    CUdeviceptr memory_a, memory_b, memory_c;
    int64_t kept; /* the part of k that memory_a and memory_b hold, -1: none */
};

static const struct accel_complex one = {1, 0};

/* ---- Memory ---- */

static int64_t tile_bytes(const struct rank_k *g, const struct accel_operand *x, int64_t rows,
                          int64_t cols)
{
    enum accel_dtype dtype = g->call->routine->dtype;
    return !x || gpu_in_place(x)
               ? 0
               : gpu_device_ld(rows, dtype) * cols * (int64_t)accel_dtype_size(dtype);
}

static int64_t factor_bytes(const struct rank_k *g, const struct accel_operand *x)
{
    return g->transposed ? tile_bytes(g, x, g->depth, g->n) : tile_bytes(g, x, g->n, g->depth);
}

static int64_t panel_bytes(const struct rank_k *g)
{
    return tile_bytes(g, g->c, g->n, g->width);
}

static int64_t all_bytes(const struct rank_k *g)
{
    return factor_bytes(g, g->a) + factor_bytes(g, g->b) + panel_bytes(g);
}

static bool fit(struct rank_k *g, int64_t available)
{
    while (all_bytes(g) > available) {
        int64_t factors = factor_bytes(g, g->a) + factor_bytes(g, g->b);
        bool narrow = panel_bytes(g) > 0 && g->width > 1 &&
                      (panel_bytes(g) >= factors || g->depth <= BLOCK_MIN);
        if (narrow)
            g->width = (g->width + 1) / 2;
        else if (factors > 0 && g->depth > 1)
            g->depth = (g->depth + 1) / 2;
        else
            return false;
    }
    return true;
}

static enum gpu_status get_memory(struct rank_k *g)
{
    const int64_t bytes[] = {factor_bytes(g, g->a), factor_bytes(g, g->b), panel_bytes(g)};
    CUdeviceptr *const memory[] = {&g->memory_a, &g->memory_b, &g->memory_c};
    return gpu_work_get(g->work, 3, bytes, memory);
}

static enum gpu_status prepare(struct rank_k *g)
{
    enum gpu_status status = GPU_NO_MEMORY;
    int64_t available = INT64_MAX, widest = gpu_work_panel(g->work, g->n);
    for (int attempt = 0; attempt < 8 && status == GPU_NO_MEMORY; attempt++) {
        g->width = gpu_in_place(g->c) || g->n < widest ? g->n : widest;
        g->depth = g->k;
        if (!fit(g, available))
            return GPU_NO_MEMORY;
        status = get_memory(g);
        available = attempt == 0 ? pool_available() / 9 * 8 : available / 2;
    }
    return status;
}

/* ---- One panel ---- */

/* The part [at, at + depth) of k of op(x), all its rows: they serve all panels. */
static enum gpu_status load_factor(struct rank_k *g, const struct accel_operand *x, int64_t at,
                                   int64_t depth, CUdeviceptr memory, struct gpu_tile *tile)
{
    enum accel_dtype dtype = g->call->routine->dtype;
    int64_t row = g->transposed ? at : 0, col = g->transposed ? 0 : at;
    int64_t rows = g->transposed ? depth : g->n, cols = g->transposed ? g->n : depth;
    int64_t bytes = rows * cols * (int64_t)accel_dtype_size(dtype);
    if (gpu_in_place(x)) {
        *tile = gpu_work_in_place(g->work, x, row, col);
        gpu_work_event(g->work, GPU_EVENT_IN_PLACE, x, rows, cols, bytes);
        return GPU_OK;
    }
    *tile = (struct gpu_tile){memory, gpu_device_ld(rows, dtype)};
    if (g->kept == at) {
        gpu_work_event(g->work, GPU_EVENT_KEPT, x, rows, cols, bytes);
        return GPU_OK;
    }
    return gpu_work_upload(g->work, x, row, col, rows, cols, *tile);
}

/* The factor's rows from `skip` on. */
static struct gpu_tile from_row(const struct rank_k *g, struct gpu_tile x, int64_t skip)
{
    int64_t size = (int64_t)accel_dtype_size(g->call->routine->dtype);
    x.ptr += (CUdeviceptr)((g->transposed ? skip * x.ld : skip) * size);
    return x;
}

/* C[rows of x] += alpha op(x) op(y)', a rectangle beside the diagonal. */
static enum gpu_status rectangle(const struct rank_k *g, int64_t m, int64_t n, int64_t depth,
                                 struct accel_complex alpha, struct gpu_tile x, struct gpu_tile y,
                                 struct accel_complex beta, struct gpu_tile c)
{
    char dash = g->hermitian ? 'C' : 'T';
    return g->transposed ? kernel_gemm(g->work, dash, 'N', m, n, depth, alpha, x, y, beta, c)
                         : kernel_gemm(g->work, 'N', dash, m, n, depth, alpha, x, y, beta, c);
}

static struct accel_complex conjugate(struct accel_complex z)
{
    return (struct accel_complex){z.re, -z.im};
}

/*
 * The panel of columns [col, col + width): rows [row, row + rows), of which the triangle is `width` rows, first for
 * lower and last for upper.
 */
static enum gpu_status compute_panel(struct rank_k *g, int64_t row, int64_t rows, int64_t width,
                                     struct gpu_tile c)
{
    const struct accel_call *call = g->call;
    int64_t size = (int64_t)accel_dtype_size(call->routine->dtype);
    int64_t beside = rows - width; /* rows of the rectangle */
    int64_t triangle_at = g->lower ? 0 : beside, rectangle_at = g->lower ? width : 0;
    char uplo = g->lower ? 'L' : 'U';
    char trans = !g->transposed ? 'N' : g->hermitian ? 'C' : 'T';
    struct accel_complex alpha = call->scalar[ACCEL_alpha];
    struct gpu_tile triangle = c, beside_c = c;
    enum gpu_status status = GPU_OK;
    triangle.ptr += (CUdeviceptr)(triangle_at * size);
    beside_c.ptr += (CUdeviceptr)(rectangle_at * size);
    int64_t at = 0;
    do { /* at least once: with k = 0, C is scaled */
        int64_t depth = g->depth < g->k - at ? g->depth : g->k - at;
        struct accel_complex beta = at == 0 ? call->scalar[ACCEL_beta] : one;
        struct gpu_tile a = {c.ptr, g->n + depth}, b = a;
        if (depth > 0)
            status = load_factor(g, g->a, at, depth, g->memory_a, &a);
        if (status == GPU_OK && depth > 0 && g->b)
            status = load_factor(g, g->b, at, depth, g->memory_b, &b);
        if (status != GPU_OK)
            break;
        g->kept = at;
        at += depth;
        struct gpu_tile a_triangle = from_row(g, a, row + triangle_at);
        struct gpu_tile a_rest = from_row(g, a, row + rectangle_at);
        if (!g->b) {
            status =
                kernel_syrk(g->work, uplo, trans, width, depth, alpha, a_triangle, beta, triangle);
            if (status == GPU_OK && beside > 0)
                status =
                    rectangle(g, beside, width, depth, alpha, a_rest, a_triangle, beta, beside_c);
            continue;
        }
        struct gpu_tile b_triangle = from_row(g, b, row + triangle_at);
        struct gpu_tile b_rest = from_row(g, b, row + rectangle_at);
        status = kernel_syr2k(g->work, uplo, trans, width, depth, alpha, a_triangle, b_triangle,
                              beta, triangle);
        if (status == GPU_OK && beside > 0)
            status = rectangle(g, beside, width, depth, alpha, a_rest, b_triangle, beta, beside_c);
        if (status == GPU_OK && beside > 0)
            status = rectangle(g, beside, width, depth, g->hermitian ? conjugate(alpha) : alpha,
                               b_rest, a_triangle, one, beside_c);
    } while (status == GPU_OK && at < g->k);
    return status;
}

static enum gpu_status run_panel(struct rank_k *g, int64_t col, int64_t width, bool *damaged)
{
    enum accel_dtype dtype = g->call->routine->dtype;
    int64_t row = g->lower ? col : 0, rows = g->lower ? g->n - col : col + width;
    struct gpu_tile c = {g->memory_c, gpu_device_ld(rows, dtype)};
    enum gpu_status status = GPU_OK;
    if (gpu_in_place(g->c)) {
        c = gpu_work_in_place(g->work, g->c, row, col);
        gpu_work_event(g->work, GPU_EVENT_IN_PLACE, g->c, rows, width,
                       rows * width * (int64_t)accel_dtype_size(dtype));
    } else if (accel_is_read(g->call, g->c)) {
        status = gpu_work_upload(g->work, g->c, row, col, rows, width, c);
    }
    if (status == GPU_OK)
        status = compute_panel(g, row, rows, width, c);
    *damaged = gpu_in_place(g->c) && g->work->launched;
    if (status != GPU_OK)
        return status;
    if (gpu_in_place(g->c))
        return GPU_CHECK(cuStreamSynchronize, g->work->lane->stream);
    return gpu_work_write_back(g->work, g->c, row, col, rows, width, c, g->lower ? 'L' : 'U');
}

/* The triangle that the panels before have not reached: for lower it begins at column col, for upper it ends
 * before it. */
static void rest_by_original(const struct rank_k *g, int64_t col)
{
    struct accel_call part = *g->call;
    int64_t size = (int64_t)accel_dtype_size(part.routine->dtype);
    int64_t first = g->lower ? col : 0, n = g->lower ? g->n - col : col;
    struct accel_operand *const factors[] = {&part.operand[ACCEL_a], &part.operand[ACCEL_b]};
    struct accel_operand *c = &part.operand[ACCEL_c];
    part.size[ACCEL_n] = n;
    for (int i = 0; i < (g->b ? 2 : 1); i++) {
        struct accel_operand *x = factors[i];
        x->ptr = (char *)x->ptr + (g->transposed ? first * x->ld : first) * size;
        *(g->transposed ? &x->cols : &x->rows) = n;
    }
    c->ptr = (char *)c->ptr + (first + first * c->ld) * size;
    c->rows = c->cols = n;
    g->work->host->original(g->work->host->context, &part);
}

enum gpu_status gpu_rank_k(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    enum accel_family family = call->routine->family;
    bool two = family == ACCEL_SYR2K || family == ACCEL_HER2K;
    struct rank_k g = {.work = work,
                       .call = call,
                       .a = &call->operand[ACCEL_a],
                       .b = two ? &call->operand[ACCEL_b] : NULL,
                       .c = &call->operand[ACCEL_c],
                       .hermitian = family == ACCEL_HERK || family == ACCEL_HER2K,
                       .transposed = call->flag[ACCEL_trans] != 'N',
                       .lower = call->flag[ACCEL_uplo] == 'L',
                       .n = call->size[ACCEL_n],
                       .k = call->size[ACCEL_k],
                       .kept = -1};
    if (!kernels_fit_call(call))
        return GPU_UNSUPPORTED;
    enum gpu_status status = prepare(&g);
    for (int64_t done = 0; status == GPU_OK && done < g.n; done += g.width) {
        int64_t width = g.width < g.n - done ? g.width : g.n - done;
        int64_t col = g.lower ? done : g.n - done - width;
        bool damaged = false;
        status = run_panel(&g, col, width, &damaged);
        if (status == GPU_OK || (done == 0 && !damaged))
            continue;
        if (damaged || !gpu_work_host_readable(work))
            return GPU_LOST;
        rest_by_original(&g, g.lower ? done : g.n - done);
        return gpu_finished_else(status);
    }
    return status;
}
