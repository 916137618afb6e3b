/*
 * gemm_batch, gemm_batch_strided: many products of one shape, in loads: as many products as fit and cuBLAS takes at once.
 * Matrices on the host go up into slots; results are written back once the whole load has come down. After each load it is known
 * what is finished: if cuBLAS refuses a later one, the original does the rest. gemm.c does products too large for a load of two.
 */
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "blas.h"
#include "gpu/tiles.h"
#include "parse.h"

/* The operands' parts, and how many products go up together. */
enum { A, B, C, POINTERS };

/* An operand of all products. */
struct slots {
    const struct accel_span *x;
    bool in_place, shared; /* shared: one matrix for all */
    int64_t ld, elements;  /* of a slot */
    gpu_address *memory;
};

struct batch {
    struct tiles tiles;
    struct gpu_work *work;
    const struct accel_call *call;
    struct slots slots[3];
    bool pointers; /* matrices on the device are not a stride apart */
    bool scaling;  /* k or alpha is 0: C := beta C, with zeros for A and B */
    char *staging; /* host memory for one operand's slots */
};

static int64_t slot_bytes(const struct slots *s)
{
    return s->in_place ? 0 : s->elements * gpu_size_of(s->x);
}

/* Returns the bytes of the largest part: `staging` holds one at a time. */
static int64_t staging_bytes(const struct tiles *t)
{
    int64_t most = 0;
    for (int i = A; i <= POINTERS; i++)
        most = accel_max(most, tiles_part_bytes(t, i));
    return most;
}

/* ---- One load ---- */

/* Copies between the program's matrices [first, first + count) and the staging memory. */
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
    struct lane_rectangle r =
        lane_whole(g->staging, s->elements, count, s->elements, gpu_size_of(s->x));
    r.name = s->x->name;
    return r;
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
    enum gpu_status status = lane_upload(g->work->lane, *s->memory, s->elements, &from);
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
        lane_download(g->work->lane, &to, *s->memory, s->elements, &done_cols, &done_rows);
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

/* Returns the device's matrix number `product`, which is number `i` of its load. */
static struct gpu_tile tile_of(const struct slots *s, int64_t product, int64_t i)
{
    if (s->in_place)
        return (struct gpu_tile){(gpu_address)(uintptr_t)accel_matrix_of(s->x, product), s->x->ld};
    return (struct gpu_tile){*s->memory + (gpu_address)((s->shared ? 0 : i) * slot_bytes(s)),
                             s->ld};
}

static int64_t stride_of(const struct slots *s)
{
    return s->in_place ? s->x->stride : s->shared ? 0 : s->elements;
}

static enum gpu_status multiply_array(struct batch *g, int64_t first, int64_t count)
{
    const struct lane_rectangle from =
        lane_whole(g->staging, 3 * count, 1, 3 * count, sizeof(gpu_address));
    const gpu_address pointers_at = g->tiles.part[POINTERS].memory;
    gpu_address *pointers = (gpu_address *)(void *)g->staging;
    struct gpu_tile tiles[3];
    for (int x = 0; x < 3; x++) {
        const struct slots *s = &g->slots[x];
        for (int64_t i = 0; i < count; i++)
            pointers[x * count + i] = tile_of(s, first + i, i).ptr;
        tiles[x] = tile_of(s, first, 0);
        tiles[x].ptr = pointers_at + (gpu_address)(x * count) * sizeof(gpu_address);
    }
    enum gpu_status status = lane_upload(g->work->lane, pointers_at, 3 * count, &from);
    return status == GPU_OK
               ? kernel_gemm_array(g->work, g->scaling, count, tiles[A], tiles[B], tiles[C])
               : status;
}

static enum gpu_status run_load(struct tiles *t, struct tile *load)
{
    struct batch *g = (struct batch *)t;
    const int64_t first = load->col, count = load->cols;
    enum gpu_status status = GPU_OK;
    for (int x = 0; status == GPU_OK && x < 3; x++) {
        const struct slots *s = &g->slots[x];
        if (s->in_place)
            gpu_work_event(g->work, GPU_EVENT_IN_PLACE, s->x, s->x->rows, count * s->x->cols,
                           count * accel_bytes(s->x));
        else if (is_needed(g, s))
            status = upload(g, s, first, count);
    }
    if (status == GPU_OK && g->pointers)
        status = multiply_array(g, first, count);
    else if (status == GPU_OK)
        status = kernel_gemm_strided(g->work, g->scaling, count, tile_of(&g->slots[A], first, 0),
                                     stride_of(&g->slots[A]), tile_of(&g->slots[B], first, 0),
                                     stride_of(&g->slots[B]), tile_of(&g->slots[C], first, 0),
                                     stride_of(&g->slots[C]));
    if (status != GPU_OK)
        return status;
    return g->slots[C].in_place ? GPU_OK : download(g, &g->slots[C], first, count);
}

/* ---- The whole batch ---- */

static enum gpu_status begin(struct tiles *t)
{
    struct batch *g = (struct batch *)t;
    enum gpu_status status = GPU_OK;
    if (g->scaling) {
        status = kernel_zeros(t->work,
                              accel_max(g->call->blas.size[ACCEL_m], g->call->blas.size[ACCEL_n]),
                              &t->part[A].memory);
        t->part[B].memory = t->part[A].memory;
    }
    g->staging = malloc((size_t)staging_bytes(t) + 1);
    return status == GPU_OK && !g->staging ? GPU_NO_MEMORY : status;
}

/* Runs one product by gemm.c, in tiles if it must. */
static enum gpu_status run_product(struct tiles *t, struct tile *product)
{
    const struct accel_call call = accel_products_of(t->work->call, product->col, 1);
    struct gpu_work work = *t->work;
    work.call = &call;
    work.launched = false;
    enum gpu_status status = op_gemm.run(&work);
    t->work->blocks = work.blocks;
    memcpy(t->work->block, work.block, sizeof work.block);
    product->done_cols =
        status == GPU_OK || status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE;
    return status == GPU_OK              ? gpu_work_give_back(t->work)
           : status == GPU_SHORT_ELSE    ? GPU_NO_MEMORY
           : status == GPU_FINISHED_ELSE ? GPU_ERROR
                                         : status;
}

/* Describes an operand's matrices. Returns whether they come from the host. */
static bool set_slots(struct batch *g, int i, const struct accel_span *x)
{
    struct slots *s = &g->slots[i];
    struct tile_part *part = &g->tiles.part[i];
    int64_t ld = gpu_device_ld(accel_max(1, x->rows), x->dtype);
    *s = (struct slots){x,
                        gpu_in_place(x),
                        !x->array && x->stride == 0,
                        ld,
                        ld * accel_max(1, x->cols),
                        &part->memory};
    if (g->scaling && i != C) { /* zeros, m x 1 and 1 x n, shared: see kernel_gemm_strided() */
        int64_t zeros = i == A ? accel_max(1, g->call->blas.size[ACCEL_m]) : 1;
        *s = (struct slots){x, false, true, zeros, 0, &part->memory};
        return false;
    }
    *part = tile_part_of(x, NULL, i != C && s->shared ? NULL : &g->tiles.size);
    part->bytes = slot_bytes(s);
    if (part->bytes > 0)
        g->tiles.most = accel_min(g->tiles.most, tiles_panel(s->elements, gpu_size_of(x)));
    g->pointers = g->pointers || (s->in_place && x->array);
    return !s->in_place;
}

static enum gpu_status run_gemm_batch(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    struct batch g = {.tiles = {.work = work,
                                .most = accel_min(call->batch, KERNEL_BATCH_MOST),
                                .over = C,
                                .out = C,
                                .rows = 1,
                                .cols = call->batch,
                                .begin = begin,
                                .compute = run_load},
                      .work = work,
                      .call = call,
                      .scaling = accel_adds_nothing(call) || call->blas.size[ACCEL_k] == 0};
    static const enum accel_matrix operands[3] = {ACCEL_a, ACCEL_b, ACCEL_c};
    bool host = false;
    for (int i = A; i <= C; i++)
        host = set_slots(&g, i, &call->span[operands[i]]) || host;
    if (g.pointers)
        g.tiles.part[POINTERS] =
            (struct tile_part){.bytes = 3 * sizeof(gpu_address), .cols = &g.tiles.size};
    if (call->blas.size[ACCEL_m] == 0 || call->blas.size[ACCEL_n] == 0 || call->batch == 0 ||
        (g.scaling && accel_is_one(call->blas.scalar[ACCEL_beta])))
        return GPU_OK;
    if (!kernels_fit_call(call) || !kernels_fit(call->batch))
        return GPU_UNSUPPORTED;
    enum gpu_status status = tiles_prepare(&g.tiles);
    /* A load of two does not fit. */
    if (status == GPU_NO_MEMORY || (status == GPU_OK && host && g.tiles.size == 1)) {
        status = status == GPU_OK ? gpu_work_give_back(work) : GPU_OK;
        g.tiles.size = 1;
        g.tiles.begin = NULL;
        g.tiles.compute = run_product;
    }
    if (status == GPU_OK)
        status = tiles_compute(&g.tiles);
    free(g.staging);
    return status;
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

const struct accel_op op_gemm_batch = {.group = ACCEL_BATCH,
                                       BLAS_NOMINAL,
                                       .products = GPU_GEMM,
                                       .next = next_group,
                                       .largest = largest,
                                       .cuts = cuts,
                                       .run = run_gemm_batch,
                                       .scheduled = gemm_describe,
                                       .equation = equation_gemm};
