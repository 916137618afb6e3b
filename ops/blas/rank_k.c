/*
 * syrk, herk, syr2k, her2k, gemmt: a triangle of C := alpha op(A) op(A)' + beta C and its
 * relatives, by a schedule: triangles on the diagonal, and rectangles below or above it, each a sum
 * over blocks of k.
 */
#include <limits.h>

#include "blas.h"
#include "gpu/exec/blas/level3.h"

/* cuBLAS has no gemmt. Its triangles are halved down to blocks of this order, which are computed
 * whole. */
#define WHOLE_BLOCK 256

/* The factors, seen as n x k, and the result. */
enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C };

/* Memory for gemmt in place, which computes diagonal blocks elsewhere: a block of C on the
 * diagonal, and its triangle. */
enum { WHOLE, PACKED };

struct rank_k {
    struct level3 level3;
    struct gpu_work *work;
    const struct accel_call *call;
    const struct accel_span *c;
    bool two;                       /* there is a B: not in syrk and herk */
    bool hermitian, general, lower; /* general: gemmt */
    char left_op, right_op;         /* transpositions in a product of two factors */
};

static const struct accel_complex one = {1, 0};

/* ---- One block ---- */

/* A factor on the device, from a row on. */
struct factor_rows {
    struct dmat tile;
    bool across;
};

static struct dmat advance(const struct rank_k *g, struct dmat x, int64_t row, int64_t col)
{
    return dmat_from(g->work, x, row, col);
}

static struct factor_rows from_row(const struct rank_k *g, struct factor_rows x, int64_t skip)
{
    x.tile = advance(g, x.tile, x.across ? 0 : skip, x.across ? skip : 0);
    return x;
}

/* C[rows of x, rows of y] := alpha x y' + beta C, a rectangle beside the diagonal. */
static enum gpu_status rectangle(const struct rank_k *g, int64_t m, int64_t n, int64_t depth,
                                 struct accel_complex alpha, struct factor_rows x,
                                 struct factor_rows y, struct accel_complex beta, struct dmat c)
{
    return gpu_kernels(g->work)->gemm(g->work, g->left_op, g->right_op, m, n, depth, alpha, x.tile,
                                      y.tile, beta, c);
}

/* Computes a block of gemmt on the diagonal. In place, C's other triangle may not be written: the
 * block is computed elsewhere, and its triangle goes there and back in packed form. */
static enum gpu_status whole_block(const struct rank_k *g, int64_t n, int64_t depth,
                                   const struct factor_rows *a, const struct factor_rows *b,
                                   struct accel_complex beta, struct dmat c)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    struct dmat block = {g->level3.executor.own[WHOLE], gpu_device_ld(n, g->c->dtype)};
    gpu_address packed = g->level3.executor.own[PACKED];
    char uplo = g->lower ? 'L' : 'U';
    enum gpu_status status = GPU_OK;
    bool launched = g->work->launched;
    if (!gpu_in_place(g->c))
        return rectangle(g, n, n, depth, alpha, *a, *b, beta, c);
    if (!accel_is_zero(beta)) {
        status = gpu_kernels(g->work)->pack_triangle(g->work, uplo, n, c, packed);
        if (status == GPU_OK)
            status = gpu_kernels(g->work)->unpack_triangle(g->work, uplo, n, packed, block);
    }
    if (status == GPU_OK)
        status = rectangle(g, n, n, depth, alpha, *a, *b, beta, block);
    if (status == GPU_OK)
        status = gpu_kernels(g->work)->pack_triangle(g->work, uplo, n, block, packed);
    g->work->launched = launched; /* C is as it was */
    return status == GPU_OK ? gpu_kernels(g->work)->unpack_triangle(g->work, uplo, n, packed, c)
                            : status;
}

/* Computes gemmt's triangle: two smaller ones and the rectangle between them. */
static enum gpu_status general_triangle(const struct rank_k *g, int64_t n, int64_t depth,
                                        struct factor_rows a, struct factor_rows b,
                                        struct accel_complex beta, struct dmat c)
{
    int64_t upper = n / 2;
    if (n <= WHOLE_BLOCK)
        return whole_block(g, n, depth, &a, &b, beta, c);
    struct factor_rows a_low = from_row(g, a, upper), b_low = from_row(g, b, upper);
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
                                const struct factor_rows factor[2], struct accel_complex beta,
                                struct dmat c)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    char uplo = g->lower ? 'L' : 'U';
    char trans = g->call->blas.flag[ACCEL_trans];
    if (g->general)
        return general_triangle(g, n, depth, factor[0], factor[1], beta, c);
    if (trans != 'N') /* C is T in real types */
        trans = g->hermitian ? 'C' : 'T';
    if (!g->two)
        return gpu_kernels(g->work)->syrk(g->work, g->hermitian, uplo, trans, n, depth, alpha,
                                          factor[0].tile, beta, c);
    return gpu_kernels(g->work)->syr2k(g->work, g->hermitian, uplo, trans, n, depth, alpha,
                                       factor[0].tile, factor[1].tile, beta, c);
}

/* Computes the rectangle beside it: m rows of the factors by n rows of the triangle. */
static enum gpu_status beside(const struct rank_k *g, int64_t m, int64_t n, int64_t depth,
                              const struct factor_rows rest[2], const struct factor_rows own[2],
                              struct accel_complex beta, struct dmat c)
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

static struct factor_rows factor_at(const struct executor *e, int factor, int row, int p)
{
    return (struct factor_rows){level3_tile(e, factor, row, p),
                                e->scheduled.operand[factor].across};
}

/* Adds a block of k to a block of C. The schedule sees a lower triangle: an upper one is its mirror
 * image. */
static enum gpu_status compute_rank_k(const struct executor *e, const struct schedule_step *step)
{
    const struct rank_k *g = (const struct rank_k *)e;
    const struct dmat c = level3_tile(e, C, step->i, step->j);
    const struct accel_complex beta = step->first ? g->call->blas.scalar[ACCEL_beta] : one;
    const int row = g->lower ? step->i : step->j, col = g->lower ? step->j : step->i;
    const struct schedule_tile rows = schedule_tile_of(&e->schedule, A, row, step->p);
    const struct schedule_tile cols = schedule_tile_of(&e->schedule, A, col, step->p);
    struct factor_rows at_row[2] = {0}, at_col[2] = {0};
    if (e->scheduled.call.k == 0)
        return row == col ? kernels_scale_triangle(g->work, g->hermitian, g->lower ? 'L' : 'U',
                                                   rows.rows, beta, e->zeros, c)
                          : kernels_scale(g->work, rows.rows, cols.rows, beta, e->zeros, c);
    for (int i = A; i <= (g->two ? B : A); i++) {
        if (row == col || !g->general || i == A)
            at_row[i] = factor_at(e, i, row, step->p);
        if (row != col && (!g->general || i == B))
            at_col[i] = factor_at(e, i, col, step->p);
    }
    return row == col ? triangle(g, rows.rows, rows.cols, at_row, beta, c)
                      : beside(g, rows.rows, cols.rows, rows.cols, at_row, at_col, beta, c);
}

/* Of gemmt, op(B)' is seen as a factor like op(A). */
static void describe_rank_k(const struct accel_call *call, struct scheduled *l, bool two,
                            bool general)
{
    const struct accel_span *c = &call->span[ACCEL_c];
    const bool across_a = call->blas.flag[general ? ACCEL_transa : ACCEL_trans] != 'N';
    const bool across_b = general ? call->blas.flag[ACCEL_transb] == 'N' : across_a;
    const int64_t n = call->blas.size[ACCEL_n] - call->blas.gap;
    const int64_t k = accel_adds_nothing(call) ? 0 : call->blas.size[ACCEL_k];
    l->call = (struct schedule_call){.kind = SCHEDULE_RANK_K,
                                     .two = two,
                                     .one_way = general,
                                     .up = general && call->blas.flag[ACCEL_uplo] != 'L',
                                     .m = n,
                                     .n = n,
                                     .k = k,
                                     .head = call->blas.head,
                                     .omits = call->blas.omits,
                                     .per_term = (accel_is_complex(c->dtype) ? 8 : 2) /
                                                 (general ? 2.0 : 1.0)};
    l->gap = call->blas.gap;
    l->operand[C] = (struct scheduled_operand){c, call->blas.flag[ACCEL_uplo] != 'L'};
    if (k > 0)
        l->operand[A] = (struct scheduled_operand){&call->span[ACCEL_a], across_a};
    if (k > 0 && two)
        l->operand[B] = (struct scheduled_operand){&call->span[ACCEL_b], across_b};
    if (general && gpu_in_place(c)) {
        const int64_t block = accel_min(n, WHOLE_BLOCK), size = gpu_size_of(c);
        l->own_bytes[WHOLE] = gpu_device_ld(block, c->dtype) * block * size;
        l->own_bytes[PACKED] = block * (block + 1) / 2 * size;
    }
}

static enum gpu_status run_rank_k(struct gpu_work *work, bool two, bool general)
{
    const struct accel_call *call = work->call;
    const struct accel_span *c = &call->span[ACCEL_c];
    bool hermitian = accel_is_hermitian(call->routine);
    bool across_a = call->blas.flag[general ? ACCEL_transa : ACCEL_trans] != 'N';
    char dash = hermitian ? 'C' : 'T';
    if (call->blas.size[ACCEL_n] == 0)
        return GPU_OK;
    if (!kernels_fit(work, call))
        return GPU_UNSUPPORTED;
    /* tpttr and trttp have no 64-bit functions. */
    if (general && gpu_in_place(c) && c->ld > INT_MAX)
        return GPU_UNSUPPORTED;
    if ((accel_adds_nothing(call) || call->blas.size[ACCEL_k] == 0) &&
        accel_is_one(call->blas.scalar[ACCEL_beta]))
        return GPU_OK;
    struct rank_k g = {
        .level3 = {.executor.work = work, .compute = compute_rank_k},
        .work = work,
        .call = call,
        .c = c,
        .two = two,
        .hermitian = hermitian,
        .general = general,
        .lower = call->blas.flag[ACCEL_uplo] == 'L',
        .left_op = general    ? call->blas.flag[ACCEL_transa]
                   : across_a ? dash
                              : 'N',
        .right_op = general    ? call->blas.flag[ACCEL_transb]
                    : across_a ? 'N'
                               : dash,
    };
    return level3_run(&g.level3);
}

/* A triangle that is only scaled stays whole. */
static unsigned cuts(const struct accel_call *call)
{
    return accel_adds_nothing(call) || call->blas.size[ACCEL_k] == 0 ? 0 : ACCEL_CUT_TRIANGLE;
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

static void describe_syrk(const struct accel_call *call, struct scheduled *l)
{
    describe_rank_k(call, l, false, false);
}

static void describe_syr2k(const struct accel_call *call, struct scheduled *l)
{
    describe_rank_k(call, l, true, false);
}

static void describe_gemmt(const struct accel_call *call, struct scheduled *l)
{
    describe_rank_k(call, l, true, true);
}

#define TRIANGLE(name, equation_of, kind, ...)                                                     \
    {                                                                                              \
        BLAS_LEVEL_3(run_##name, describe_##name, cuts, equation_of, .products = (kind),           \
                     .triangles = 1 << ACCEL_c, __VA_ARGS__),                                      \
            .cost = &blas_cost                                                                     \
    }

const struct accel_op op_syrk = TRIANGLE(syrk, equation_syrk, GPU_RANK_K);
const struct accel_op op_herk = TRIANGLE(syrk, equation_syrk, GPU_RANK_K, .hermitian = true);
const struct accel_op op_syr2k = TRIANGLE(syr2k, equation_syr2k, GPU_RANK_K);
const struct accel_op op_her2k = TRIANGLE(syr2k, equation_syr2k, GPU_RANK_K, .hermitian = true);
const struct accel_op op_gemmt = TRIANGLE(gemmt, equation_gemm, GPU_OTHERS);
