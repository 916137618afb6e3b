/*
 * syrk, herk, syr2k, her2k, gemmt: a triangle of C := alpha op(A) op(A)' + beta C and its relatives.
 *
 * C goes through in panels of columns that begin on the diagonal: a triangle, and the rectangle below or above it.
 * They are taken in the order in which what is left is always a triangle that begins (uplo = L) or ends (U) with the
 * whole one: so after a failure the original does the rest by one call of its own. Each panel is a sum
 * over parts of k.
 */
#include <limits.h>

#include "blas.h"
#include "gpu/cuda/kernels.h"

#define BLOCK_MIN 64

/* gemmt's triangles, for which cuBLAS has nothing, are halved down to this; these blocks are computed whole. */
#define WHOLE_BLOCK 256

/* A or B, seen as n x k. */
struct factor {
    const struct accel_operand *x; /* NULL: there is none */
    bool across;                   /* stored k x n */
    CUdeviceptr memory;
};

struct rank_k {
    struct gpu_work *work;
    const struct accel_call *call;
    struct factor a, b; /* b: not for syrk and herk */
    const struct accel_operand *c;
    bool hermitian, general, lower; /* general: gemmt */
    char left_op, right_op;         /* of the factors of a product of two */
    int64_t n, k;
    int64_t width, depth; /* columns of C and parts of k that are taken at once */
    CUdeviceptr memory_c;
    CUdeviceptr zeros;         /* where C is scaled alone: k = 0 */
    CUdeviceptr whole, packed; /* a block of C on the diagonal, and its triangle: gemmt in place */
    int64_t kept;              /* the part of k that the factors' memory holds, -1: none */
};

static const struct accel_complex one = {1, 0};

/* ---- Memory ---- */

static int64_t factor_bytes(const struct rank_k *g, const struct factor *f)
{
    if (!f->x)
        return 0;
    return f->across ? gpu_tile_bytes(f->x, g->depth, g->n) : gpu_tile_bytes(f->x, g->n, g->depth);
}

static int64_t factors_bytes(const struct rank_k *g)
{
    return factor_bytes(g, &g->a) + factor_bytes(g, &g->b);
}

static int64_t panel_bytes(const struct rank_k *g)
{
    return gpu_tile_bytes(g->c, g->n, g->width);
}

static int64_t block_size(const struct rank_k *g)
{
    return g->n < WHOLE_BLOCK ? g->n : WHOLE_BLOCK;
}

static int64_t whole_bytes(const struct rank_k *g)
{
    int64_t n = block_size(g);
    return g->general && gpu_in_place(g->c) ? gpu_device_ld(n, g->c->dtype) * n * gpu_size_of(g->c)
                                            : 0;
}

static int64_t packed_bytes(const struct rank_k *g)
{
    int64_t n = block_size(g);
    return whole_bytes(g) ? n * (n + 1) / 2 * gpu_size_of(g->c) : 0;
}

static int64_t all_bytes(const struct rank_k *g)
{
    return factors_bytes(g) + panel_bytes(g) + whole_bytes(g) + packed_bytes(g);
}

static bool fit(struct rank_k *g, int64_t available)
{
    while (all_bytes(g) > available) {
        bool narrow = panel_bytes(g) > 0 && g->width > 1 &&
                      (panel_bytes(g) >= factors_bytes(g) || g->depth <= BLOCK_MIN);
        if (narrow)
            g->width = (g->width + 1) / 2;
        else if (factors_bytes(g) > 0 && g->depth > 1)
            g->depth = (g->depth + 1) / 2;
        else
            return false;
    }
    return true;
}

static int plan_panels(void *plan, int64_t available, struct gpu_need need[WORK_BLOCKS])
{
    struct rank_k *g = plan;
    int64_t widest = gpu_work_panel(g->n, gpu_size_of(g->c));
    g->width = gpu_in_place(g->c) || g->n < widest ? g->n : widest;
    g->depth = g->k;
    if (!fit(g, available))
        return -1;
    need[0] = (struct gpu_need){factor_bytes(g, &g->a), &g->a.memory};
    need[1] = (struct gpu_need){factor_bytes(g, &g->b), &g->b.memory};
    need[2] = (struct gpu_need){panel_bytes(g), &g->memory_c};
    need[3] = (struct gpu_need){whole_bytes(g), &g->whole};
    need[4] = (struct gpu_need){packed_bytes(g), &g->packed};
    return 5;
}

/* ---- One panel ---- */

/* The part [at, at + depth) of k of a factor, all its rows: they serve all panels. */
static enum gpu_status load_factor(struct rank_k *g, const struct factor *f, int64_t at,
                                   int64_t depth, struct gpu_tile *tile)
{
    int64_t row = f->across ? at : 0, col = f->across ? 0 : at;
    int64_t rows = f->across ? depth : g->n, cols = f->across ? g->n : depth;
    return gpu_work_tile(g->work, f->x, row, col, rows, cols, f->memory,
                         g->kept == at ? GPU_TILE_KEPT : GPU_TILE_COPIED, tile);
}

/* A factor on the device, from a row on. */
struct part {
    struct gpu_tile tile;
    bool across;
};

static struct gpu_tile advance(const struct rank_k *g, struct gpu_tile x, int64_t row, int64_t col)
{
    x.ptr += (CUdeviceptr)((row + col * x.ld) * gpu_size_of(g->c));
    return x;
}

static struct part from_row(const struct rank_k *g, struct part x, int64_t skip)
{
    x.tile = advance(g, x.tile, x.across ? 0 : skip, x.across ? skip : 0);
    return x;
}

/* C[rows of x, rows of y] := alpha x y' + beta C, a rectangle beside the diagonal. */
static enum gpu_status rectangle(const struct rank_k *g, int64_t m, int64_t n, int64_t depth,
                                 struct accel_complex alpha, struct part x, struct part y,
                                 struct accel_complex beta, struct gpu_tile c)
{
    return kernel_gemm(g->work, g->left_op, g->right_op, m, n, depth, alpha, x.tile, y.tile, beta,
                       c);
}

/* A block of gemmt on the diagonal. Where C is the program's own, its other triangle is not to be written: the block
 * is computed elsewhere, and its triangle goes there and back in packed form. */
static enum gpu_status whole_block(const struct rank_k *g, int64_t n, int64_t depth,
                                   const struct part *a, const struct part *b,
                                   struct accel_complex beta, struct gpu_tile c)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha];
    struct gpu_tile block = {g->whole, gpu_device_ld(n, g->c->dtype)};
    char uplo = g->lower ? 'L' : 'U';
    enum gpu_status status = GPU_OK;
    bool launched = g->work->launched;
    if (!gpu_in_place(g->c))
        return rectangle(g, n, n, depth, alpha, *a, *b, beta, c);
    if (!accel_is_zero(beta)) {
        status = kernel_pack_triangle(g->work, uplo, n, c, g->packed);
        if (status == GPU_OK)
            status = kernel_unpack_triangle(g->work, uplo, n, g->packed, block);
    }
    if (status == GPU_OK)
        status = rectangle(g, n, n, depth, alpha, *a, *b, beta, block);
    if (status == GPU_OK)
        status = kernel_pack_triangle(g->work, uplo, n, block, g->packed);
    g->work->launched = launched; /* C is as it was */
    return status == GPU_OK ? kernel_unpack_triangle(g->work, uplo, n, g->packed, c) : status;
}

/* gemmt's triangle: two smaller ones and the square between them. */
static enum gpu_status general_triangle(const struct rank_k *g, int64_t n, int64_t depth,
                                        struct part a, struct part b, struct accel_complex beta,
                                        struct gpu_tile c)
{
    int64_t upper = n / 2;
    if (n <= WHOLE_BLOCK)
        return whole_block(g, n, depth, &a, &b, beta, c);
    struct part a_low = from_row(g, a, upper), b_low = from_row(g, b, upper);
    enum gpu_status status = general_triangle(g, upper, depth, a, b, beta, c);
    if (status == GPU_OK)
        status =
            general_triangle(g, n - upper, depth, a_low, b_low, beta, advance(g, c, upper, upper));
    if (status != GPU_OK)
        return status;
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha];
    return g->lower ? rectangle(g, n - upper, upper, depth, alpha, a_low, b, beta,
                                advance(g, c, upper, 0))
                    : rectangle(g, upper, n - upper, depth, alpha, a, b_low, beta,
                                advance(g, c, 0, upper));
}

/* The triangle of a panel. */
static enum gpu_status triangle(const struct rank_k *g, int64_t n, int64_t depth, struct part a,
                                struct part b, struct accel_complex beta, struct gpu_tile c)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha];
    char uplo = g->lower ? 'L' : 'U';
    char trans = g->call->flag[ACCEL_trans];
    if (g->general)
        return general_triangle(g, n, depth, a, b, beta, c);
    if (trans != 'N') /* of a real matrix, C is T */
        trans = g->hermitian ? 'C' : 'T';
    if (!g->b.x)
        return kernel_syrk(g->work, g->hermitian, uplo, trans, n, depth, alpha, a.tile, beta, c);
    return kernel_syr2k(g->work, g->hermitian, uplo, trans, n, depth, alpha, a.tile, b.tile, beta,
                        c);
}

/* What is beside it: m rows of the factors by n that are the triangle's. */
static enum gpu_status beside(const struct rank_k *g, int64_t m, int64_t n, int64_t depth,
                              const struct part rest[2], const struct part own[2],
                              struct accel_complex beta, struct gpu_tile c)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha];
    bool two = g->b.x && !g->general;
    enum gpu_status status =
        rectangle(g, m, n, depth, alpha, rest[0], own[g->b.x ? 1 : 0], beta, c);
    if (status == GPU_OK && two)
        status = rectangle(g, m, n, depth, g->hermitian ? accel_conjugate(alpha) : alpha, rest[1],
                           own[0], one, c);
    return status;
}

/* A panel of a triangle and the rectangle beside it := beta times itself. */
static enum gpu_status scale_panel(const struct rank_k *g, int64_t rest, int64_t width,
                                   struct gpu_tile triangle_c, struct gpu_tile rectangle_c)
{
    struct accel_complex beta = g->call->scalar[ACCEL_beta];
    enum gpu_status status = kernel_scale_triangle(g->work, g->hermitian, g->lower ? 'L' : 'U',
                                                   width, beta, g->zeros, triangle_c);
    return status == GPU_OK && rest > 0
               ? kernel_scale(g->work, rest, width, beta, g->zeros, rectangle_c)
               : status;
}

/*
 * The panel of columns [col, col + width): rows [row, row + rows), of which the triangle is `width` rows, first for
 * lower and last for upper.
 */
static enum gpu_status compute_panel(struct rank_k *g, int64_t row, int64_t rows, int64_t width,
                                     struct gpu_tile c)
{
    int64_t rest = rows - width; /* rows of the rectangle */
    int64_t triangle_at = g->lower ? 0 : rest, rectangle_at = g->lower ? width : 0;
    enum gpu_status status = GPU_OK;
    if (g->k == 0)
        return scale_panel(g, rest, width, advance(g, c, triangle_at, 0),
                           advance(g, c, rectangle_at, 0));
    for (int64_t at = 0; status == GPU_OK && at < g->k; at += g->depth) {
        int64_t depth = g->depth < g->k - at ? g->depth : g->k - at;
        struct accel_complex beta = at == 0 ? g->call->scalar[ACCEL_beta] : one;
        struct part factor[2] = {{{0, 1}, g->a.across}, {{0, 1}, g->b.across}};
        status = load_factor(g, &g->a, at, depth, &factor[0].tile);
        if (status == GPU_OK && g->b.x)
            status = load_factor(g, &g->b, at, depth, &factor[1].tile);
        if (status != GPU_OK)
            break;
        g->kept = at;
        struct part own[2], others[2];
        for (int i = 0; i < 2; i++) {
            own[i] = from_row(g, factor[i], row + triangle_at);
            others[i] = from_row(g, factor[i], row + rectangle_at);
        }
        status = triangle(g, width, depth, own[0], own[1], beta, advance(g, c, triangle_at, 0));
        if (status == GPU_OK && rest > 0)
            status =
                beside(g, rest, width, depth, others, own, beta, advance(g, c, rectangle_at, 0));
    }
    return status;
}

/* *done: how many of the panel's columns are in place, the first (lower) or the last ones. *damaged: the caller's own memory
 * may have been changed, and the panel is not finished. */
static enum gpu_status run_panel(struct rank_k *g, int64_t col, int64_t width, int64_t *done,
                                 bool *damaged)
{
    int64_t row = g->lower ? col : 0, rows = g->lower ? g->n - col : col + width;
    struct gpu_tile c;
    enum gpu_status status =
        gpu_work_tile(g->work, g->c, row, col, rows, width, g->memory_c,
                      accel_is_read(g->call, g->c) ? GPU_TILE_COPIED : GPU_TILE_UNREAD, &c);
    if (status == GPU_OK)
        status = compute_panel(g, row, rows, width, c);
    *damaged = gpu_in_place(g->c) && g->work->launched;
    if (status != GPU_OK)
        return status;
    if (gpu_in_place(g->c))
        return gpu_work_settle(g->work);
    return gpu_work_write_columns(g->work, g->c, row, col, rows, width, c, g->lower ? 'L' : 'U',
                                  done);
}

/* The triangle that the panels before have not reached: for lower it begins at column col, for upper it ends
 * before it. */
static bool rest_by_original(const struct rank_k *g, int64_t col)
{
    struct accel_call part = *g->call;
    int64_t first = g->lower ? col : 0, n = g->lower ? g->n - col : col;
    const struct factor *const factors[] = {&g->a, &g->b};
    struct accel_operand *c = &part.operand[ACCEL_c];
    part.size[ACCEL_n] = n;
    for (int i = 0; i < (g->b.x ? 2 : 1); i++) {
        struct accel_operand *x = &part.operand[i == 0 ? ACCEL_a : ACCEL_b];
        bool across = factors[i]->across;
        x->ptr = gpu_element(x, across ? 0 : first, across ? first : 0);
        *(across ? &x->cols : &x->rows) = n;
    }
    c->ptr = gpu_element(c, first, first);
    c->rows = c->cols = n;
    return gpu_work_by_original(g->work, &part);
}

static enum gpu_status run_rank_k(struct gpu_work *work, bool two, bool general)
{
    const struct accel_call *call = work->call;
    bool hermitian = accel_is_hermitian(call->routine);
    char dash = hermitian ? 'C' : 'T';
    bool across_a = call->flag[general ? ACCEL_transa : ACCEL_trans] != 'N';
    struct rank_k g = {.work = work,
                       .call = call,
                       .a = {&call->operand[ACCEL_a], across_a, 0},
                       .b = {two ? &call->operand[ACCEL_b] : NULL,
                             general ? call->flag[ACCEL_transb] == 'N' : across_a, 0},
                       .c = &call->operand[ACCEL_c],
                       .hermitian = hermitian,
                       .general = general,
                       .lower = call->flag[ACCEL_uplo] == 'L',
                       .left_op = general    ? call->flag[ACCEL_transa]
                                  : across_a ? dash
                                             : 'N',
                       .right_op = general    ? call->flag[ACCEL_transb]
                                   : across_a ? 'N'
                                              : dash,
                       .n = call->size[ACCEL_n],
                       .k = accel_adds_nothing(call) ? 0 : call->size[ACCEL_k],
                       .kept = -1};
    if (g.n == 0)
        return GPU_OK;
    if (!kernels_fit_call(call))
        return GPU_UNSUPPORTED;
    /* tpttr and trttp have no 64-bit functions. */
    if (general && gpu_in_place(g.c) && g.c->ld > INT_MAX)
        return GPU_UNSUPPORTED;
    if (g.k == 0 && accel_is_one(call->scalar[ACCEL_beta]))
        return GPU_OK;
    enum gpu_status status = gpu_work_prepare(work, plan_panels, &g);
    if (status == GPU_OK && g.k == 0)
        status = kernel_zeros(work, g.n, &g.zeros);
    for (int64_t done = 0; status == GPU_OK && done < g.n; done += g.width) {
        int64_t width = g.width < g.n - done ? g.width : g.n - done;
        int64_t col = g.lower ? done : g.n - done - width;
        int64_t written = 0;
        bool damaged = false;
        status = run_panel(&g, col, width, &written, &damaged);
        if (status == GPU_OK || (done + written == 0 && !damaged))
            continue;
        written += done;
        bool right = !damaged && rest_by_original(&g, g.lower ? written : g.n - written);
        return right ? gpu_finished_else(status) : GPU_LOST;
    }
    return status;
}

static enum gpu_status run_syrk(struct gpu_work *work)
{
    return run_rank_k(work, false, false);
}

static enum gpu_status run_syr2k(struct gpu_work *work)
{
    return run_rank_k(work, true, false);
}

static enum gpu_status run_gemmt(struct gpu_work *work)
{
    return run_rank_k(work, true, true);
}

#define TRIANGLE BLAS_LEVEL_3, .triangles = 1 << ACCEL_c

const struct accel_op op_syrk = {TRIANGLE, .run = run_syrk, .equation = equation_syrk};
const struct accel_op op_herk = {TRIANGLE, .hermitian = true, .run = run_syrk,
                                 .equation = equation_syrk};
const struct accel_op op_syr2k = {TRIANGLE, .run = run_syr2k, .equation = equation_syr2k};
const struct accel_op op_her2k = {TRIANGLE, .hermitian = true, .run = run_syr2k,
                                  .equation = equation_syr2k};
const struct accel_op op_gemmt = {TRIANGLE, .run = run_gemmt, .equation = equation_gemm};
