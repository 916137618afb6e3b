/*
 * trmm, trsm: a triangle A at one side of a rectangle, which is overwritten, by a schedule: panels
 * of the rectangle, of columns if A is at the left, of rows if it is at the right, divided into
 * tiles, and blocks of A; those of the other triangle are never read. Panels do not depend on each
 * other.
 */
#include "blas.h"
#include "gpu/exec/blas/level3.h"
#include "gpu/exec/blas/triangle_solve.h"

enum { A = SCHEDULE_A, OUT = SCHEDULE_C };

static const struct accel_complex zero = {0, 0}, one = {1, 0}, minus_one = {-1, 0};

/* Returns whether a step is the first one that changes its rows: trmm begins with the diagonal,
 * trsm with the block of A's first row, or of its last one, that is solved before all others. */
static bool is_first(const struct executor *e, const struct schedule_step *step)
{
    const int last = e->schedule.tiles[A].rows - 1;
    return e->scheduled.call.kind == SCHEDULE_MULTIPLY
               ? step->i == step->p
               : step->p == (e->scheduled.call.up ? last : 0);
}

/* Multiplies or solves a block of A on the diagonal and a tile of a panel, or adds the product with
 * another tile, which trmm has not overwritten yet, and trsm has solved. */
static enum gpu_status compute_triangular(const struct executor *e,
                                          const struct schedule_step *step)
{
    const struct accel_call *call = e->work->call;
    const char side = call->blas.flag[ACCEL_side], uplo = call->blas.flag[ACCEL_uplo];
    const char trans = call->blas.flag[ACCEL_trans], diag = call->blas.flag[ACCEL_diag];
    const bool left = side == 'L', solve = e->scheduled.call.kind == SCHEDULE_SOLVE;
    const struct accel_complex alpha = call->blas.scalar[ACCEL_alpha];
    const struct accel_complex scale = is_first(e, step) ? alpha : one; /* of the old values */
    const struct dmat y = level3_tile(e, OUT, step->i, step->j);
    const struct schedule_tile out = schedule_tile_of(&e->schedule, OUT, step->i, step->j);
    if (e->scheduled.call.k == 0)
        return kernels_scale(e->work, left ? out.rows : out.cols, left ? out.cols : out.rows, zero,
                             e->zeros, y);
    const struct schedule_tile block = schedule_tile_of(&e->schedule, A, step->i, step->p);
    const struct dmat a = level3_tile(e, A, step->i, step->p);
    const int64_t m = left ? block.rows : out.cols, n = left ? out.cols : block.rows;
    if (step->i == step->p) {
        const bool in_place = e->scheduled.call.in_place[OUT];
        return (!solve     ? gpu_kernels(e->work)->trmm
                : in_place ? gpu_kernels(e->work)->trsm
                           : triangle_solve)(e->work, side, uplo, trans, diag, m, n, scale, a, y);
    }
    const struct dmat x = level3_tile(e, OUT, step->p, step->j);
    const struct accel_complex factor = solve ? minus_one : alpha;
    return left ? gpu_kernels(e->work)->gemm(e->work, trans, 'N', m, n, block.cols, factor, a, x,
                                             scale, y)
                : gpu_kernels(e->work)->gemm(e->work, 'N', trans, m, n, block.cols, factor, x, a,
                                             scale, y);
}

/* The schedule has A at the left. At the right, it sees op(A) and the rectangle transposed. */
static void describe_triangular(const struct accel_call *call, struct scheduled *l,
                                enum schedule_kind kind)
{
    const struct accel_span *out = &call->span[ACCEL_b];
    const bool left = call->blas.flag[ACCEL_side] == 'L',
               across = call->blas.flag[ACCEL_trans] != 'N';
    const bool upper = (call->blas.flag[ACCEL_uplo] == 'U') != across; /* op(A) */
    const int64_t order = left ? out->rows : out->cols;
    l->call = (struct schedule_call){.kind = kind,
                                     .up = upper == left,
                                     .m = order,
                                     .n = left ? out->cols : out->rows,
                                     .k = accel_adds_nothing(call) ? 0 : order,
                                     .per_term = accel_is_complex(out->dtype) ? 8 : 2};
    l->operand[OUT] = (struct scheduled_operand){out, !left};
    if (l->call.k > 0)
        l->operand[A] = (struct scheduled_operand){&call->span[ACCEL_a], left == across};
}

static void describe_trmm(const struct accel_call *call, struct scheduled *l)
{
    describe_triangular(call, l, SCHEDULE_MULTIPLY);
}

static void describe_trsm(const struct accel_call *call, struct scheduled *l)
{
    describe_triangular(call, l, SCHEDULE_SOLVE);
}

static enum gpu_status run_triangular(struct gpu_work *work)
{
    const struct accel_span *out = &work->call->span[ACCEL_b];
    struct level3 b = {.executor.work = work, .compute = compute_triangular};
    if (out->rows == 0 || out->cols == 0)
        return GPU_OK;
    return kernels_fit(work, work->call) ? level3_run(&b) : GPU_UNSUPPORTED;
}

#define TRIANGULAR(name)                                                                           \
    BLAS_LEVEL_3(run_triangular, describe_##name, blas_cuts_beside, equation_##name,               \
                 .products = GPU_OTHERS, .definite = 1 << ACCEL_a)

const struct accel_op op_trmm = {TRIANGULAR(trmm), .cost = &blas_cost};
const struct accel_op op_trsm = {TRIANGULAR(trsm),
                                 OP_COST(BLAS_NOMINAL, .sample = ACCEL_SAMPLE_SOLVE)};
