/*
 * gemm, gemm3m: C := alpha op(A) op(B) + beta C, by a schedule: blocks of C, each a sum over blocks
 * of k.
 */
#include "blas.h"
#include "gpu/exec/blas/level3.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C };

/* A block of C, and one of k. A and B may not be read: k or alpha is 0. */
static enum gpu_status compute_gemm(const struct executor *e, const struct schedule_step *step)
{
    const struct accel_call *call = e->work->call;
    const struct accel_complex one = {1, 0};
    const struct accel_complex beta = step->first ? call->blas.scalar[ACCEL_beta] : one;
    const struct schedule_tile c = schedule_tile_of(&e->schedule, C, step->i, step->j);
    const struct dmat at = level3_tile(e, C, step->i, step->j);
    if (e->scheduled.call.k == 0)
        return kernels_scale(e->work, c.rows, c.cols, beta, e->zeros, at);
    return gpu_kernels(e->work)->gemm(
        e->work, call->blas.flag[ACCEL_transa], call->blas.flag[ACCEL_transb], c.rows, c.cols,
        schedule_tile_of(&e->schedule, A, step->i, step->p).cols, call->blas.scalar[ACCEL_alpha],
        level3_tile(e, A, step->i, step->p), level3_tile(e, B, step->p, step->j), beta, at);
}

void gemm_describe(const struct accel_call *call, struct scheduled *l)
{
    const int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    const int64_t k = accel_adds_nothing(call) ? 0 : call->blas.size[ACCEL_k];
    const double terms =
        (double)accel_max(m, 1) * (double)accel_max(n, 1) * (double)accel_max(k, 1);
    l->call = (struct schedule_call){
        .kind = SCHEDULE_PRODUCT, .m = m, .n = n, .k = k, .per_term = accel_flops(call) / terms};
    l->operand[C].x = &call->span[ACCEL_c];
    if (k == 0)
        return;
    l->operand[A] =
        (struct scheduled_operand){&call->span[ACCEL_a], call->blas.flag[ACCEL_transa] != 'N'};
    l->operand[B] =
        (struct scheduled_operand){&call->span[ACCEL_b], call->blas.flag[ACCEL_transb] != 'N'};
}

static unsigned cuts(const struct accel_call *call)
{
    (void)call;
    return ACCEL_CUT_ROWS | ACCEL_CUT_COLS;
}

static enum gpu_status run_level3(struct gpu_work *work)
{
    struct level3 b = {.executor.work = work, .compute = compute_gemm};
    return level3_run(&b);
}

static enum gpu_status run_gemm(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_span *a = &call->span[ACCEL_a];
    int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    int64_t k = accel_adds_nothing(call) ? 0 : call->blas.size[ACCEL_k];
    if (m == 0 || n == 0)
        return GPU_OK;
    if (a->dtype == ACCEL_BFLOAT16 && !gpu_kernels(work)->has_bfloat16(work))
        return GPU_UNSUPPORTED;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (gpu_in_place(&call->span[i]) && !gpu_kernels(work)->takes(call->span[i].ld))
            return GPU_UNSUPPORTED;
    if (k == 0 && accel_is_one(call->blas.scalar[ACCEL_beta]))
        return GPU_OK;
    const int64_t cached_bytes = work->host->cached_bytes;
    enum gpu_status status = run_level3(work);
    return device_cache_runs_again(work, cached_bytes, &status) ? run_level3(work) : status;
}

const struct accel_cost blas_cost = {BLAS_NOMINAL};

#define PRODUCT(...) BLAS_LEVEL_3(run_gemm, gemm_describe, cuts, equation_gemm, __VA_ARGS__)

const struct accel_op op_gemm = {PRODUCT(.products = GPU_GEMM),
                                 OP_COST(BLAS_NOMINAL, .sample = ACCEL_SAMPLE_PRODUCT)};
const struct accel_op op_gemm3m = {PRODUCT(.three_products = true), .cost = &blas_cost};
