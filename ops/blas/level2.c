/*
 * Level 2: a matrix and one or two vectors.
 *
 * The vectors are whole on the device, the matrix comes in strips of columns: all rows of a rectangle, or those on
 * one side of the diagonal, so that a strip is a triangle and the rectangle beside it. A result vector is written
 * back at the end; a result matrix strip by strip, in an order in which the original can do what is left by one
 * call.
 */
#include <stdlib.h>
#include <string.h>

#include "blas.h"
#include "gpu/cuda/kernels.h"

/* A vector of the call. */
struct vector {
    const struct accel_operand *x; /* NULL: there is none */
    bool copied;                   /* the device has it in memory of its own, with inc = 1 */
    CUdeviceptr memory;
    struct gpu_vector at;
};

struct strip;

struct level2 {
    struct gpu_work *work;
    const struct accel_call *call;
    const struct accel_operand *a;
    struct vector x, y;
    struct vector *out; /* the result; NULL: it is A */
    enum gpu_status (*compute)(const struct level2 *g, const struct strip *s);
    bool whole;             /* a strip has all rows: A is no triangle */
    bool triangular, solve; /* trmv and trsv; trsv */
    bool lower;
    bool nothing_added; /* alpha is 0 */
    char trans;
    int64_t m, n;
    int64_t width; /* of a strip */
    CUdeviceptr memory_a;
};

/* A strip on the device: columns [col, col + width), rows [row, row + rows). In a triangle, `width` of them are those
 * on the diagonal, and the rest, from `beside` on, lies below (lower) or above. */
struct strip {
    int64_t col, width, row, rows;
    int64_t beside, rest;
    struct gpu_tile whole, triangle, rectangle;
    bool first;
};

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* ---- Memory ---- */

static int64_t vector_bytes(const struct vector *v)
{
    return v->x && v->copied ? v->x->cols * gpu_size_of(v->x) : 0;
}

static int plan_strips(void *plan, int64_t available, struct gpu_need need[WORK_BLOCKS])
{
    struct level2 *g = plan;
    int64_t vectors = vector_bytes(&g->x) + vector_bytes(&g->y);
    g->width = g->n;
    if (!g->out && !gpu_in_place(g->a)) {
        int64_t widest = gpu_work_panel(g->m, gpu_size_of(g->a));
        g->width = g->width < widest ? g->width : widest;
    }
    while (g->width > 1 && gpu_tile_bytes(g->a, g->m, g->width) > available - vectors)
        g->width = (g->width + 1) / 2;
    if (gpu_tile_bytes(g->a, g->m, g->width) > available - vectors)
        return -1;
    need[0] = (struct gpu_need){gpu_tile_bytes(g->a, g->m, g->width), &g->memory_a};
    need[1] = (struct gpu_need){vector_bytes(&g->x), &g->x.memory};
    need[2] = (struct gpu_need){vector_bytes(&g->y), &g->y.memory};
    return 3;
}

/* ---- Vectors ---- */

/* Elements [first, first + length) of a vector of n. */
static struct gpu_vector part_of(const struct level2 *g, const struct vector *v, int64_t first,
                                 int64_t length)
{
    struct gpu_vector part = v->at;
    int64_t skip = v->at.inc > 0 ? first : first + length - v->x->cols;
    part.ptr += (CUdeviceptr)(skip * v->at.inc * gpu_size_of(g->a));
    return part;
}

static enum gpu_status load_vector(struct level2 *g, struct vector *v)
{
    const struct accel_operand *x = v->x;
    if (!x)
        return GPU_OK;
    v->at = (struct gpu_vector){(CUdeviceptr)(uintptr_t)x->ptr, x->inc};
    if (!v->copied) {
        gpu_work_event(g->work, GPU_EVENT_IN_PLACE, x, 1, x->cols, accel_bytes(x));
        return GPU_OK;
    }
    struct gpu_vector own = {v->memory, 1}, there = v->at;
    v->at = own;
    if (!accel_is_read(g->call, x))
        return GPU_OK;
    return gpu_in_place(x) ? kernel_copy(g->work, x->cols, there, own)
                           : gpu_work_upload_vector(g->work, x, own.ptr);
}

static enum gpu_status store_vector(struct level2 *g, const struct vector *v)
{
    const struct accel_operand *x = v->x;
    struct gpu_vector there = {(CUdeviceptr)(uintptr_t)x->ptr, x->inc};
    enum gpu_status status = GPU_OK;
    if (!gpu_in_place(x))
        return gpu_work_write_vector(g->work, x, v->at.ptr);
    if (v->copied)
        status = kernel_copy(g->work, x->cols, v->at, there);
    return status == GPU_OK ? gpu_work_settle(g->work) : status;
}

/* ---- The operations: one strip ---- */

/* beta where the strip is the first to touch the result, 1 from then on. */
static struct accel_complex beta_of(const struct level2 *g, const struct strip *s)
{
    return s->first ? g->call->scalar[ACCEL_beta] : one;
}

/* Whether A, perhaps conjugated, is not transposed. */
static bool is_across(const struct level2 *g)
{
    return g->trans == 'N' || g->trans == 'R';
}

static enum gpu_status gemv_strip(const struct level2 *g, const struct strip *s)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha];
    bool across = is_across(g); /* every strip adds to all of y */
    struct gpu_vector x = across ? part_of(g, &g->x, s->col, s->width) : g->x.at;
    struct gpu_vector y = across ? g->y.at : part_of(g, &g->y, s->col, s->width);
    struct accel_complex beta = across ? beta_of(g, s) : g->call->scalar[ACCEL_beta];
    return kernel_gemv(g->work, g->trans, g->m, s->width, alpha, s->whole, x, beta, y);
}

static enum gpu_status ger_strip(const struct level2 *g, const struct strip *s)
{
    enum gpu_outer outer = !accel_op_of(g->call->routine)->conjugates ? GPU_PLAIN
                           : g->call->conjugated                      ? GPU_CONJUGATED_X
                                                                      : GPU_CONJUGATED_Y;
    return kernel_ger(g->work, outer, g->m, s->width, g->call->scalar[ACCEL_alpha], g->x.at,
                      part_of(g, &g->y, s->col, s->width), s->whole);
}

/* The rectangle R beside the triangle stands at its mirrored place, too. The first strip touches all of y. */
static enum gpu_status symv_strip(const struct level2 *g, const struct strip *s)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha], beta = beta_of(g, s);
    bool hermitian = accel_is_hermitian(g->call->routine), conjugated = g->call->conjugated;
    struct gpu_vector x = part_of(g, &g->x, s->col, s->width);
    struct gpu_vector y = part_of(g, &g->y, s->col, s->width);
    enum gpu_status status =
        kernel_symv(g->work, g->lower ? 'L' : 'U', s->width, alpha, s->triangle, x, beta, y);
    if (status != GPU_OK || s->rest == 0)
        return status;
    struct gpu_vector x_rest = part_of(g, &g->x, s->beside, s->rest);
    struct gpu_vector y_rest = part_of(g, &g->y, s->beside, s->rest);
    status = kernel_gemv(g->work, conjugated ? 'R' : 'N', s->rest, s->width, alpha, s->rectangle, x,
                         beta, y_rest);
    if (status != GPU_OK)
        return status;
    return kernel_gemv(g->work, hermitian && !conjugated ? 'C' : 'T', s->rest, s->width, alpha,
                       s->rectangle, x_rest, one, y);
}

/* trmv uses each element of x before it is overwritten, trsv once it has been solved: see ascending(). */
static enum gpu_status triangular_strip(const struct level2 *g, const struct strip *s)
{
    bool solve = g->solve, across = is_across(g);
    char uplo = g->lower ? 'L' : 'U', diag = g->call->flag[ACCEL_diag];
    struct gpu_vector x = part_of(g, &g->x, s->col, s->width);
    struct gpu_vector x_rest = part_of(g, &g->x, s->beside, s->rest);
    bool rectangle_first = solve != across; /* trmv N, trsv T */
    enum gpu_status status = GPU_OK;
    for (int step = 0; status == GPU_OK && step < 2; step++) {
        bool rectangle = (step == 0) == rectangle_first;
        if (!rectangle)
            status = solve ? kernel_trsv(g->work, uplo, g->trans, diag, s->width, s->triangle, x)
                           : kernel_trmv(g->work, uplo, g->trans, diag, s->width, s->triangle, x);
        else if (s->rest > 0)
            status = kernel_gemv(g->work, g->trans, s->rest, s->width, solve ? minus_one : one,
                                 s->rectangle, across ? x : x_rest, one, across ? x_rest : x);
    }
    return status;
}

static enum gpu_status syr_strip(const struct level2 *g, const struct strip *s)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha];
    enum gpu_outer outer = !accel_is_hermitian(g->call->routine) ? GPU_PLAIN
                           : g->call->conjugated                 ? GPU_CONJUGATED_X
                                                                 : GPU_CONJUGATED_Y;
    struct gpu_vector x = part_of(g, &g->x, s->col, s->width);
    enum gpu_status status =
        kernel_syr(g->work, g->lower ? 'L' : 'U', s->width, alpha, x, s->triangle);
    if (status != GPU_OK || s->rest == 0)
        return status;
    return kernel_ger(g->work, outer, s->rest, s->width, alpha,
                      part_of(g, &g->x, s->beside, s->rest), x, s->rectangle);
}

/* alpha x y^H + conj(alpha) y x^H; where A stands for its conjugate, each of the two has the other's alpha. */
static enum gpu_status syr2_strip(const struct level2 *g, const struct strip *s)
{
    struct accel_complex alpha = g->call->scalar[ACCEL_alpha], other = alpha, first = alpha;
    bool conjugated = g->call->conjugated, hermitian = accel_is_hermitian(g->call->routine);
    enum gpu_outer outer = !hermitian   ? GPU_PLAIN
                           : conjugated ? GPU_CONJUGATED_X
                                        : GPU_CONJUGATED_Y;
    if (hermitian)
        *(conjugated ? &first : &other) = accel_conjugate(alpha);
    struct gpu_vector x = part_of(g, &g->x, s->col, s->width);
    struct gpu_vector y = part_of(g, &g->y, s->col, s->width);
    enum gpu_status status =
        kernel_syr2(g->work, g->lower ? 'L' : 'U', s->width, alpha, x, y, s->triangle);
    if (status != GPU_OK || s->rest == 0)
        return status;
    status = kernel_ger(g->work, outer, s->rest, s->width, first,
                        part_of(g, &g->x, s->beside, s->rest), y, s->rectangle);
    if (status != GPU_OK)
        return status;
    return kernel_ger(g->work, outer, s->rest, s->width, other,
                      part_of(g, &g->y, s->beside, s->rest), x, s->rectangle);
}

/* ---- All strips ---- */

/* From the first column on, or from the last. */
static bool ascending(const struct level2 *g)
{
    bool across = is_across(g);
    return g->triangular ? (g->lower == across) == g->solve : g->whole || g->lower;
}

static struct gpu_tile below(const struct level2 *g, struct gpu_tile x, int64_t rows)
{
    x.ptr += (CUdeviceptr)(rows * gpu_size_of(g->a));
    return x;
}

/* *written: how many columns of a strip of the result are in place. */
static enum gpu_status run_strip(struct level2 *g, int64_t done, int64_t *written)
{
    struct strip s = {.width = g->width < g->n - done ? g->width : g->n - done, .first = done == 0};
    s.col = ascending(g) ? done : g->n - done - s.width;
    s.row = !g->whole && g->lower ? s.col : 0;
    s.rows = g->whole ? g->m : g->lower ? g->n - s.col : s.col + s.width;
    s.rest = s.rows - s.width;
    s.beside = g->lower ? s.col + s.width : 0;
    enum gpu_status status = gpu_work_tile(g->work, g->a, s.row, s.col, s.rows, s.width,
                                           g->memory_a, GPU_TILE_COPIED, &s.whole);
    if (status != GPU_OK)
        return status;
    s.triangle = below(g, s.whole, g->lower ? 0 : s.rest);
    s.rectangle = below(g, s.whole, g->lower ? s.width : 0);
    status = g->compute(g, &s);
    if (status != GPU_OK || g->out)
        return status;
    if (gpu_in_place(g->a))
        return gpu_work_settle(g->work);
    return gpu_work_write_columns(g->work, g->a, s.row, s.col, s.rows, s.width, s.whole,
                                  g->whole   ? 0
                                  : g->lower ? 'L'
                                             : 'U',
                                  written);
}

static void shorten(struct accel_operand *x, int64_t first, int64_t length)
{
    int64_t skip = x->inc > 0 ? first : first + length - x->cols;
    x->ptr = (char *)x->ptr + skip * x->inc * gpu_size_of(x);
    x->cols = length;
}

/* A's columns that are not done, by the original: the last ones, or of an upper triangle the first. */
static bool rest_by_original(const struct level2 *g, int64_t done)
{
    struct accel_call part = *g->call;
    struct accel_operand *a = &part.operand[ACCEL_a];
    int64_t first = ascending(g) ? done : 0, length = g->n - done;
    part.size[ACCEL_n] = a->cols = length;
    a->ptr = gpu_element(a, g->whole ? 0 : first, first);
    if (!g->whole) {
        a->rows = length;
        shorten(&part.operand[ACCEL_x], first, length);
    }
    if (g->y.x)
        shorten(&part.operand[ACCEL_y], first, length);
    return gpu_work_by_original(g->work, &part);
}

/* y := beta y, without reading anything else. */
static enum gpu_status scale(const struct level2 *g)
{
    CUdeviceptr zeros;
    enum gpu_status status = kernel_zeros(g->work, g->y.x->cols, &zeros);
    return status == GPU_OK ? kernel_scale(g->work, 1, g->y.x->cols, g->call->scalar[ACCEL_beta],
                                           zeros, (struct gpu_tile){g->y.at.ptr, g->y.at.inc})
                            : status;
}

static enum gpu_status run_strips(struct level2 *g)
{
    enum gpu_status status = load_vector(g, &g->x);
    if (status == GPU_OK)
        status = load_vector(g, &g->y);
    g->work->launched = false; /* into memory of our own */
    int64_t done = 0;
    if (status == GPU_OK && g->nothing_added) {
        status = scale(g);
        done = status == GPU_OK ? g->n : 0;
    }
    while (status == GPU_OK && done < g->n) {
        int64_t written = 0;
        status = run_strip(g, done, &written);
        if (status == GPU_OK)
            written = g->width < g->n - done ? g->width : g->n - done;
        done += written;
    }
    if (g->out && g->out->copied) /* what kernels wrote was ours */
        g->work->launched = false;
    if (status == GPU_OK && g->out)
        status = store_vector(g, g->out);
    if (status == GPU_OK)
        return GPU_OK;
    if (gpu_in_place(g->out ? g->out->x : g->a) && g->work->launched)
        return GPU_LOST;
    if (g->out || done == 0)
        return status; /* nothing was written */
    return rest_by_original(g, done) ? gpu_finished_else(status) : GPU_LOST;
}

/* Level 3 wants them in the order of their elements. */
static struct vector vector_of(const struct level2 *g, enum accel_matrix which)
{
    const struct accel_operand *x = &g->call->operand[which];
    bool by_rows = g->call->conjugated || g->trans == 'R' || g->nothing_added;
    return (struct vector){.x = x->inc ? x : NULL,
                           .copied = !gpu_in_place(x) || (by_rows && x->inc < 0)};
}

/* `how`: how strips are taken and computed. */
static enum gpu_status run_level2(struct gpu_work *work, struct level2 how)
{
    const struct accel_call *call = work->call;
    struct level2 g = {.work = work,
                       .call = call,
                       .a = &call->operand[ACCEL_a],
                       .compute = how.compute,
                       .whole = how.whole,
                       .triangular = how.triangular,
                       .solve = how.solve,
                       .lower = call->flag[ACCEL_uplo] == 'L',
                       .nothing_added = accel_adds_nothing(call),
                       .trans = call->flag[ACCEL_trans]};
    g.x = vector_of(&g, ACCEL_x);
    g.y = vector_of(&g, ACCEL_y);
    g.m = g.a->rows;
    g.n = g.a->cols;
    if (!(g.a->access & ACCEL_WRITE))
        g.out = g.y.x ? &g.y : &g.x;
    else if (g.nothing_added)
        return GPU_OK;
    if (g.m == 0 || g.n == 0 || (g.nothing_added && accel_is_one(call->scalar[ACCEL_beta])))
        return GPU_OK;
    if (!kernels_fit_call(call))
        return GPU_UNSUPPORTED;
    enum gpu_status status = gpu_work_prepare(work, plan_strips, &g);
    return status == GPU_OK ? run_strips(&g) : status;
}

static enum gpu_status run_gemv(struct gpu_work *work)
{
    return run_level2(work, (struct level2){.compute = gemv_strip, .whole = true});
}

static enum gpu_status run_symv(struct gpu_work *work)
{
    return run_level2(work, (struct level2){.compute = symv_strip});
}

static enum gpu_status run_trmv(struct gpu_work *work)
{
    return run_level2(work, (struct level2){.compute = triangular_strip, .triangular = true});
}

static enum gpu_status run_trsv(struct gpu_work *work)
{
    return run_level2(
        work, (struct level2){.compute = triangular_strip, .triangular = true, .solve = true});
}

static enum gpu_status run_ger(struct gpu_work *work)
{
    return run_level2(work, (struct level2){.compute = ger_strip, .whole = true});
}

static enum gpu_status run_syr(struct gpu_work *work)
{
    return run_level2(work, (struct level2){.compute = syr_strip});
}

static enum gpu_status run_syr2(struct gpu_work *work)
{
    return run_level2(work, (struct level2){.compute = syr2_strip});
}

#define LEVEL_2  .group = ACCEL_LEVEL_2, .moves = true, BLAS_NOMINAL
#define TRIANGLE LEVEL_2, .triangles = 1 << ACCEL_a

const struct accel_op op_gemv = {LEVEL_2, .run = run_gemv, .equation = equation_gemv};
const struct accel_op op_symv = {LEVEL_2, .run = run_symv, .equation = equation_symv};
const struct accel_op op_hemv = {LEVEL_2, .hermitian = true, .run = run_symv,
                                 .equation = equation_symv};
const struct accel_op op_trmv = {LEVEL_2, .run = run_trmv, .equation = equation_trmv};
const struct accel_op op_trsv = {LEVEL_2, .run = run_trsv, .equation = equation_trsv};
const struct accel_op op_ger = {LEVEL_2, .run = run_ger, .equation = equation_ger};
const struct accel_op op_gerc = {LEVEL_2, .conjugates = true, .run = run_ger,
                                 .equation = equation_ger};
const struct accel_op op_syr = {TRIANGLE, .run = run_syr, .equation = equation_syr};
const struct accel_op op_her = {TRIANGLE, .hermitian = true, .run = run_syr,
                                .equation = equation_syr};
const struct accel_op op_syr2 = {TRIANGLE, .run = run_syr2, .equation = equation_syr2};
const struct accel_op op_her2 = {TRIANGLE, .hermitian = true, .run = run_syr2,
                                 .equation = equation_syr2};
