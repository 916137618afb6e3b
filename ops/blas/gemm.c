/*
 * gemm, gemm3m: C := alpha op(A) op(B) + beta C, in tiles if the operands do not fit. Computes one tile of C after the other,
 * each as a sum over panels of k.
 */
#include <limits.h>

#include "blas.h"
#include "gpu/tiles.h"

/* The smallest tile: if this does not fit either, something else takes the memory. */
#define TILE_MIN 64

/* The operands' parts, and the sizes of tiles. */
enum { A, B, C };
enum { N, M, K };

struct gemm {
    struct tiles tiles;
    int64_t k;
};

/* Halves the size whose halving frees most; of equals, n before m before k, so that A stays on the device for all tiles and no
 * product is split into a sum. */
static bool shrink(struct tiles *t)
{
    int64_t *best = NULL, least = tiles_bytes(t);
    for (int i = N; i <= K; i++) {
        int64_t size = t->size[i];
        if (!tiles_halve(&t->size[i], TILE_MIN))
            continue;
        if (tiles_bytes(t) < least) {
            least = tiles_bytes(t);
            best = &t->size[i];
        }
        t->size[i] = size;
    }
    return best && tiles_halve(best, TILE_MIN);
}

static enum gpu_status compute(struct tiles *t, struct tile *c)
{
    const struct gemm *g = (struct gemm *)t;
    const struct accel_call *call = t->work->call;
    const struct accel_complex one = {1, 0};
    const char *flag = call->blas.flag;
    enum gpu_status status = GPU_OK;
    /* A and B may not be read: k or alpha is 0. */
    if (g->k == 0)
        return kernel_scale(t->work, c->rows, c->cols, call->blas.scalar[ACCEL_beta], t->zeros,
                            c->at);
    for (int64_t p = 0; status == GPU_OK && p < g->k; p += t->size[K]) {
        int64_t depth = tiles_length(t->size[K], p, g->k);
        struct gpu_tile a, b;
        status = tiles_load(t, A, c->row, p, c->rows, depth, &a);
        if (status == GPU_OK)
            status = tiles_load(t, B, p, c->col, depth, c->cols, &b);
        if (status == GPU_OK)
            status = kernel_gemm(t->work, flag[ACCEL_transa], flag[ACCEL_transb], c->rows, c->cols,
                                 depth, call->blas.scalar[ACCEL_alpha], a, b,
                                 p == 0 ? call->blas.scalar[ACCEL_beta] : one, c->at);
    }
    return status;
}

static enum gpu_status run_gemm(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_span *a = &call->span[ACCEL_a];
    int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    int64_t k = accel_adds_nothing(call) ? 0 : call->blas.size[ACCEL_k];
    int64_t most = accel_min(work->largest, kernels_fit(INT64_MAX) ? INT64_MAX : INT_MAX / 64 * 64);
    if (m == 0 || n == 0)
        return GPU_OK;
    if (a->dtype == ACCEL_BFLOAT16 && !kernels_have_bfloat16(work))
        return GPU_UNSUPPORTED;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (gpu_in_place(&call->span[i]) && !kernels_fit(call->span[i].ld))
            return GPU_UNSUPPORTED;
    if (k == 0 && accel_is_one(call->blas.scalar[ACCEL_beta]))
        return GPU_OK;
    struct gemm g = {
        .tiles =
            {.work = work,
             .most = {[M] = accel_min(m, most), [N] = accel_min(n, most), [K] = accel_min(k, most)},
             .shrink = shrink,
             .over = C,
             .out = C,
             .rows = m,
             .cols = n,
             .unit = TILE_ELEMENTS,
             .scales = k == 0,
             .compute = compute},
        .k = k};
    const int64_t *size = g.tiles.size;
    g.tiles.part[A] = tile_part_of(a, call->blas.flag[ACCEL_transa] != 'N', &size[M], &size[K]);
    g.tiles.part[B] = tile_part_of(&call->span[ACCEL_b], call->blas.flag[ACCEL_transb] != 'N',
                                   &size[K], &size[N]);
    g.tiles.part[C] = tile_part_of(&call->span[ACCEL_c], false, &size[M], &size[N]);
    return tiles_run(&g.tiles);
}

const struct accel_op op_gemm = {BLAS_LEVEL_3, .sample = ACCEL_SAMPLE_PRODUCT, .products = GPU_GEMM,
                                 .run = run_gemm, .equation = equation_gemm};
const struct accel_op op_gemm3m = {BLAS_LEVEL_3, .three_products = true, .run = run_gemm,
                                   .equation = equation_gemm};
