/*
 * symm, hemm: C := alpha A B + beta C or alpha B A + beta C with a symmetric or Hermitian A, by a
 * schedule: blocks of C, each a sum over blocks of A's order. Those of A beyond the diagonal are
 * those of the stored triangle, transposed.
 */
#include "blas.h"
#include "gpu/exec/blas/level3.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C };

/* The schedule has A at the left and its lower triangle. At the right, it sees B and C
 * transposed. */
static enum gpu_status compute_symm(const struct executor *e, const struct schedule_step *step)
{
    const struct accel_call *call = e->work->call;
    const bool left = call->blas.flag[ACCEL_side] == 'L',
               lower = call->blas.flag[ACCEL_uplo] == 'L';
    const bool hermitian = accel_is_hermitian(call->routine);
    const struct accel_complex one = {1, 0}, alpha = call->blas.scalar[ACCEL_alpha];
    const struct accel_complex beta = step->first ? call->blas.scalar[ACCEL_beta] : one;
    const struct schedule_tile tile = schedule_tile_of(&e->schedule, C, step->i, step->j);
    const int64_t m = left ? tile.rows : tile.cols, n = left ? tile.cols : tile.rows;
    const struct dmat c = level3_tile(e, C, step->i, step->j);
    if (e->scheduled.call.k == 0)
        return kernels_scale(e->work, m, n, beta, e->zeros, c);
    const bool below = step->i > step->p;
    const struct dmat x = level3_tile(e, B, step->p, step->j);
    const struct dmat a =
        below ? level3_tile(e, A, step->i, step->p) : level3_tile(e, A, step->p, step->i);
    if (step->i == step->p)
        return gpu_kernels(e->work)->symm(e->work, hermitian, left ? 'L' : 'R', lower ? 'L' : 'U',
                                          m, n, alpha, a, x, beta, c);
    const int64_t depth = schedule_tile_of(&e->schedule, B, step->p, step->j).rows;
    /* At the left, block (i, p) of A is wanted, at the right block (p, i). */
    const char flag = below == (left == lower) ? 'N' : hermitian ? 'C' : 'T';
    return left ? gpu_kernels(e->work)->gemm(e->work, flag, 'N', m, n, depth, alpha, a, x, beta, c)
                : gpu_kernels(e->work)->gemm(e->work, 'N', flag, m, n, depth, alpha, x, a, beta, c);
}

static void describe_symm(const struct accel_call *call, struct scheduled *l)
{
    const struct accel_span *c = &call->span[ACCEL_c];
    const bool left = call->blas.flag[ACCEL_side] == 'L';
    const int64_t order = left ? c->rows : c->cols;
    l->call = (struct schedule_call){.kind = SCHEDULE_SYMMETRIC,
                                     .m = order,
                                     .n = left ? c->cols : c->rows,
                                     .k = accel_adds_nothing(call) ? 0 : order,
                                     .per_term = accel_is_complex(c->dtype) ? 8 : 2};
    l->operand[C] = (struct scheduled_operand){c, !left};
    if (l->call.k == 0)
        return;
    l->operand[A] =
        (struct scheduled_operand){&call->span[ACCEL_a], call->blas.flag[ACCEL_uplo] == 'U'};
    l->operand[B] = (struct scheduled_operand){&call->span[ACCEL_b], !left};
}

static enum gpu_status run_symm(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_span *c = &call->span[ACCEL_c];
    if (c->rows == 0 || c->cols == 0)
        return GPU_OK;
    if (!kernels_fit(work, call))
        return GPU_UNSUPPORTED;
    if (accel_adds_nothing(call) && accel_is_one(call->blas.scalar[ACCEL_beta]))
        return GPU_OK;
    struct level3 b = {.executor.work = work, .compute = compute_symm};
    return level3_run(&b);
}

#define SYMMETRIC(...)                                                                             \
    BLAS_LEVEL_3(run_symm, describe_symm, blas_cuts_beside, equation_symm, .products = GPU_OTHERS, \
                 __VA_ARGS__)

const struct accel_op op_symm = {SYMMETRIC(), .cost = &blas_cost};
const struct accel_op op_hemm = {SYMMETRIC(.hermitian = true), .cost = &blas_cost};
