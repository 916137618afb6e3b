#include "solver.h"

#include <stdlib.h>

#include "call/matrix.h"

static const struct accel_complex one = {1, 0}, zero = {0, 0};

/* ---- Between arrays ---- */

void solver_copy(struct solver *s, struct array to, struct array from)
{
    if (solver_is_well(s) && from.rows > 0 && from.cols > 0)
        solver_note(s, gpu_copies(s->work)->copy(s->work->ctx, to.at, from.at, from.rows, from.cols,
                                                 (int64_t)accel_dtype_size(from.dtype)));
}

void solver_transpose(struct solver *s, struct array to, struct array from)
{
    if (solver_is_well(s) && from.rows > 0 && from.cols > 0)
        solver_note(s, gpu_kernels(s->work)->transpose(s->work, solver_adjoint(s), to.rows, to.cols,
                                                       from.at, to.at));
}

/* The order of a triangle that is packed at once: packed storage has a largest one, see
 * gpu_kernels.pack_triangle(). */
#define TRIANGLE_COLUMNS 512

struct array solver_upper(struct solver *s, struct array from)
{
    const int64_t n = from.cols, most = accel_min(n, TRIANGLE_COLUMNS);
    struct array to = solver_zeros(s, n, n), packed = solver_array(s, most * (most + 1) / 2, 1);
    for (int64_t col = 0; solver_is_well(s) && col < n; col += most) {
        int64_t cols = accel_min(most, n - col);
        struct array above = solver_part(from, 0, col, col, cols);
        struct array on_it = solver_part(from, col, col, cols, cols);
        solver_copy(s, solver_part(to, 0, col, col, cols), above);
        GPU_DO(s, gpu_kernels(s->work)->pack_triangle(s->work, 'U', cols, on_it.at, packed.at.ptr));
        GPU_DO(s, gpu_kernels(s->work)->unpack_triangle(s->work, 'U', cols, packed.at.ptr,
                                                        solver_part(to, col, col, cols, cols).at));
    }
    return to;
}

void solver_set_diagonal(struct solver *s, struct array a, const double *values)
{
    int64_t n = accel_min(a.rows, a.cols), size = (int64_t)accel_dtype_size(s->dtype);
    struct array vector = solver_array(s, n, 1);
    char *host = calloc((size_t)n + 1, (size_t)size);
    if (!host)
        solver_note(s, GPU_NO_MEMORY);
    for (int64_t i = 0; host && i < n; i++)
        store_real(host + i * size, s->dtype, 0, values ? values[i] : 1);
    if (host)
        solver_put(s, vector, host);
    free(host);
    GPU_DO(s, gpu_kernels(s->work)->copy(s->work, n, (struct dmat){vector.at.ptr, 1},
                                         solver_diagonal(a)));
}

void solver_get_diagonal(struct solver *s, void *to, struct array a)
{
    int64_t n = accel_min(a.rows, a.cols);
    struct array vector = solver_array(s, n, 1);
    GPU_DO(s, gpu_kernels(s->work)->copy(s->work, n, solver_diagonal(a),
                                         (struct dmat){vector.at.ptr, 1}));
    solver_get(s, to, vector);
}

void solver_clear_imaginary(struct solver *s, struct array a)
{
    const int64_t size = (int64_t)accel_dtype_size(s->real), n = accel_min(a.rows, a.cols);
    if (!accel_is_complex(s->dtype))
        return;
    const struct array zeros = solver_zeros(s, n, 1);
    const struct dmat parts = {a.at.ptr + (gpu_address)size, 2 * (a.at.ld + 1)};
    GPU_DO(s, gpu_copies(s->work)->copy(s->work->ctx, parts, (struct dmat){zeros.at.ptr, 1}, 1, n,
                                        size));
}

/* ---- cuBLAS ---- */

void solver_gemm(struct solver *s, char transa, char transb, struct array a, struct array b,
                 struct array c)
{
    int64_t k = transa == 'N' ? a.cols : a.rows;
    if (solver_is_well(s) && c.rows > 0 && c.cols > 0)
        solver_note(s, gpu_kernels(s->work)->gemm(s->work, transa, transb, c.rows, c.cols, k, one,
                                                  a.at, b.at, zero, c.at));
}

void solver_trsm(struct solver *s, char uplo, char trans, char diag, struct array a, struct array b)
{
    if (solver_is_well(s) && b.rows > 0 && b.cols > 0)
        solver_note(s, gpu_kernels(s->work)->trsm(s->work, 'L', uplo, trans, diag, b.rows, b.cols,
                                                  one, a.at, b.at));
}
