/*
 * syrk, herk, syr2k, her2k, gemmt: a triangle of C := alpha op(A) op(A)' + beta C and its relatives.
 *
 * C goes through in panels of columns: a triangle on the diagonal, and the rectangle below or above it. Their order leaves a
 * triangle at the end (uplo = L) or at the beginning (U) of C: after a failure the original does it by one call. Each panel is
 * a sum over parts of k.
 */
#include <limits.h>

#include "blas.h"
#include "gpu/tiles.h"

#define BLOCK_MIN 64

/* cuBLAS has no gemmt. Its triangles are halved down to blocks of this order, which are computed whole. */
#define WHOLE_BLOCK 256

/* The operands' parts, A and B seen as n x k. For gemmt in place: a block of C on the diagonal, and its triangle. */
enum { A, B, C, WHOLE, PACKED };
/* How many columns of C, and how much of k, come at once. */
enum { WIDTH, DEPTH };

struct rank_k {
    struct tiles tiles;
    struct gpu_work *work;
    const struct accel_call *call;
    const struct accel_span *c;
    bool two;                       /* there is a B: not in syrk and herk */
    bool hermitian, general, lower; /* general: gemmt */
    char left_op, right_op;         /* transpositions in a product of two factors */
    int64_t n, k;
};

static const struct accel_complex one = {1, 0};

static bool shrink(struct tiles *t)
{
    int64_t panel = tiles_part_bytes(t, C);
    int64_t factors = tiles_part_bytes(t, A) + tiles_part_bytes(t, B);
    bool narrow = panel > 0 && (panel >= factors || t->size[DEPTH] <= BLOCK_MIN);
    return (narrow && tiles_halve(&t->size[WIDTH], 1)) ||
           (factors > 0 && tiles_halve(&t->size[DEPTH], 1));
}

/* ---- One panel ---- */

/* A factor on the device, from a row on. */
struct part {
    struct gpu_tile tile;
    bool across;
};

static struct gpu_tile advance(const struct rank_k *g, struct gpu_tile x, int64_t row, int64_t col)
{
    return tiles_within(&g->tiles, x, row, col);
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

/* Computes a block of gemmt on the diagonal. In place, C's other triangle may not be written: the block is computed elsewhere,
 * and its triangle goes there and back in packed form. */
static enum gpu_status whole_block(const struct rank_k *g, int64_t n, int64_t depth,
                                   const struct part *a, const struct part *b,
                                   struct accel_complex beta, struct gpu_tile c)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    struct gpu_tile block = {g->tiles.part[WHOLE].memory, gpu_device_ld(n, g->c->dtype)};
    gpu_address packed = g->tiles.part[PACKED].memory;
    char uplo = g->lower ? 'L' : 'U';
    enum gpu_status status = GPU_OK;
    bool launched = g->work->launched;
    if (!gpu_in_place(g->c))
        return rectangle(g, n, n, depth, alpha, *a, *b, beta, c);
    if (!accel_is_zero(beta)) {
        status = kernel_pack_triangle(g->work, uplo, n, c, packed);
        if (status == GPU_OK)
            status = kernel_unpack_triangle(g->work, uplo, n, packed, block);
    }
    if (status == GPU_OK)
        status = rectangle(g, n, n, depth, alpha, *a, *b, beta, block);
    if (status == GPU_OK)
        status = kernel_pack_triangle(g->work, uplo, n, block, packed);
    g->work->launched = launched; /* C is as it was */
    return status == GPU_OK ? kernel_unpack_triangle(g->work, uplo, n, packed, c) : status;
}

/* Computes gemmt's triangle: two smaller ones and the rectangle between them. */
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
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    return g->lower ? rectangle(g, n - upper, upper, depth, alpha, a_low, b, beta,
                                advance(g, c, upper, 0))
                    : rectangle(g, upper, n - upper, depth, alpha, a, b_low, beta,
                                advance(g, c, 0, upper));
}

/* Computes the triangle of a panel. */
static enum gpu_status triangle(const struct rank_k *g, int64_t n, int64_t depth,
                                const struct part factor[2], struct accel_complex beta,
                                struct gpu_tile c)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    char uplo = g->lower ? 'L' : 'U';
    char trans = g->call->blas.flag[ACCEL_trans];
    if (g->general)
        return general_triangle(g, n, depth, factor[0], factor[1], beta, c);
    if (trans != 'N') /* C is T in real types */
        trans = g->hermitian ? 'C' : 'T';
    if (!g->two)
        return kernel_syrk(g->work, g->hermitian, uplo, trans, n, depth, alpha, factor[0].tile,
                           beta, c);
    return kernel_syr2k(g->work, g->hermitian, uplo, trans, n, depth, alpha, factor[0].tile,
                        factor[1].tile, beta, c);
}

/* Computes the rectangle beside it: m rows of the factors by n rows of the triangle. */
static enum gpu_status beside(const struct rank_k *g, int64_t m, int64_t n, int64_t depth,
                              const struct part rest[2], const struct part own[2],
                              struct accel_complex beta, struct gpu_tile c)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    bool two = g->two && !g->general;
    enum gpu_status status =
        rectangle(g, m, n, depth, alpha, rest[0], own[g->two ? 1 : 0], beta, c);
    if (status == GPU_OK && two)
        status = rectangle(g, m, n, depth, g->hermitian ? accel_conjugate(alpha) : alpha, rest[1],
                           own[0], one, c);
    return status;
}

/* panel := beta panel, its triangle and its rectangle. */
static enum gpu_status scale_panel(const struct rank_k *g, const struct tile *c)
{
    struct accel_complex beta = g->call->blas.scalar[ACCEL_beta];
    enum gpu_status status = kernel_scale_triangle(g->work, g->hermitian, g->lower ? 'L' : 'U',
                                                   c->cols, beta, g->tiles.zeros, c->triangle);
    return status == GPU_OK && c->rest > 0
               ? kernel_scale(g->work, c->rest, c->cols, beta, g->tiles.zeros, c->rectangle)
               : status;
}

/* Loads all rows of the factors: they serve all panels. */
static enum gpu_status compute(struct tiles *t, struct tile *c)
{
    struct rank_k *g = (struct rank_k *)t;
    enum gpu_status status = GPU_OK;
    if (g->k == 0)
        return scale_panel(g, c);
    for (int64_t at = 0; status == GPU_OK && at < g->k; at += t->size[DEPTH]) {
        int64_t depth = tiles_length(t->size[DEPTH], at, g->k);
        struct accel_complex beta = at == 0 ? g->call->blas.scalar[ACCEL_beta] : one;
        struct part own[2], others[2];
        for (int i = A; status == GPU_OK && i <= (g->two ? B : A); i++) {
            struct part factor = {.across = t->part[i].across};
            status = tiles_load(t, i, 0, at, g->n, depth, &factor.tile);
            own[i] = from_row(g, factor, c->col);
            others[i] = from_row(g, factor, c->beside);
        }
        if (status == GPU_OK)
            status = triangle(g, c->cols, depth, own, beta, c->triangle);
        if (status == GPU_OK && c->rest > 0)
            status = beside(g, c->rest, c->cols, depth, others, own, beta, c->rectangle);
    }
    return status;
}

static enum gpu_status run_rank_k(struct gpu_work *work, bool two, bool general)
{
    const struct accel_call *call = work->call;
    const struct accel_span *a = &call->span[ACCEL_a], *b = &call->span[ACCEL_b];
    const struct accel_span *c = &call->span[ACCEL_c];
    bool hermitian = accel_is_hermitian(call->routine);
    bool across_a = call->blas.flag[general ? ACCEL_transa : ACCEL_trans] != 'N';
    bool across_b = general ? call->blas.flag[ACCEL_transb] == 'N' : across_a;
    bool lower = call->blas.flag[ACCEL_uplo] == 'L';
    char dash = hermitian ? 'C' : 'T';
    int64_t n = call->blas.size[ACCEL_n],
            k = accel_adds_nothing(call) ? 0 : call->blas.size[ACCEL_k];
    if (n == 0)
        return GPU_OK;
    if (!kernels_fit_call(call))
        return GPU_UNSUPPORTED;
    /* tpttr and trttp have no 64-bit functions. */
    if (general && gpu_in_place(c) && c->ld > INT_MAX)
        return GPU_UNSUPPORTED;
    if (k == 0 && accel_is_one(call->blas.scalar[ACCEL_beta]))
        return GPU_OK;
    int64_t widest = gpu_in_place(c) ? n : tiles_panel(n, gpu_size_of(c));
    struct rank_k g = {
        .tiles = {.work = work,
                  .most = {[WIDTH] = accel_min(n, widest), [DEPTH] = k},
                  .shrink = shrink,
                  .over = C,
                  .out = C,
                  .rows = n,
                  .cols = n,
                  .uplo = lower ? 'L' : 'U',
                  .descending = !lower,
                  .unit = TILE_COLUMNS,
                  .scales = k == 0,
                  .compute = compute},
        .work = work,
        .call = call,
        .c = c,
        .two = two,
        .hermitian = hermitian,
        .general = general,
        .lower = lower,
        .left_op = general    ? call->blas.flag[ACCEL_transa]
                   : across_a ? dash
                              : 'N',
        .right_op = general    ? call->blas.flag[ACCEL_transb]
                    : across_a ? 'N'
                               : dash,
        .n = n,
        .k = k,
    };
    const int64_t *width = &g.tiles.size[WIDTH], *depth = &g.tiles.size[DEPTH];
    g.tiles.part[A] = tile_part_of(a, across_a, &g.n, depth);
    if (two)
        g.tiles.part[B] = tile_part_of(b, across_b, &g.n, depth);
    g.tiles.part[C] = tile_part_of(c, false, &g.n, width);
    if (general && gpu_in_place(c)) {
        int64_t block = accel_min(n, WHOLE_BLOCK), size = gpu_size_of(c);
        g.tiles.part[WHOLE].bytes = gpu_device_ld(block, c->dtype) * block * size;
        g.tiles.part[PACKED].bytes = block * (block + 1) / 2 * size;
    }
    return tiles_run(&g.tiles);
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
#define RANK_K   TRIANGLE, .products = GPU_RANK_K

const struct accel_op op_syrk = {RANK_K, .run = run_syrk, .equation = equation_syrk};
const struct accel_op op_herk = {RANK_K, .hermitian = true, .run = run_syrk,
                                 .equation = equation_syrk};
const struct accel_op op_syr2k = {RANK_K, .run = run_syr2k, .equation = equation_syr2k};
const struct accel_op op_her2k = {RANK_K, .hermitian = true, .run = run_syr2k,
                                  .equation = equation_syr2k};
const struct accel_op op_gemmt = {TRIANGLE, .products = GPU_OTHERS, .run = run_gemmt,
                                  .equation = equation_gemm};
