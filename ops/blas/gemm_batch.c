/*
 * gemm_batch, gemm_batch_strided: many products of one shape, by a schedule of groups.
 */
#include "abi.h"
#include "blas.h"
#include "gpu/exec/blas/batch.h"
#include "parse.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C };

static enum gpu_status compute_group(const struct executor *e, const struct batch_group *g)
{
    const bool scaling = e->scheduled.call.k == 0;
    return g->pointers ? gpu_kernels(e->work)->gemm_array(e->work, scaling, g->count, g->at[A],
                                                          g->at[B], g->at[C])
                       : gpu_kernels(e->work)->gemm_strided(e->work, scaling, g->count, g->at[A],
                                                            g->stride[A], g->at[B], g->stride[B],
                                                            g->at[C], g->stride[C]);
}

static enum gpu_status run_gemm_batch(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const int64_t *size = call->blas.size;
    const bool scaling = accel_adds_nothing(call) || size[ACCEL_k] == 0;
    if (size[ACCEL_m] == 0 || size[ACCEL_n] == 0 || call->batch == 0 ||
        (scaling && accel_is_one(call->blas.scalar[ACCEL_beta])))
        return GPU_OK;
    if (!kernels_fit(work, call) || !gpu_kernels(work)->takes(call->batch))
        return GPU_UNSUPPORTED;
    if (call->batch == 1)
        return op_gemm.gpu->run(work);
    struct batch p = {.executor.work = work, .compute = compute_group, .alone = op_gemm.gpu->run};
    return batch_run(&p);
}

static unsigned cuts(const struct accel_call *call)
{
    (void)call;
    return ACCEL_CUT_PRODUCTS;
}

/* ---- Batches of several groups ---- */

/* The gate compares m and n: it does not see k in arrays. */
static int64_t largest(const struct accel_routine *routine, const struct accel_passed *passed)
{
    const int64_t groups = blas_groups(routine, passed);
    uint64_t most = 0;
    if (groups <= 1)
        return -1;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_SIZE || arg->slot == ACCEL_k)
            continue;
        const uint64_t sizes = blas_word_of(passed, i);
        for (int64_t group = 0; group < groups; group++) {
            const uint64_t size = (uint64_t)blas_load_integer(sizes, passed->width, group);
            most = size > most ? size : most;
        }
    }
    return (int64_t)most;
}

static bool next_group(struct accel_call *call, const struct accel_passed *passed)
{
    if (call->part + 1 >= call->parts)
        return false;
    blas_parse_group(call, call->routine, passed, call->part + 1,
                     call->blas.before + accel_max(call->batch, 0));
    return true;
}

const struct accel_op op_gemm_batch = {
    OP_TRAITS(.group = ACCEL_BATCH, .products = GPU_GEMM), .cost = &blas_cost,
    OP_RULES(.next = next_group, .largest = largest, .equation = equation_gemm),
    OP_GPU(.run = run_gemm_batch, .scheduled = gemm_describe, .cuts = cuts)};
