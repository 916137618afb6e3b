#include "loss.h"

#define BYTES ((int64_t)sizeof(double))

static struct gpu_grid grid_of(const struct linear_rows *x, int64_t items, int64_t most)
{
    const unsigned threads = x->fit.threads;
    const int64_t blocks = accel_min((items + threads - 1) / threads, most);
    return (struct gpu_grid){.blocks_x = (unsigned)accel_max(blocks, 1),
                             .blocks_y = 1,
                             .threads = threads,
                             .shared_bytes = threads * (unsigned)sizeof(double)};
}

/* Enough blocks that all processors are busy. */
static struct gpu_grid grid_for(const struct linear_rows *x, int64_t items)
{
    return grid_of(x, items, (int64_t)x->fit.together * 4);
}

static void upload_vector(struct linear_loss *f, gpu_address to, const double *from, int64_t count)
{
    const struct host_rectangle all = host_whole((char *)(uintptr_t)from, count, 1, count, BYTES);
    if (f->failure == GPU_OK)
        f->failure =
            gpu_copies(f->x->work)->upload(f->x->work->ctx, (struct dmat){to, count}, &all);
}

static void download(struct linear_loss *f, double *to, gpu_address from, int64_t count)
{
    const struct host_rectangle all = host_whole((char *)to, count, 1, count, BYTES);
    if (f->failure == GPU_OK)
        f->failure = gpu_copies(f->x->work)
                         ->download_whole(f->x->work->ctx, &all, (struct dmat){from, count});
}

static void launch(struct linear_loss *f, const char *kernel, struct gpu_grid grid,
                   void **arguments)
{
    if (f->failure == GPU_OK)
        f->failure = gpu_own(f->x->work)->launch(f->x->work, kernel, grid, arguments);
}

/* ---- Products ---- */

static void sum_segments(struct linear_loss *f, struct linear_segments *s, int squares,
                         gpu_address v, gpu_address scale, gpu_address out)
{
    void *arguments[] = {&s->count, &s->first, &s->place, &s->value, &s->group,
                         &squares,  &v,        &scale,    &out};
    launch(f, "linear_sparse", grid_for(f->x, s->count * s->group), arguments);
}

/* out := X v, times scale; scale = 0: times 1. */
static void by_rows(struct linear_loss *f, const double *v, gpu_address scale, gpu_address out)
{
    struct linear_rows *x = f->x;
    void *dense[] = {&x->tiles, &x->tile_rows, &x->rows, &x->columns, &f->w, &scale, &out};
    upload_vector(f, f->w, v, x->columns);
    if (x->tiles)
        launch(f, "linear_dense_rows", grid_of(x, x->rows, INT32_MAX), dense);
    else
        sum_segments(f, &x->by_row, 0, f->w, scale, out);
}

/* out := X' u, or with the squares of X's elements. */
static void by_columns(struct linear_loss *f, int squares, gpu_address u, double *out)
{
    struct linear_rows *x = f->x;
    void *dense[] = {&x->tiles, &x->tile_rows, &x->rows, &x->columns, &squares, &u, &x->partial};
    void *fold[] = {&x->partial, &x->tile_count, &x->columns, &f->w};
    void *sparse_fold[] = {&x->partial, &x->columns, &x->segment_of, &f->w};
    struct gpu_grid grid = grid_of(x, x->tile_count * x->fit.threads, INT32_MAX);
    if (x->tiles) {
        const int64_t shares = x->fit.together * 4 / accel_max(x->tile_count, 1);
        grid.blocks_y = (unsigned)accel_max(1, accel_min(accel_min(shares, x->columns), 65535));
        launch(f, "linear_dense_columns", grid, dense);
        launch(f, "linear_dense_fold", grid_for(x, x->columns * x->fit.threads), fold);
    } else {
        sum_segments(f, &x->by_column, squares, u, 0, x->partial);
        launch(f, "linear_sparse_fold", grid_for(x, x->columns), sparse_fold);
    }
    download(f, out, f->w, x->columns);
}

/* ---- The loss ---- */

static double sum_of_losses(struct linear_loss *f, double alpha, gpu_address step)
{
    const struct gpu_grid grid = grid_of(f->x, f->x->rows, LINEAR_BLOCKS_MOST);
    void *arguments[] = {&f->solver, &f->p,  &f->x->rows, &f->y,         &f->c,
                         &f->z,      &alpha, &step,       &f->x->partial};
    double sum = 0;
    launch(f, "linear_losses", grid, arguments);
    download(f, f->partial, f->x->partial, grid.blocks_x);
    for (unsigned i = 0; i < grid.blocks_x; i++)
        sum += f->partial[i];
    return sum;
}

enum gpu_status linear_loss_make(struct linear_loss *f, struct linear_rows *x, int solver, double p)
{
    gpu_address *const of_rows[] = {&f->y, &f->c, &f->z, &f->step, &f->slope, &f->curvature};
    *f = (struct linear_loss){.x = x, .solver = solver, .p = p};
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows && f->failure == GPU_OK; i++)
        f->failure = gpu_memory(x->work)->take(x->work, x->rows * BYTES, of_rows[i]);
    if (f->failure == GPU_OK)
        f->failure = gpu_memory(x->work)->take(x->work, x->columns * BYTES, &f->w);
    return f->failure;
}

void linear_loss_begin(struct linear_loss *f, const double *y, const double *c)
{
    upload_vector(f, f->y, y, f->x->rows);
    upload_vector(f, f->c, c, f->x->rows);
}

double linear_loss_at(struct linear_loss *f, const double *w)
{
    by_rows(f, w, 0, f->z);
    return sum_of_losses(f, 0, 0);
}

void linear_loss_gradient(struct linear_loss *f, double *g)
{
    void *arguments[] = {&f->solver, &f->p, &f->x->rows, &f->y,
                         &f->c,      &f->z, &f->slope,   &f->curvature};
    launch(f, "linear_derivatives", grid_for(f->x, f->x->rows), arguments);
    by_columns(f, 0, f->slope, g);
}

void linear_loss_hessian(struct linear_loss *f, const double *s, double *hs)
{
    by_rows(f, s, f->curvature, f->step);
    by_columns(f, 0, f->step, hs);
}

void linear_loss_diagonal(struct linear_loss *f, double *m)
{
    by_columns(f, 1, f->curvature, m);
}

void linear_loss_aim(struct linear_loss *f, const double *s)
{
    by_rows(f, s, 0, f->step);
}

double linear_loss_ahead(struct linear_loss *f, double alpha)
{
    return sum_of_losses(f, alpha, f->step);
}

void linear_loss_advance(struct linear_loss *f, double alpha)
{
    void *arguments[] = {&f->x->rows, &alpha, &f->step, &f->z};
    launch(f, "linear_advance", grid_for(f->x, f->x->rows), arguments);
}
