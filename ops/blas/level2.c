/*
 * Level 2: a matrix and one or two vectors.
 *
 * The vectors are whole on the device, the matrix comes in strips of columns: all rows of a
 * rectangle, or those on one side of the diagonal, which are a triangle and the rectangle beside
 * it. A result vector is written back at the end; a result matrix strip by strip, in an order in
 * which the original can do the rest by one call.
 */
#include "blas.h"
#include "gpu/exec/blas/level2.h"

/* The operands' parts. */
enum { A, X, Y };

struct matrix_vector {
    struct level2 level2;
    struct gpu_work *work;
    const struct accel_call *call;
    enum gpu_status (*strip)(const struct matrix_vector *g, const struct level2_strip *s);
    bool whole;             /* a strip has all rows: A is not a triangle */
    bool triangular, solve; /* trmv and trsv; trsv */
    struct dmat x, y;       /* on the device: the program's own, or copies with ld = 1 */
    bool lower;
    bool nothing_added; /* alpha is 0 */
    char trans;
    int64_t m;
};

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* ---- Vectors ---- */

/* Returns elements [first, first + length) of a vector. */
static struct dmat part_of_vector(const struct matrix_vector *g, int which, int64_t first,
                                  int64_t length)
{
    struct dmat part = which == X ? g->x : g->y;
    const struct accel_span *x = g->level2.part[which].x;
    int64_t skip = part.ld > 0 ? first : first + length - x->cols;
    part.ptr += (gpu_address)(skip * part.ld * gpu_size_of(x));
    return part;
}

static struct dmat in_place_vector(const struct accel_span *x)
{
    return (struct dmat){(gpu_address)(uintptr_t)x->ptr, x->inc};
}

static enum gpu_status load_vector(struct matrix_vector *g, int which, struct dmat *v)
{
    const struct level2_part *part = &g->level2.part[which];
    const struct accel_span *x = part->x;
    struct dmat tile;
    if (!x)
        return GPU_OK;
    *v = (struct dmat){part->memory, 1};
    if (gpu_in_place(x) && part->aside)
        return accel_is_read(g->call, x)
                   ? gpu_kernels(g->work)->copy(g->work, x->cols, in_place_vector(x), *v)
                   : GPU_OK;
    if (gpu_in_place(x))
        *v = in_place_vector(x);
    return level2_load(&g->level2, which, 0, 0, 1, x->cols, &tile);
}

/* Writes the result back, if it is a vector. */
static enum gpu_status store_vector(struct level2 *t)
{
    struct matrix_vector *g = (struct matrix_vector *)t;
    const struct level2_part *part = &t->part[t->out];
    enum gpu_status status = GPU_OK;
    if (t->out == A)
        return GPU_OK;
    if (!gpu_in_place(part->x))
        return level2_write_vector(t, t->out);
    if (part->aside)
        status = gpu_kernels(g->work)->copy(g->work, part->x->cols, t->out == X ? g->x : g->y,
                                            in_place_vector(part->x));
    return status == GPU_OK ? gpu_work_settle(g->work) : status;
}

/* Notes that kernels have written only to our own memory, if the result is aside. */
static enum gpu_status aside(struct matrix_vector *g, enum gpu_status status)
{
    if (g->level2.part[g->level2.out].aside)
        g->work->launched = false;
    return status;
}

/* ---- The operations: one strip ---- */

/* Returns beta in the first strip, 1 in those that add to its result. */
static struct accel_complex beta_of(const struct matrix_vector *g, const struct level2_strip *s)
{
    return s->first ? g->call->blas.scalar[ACCEL_beta] : one;
}

/* Returns whether A, perhaps conjugated, is not transposed. */
static bool is_across(const struct matrix_vector *g)
{
    return g->trans == 'N' || g->trans == 'R';
}

static enum gpu_status gemv_strip(const struct matrix_vector *g, const struct level2_strip *s)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    bool across = is_across(g); /* every strip adds to all of y */
    struct dmat x = across ? part_of_vector(g, X, s->col, s->cols) : g->x;
    struct dmat y = across ? g->y : part_of_vector(g, Y, s->col, s->cols);
    struct accel_complex beta = across ? beta_of(g, s) : g->call->blas.scalar[ACCEL_beta];
    return gpu_kernels(g->work)->gemv(g->work, g->trans, g->m, s->cols, alpha, s->at, x, beta, y);
}

static enum gpu_status ger_strip(const struct matrix_vector *g, const struct level2_strip *s)
{
    enum gpu_outer outer = !g->call->op->traits.conjugates ? GPU_PLAIN
                           : g->call->blas.conjugated      ? GPU_CONJUGATED_X
                                                           : GPU_CONJUGATED_Y;
    return gpu_kernels(g->work)->ger(g->work, outer, g->m, s->cols,
                                     g->call->blas.scalar[ACCEL_alpha], g->x,
                                     part_of_vector(g, Y, s->col, s->cols), s->at);
}

/* The rectangle beside the triangle counts a second time, mirrored. The first strip touches all of
 * y. */
static enum gpu_status symv_strip(const struct matrix_vector *g, const struct level2_strip *s)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha], beta = beta_of(g, s);
    bool hermitian = accel_is_hermitian(g->call->routine), conjugated = g->call->blas.conjugated;
    struct dmat x = part_of_vector(g, X, s->col, s->cols);
    struct dmat y = part_of_vector(g, Y, s->col, s->cols);
    enum gpu_status status = gpu_kernels(g->work)->symv(g->work, g->lower ? 'L' : 'U', s->cols,
                                                        alpha, s->triangle, x, beta, y);
    if (status != GPU_OK || s->rest == 0)
        return status;
    struct dmat x_rest = part_of_vector(g, X, s->beside, s->rest);
    struct dmat y_rest = part_of_vector(g, Y, s->beside, s->rest);
    status = gpu_kernels(g->work)->gemv(g->work, conjugated ? 'R' : 'N', s->rest, s->cols, alpha,
                                        s->rectangle, x, beta, y_rest);
    if (status != GPU_OK)
        return status;
    return gpu_kernels(g->work)->gemv(g->work, hermitian && !conjugated ? 'C' : 'T', s->rest,
                                      s->cols, alpha, s->rectangle, x_rest, one, y);
}

/* trmv uses each element of x before it overwrites it, trsv once it has solved it: see
 * ascending(). */
static enum gpu_status triangular_strip(const struct matrix_vector *g, const struct level2_strip *s)
{
    bool solve = g->solve, across = is_across(g);
    char uplo = g->lower ? 'L' : 'U', diag = g->call->blas.flag[ACCEL_diag];
    struct dmat x = part_of_vector(g, X, s->col, s->cols);
    struct dmat x_rest = part_of_vector(g, X, s->beside, s->rest);
    bool rectangle_first = solve != across; /* trmv N, trsv T */
    enum gpu_status status = GPU_OK;
    for (int step = 0; status == GPU_OK && step < 2; step++) {
        bool rectangle = (step == 0) == rectangle_first;
        if (!rectangle)
            status = solve ? gpu_kernels(g->work)->trsv(g->work, uplo, g->trans, diag, s->cols,
                                                        s->triangle, x)
                           : gpu_kernels(g->work)->trmv(g->work, uplo, g->trans, diag, s->cols,
                                                        s->triangle, x);
        else if (s->rest > 0)
            status = gpu_kernels(g->work)->gemv(g->work, g->trans, s->rest, s->cols,
                                                solve ? minus_one : one, s->rectangle,
                                                across ? x : x_rest, one, across ? x_rest : x);
    }
    return status;
}

static enum gpu_status syr_strip(const struct matrix_vector *g, const struct level2_strip *s)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha];
    enum gpu_outer outer = !accel_is_hermitian(g->call->routine) ? GPU_PLAIN
                           : g->call->blas.conjugated            ? GPU_CONJUGATED_X
                                                                 : GPU_CONJUGATED_Y;
    struct dmat x = part_of_vector(g, X, s->col, s->cols);
    enum gpu_status status =
        gpu_kernels(g->work)->syr(g->work, g->lower ? 'L' : 'U', s->cols, alpha, x, s->triangle);
    if (status != GPU_OK || s->rest == 0)
        return status;
    return gpu_kernels(g->work)->ger(g->work, outer, s->rest, s->cols, alpha,
                                     part_of_vector(g, X, s->beside, s->rest), x, s->rectangle);
}

/* alpha x y^H + conj(alpha) y x^H; if A stands for its conjugate, the two exchange their alphas. */
static enum gpu_status syr2_strip(const struct matrix_vector *g, const struct level2_strip *s)
{
    struct accel_complex alpha = g->call->blas.scalar[ACCEL_alpha], other = alpha, first = alpha;
    bool conjugated = g->call->blas.conjugated, hermitian = accel_is_hermitian(g->call->routine);
    enum gpu_outer outer = !hermitian   ? GPU_PLAIN
                           : conjugated ? GPU_CONJUGATED_X
                                        : GPU_CONJUGATED_Y;
    if (hermitian)
        *(conjugated ? &first : &other) = accel_conjugate(alpha);
    struct dmat x = part_of_vector(g, X, s->col, s->cols);
    struct dmat y = part_of_vector(g, Y, s->col, s->cols);
    enum gpu_status status = gpu_kernels(g->work)->syr2(g->work, g->lower ? 'L' : 'U', s->cols,
                                                        alpha, x, y, s->triangle);
    if (status != GPU_OK || s->rest == 0)
        return status;
    status = gpu_kernels(g->work)->ger(g->work, outer, s->rest, s->cols, first,
                                       part_of_vector(g, X, s->beside, s->rest), y, s->rectangle);
    if (status != GPU_OK)
        return status;
    return gpu_kernels(g->work)->ger(g->work, outer, s->rest, s->cols, other,
                                     part_of_vector(g, Y, s->beside, s->rest), x, s->rectangle);
}

/* ---- All strips ---- */

static enum gpu_status compute_strip(struct level2 *t, struct level2_strip *strip)
{
    struct matrix_vector *g = (struct matrix_vector *)t;
    return aside(g, g->strip(g, strip));
}

/* Returns whether strips go from the first column to the last. */
static bool ascending(const struct matrix_vector *g)
{
    bool across = is_across(g);
    return g->triangular ? (g->lower == across) == g->solve : g->whole || g->lower;
}

/* y := beta y, without reading anything else. */
static enum gpu_status scale(struct matrix_vector *g)
{
    gpu_address zeros;
    int64_t n = g->level2.part[Y].x->cols;
    enum gpu_status status = kernels_zeros(g->work, n, &zeros);
    return status == GPU_OK
               ? kernels_scale(g->work, 1, n, g->call->blas.scalar[ACCEL_beta], zeros, g->y)
               : status;
}

static enum gpu_status begin_matrix_vector(struct level2 *t)
{
    struct matrix_vector *g = (struct matrix_vector *)t;
    enum gpu_status status = load_vector(g, X, &g->x);
    if (status == GPU_OK)
        status = load_vector(g, Y, &g->y);
    g->work->launched = false; /* kernels have written only to our own memory */
    return status == GPU_OK && g->nothing_added ? aside(g, scale(g)) : status;
}

/* Sets up a vector's part. Level 3's kernels want vectors in the order of their elements. */
static void set_vector(struct matrix_vector *g, int which, const struct accel_span *x)
{
    static const int64_t one_row = 1;
    bool by_rows = g->call->blas.conjugated || g->trans == 'R' || g->nothing_added;
    if (!x->inc)
        return;
    g->level2.part[which] = level2_part_of(x, &one_row, &x->cols);
    g->level2.part[which].aside = gpu_in_place(x) && by_rows && x->inc < 0;
}

/* how: the fields strip, whole, triangular and solve. */
static enum gpu_status run_once(struct gpu_work *work, struct matrix_vector how)
{
    const struct accel_call *call = work->call;
    const struct accel_span *a = &call->span[ACCEL_a];
    bool updates = a->access & ACCEL_WRITE, nothing_added = accel_adds_nothing(call);
    if (a->rows == 0 || a->cols == 0 ||
        (nothing_added && (updates || accel_is_one(call->blas.scalar[ACCEL_beta]))))
        return GPU_OK;
    if (!kernels_fit(work, call))
        return GPU_UNSUPPORTED;
    int64_t widest = updates && !gpu_in_place(a) ? level2_panel(a->rows, gpu_size_of(a)) : a->cols;
    struct matrix_vector g = {.level2 = {.work = work,
                                         .most = accel_min(a->cols, widest),
                                         .over = A,
                                         .out = updates                   ? A
                                                : call->span[ACCEL_y].inc ? Y
                                                                          : X,
                                         .rows = a->rows,
                                         .cols = nothing_added ? 0 : a->cols,
                                         .uplo = how.whole ? 0 : call->blas.flag[ACCEL_uplo],
                                         .begin = begin_matrix_vector,
                                         .compute = compute_strip,
                                         .end = store_vector},
                              .work = work,
                              .call = call,
                              .strip = how.strip,
                              .whole = how.whole,
                              .triangular = how.triangular,
                              .solve = how.solve,
                              .lower = call->blas.flag[ACCEL_uplo] == 'L',
                              .nothing_added = nothing_added,
                              .trans = call->blas.flag[ACCEL_trans],
                              .m = a->rows};
    g.level2.descending = !ascending(&g);
    g.level2.part[A] = level2_part_of(a, &g.m, &g.level2.size);
    set_vector(&g, X, &call->span[ACCEL_x]);
    set_vector(&g, Y, &call->span[ACCEL_y]);
    return level2_run(&g.level2);
}

static enum gpu_status run_level2(struct gpu_work *work, struct matrix_vector how)
{
    const int64_t cached_bytes = work->host->cached_bytes;
    enum gpu_status status = run_once(work, how);
    return device_cache_runs_again(work, cached_bytes, &status) ? run_once(work, how) : status;
}

#define RUN(name, ...)                                                                             \
    static enum gpu_status run_##name(struct gpu_work *work)                                       \
    {                                                                                              \
        return run_level2(work, (struct matrix_vector){__VA_ARGS__});                              \
    }
RUN(gemv, .strip = gemv_strip, .whole = true)
RUN(symv, .strip = symv_strip)
RUN(trmv, .strip = triangular_strip, .triangular = true)
RUN(trsv, .strip = triangular_strip, .triangular = true, .solve = true)
RUN(ger, .strip = ger_strip, .whole = true)
RUN(syr, .strip = syr_strip)
RUN(syr2, .strip = syr2_strip)

#define LEVEL_2(run_call, equation_of, ...)                                                        \
    {                                                                                              \
        OP_TRAITS(.group = ACCEL_LEVEL_2, .moves = true, __VA_ARGS__),                             \
            .cost = &blas_cost, OP_RULES(.equation = (equation_of)), OP_GPU(.run = (run_call))     \
    }
#define TRIANGLE .triangles = 1 << ACCEL_a

const struct accel_op op_gemv = LEVEL_2(run_gemv, equation_gemv);
const struct accel_op op_symv = LEVEL_2(run_symv, equation_symv);
const struct accel_op op_hemv = LEVEL_2(run_symv, equation_symv, .hermitian = true);
const struct accel_op op_trmv = LEVEL_2(run_trmv, equation_trmv);
const struct accel_op op_trsv = LEVEL_2(run_trsv, equation_trsv);
const struct accel_op op_ger = LEVEL_2(run_ger, equation_ger);
const struct accel_op op_gerc = LEVEL_2(run_ger, equation_ger, .conjugates = true);
const struct accel_op op_syr = LEVEL_2(run_syr, equation_syr, TRIANGLE);
const struct accel_op op_her = LEVEL_2(run_syr, equation_syr, TRIANGLE, .hermitian = true);
const struct accel_op op_syr2 = LEVEL_2(run_syr2, equation_syr2, TRIANGLE);
const struct accel_op op_her2 = LEVEL_2(run_syr2, equation_syr2, TRIANGLE, .hermitian = true);
