/*
 * Solves problems: where the kernel matrix of all rows fits the device, it is computed once, by
 * BLAS, and all problems use it. Where it does not, or where the rows are too sparse for that, each
 * problem keeps rows of its own, which the kernel computes when it needs them.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "smo_steps.h"

/* Iterations for each launch: a fraction of a second. */
#define LAUNCH_ITERATIONS 20000

/* Kernels count variables, and some beyond, as int. */
#define VARIABLES_MOST (1 << 30)

/* Rows of the kernel matrix that a problem must be able to keep: those of two batches, and some. */
#define SLOTS_LEAST 64

/* Columns of kernel values in double that are on the device beside the matrix of floats. */
#define CHUNK_BYTES ((int64_t)256 << 20)

/* CSR with fewer elements than one in so many is not made dense: BLAS multiplies about so much
 * faster than svm_products_sparse(). */
#define SPARSE 32

struct smo_plan {
    struct smo *s;
    const struct smo_matrix *x;
    struct svm_rows rows;
    struct smo_problem *problem;
    int64_t count;
    bool by_rows;
    const char *kernel;
    struct gpu_fit fit;
    unsigned shared_bytes;
    int64_t blocks; /* for each problem; 1: problems run side by side */

    struct smo_columns *columns; /* of each problem */
    int32_t *of;                 /* what columns[].of point into */
    int32_t *column_of; /* of each row, its column in the problem that is looked at, or -1 */

    /* Device memory, in this order: a number for barriers, the tasks, inputs, alphas, gradients,
     * the rest. Inputs and alphas go up at once, alphas and gradients come down. */
    gpu_address memory;
    char *image; /* of the memory up to the gradients */
    struct smo_task *task;
    int64_t tasks_at, up_at, alpha_at, gradient_at, end;

    gpu_address k; /* the kernel matrix, or memory for rows of it */
    int64_t k_floats;
};

/* ---- Columns ---- */

/* Numbers the rows of a problem in the order of its variables. Returns how many there are. */
static int64_t number_columns(const struct smo_plan *plan, const struct smo_problem *p, int32_t *of,
                              int32_t *row)
{
    int64_t count = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int32_t *column = &plan->column_of[p->row[i]];
        if (*column < 0) {
            row[count] = p->row[i];
            *column = (int32_t)count++;
        }
        of[i] = *column;
    }
    for (int64_t c = 0; c < count; c++)
        plan->column_of[row[c]] = -1;
    return count;
}

/* ---- Memory ---- */

/* Returns the place of a further part of the memory, of `count` elements. */
static int64_t part(int64_t *end, int64_t count, int64_t size)
{
    const int64_t at = *end;
    *end += (count * size + 63) / 64 * 64;
    return at;
}

/* Copies an array of the host to a further part of the memory, once there is an image; returns its
 * address. */
static gpu_address put_array(struct smo_plan *plan, const void *from, int64_t count, int64_t size)
{
    const int64_t at = part(&plan->end, count, size);
    if (plan->image && from)
        memcpy(plan->image + at, from, (size_t)(count * size));
    return plan->memory + (gpu_address)at;
}

/* Puts the variables whose alpha is not 0 in the image. */
static void put_started(struct smo_plan *plan, const struct smo_problem *p, struct smo_task *t)
{
    t->started = put_array(plan, NULL, p->n, 4);
    t->starts = 0;
    for (int64_t i = 0; i < p->n && plan->image; i++)
        if (p->alpha[i] != 0)
            ((int32_t *)(plan->image + (t->started - plan->memory)))[t->starts++] = (int32_t)i;
}

static int64_t iterations_of(const struct smo_problem *p)
{
    const int64_t own = accel_max(10000000, accel_min(100 * p->n, INT32_MAX));
    return p->max_iterations >= 0 ? accel_min(p->max_iterations, own) : own;
}

/* The inputs of a problem. */
static void lay_up(struct smo_plan *plan, const struct smo_problem *p, struct smo_columns *c,
                   struct smo_task *t)
{
    *t = (struct smo_task){.n = p->n, .eps = p->eps, .nu = p->nu, .most = iterations_of(p)};
    t->y = put_array(plan, p->y, p->n, 1);
    t->p = put_array(plan, p->p, p->n, 8);
    t->c = put_array(plan, p->c, p->n, 8);
    put_started(plan, p, t);
    const gpu_address row = put_array(plan, NULL, p->n, 4);
    int32_t *rows = plan->image ? (int32_t *)(plan->image + (row - plan->memory)) : NULL;
    if (rows)
        c->count = number_columns(plan, p, (int32_t *)(uintptr_t)c->of, rows);
    c->row = row;
    t->columns = plan->by_rows ? c->count : plan->x->rows;
    t->row = plan->by_rows ? row : 0;
    t->column = put_array(plan, plan->by_rows ? c->of : p->row, p->n, 4);
    if (plan->by_rows) {
        t->slot = put_array(plan, NULL, p->n, 4);
        if (plan->image)
            memset(plan->image + (t->slot - plan->memory), 0xff, (size_t)p->n * 4);
    }
}

/* What the device alone uses. */
static void lay_rest(struct smo_plan *plan, const struct smo_problem *p, struct smo_task *t)
{
    t->diagonal = put_array(plan, NULL, p->n, 8);
    t->state = put_array(plan, NULL, p->n, 1);
    t->pick = put_array(plan, NULL, SMO_ROLES * plan->blocks, sizeof(struct smo_pick));
    if (!plan->by_rows)
        return;
    t->wish = put_array(plan, NULL, 2 * SMO_WISHES * plan->blocks, sizeof(struct smo_pick));
    t->batch = put_array(plan, NULL, 1, sizeof(struct smo_batch));
    t->holder = put_array(plan, NULL, p->n, 4);
    t->used = put_array(plan, NULL, p->n, 8);
}

/* Goes over the memory: before there is any, to find out how much; then fills in the tasks and the
 * image. */
static void lay_out(struct smo_plan *plan)
{
    plan->end = 64; /* the number for barriers */
    plan->tasks_at = part(&plan->end, plan->count, sizeof(struct smo_task));
    plan->up_at = plan->end;
    for (int64_t i = 0; i < plan->count; i++)
        lay_up(plan, &plan->problem[i], &plan->columns[i], &plan->task[i]);
    plan->alpha_at = plan->end;
    for (int64_t i = 0; i < plan->count; i++)
        plan->task[i].alpha = put_array(plan, plan->problem[i].alpha, plan->problem[i].n, 8);
    plan->gradient_at = plan->end;
    for (int64_t i = 0; i < plan->count; i++)
        plan->task[i].gradient = put_array(plan, NULL, plan->problem[i].n, 8);
    for (int64_t i = 0; i < plan->count; i++)
        lay_rest(plan, &plan->problem[i], &plan->task[i]);
}

/* Returns the bytes that the check needs, at most. */
static int64_t check_bytes(const struct smo_plan *plan)
{
    int64_t n = 0;
    for (int64_t i = 0; i < plan->count; i++)
        n += plan->problem[i].n;
    return n * 40 + plan->count * 1024 + (1 << 16);
}

static void write_tasks(struct smo_plan *plan, int64_t first, int64_t count)
{
    const int64_t size = sizeof *plan->task;
    smo_write(plan->s, plan->memory + (gpu_address)(plan->tasks_at + first * size),
              &plan->task[first], count * size);
}

/* ---- Where the kernel matrix fits ---- */

static bool is_too_sparse(const struct smo_matrix *x)
{
    return x->start && (double)x->stored * SPARSE < (double)x->rows * (double)x->features;
}

static int64_t chunk_columns(const struct smo_matrix *x)
{
    return accel_min(x->rows, accel_max(16, CHUNK_BYTES / (8 * x->rows)));
}

/* Returns the bytes that blocks can have. The pool rounds each block up, by an eighth at most. */
static int64_t usable(const struct smo_plan *plan)
{
    return gpu_memory(plan->s->work)->available(plan->s->work) / 9 * 8;
}

/* Returns whether the kernel matrix fits beside all else. */
static bool matrix_fits(const struct smo_plan *plan)
{
    const struct smo_matrix *x = plan->x;
    const double rows = (double)x->rows;
    const double k = 4 * rows * (double)gpu_device_ld(x->rows, ACCEL_FLOAT32);
    const double chunk = 8 * rows * (double)chunk_columns(x);
    const double dense = x->start ? 8 * rows * (double)(x->features + 16) : 0;
    const double all = k + chunk + dense + (double)plan->end + (double)check_bytes(plan);
    return all < (double)usable(plan);
}

static void compute_matrix(struct smo_plan *plan)
{
    struct smo *s = plan->s;
    const int64_t ld = gpu_device_ld(plan->x->rows, ACCEL_FLOAT32);
    const gpu_address bad =
        plan->memory + (gpu_address)plan->tasks_at + offsetof(struct smo_task, bad);
    plan->k = smo_take(s, plan->x->rows * ld * 4);
    const struct smo_matrix dense = plan->x->start ? smo_densify(s, &plan->rows) : *plan->x;
    for (int64_t i = 0; i < plan->count; i++) {
        plan->task[i].k = plan->k;
        plan->task[i].ld = ld;
    }
    write_tasks(plan, 0, plan->count);
    smo_kernel_matrix(s, &plan->rows, &dense, plan->k, ld, chunk_columns(plan->x), bad);
}

/* ---- Where it does not ---- */

static int64_t row_floats(const struct smo_columns *c)
{
    return gpu_device_ld(c->count, ACCEL_FLOAT32);
}

/* Returns how many problems from the first on can keep all their rows, or 1, which keeps as many as
 * fit; with their places. */
static int64_t place_rows(struct smo_plan *plan, int64_t first)
{
    int64_t floats = 0, i = first;
    for (; i < plan->count; i++) {
        const int64_t ld = row_floats(&plan->columns[i]), all = ld * plan->columns[i].count;
        struct smo_task *t = &plan->task[i];
        if (i > first && floats + all > plan->k_floats)
            break;
        t->ld = ld;
        t->slots = accel_min(plan->columns[i].count, plan->k_floats / ld);
        t->k = plan->k + (gpu_address)(floats * 4);
        if (t->slots < accel_min(plan->columns[i].count, SLOTS_LEAST))
            smo_note(plan->s, GPU_NO_MEMORY);
        floats += all;
    }
    return i - first;
}

/* Takes memory for rows of all problems, or as much as there is. */
static void take_rows(struct smo_plan *plan)
{
    double floats = 0;
    for (int64_t i = 0; i < plan->count; i++)
        floats += (double)row_floats(&plan->columns[i]) * (double)plan->columns[i].count;
    const int64_t most = accel_max(0, usable(plan) - check_bytes(plan)) / 4;
    plan->k_floats = floats < (double)most ? (int64_t)floats : most;
    plan->k = smo_take(plan->s, plan->k_floats * 4);
}

/* ---- The grid ---- */

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Returns how many blocks a problem gets. By estimates for an H100, in units of 0.36 microseconds
 * of an iteration: a pass over a variable for each thread takes one, a barrier between blocks 5. A
 * problem that computes rows needs many processors for that. */
static int64_t blocks_for(const struct smo_plan *plan)
{
    int64_t most = 0, in_turn = 0;
    for (int64_t i = 0; i < plan->count; i++) {
        const int64_t passes = quotient_up(plan->problem[i].n, plan->fit.threads);
        most = accel_max(most, passes);
        in_turn += 15 + accel_min(passes, 4);
    }
    const int64_t side_by_side = quotient_up(plan->count, plan->fit.together) * (5 + most);
    if (plan->by_rows ? plan->count * 12 > plan->fit.processors : side_by_side <= in_turn)
        return 1;
    return accel_min(plan->fit.together, plan->by_rows ? most : quotient_up(most, 4));
}

static void choose_kernel(struct smo_plan *plan)
{
    const unsigned threads = plan->by_rows ? SMO_ROWS_THREADS : SMO_MATRIX_THREADS;
    plan->kernel = plan->by_rows ? "smo_solve_rows" : "smo_solve_matrix";
    plan->shared_bytes = SMO_SHARED_BYTES(threads);
    if (smo_note(plan->s,
                 gpu_own(plan->s->work)
                     ->fit(plan->s->work, plan->kernel, threads, plan->shared_bytes, &plan->fit)))
        plan->blocks = blocks_for(plan);
}

/* ---- Solving ---- */

/* Returns whether a problem goes on; notes those with values that are not finite. */
static bool goes_on(struct smo_plan *plan, int64_t first, int64_t count)
{
    bool any = false;
    for (int64_t i = first; i < first + count; i++) {
        any = any || plan->task[i].end == SMO_GOES_ON;
        if (plan->task[i].end == SMO_NOT_FINITE || plan->task[0].bad)
            smo_note(plan->s, GPU_UNSUPPORTED);
    }
    return any;
}

static int64_t iterations_so_far(const struct smo_plan *plan)
{
    int64_t iterations = 0;
    for (int64_t i = 0; i < plan->count; i++)
        iterations += plan->task[i].iterations;
    return iterations;
}

/* Solves problems whose tasks are on the device. */
static void solve_some(struct smo_plan *plan, int64_t first, int64_t count)
{
    struct smo *s = plan->s;
    const int64_t size = sizeof(struct smo_task);
    gpu_address arrived = plan->memory;
    gpu_address tasks = plan->memory + (gpu_address)(plan->tasks_at + first * size);
    int together = plan->blocks > 1;
    int64_t limit = LAUNCH_ITERATIONS;
    struct gpu_grid grid = {(unsigned)(together ? plan->blocks : count), 1, plan->fit.threads,
                            plan->shared_bytes, together};
    do {
        const int64_t before = iterations_so_far(plan);
        if (together && s->status == GPU_OK)
            smo_note(s, gpu_memory(s->work)->zero(s->work, arrived, 8));
        smo_launch(s, plan->kernel, grid,
                   (void *[]){&tasks, &s->kernel, &plan->rows, &together, &limit, &arrived});
        smo_read(s, &plan->task[first], tasks, count * size);
        if (s->progress && s->status == GPU_OK)
            s->progress(s->context, iterations_so_far(plan) - before);
    } while (goes_on(plan, first, count) && s->status == GPU_OK);
}

static void solve_group(struct smo_plan *plan, int64_t first, int64_t count)
{
    for (int64_t i = first; i<first + count; i += plan->blocks> 1 ? 1 : count)
        solve_some(plan, i, plan->blocks > 1 ? 1 : count);
}

static void solve_by_rows(struct smo_plan *plan)
{
    take_rows(plan);
    for (int64_t i = 0; i < plan->count && plan->s->status == GPU_OK;) {
        const int64_t count = place_rows(plan, i);
        write_tasks(plan, i, count);
        solve_group(plan, i, count);
        i += count;
    }
}

/* ---- Results ---- */

/* The offset by the variables of one sign (1, -1) or of both (0): the mean of y G over free ones,
 * or the middle of what the others allow. nu: of G. */
static double offset_of(const struct smo_problem *p, const double *gradient, int sign)
{
    double upper = INFINITY, lower = -INFINITY, sum = 0;
    int64_t free = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double value = sign == 0 ? p->y[i] * gradient[i] : gradient[i];
        const bool is_upper = p->alpha[i] >= p->c[i], is_lower = !is_upper && p->alpha[i] <= 0;
        const bool flipped = sign == 0 && p->y[i] < 0;
        if (sign != 0 && (p->y[i] > 0) != (sign > 0))
            continue;
        if (!is_upper && !is_lower) {
            free++;
            sum += value;
        } else if (is_upper != flipped) {
            lower = value > lower ? value : lower;
        } else {
            upper = value < upper ? value : upper;
        }
    }
    return free > 0 ? sum / (double)free : (upper + lower) / 2;
}

static void finish_problem(struct smo_problem *p, const struct smo_task *t, const double *gradient)
{
    double objective = 0;
    p->rho = p->nu ? 0 : offset_of(p, gradient, 0);
    p->r = 0;
    if (p->nu) {
        const double positive = offset_of(p, gradient, 1), negative = offset_of(p, gradient, -1);
        p->r = (positive + negative) / 2;
        p->rho = (positive - negative) / 2;
    }
    for (int64_t i = 0; i < p->n; i++)
        objective += p->alpha[i] * (gradient[i] + p->p[i]);
    p->objective = objective / 2;
    p->iterations = t->iterations;
    p->converged = t->end == SMO_OPTIMAL;
    p->rows_touched = t->touched;
    p->rows_computed = t->computed;
}

static void fetch_results(struct smo_plan *plan)
{
    const int64_t bytes = plan->gradient_at - plan->alpha_at;
    char *down = smo_allocate(plan->s, 2 * bytes, 1);
    smo_read(plan->s, down, plan->memory + (gpu_address)plan->alpha_at, 2 * bytes);
    for (int64_t i = 0; i < plan->count && plan->s->status == GPU_OK; i++) {
        struct smo_problem *p = &plan->problem[i];
        const struct smo_task *t = &plan->task[i];
        const int64_t at = (int64_t)(t->alpha - plan->memory) - plan->alpha_at;
        memcpy(p->alpha, down + at, (size_t)p->n * 8);
        finish_problem(p, t, (const double *)(down + bytes + at));
    }
    free(down);
}

/* ---- All of it ---- */

static bool is_valid(const struct smo_plan *plan)
{
    int64_t n = 0;
    for (int64_t i = 0; i < plan->count; i++) {
        if (plan->problem[i].n < 1 || plan->problem[i].n > VARIABLES_MOST)
            return false;
        n += plan->problem[i].n;
    }
    return plan->count > 0 && plan->count <= INT32_MAX && plan->x->rows <= INT32_MAX &&
           n < INT64_MAX / 1024;
}

static void allocate_host(struct smo_plan *plan)
{
    int64_t n = 0;
    for (int64_t i = 0; i < plan->count; i++)
        n += plan->problem[i].n;
    plan->task = smo_allocate(plan->s, plan->count, sizeof *plan->task);
    plan->columns = smo_allocate(plan->s, plan->count, sizeof *plan->columns);
    plan->of = smo_allocate(plan->s, n, sizeof *plan->of);
    plan->column_of = smo_allocate(plan->s, plan->x->rows, sizeof *plan->column_of);
    if (plan->s->status != GPU_OK)
        return;
    memset(plan->column_of, 0xff, (size_t)plan->x->rows * sizeof *plan->column_of);
    n = 0;
    for (int64_t i = 0; i < plan->count; i++) {
        plan->columns[i].of = plan->of + n;
        n += plan->problem[i].n;
    }
}

/* Decides how, and lays the memory out. */
static void prepare_plan(struct smo_plan *plan)
{
    plan->blocks = 1;
    lay_out(plan); /* how much memory is needed, about */
    plan->by_rows = is_too_sparse(plan->x) || !matrix_fits(plan);
    choose_kernel(plan);
    lay_out(plan);
    plan->memory = smo_take(plan->s, plan->end);
    plan->image = smo_allocate(plan->s, plan->gradient_at, 1);
    if (plan->s->status != GPU_OK)
        return;
    lay_out(plan);
    smo_write(plan->s, plan->memory + (gpu_address)plan->up_at, plan->image + plan->up_at,
              plan->gradient_at - plan->up_at);
}

void smo_solve(struct smo *s, const struct smo_matrix *x, struct smo_problem *problems,
               int64_t count)
{
    struct smo_plan plan = {.s = s, .x = x, .problem = problems, .count = count};
    if (s->status != GPU_OK || !is_valid(&plan)) {
        smo_note(s, GPU_UNSUPPORTED);
        return;
    }
    plan.rows = smo_rows(s, x);
    allocate_host(&plan);
    if (s->status == GPU_OK)
        prepare_plan(&plan);
    if (s->status == GPU_OK && plan.by_rows) {
        solve_by_rows(&plan);
    } else if (s->status == GPU_OK) {
        compute_matrix(&plan);
        solve_group(&plan, 0, count);
    }
    if (s->status == GPU_OK)
        fetch_results(&plan);
    if (s->status == GPU_OK)
        smo_check(s, &plan.rows, problems, plan.columns, count);
    free(plan.task);
    free(plan.columns);
    free(plan.of);
    free(plan.column_of);
    free(plan.image);
}
