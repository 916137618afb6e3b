#include "smo.h"

#include <math.h>
#include <stdlib.h>

#include "gpu/device/own.h"
#include "smo_steps.h"

static const struct accel_complex one = {1, 0}, zero = {0, 0};

bool smo_note(struct smo *s, enum gpu_status status)
{
    if (s->status == GPU_OK)
        s->status = status;
    return s->status == GPU_OK;
}

/* ---- Memory ---- */

gpu_address smo_take(struct smo *s, int64_t bytes)
{
    gpu_address memory = 0;
    GPU_DO(s, gpu_memory(s->work)->take(s->work, accel_max(bytes, 16), &memory));
    return memory;
}

static void upload(struct smo *s, gpu_address to, int64_t ld, struct host_rectangle from)
{
    const int64_t bytes = from.rows * from.cols * from.size;
    if (s->status == GPU_OK && bytes > 0 &&
        smo_note(s, gpu_copies(s->work)->upload(s->work->ctx, (struct dmat){to, ld}, &from)))
        gpu_work_event(s->work, GPU_EVENT_H2D, NULL, 1, bytes, bytes);
}

void smo_write(struct smo *s, gpu_address to, const void *from, int64_t bytes)
{
    upload(s, to, bytes, host_whole((char *)(uintptr_t)from, bytes, 1, bytes, 1));
}

gpu_address smo_put(struct smo *s, const void *from, int64_t bytes)
{
    const gpu_address to = smo_take(s, bytes);
    smo_write(s, to, from, bytes);
    return to;
}

void smo_read(struct smo *s, void *to, gpu_address from, int64_t bytes)
{
    const struct host_rectangle there = host_whole(to, bytes, 1, bytes, 1);
    int64_t done_cols, done_rows;
    if (s->status == GPU_OK && bytes > 0 &&
        smo_note(s, gpu_copies(s->work)->download(s->work->ctx, &there, (struct dmat){from, bytes},
                                                  &done_cols, &done_rows)))
        gpu_work_event(s->work, GPU_EVENT_D2H, NULL, 1, bytes, bytes);
}

void *smo_allocate(struct smo *s, int64_t count, int64_t size)
{
    void *memory = NULL;
    if (s->status == GPU_OK && !(memory = calloc((size_t)count + 1, (size_t)size)))
        smo_note(s, GPU_NO_MEMORY);
    return memory;
}

/* ---- Matrices ---- */

/* Makes a dense matrix of zeros, or uninitialised; one without features gets one of zeros, since
 * products need some. */
static struct smo_matrix dense(struct smo *s, int64_t rows, int64_t features, bool zeros)
{
    struct smo_matrix x = {.rows = rows, .features = accel_max(features, 1)};
    int64_t elements;
    x.ld = gpu_device_ld(x.features, ACCEL_FLOAT64);
    if (!accel_mul(x.ld, rows, &elements) || elements > INT64_MAX / 8)
        smo_note(s, GPU_NO_MEMORY);
    else
        x.values = smo_take(s, elements * 8);
    if (s->status == GPU_OK && (zeros || features == 0))
        smo_note(s, gpu_memory(s->work)->zero(s->work, x.values, elements * 8));
    return x;
}

struct smo_matrix smo_put_dense(struct smo *s, const double *values, int64_t rows, int64_t features)
{
    const struct smo_matrix x = dense(s, rows, features, false);
    upload(s, x.values, x.ld,
           host_whole((char *)(uintptr_t)values, features, rows, features, sizeof *values));
    return x;
}

struct smo_matrix smo_put_csr(struct smo *s, const int64_t *start, const int32_t *column,
                              const double *values, int64_t rows, int64_t features)
{
    struct smo_matrix x = {.rows = rows, .features = features, .stored = start[rows]};
    x.start = smo_put(s, start, (rows + 1) * (int64_t)sizeof *start);
    x.column = smo_put(s, column, x.stored * (int64_t)sizeof *column);
    x.values = smo_put(s, values, x.stored * (int64_t)sizeof *values);
    return x;
}

/* ---- Kernels ---- */

void smo_launch(struct smo *s, const char *kernel, struct gpu_grid grid, void **arguments)
{
    GPU_DO(s, gpu_own(s->work)->launch(s->work, kernel, grid, arguments));
}

unsigned smo_threads(struct smo *s, const char *kernel, unsigned threads)
{
    struct gpu_fit fit = {.threads = 1};
    GPU_DO(s, gpu_own(s->work)->fit(s->work, kernel, threads, 0, &fit));
    return fit.threads;
}

/* A grid of blocks for rows x columns elements, a thread for each, at most. */
static struct gpu_grid elementwise(struct smo *s, const char *kernel, int64_t rows, int64_t columns)
{
    struct gpu_grid grid = {.threads = smo_threads(s, kernel, 256)};
    grid.blocks_x = (unsigned)accel_min((rows + grid.threads - 1) / grid.threads, 1 << 20);
    grid.blocks_y = (unsigned)accel_min(columns, SMO_GRID_MOST);
    return grid;
}

struct svm_rows smo_rows(struct smo *s, const struct smo_matrix *x)
{
    struct svm_rows rows = {x->rows, x->features, x->ld, x->values, x->start, x->column, 0};
    rows.square = smo_take(s, x->rows * 8);
    void *arguments[] = {&rows};
    if (s->kernel.type == SMO_PRECOMPUTED && s->status == GPU_OK)
        /* Needed by no kernel value */
        smo_note(s, gpu_memory(s->work)->zero(s->work, rows.square, x->rows * 8));
    else
        smo_launch(s, "svm_squares", elementwise(s, "svm_squares", x->rows, 1), arguments);
    return rows;
}

struct smo_matrix smo_densify(struct smo *s, const struct svm_rows *x)
{
    const struct smo_matrix to = dense(s, x->rows, x->features, true);
    smo_fill_dense(s, x, 0, x->rows, to.values, to.ld);
    return to;
}

void smo_fill_dense(struct smo *s, const struct svm_rows *x, int64_t first, int64_t rows,
                    gpu_address to, int64_t ld)
{
    struct svm_rows from = *x;
    struct gpu_grid grid = {(unsigned)accel_min(rows, 1 << 20), 1, smo_threads(s, "svm_dense", 64),
                            0, false};
    void *arguments[] = {&from, &first, &rows, &to, &ld};
    smo_launch(s, "svm_dense", grid, arguments);
}

/* to := a' b, of features x m and features x n. */
static void products(struct smo *s, int64_t m, int64_t n, int64_t features, struct dmat a,
                     struct dmat b, struct dmat to)
{
    GPU_DO(s, gpu_kernels(s->work)->gemm(s->work, 'T', 'N', m, n, features, one, a, b, zero, to));
}

/* Some columns of the kernel matrix, in double or as floats. */
static void convert(struct smo *s, const char *kernel, int64_t rows, int64_t columns, void **most)
{
    if (s->status == GPU_OK)
        smo_launch(s, kernel, elementwise(s, kernel, rows, columns), most);
}

void smo_kernel_matrix(struct smo *s, const struct svm_rows *x, const struct smo_matrix *dense,
                       gpu_address k, int64_t ld, int64_t columns, gpu_address bad)
{
    const bool is_given = s->kernel.type == SMO_PRECOMPUTED;
    int64_t rows = x->rows, ld_product = is_given ? dense->ld : rows;
    gpu_address product = is_given ? 0 : smo_take(s, rows * columns * 8), square = x->square;
    for (int64_t first = 0; first < rows && s->status == GPU_OK; first += columns) {
        int64_t some = accel_min(columns, rows - first);
        gpu_address from = dense->values + (gpu_address)(first * dense->ld * 8);
        gpu_address of_columns = square + (gpu_address)(first * 8);
        gpu_address to = k + (gpu_address)(first * ld * 4);
        if (is_given)
            product = from;
        else
            products(s, rows, some, dense->features, (struct dmat){dense->values, dense->ld},
                     (struct dmat){from, dense->ld}, (struct dmat){product, rows});
        convert(s, "svm_floats", rows, some,
                (void *[]){&s->kernel, &product, &ld_product, &rows, &some, &square, &of_columns,
                           &to, &ld, &bad});
    }
}

/* ---- Decision values ---- */

/* The vectors of a block, so that its kernel values take little memory. */
static int64_t block_of(struct smo *s, const struct smo_matrix *vectors,
                        const struct smo_matrix *support)
{
    const int64_t budget = accel_min(gpu_memory(s->work)->available(s->work) / 4, 256 << 20);
    const int64_t each = 8 * (support->rows + (vectors->start ? support->features : 0) + 16);
    return accel_max(1, accel_min(vectors->rows, budget / each));
}

/* to := the kernel values of some vectors, a column for each. */
static void values_of(struct smo *s, const struct svm_rows *vectors, int64_t first, int64_t count,
                      const struct smo_matrix *block, const struct svm_rows *support,
                      const struct smo_matrix *dense, gpu_address to)
{
    struct dmat from = {vectors->values + (gpu_address)(first * vectors->ld * 8), vectors->ld};
    int64_t rows = support->rows;
    gpu_address square = support->square, of_vectors = vectors->square + (gpu_address)(first * 8);
    if (vectors->start && s->status == GPU_OK) {
        from = (struct dmat){block->values, block->ld};
        smo_note(s, gpu_memory(s->work)->zero(s->work, from.ptr, count * from.ld * 8));
        smo_fill_dense(s, vectors, first, count, from.ptr, from.ld);
    }
    products(s, rows, count, dense->features, (struct dmat){dense->values, dense->ld}, from,
             (struct dmat){to, rows});
    convert(s, "svm_values", rows, count,
            (void *[]){&s->kernel, &to, &rows, &rows, &count, &square, &of_vectors});
}

static void decide_by_values(struct smo *s, const struct smo_matrix *vectors,
                             const struct smo_matrix *support, gpu_address coefficient,
                             int64_t outputs, gpu_address to)
{
    const struct svm_rows from = smo_rows(s, vectors), rows = smo_rows(s, support);
    const struct smo_matrix whole = support->start ? smo_densify(s, &rows) : *support;
    const int64_t some = s->status == GPU_OK ? block_of(s, vectors, support) : 1;
    const struct smo_matrix block =
        vectors->start ? dense(s, some, support->features, false) : (struct smo_matrix){0};
    const gpu_address k = smo_take(s, some * support->rows * 8);
    for (int64_t first = 0; first < vectors->rows && s->status == GPU_OK; first += some) {
        const int64_t count = accel_min(some, vectors->rows - first);
        values_of(s, &from, first, count, &block, &rows, &whole, k);
        products(s, outputs, count, support->rows, (struct dmat){coefficient, support->rows},
                 (struct dmat){k, support->rows},
                 (struct dmat){to + (gpu_address)(first * outputs * 8), outputs});
    }
}

void smo_decide(struct smo *s, const struct smo_matrix *vectors, const struct smo_matrix *support,
                const double *coefficient, int64_t outputs, double *values)
{
    const gpu_address there = smo_put(s, coefficient, support->rows * outputs * 8);
    const gpu_address to = smo_take(s, vectors->rows * outputs * 8);
    if (s->kernel.type == SMO_PRECOMPUTED)
        products(s, outputs, vectors->rows, support->rows, (struct dmat){there, support->rows},
                 (struct dmat){vectors->values, vectors->ld}, (struct dmat){to, outputs});
    else
        decide_by_values(s, vectors, support, there, outputs, to);
    smo_read(s, values, to, vectors->rows * outputs * 8);
}
