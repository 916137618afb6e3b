#include "triangle_solve.h"

#include <stdatomic.h>

#include "gpu/device/device.h"
#include "gpu/device/failure.h"
#include "gpu/own/substitution.h"
#include "gpu/device/own.h"

/* To divide further than into these, the products would be so thin that they take as long; by a
 * triangle of less than a block, the kernel takes as long as by a whole one. */
enum { LEAF = SCHEDULE_OWN_ROWS, MOST_BLOCKS = INT32_MAX /* of a grid */ };
_Static_assert(LEAF % SUBSTITUTION_BLOCK == 0 && SCHEDULE_OWN_LEAST == SUBSTITUTION_BLOCK,
               "whole blocks of the kernel's");

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0};

/* The kernel's name for a type; NULL: it has none. */
static const char *kernel_of(enum accel_dtype dtype)
{
    return dtype == ACCEL_FLOAT64   ? "own_substitute_d"
           : dtype == ACCEL_FLOAT32 ? "own_substitute_s"
                                    : NULL;
}

void gpu_solve_by_own(struct gpu_device *device, enum accel_dtype dtype, int64_t least_nrhs)
{
    atomic_store_explicit(&device->own_solves[dtype], kernel_of(dtype) ? least_nrhs : 0,
                          memory_order_relaxed);
}

bool gpu_solves_by_own(const struct gpu_device *device, enum accel_dtype dtype, int64_t nrhs)
{
    const int64_t least = atomic_load_explicit(&device->own_solves[dtype], memory_order_relaxed);
    return least > 0 && nrhs >= least;
}

/* T X = alpha B for each right-hand side: T is op(A), or if that stands at the right, its
 * transpose, and a right-hand side is a row of B. */
struct solve {
    struct gpu_work *work;
    bool left, across, unit; /* across: op() transposes */
    bool forward;            /* T is lower */
    int64_t nrhs;
    struct dmat a, b;
    const char *kernel;
    struct gpu_fit fit;
};

/* Returns the part of A that has T's rows from `row` on, and its columns from `col` on. */
static struct dmat part_of_t(const struct solve *s, int64_t row, int64_t col)
{
    const bool as_stored = s->left != s->across;
    return dmat_from(s->work, s->a, as_stored ? row : col, as_stored ? col : row);
}

/* Returns the right-hand sides' elements from `row` on. */
static struct dmat part_of_b(const struct solve *s, int64_t row)
{
    return dmat_from(s->work, s->b, s->left ? row : 0, s->left ? 0 : row);
}

/* The kernel sees a lower triangle: it counts the rows of an upper one from the last. */
static enum gpu_status substitute(struct solve *s, int64_t first, int64_t order,
                                  struct accel_complex alpha)
{
    const int64_t from = s->forward ? first : first + order - 1, sign = s->forward ? 1 : -1;
    const bool as_stored = s->left != s->across;
    struct substitution_task task = {
        .t = (const void *)(uintptr_t)part_of_t(s, from, from).ptr,
        .t_row = sign * (as_stored ? 1 : s->a.ld),
        .t_col = sign * (as_stored ? s->a.ld : 1),
        .b = (void *)(uintptr_t)part_of_b(s, from).ptr,
        .b_row = sign * (s->left ? 1 : s->b.ld),
        .b_next = s->left ? s->b.ld : 1,
        .order = order,
        .nrhs = s->nrhs,
        .alpha = alpha.re,
        .unit = s->unit,
    };
    void *arguments[] = {&task};
    const int64_t blocks = (s->nrhs + s->fit.threads - 1) / s->fit.threads;
    const struct gpu_grid grid = {(unsigned)blocks, 1, s->fit.threads, 0, false};
    return gpu_own(s->work)->launch(s->work, s->kernel, grid, arguments);
}

/* Subtracts from the right-hand sides' elements from `row` on, times alpha, what those from `col`
 * on contribute. */
static enum gpu_status subtract(struct solve *s, int64_t row, int64_t rows, int64_t col,
                                int64_t cols, struct accel_complex alpha)
{
    const struct dmat t = part_of_t(s, row, col), x = part_of_b(s, col), y = part_of_b(s, row);
    const char trans = s->across ? 'T' : 'N';
    return s->left ? gpu_kernels(s->work)->gemm(s->work, trans, 'N', rows, s->nrhs, cols, minus_one,
                                                t, x, alpha, y)
                   : gpu_kernels(s->work)->gemm(s->work, 'N', trans, s->nrhs, rows, cols, minus_one,
                                                x, t, alpha, y);
}

/* Solves for the elements from `first` on, of right-hand sides that lack nothing but the factor
 * alpha. */
static enum gpu_status solve_part(struct solve *s, int64_t first, int64_t order,
                                  struct accel_complex alpha)
{
    if (order <= LEAF)
        return substitute(s, first, order, alpha);
    const int64_t leaves = (order + LEAF - 1) / LEAF, top = leaves / 2 * LEAF;
    const int64_t before = s->forward ? top : order - top; /* is solved for first */
    const int64_t known = s->forward ? first : first + top;
    const int64_t rest = s->forward ? first + top : first;
    enum gpu_status status = solve_part(s, known, before, alpha);
    if (status == GPU_OK)
        status = subtract(s, rest, order - before, known, before, alpha);
    return status == GPU_OK ? solve_part(s, rest, order - before, one) : status;
}

/* Gets the kernel ready. Returns false if the device's BLAS has to solve: because this call is none
 * for the kernel, or because the device cannot load it. The function forgets that failure, so that
 * the call does not fail by it. Unless the device only lacked memory, no later call tries the
 * kernel. */
static bool get_ready(struct solve *s, int64_t order)
{
    const enum accel_dtype dtype = s->work->call->routine->dtype;
    struct failure outer;
    s->kernel = kernel_of(dtype);
    if (order < SCHEDULE_OWN_LEAST || s->work->host->precision != GPU_NATIVE ||
        !gpu_solves_by_own(s->work->device, dtype, s->nrhs))
        return false;
    failure_begin(&outer);
    const enum gpu_status status =
        gpu_own(s->work)->fit(s->work, s->kernel, SUBSTITUTION_THREADS, 0, &s->fit);
    failure_end(&outer);
    if (status != GPU_OK && status != GPU_NO_MEMORY)
        gpu_solve_by_own(s->work->device, dtype, 0);
    return status == GPU_OK && s->nrhs / s->fit.threads < MOST_BLOCKS;
}

enum gpu_status triangle_solve(struct gpu_work *work, char side, char uplo, char trans, char diag,
                               int64_t m, int64_t n, struct accel_complex alpha, struct dmat a,
                               struct dmat b)
{
    const bool left = side == 'L', across = trans != 'N', lower = uplo == 'L';
    const int64_t order = left ? m : n;
    struct solve s = {.work = work,
                      .left = left,
                      .across = across,
                      .unit = diag == 'U',
                      .forward = (lower != across) == left,
                      .nrhs = left ? n : m,
                      .a = a,
                      .b = b};
    return get_ready(&s, order)
               ? solve_part(&s, 0, order, alpha)
               : gpu_kernels(work)->trsm(work, side, uplo, trans, diag, m, n, alpha, a, b);
}
