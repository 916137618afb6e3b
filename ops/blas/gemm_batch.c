/*
 * Many products of one shape. Of those whose matrices are on the host, as many as fit go up together, each into a
 * slot of its own; a result is written back once its whole load has arrived. A product that is too large for
 * that is one of gemm.c's. A load is no more than cuBLAS takes at once, also of matrices on the device: after each it is known
 * what is finished, and the original gets the rest where cuBLAS refuses a later one.
 */
#include <stdlib.h>
#include <string.h>

#include "blas.h"
#include "gpu/cuda/kernels.h"

/* An operand of all products. */
struct slots {
    const struct accel_operand *x;
    bool in_place, shared; /* shared: one matrix for all */
    int64_t ld, elements;  /* of a slot */
    CUdeviceptr memory;
};

struct batch {
    struct gpu_work *work;
    const struct accel_call *call;
    struct slots slots[3];
    int64_t load; /* products that go up together */
    CUdeviceptr pointers;
    bool scaling;  /* k or alpha is 0: C := beta C, with zeros for A and B */
    char *staging; /* host memory for one operand's slots */
};

enum { A, B, C };

/* ---- Memory ---- */

static int64_t slot_bytes(const struct slots *s)
{
    return s->in_place ? 0 : s->elements * gpu_size_of(s->x);
}

static int64_t slots_bytes(const struct slots *s, int64_t load)
{
    return slot_bytes(s) * (s->shared ? 1 : load);
}

/* Whether an operand's matrices on the device are at regular distances. */
static bool is_regular(const struct slots *s)
{
    return !s->in_place || !s->x->array;
}

static bool needs_pointers(const struct batch *g)
{
    return !is_regular(&g->slots[A]) || !is_regular(&g->slots[B]) || !is_regular(&g->slots[C]);
}

static int64_t pointers_bytes(const struct batch *g)
{
    return needs_pointers(g) ? 3 * g->load * (int64_t)sizeof(CUdeviceptr) : 0;
}

static int64_t all_bytes(const struct batch *g)
{
    int64_t bytes = pointers_bytes(g);
    for (int i = 0; i < 3; i++)
        bytes += slots_bytes(&g->slots[i], g->load);
    return bytes;
}

static int plan_load(void *plan, int64_t available, struct gpu_need need[WORK_BLOCKS])
{
    struct batch *g = plan;
    g->load = accel_min(g->call->batch, KERNEL_BATCH_MOST);
    for (int i = 0; i < 3; i++)
        if (slot_bytes(&g->slots[i]) > 0) {
            int64_t most = gpu_work_panel(g->slots[i].elements, gpu_size_of(g->slots[i].x));
            g->load = g->load < most ? g->load : most;
        }
    while (all_bytes(g) > available && g->load > 1)
        g->load = (g->load + 1) / 2;
    if (all_bytes(g) > available)
        return -1;
    for (int i = 0; i < 3; i++)
        need[i] = (struct gpu_need){slots_bytes(&g->slots[i], g->load), &g->slots[i].memory};
    need[3] = (struct gpu_need){pointers_bytes(g), &g->pointers};
    return 4;
}

/* The host's side of the widest operand. */
static int64_t staging_bytes(const struct batch *g)
{
    int64_t most = pointers_bytes(g);
    for (int i = 0; i < 3; i++) {
        int64_t bytes = slots_bytes(&g->slots[i], g->load);
        most = most > bytes ? most : bytes;
    }
    return most;
}

/* ---- One load ---- */

/* Between the program's matrices [first, first + count) and the staging memory. */
static void pack(const struct batch *g, const struct slots *s, int64_t first, int64_t count,
                 bool unpack)
{
    int64_t size = gpu_size_of(s->x);
    size_t bytes = (size_t)(s->x->rows * size);
    for (int64_t i = 0; i < count; i++) {
        char *slot = g->staging + i * slot_bytes(s);
        char *matrix = accel_matrix_of(s->x, first + i);
        for (int64_t col = 0; col < s->x->cols; col++) {
            char *there = matrix + col * s->x->ld * size, *here = slot + col * s->ld * size;
            memcpy(unpack ? there : here, unpack ? here : there, bytes);
        }
    }
}

static struct lane_rectangle staged(const struct batch *g, const struct slots *s, int64_t count)
{
    return lane_whole(g->staging, s->elements, count, s->elements, gpu_size_of(s->x));
}

static enum gpu_status upload(struct batch *g, const struct slots *s, int64_t first, int64_t count)
{
    if (s->shared)
        count = 1;
    const struct lane_rectangle from = staged(g, s, count);
    int64_t bytes = count * accel_bytes(s->x);
    if (s->shared && first > 0) {
        gpu_work_event(g->work, GPU_EVENT_KEPT, s->x, s->x->rows, s->x->cols, bytes);
        return GPU_OK;
    }
    pack(g, s, first, count, false);
    enum gpu_status status = lane_upload(g->work->lane, s->memory, s->elements, &from);
    if (status == GPU_OK) {
        g->work->host->up_bytes += bytes;
        gpu_work_event(g->work, GPU_EVENT_H2D, s->x, s->x->rows, count * s->x->cols, bytes);
    }
    return status;
}

static enum gpu_status download(struct batch *g, const struct slots *s, int64_t first,
                                int64_t count)
{
    const struct lane_rectangle to = staged(g, s, count);
    int64_t bytes = count * accel_bytes(s->x), done_cols, done_rows;
    enum gpu_status status =
        lane_download(g->work->lane, &to, s->memory, s->elements, &done_cols, &done_rows);
    if (status == GPU_OK) {
        pack(g, s, first, count, true);
        g->work->host->down_bytes += bytes;
        gpu_work_event(g->work, GPU_EVENT_D2H, s->x, s->x->rows, count * s->x->cols, bytes);
    }
    return status;
}

static bool is_needed(const struct batch *g, const struct slots *s)
{
    return s->x->access & ACCEL_WRITE ? accel_is_read(g->call, s->x) : !g->scaling;
}

/* Matrix number `product`, which is number `i` of its load, on the device. */
static struct gpu_tile tile_of(const struct slots *s, int64_t product, int64_t i)
{
    if (s->in_place)
        return (struct gpu_tile){(CUdeviceptr)(uintptr_t)accel_matrix_of(s->x, product), s->x->ld};
    return (struct gpu_tile){s->memory + (CUdeviceptr)((s->shared ? 0 : i) * slot_bytes(s)), s->ld};
}

static int64_t stride_of(const struct slots *s)
{
    return s->in_place ? s->x->stride : s->shared ? 0 : s->elements;
}

static enum gpu_status multiply_array(struct batch *g, int64_t first, int64_t count)
{
    const struct lane_rectangle from =
        lane_whole(g->staging, 3 * count, 1, 3 * count, sizeof(CUdeviceptr));
    CUdeviceptr *pointers = (CUdeviceptr *)(void *)g->staging;
    struct gpu_tile tiles[3];
    for (int x = 0; x < 3; x++) {
        const struct slots *s = &g->slots[x];
        for (int64_t i = 0; i < count; i++)
            pointers[x * count + i] = tile_of(s, first + i, i).ptr;
        tiles[x] = tile_of(s, first, 0);
        tiles[x].ptr = g->pointers + (CUdeviceptr)(x * count) * sizeof(CUdeviceptr);
    }
    enum gpu_status status = lane_upload(g->work->lane, g->pointers, 3 * count, &from);
    return status == GPU_OK
               ? kernel_gemm_array(g->work, g->scaling, count, tiles[A], tiles[B], tiles[C])
               : status;
}

static enum gpu_status run_load(struct batch *g, int64_t first, int64_t count)
{
    enum gpu_status status = GPU_OK;
    for (int x = 0; status == GPU_OK && x < 3; x++) {
        const struct slots *s = &g->slots[x];
        if (s->in_place)
            gpu_work_event(g->work, GPU_EVENT_IN_PLACE, s->x, s->x->rows, count * s->x->cols,
                           count * accel_bytes(s->x));
        else if (is_needed(g, s))
            status = upload(g, s, first, count);
    }
    if (status == GPU_OK && needs_pointers(g))
        status = multiply_array(g, first, count);
    else if (status == GPU_OK)
        status = kernel_gemm_strided(g->work, g->scaling, count, tile_of(&g->slots[A], first, 0),
                                     stride_of(&g->slots[A]), tile_of(&g->slots[B], first, 0),
                                     stride_of(&g->slots[B]), tile_of(&g->slots[C], first, 0),
                                     stride_of(&g->slots[C]));
    if (status != GPU_OK)
        return status;
    return g->slots[C].in_place ? gpu_work_settle(g->work)
                                : download(g, &g->slots[C], first, count);
}

/* ---- The whole batch ---- */

/* After a failure with the first `done` products finished and nothing of the others written. */
static enum gpu_status rest_by_original(const struct batch *g, int64_t done, enum gpu_status status)
{
    if (done == 0)
        return status;
    const struct accel_call part = accel_products_of(g->call, done, g->call->batch - done);
    bool right = part.batch == 0 || gpu_work_by_original(g->work, &part);
    return right ? gpu_finished_else(status) : GPU_LOST;
}

/* Product by product, each in tiles if need be. */
static enum gpu_status one_by_one(struct batch *g)
{
    enum gpu_status status = GPU_OK;
    for (int64_t i = 0; status == GPU_OK && i < g->call->batch; i++) {
        const struct accel_call product = accel_products_of(g->call, i, 1);
        struct gpu_work work = *g->work;
        work.call = &product;
        work.launched = false;
        status = op_gemm.run(&work);
        g->work->blocks = work.blocks;
        memcpy(g->work->block, work.block, sizeof work.block);
        if (status == GPU_OK) {
            status = gpu_work_give_back(g->work);
            if (status != GPU_OK)
                return rest_by_original(g, i + 1, status);
        } else if (status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE)
            return rest_by_original(g, i + 1, status == GPU_SHORT_ELSE ? GPU_NO_MEMORY : GPU_ERROR);
        else if (status != GPU_LOST)
            return rest_by_original(g, i, status);
    }
    return status;
}

static enum gpu_status run_loads(struct batch *g)
{
    enum gpu_status status = GPU_OK;
    g->staging = malloc((size_t)staging_bytes(g) + 1);
    if (!g->staging)
        return GPU_NO_MEMORY;
    for (int64_t first = 0; status == GPU_OK && first < g->call->batch; first += g->load) {
        int64_t left = g->call->batch - first;
        status = run_load(g, first, g->load < left ? g->load : left);
        if (status != GPU_OK)
            status = g->slots[C].in_place && g->work->launched ? GPU_LOST
                                                               : rest_by_original(g, first, status);
    }
    free(g->staging);
    return status;
}

static enum gpu_status run_gemm_batch(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    struct batch g = {.work = work,
                      .call = call,
                      .scaling = accel_adds_nothing(call) || call->size[ACCEL_k] == 0};
    static const enum accel_matrix operands[3] = {ACCEL_a, ACCEL_b, ACCEL_c};
    bool host = false;
    for (int i = 0; i < 3; i++) {
        const struct accel_operand *x = &call->operand[operands[i]];
        int64_t ld = gpu_device_ld(x->rows > 0 ? x->rows : 1, x->dtype);
        g.slots[i] = (struct slots){.x = x,
                                    .in_place = gpu_in_place(x),
                                    .shared = !x->array && x->stride == 0,
                                    .ld = ld,
                                    .elements = ld * (x->cols > 0 ? x->cols : 1)};
        if (g.scaling && i != C) /* m x 1 and 1 x n, one for all: see kernel_gemm_strided() */
            g.slots[i] = (struct slots){
                .x = x, .shared = true, .ld = i == A ? accel_max(1, call->size[ACCEL_m]) : 1};
        else
            host = host || !g.slots[i].in_place;
    }
    if (call->size[ACCEL_m] == 0 || call->size[ACCEL_n] == 0 || call->batch == 0 ||
        (g.scaling && accel_is_one(call->scalar[ACCEL_beta])))
        return GPU_OK;
    if (!kernels_fit_call(call) || !kernels_fit(call->batch))
        return GPU_UNSUPPORTED;
    enum gpu_status status = gpu_work_prepare(work, plan_load, &g);
    /* Too large for a load of more than one. */
    if (status == GPU_NO_MEMORY || (status == GPU_OK && host && g.load == 1)) {
        status = status == GPU_OK ? gpu_work_give_back(work) : GPU_OK;
        return status == GPU_OK ? one_by_one(&g) : status;
    }
    if (status == GPU_OK && g.scaling) {
        status = kernel_zeros(work, accel_max(call->size[ACCEL_m], call->size[ACCEL_n]),
                              &g.slots[A].memory);
        g.slots[B].memory = g.slots[A].memory;
    }
    return status == GPU_OK ? run_loads(&g) : status;
}

const struct accel_op op_gemm_batch = {
    .group = ACCEL_BATCH, BLAS_NOMINAL, .run = run_gemm_batch, .equation = equation_gemm};
