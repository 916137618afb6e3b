#include "spectral.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/host_memory.h"
#include "call/shape.h"
#include "spectral_steps.h"

static struct packed_memory alloc_square(struct spectral *s, int64_t order)
{
    int64_t elements, bytes;
    struct packed_memory memory = {.ptr = NULL};
    if (spectral_is_well(s) && accel_mul(order, order, &elements) &&
        accel_mul(elements, s->size, &bytes))
        memory = packed_take(bytes, s->c->estimates);
    if (!memory.ptr)
        spectral_note(s, GPU_NO_MEMORY);
    return memory;
}

/* ---- Dividing ---- */

static void solve_eigenproblem(struct spectral *s, struct matrix a, char *w);

static int in_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median of the diagonal. */
static double median_of(struct spectral *s, struct matrix a)
{
    double *const values = malloc((size_t)a.cols * sizeof *values);
    double median = 0;
    if (!values) {
        spectral_note(s, GPU_NO_MEMORY);
        return 0;
    }
    for (int64_t i = 0; i < a.cols; i++)
        values[i] = packed_diagonal(a, i);
    qsort(values, (size_t)a.cols, sizeof *values, in_order);
    median = values[a.cols / 2];
    free(values);
    return median;
}

/* All eigenvalues are the same as far as rounding tells: any vectors will do. */
static void solve_multiple(struct matrix a, struct matrix vectors, char *w)
{
    const double mean = packed_trace(a) / (double)a.cols;
    packed_identity(vectors);
    for (int64_t i = 0; i < a.cols; i++)
        store_real(w, a.dtype, i, mean);
}

/* So many cubes of the caller's order may be divided. One division of halves after the other takes
 * 4/3; a spectrum that is mostly at one end takes some more. */
#define EFFORT_MOST 4.0

/* The part that a division leaves out, as a Frobenius norm, may be so many times the unit roundoff,
 * the order and the matrix's norm. */
#define BETWEEN_MOST 4.0

/* sigma is beside the median by a part of the eigenvalues' deviation: many of them may be equal,
 * and then the median is one. */
static const double beside[] = {0.01, -0.013, 0.031};
enum { SIGMAS = sizeof beside / sizeof *beside };

/* Makes the polar factor of a - sigma in it->x. Returns how many eigenvalues are above sigma; 0: it
 * has not been found. */
static int64_t divide_spectrum(struct spectral *s, struct matrix a, char uplo, double median,
                               double norm, struct spectral_iteration *it)
{
    const int64_t n = a.cols;
    const double deviation = norm / sqrt((double)n);
    for (int i = 0; i < SIGMAS && spectral_is_well(s); i++) {
        const double order = (double)n / (double)s->order;
        s->effort += order * order * order;
        spectral_note_passes(s, 2, n);
        if (s->effort > EFFORT_MOST)
            break;
        if (!s->c->estimates)
            packed_mirror(it->x, a, uplo, median + beside[i] * deviation, 1 / norm);
        const bool reached = spectral_polar(s, it);
        if (s->c->estimates)
            return n / 2;
        const double above = ((double)n + packed_trace(it->x)) / 2;
        const int64_t count =
            spectral_is_well(s) && reached && above > 0 ? (int64_t)(above + 0.5) : 0;
        const double off = above - (double)count;
        if (count > 0 && count < n && off < 0.1 && off > -0.1)
            return count;
    }
    spectral_note(s, GPU_UNSUPPORTED);
    return 0;
}

/* Solves the parts of a in the bases v, those below sigma first, and returns a's vectors in `to`.
 * room: as large as a. */
static void solve_parts(struct spectral *s, struct matrix a, char uplo, struct matrix v,
                        int64_t below, struct matrix to, char *room, char *w)
{
    const int64_t n = a.cols, above = n - below;
    const struct matrix low = packed_at(room, below, below, s->dtype),
                        high = packed_at(room + below * below * s->size, above, above, s->dtype),
                        between =
                            packed_at(high.ptr + above * above * s->size, below, above, s->dtype),
                        v_low = packed_columns(v, 0, below),
                        v_high = packed_columns(v, below, above),
                        to_low = packed_columns(to, 0, below),
                        to_high = packed_columns(to, below, above);
    spectral_multiply_hermitian(s, 1, a, uplo, v, 0, to);
    spectral_multiply(s, true, v_low, to_low, low);
    spectral_multiply(s, true, v_high, to_high, high);
    spectral_multiply(s, true, v_low, to_high, between);
    spectral_note_passes(s, 0.25, n);
    const double bound = BETWEEN_MOST * (double)s->order * s->unit * s->norm;
    if (spectral_computes(s) && !(packed_square(between) <= bound * bound))
        spectral_note(s, GPU_UNSUPPORTED);
    solve_eigenproblem(s, low, w);
    solve_eigenproblem(s, high, w + below * (int64_t)accel_dtype_size(accel_real_dtype(s->dtype)));
    if (!s->vectors)
        return;
    spectral_multiply(s, false, v_low, low, to_low);
    spectral_multiply(s, false, v_high, high, to_high);
}

/* Returns a's vectors, without gaps, in memory that the caller frees; its eigenvalues in w. Without
 * s->vectors, any memory, or none. */
static struct packed_memory solve_divided(struct spectral *s, struct matrix a, char uplo, char *w)
{
    const int64_t n = a.cols;
    struct packed_memory memory[3];
    double median = 0, square = 1;
    for (int i = 0; i < 3; i++)
        memory[i] = alloc_square(s, n);
    struct spectral_iteration it = {packed_at(memory[0].ptr, n, n, s->dtype),
                                    packed_at(memory[1].ptr, n, n, s->dtype),
                                    packed_at(memory[2].ptr, n, n, s->dtype)};
    if (spectral_computes(s)) {
        median = median_of(s, a);
        square = packed_norms_of(a, uplo, median).square;
    }
    const double little = (double)n * s->unit * s->norm;
    int result = 2;
    if (spectral_computes(s) && square <= little * little) {
        solve_multiple(a, it.t, w);
    } else if (spectral_is_well(s)) {
        const int64_t above = divide_spectrum(s, a, uplo, median, sqrt(square), &it);
        const struct matrix u = it.x, v = it.y;
        spectral_basis(s, u, -1, packed_columns(v, 0, n - above), it.t.ptr);
        spectral_basis(s, u, 1, packed_columns(v, n - above, above), it.t.ptr);
        if (spectral_is_well(s))
            solve_parts(s, a, uplo, v, n - above, it.t, u.ptr, w);
    }
    for (int i = 0; i < 3; i++)
        if (i != result)
            packed_free(&memory[i]);
    return memory[result];
}

/* a := its vectors, or anything without s->vectors; w: its eigenvalues. a: the lower triangle
 * counts, without gaps. */
static void solve_eigenproblem(struct spectral *s, struct matrix a, char *w)
{
    struct accel_call call = spectral_begin(s, "syevd", "heevd", 0, a.cols, 0);
    call.blas.flag[ACCEL_jobz] = s->vectors ? 'V' : 'N';
    spectral_put(&call, ACCEL_a, a);
    call.span[ACCEL_x].ptr = w;
    if (!spectral_is_well(s))
        return;
    if (s->c->fits(s->c->context, &call)) {
        const enum gpu_status status = spectral_try(s, &call);
        if (status != GPU_NO_MEMORY) {
            spectral_note(s, status);
            return;
        }
    }
    if (a.cols < 2) {
        spectral_note(s, GPU_NO_MEMORY);
        return;
    }
    struct packed_memory vectors = solve_divided(s, a, 'L', w);
    if (spectral_is_well(s) && s->vectors && !s->c->estimates)
        packed_copy(a, packed_at(vectors.ptr, a.rows, a.cols, s->dtype));
    spectral_note_passes(s, 2, a.cols);
    packed_free(&vectors);
}

/* ---- The call ---- */

/* Eigenvalues at the edge of a part are in order up to rounding. */
static void sort(const struct spectral *s, char *w, struct matrix vectors)
{
    for (int64_t i = 1; i < s->order; i++)
        for (int64_t j = i; j > 0; j--) {
            const double here = load_real(w, s->dtype, j), before = load_real(w, s->dtype, j - 1);
            if (here >= before)
                break;
            store_real(w, s->dtype, j, before);
            store_real(w, s->dtype, j - 1, here);
            if (s->vectors)
                packed_swap_columns(vectors, j, j - 1);
        }
}

/* Refuses what LAPACK would scale, as solver_refuse_extremes() does, and numbers that are not
 * finite. */
static void examine(struct spectral *s, struct matrix a, char uplo)
{
    const double smallest = accel_is_double(s->dtype) ? 6.7e-139 : 9.1e-13;
    const struct packed_norms norms = packed_norms_of(a, uplo, 0);
    s->norm = sqrt(norms.square);
    if (!norms.finite || !(norms.largest > smallest && norms.largest < 1 / smallest))
        spectral_note(s, GPU_UNSUPPORTED);
}

/* Whether the host has memory for the first division, and for one of a half within it. */
static bool has_memory(const struct spectral *s)
{
    return host_memory_has(4.0 * (double)s->order * (double)s->order * (double)s->size);
}

enum gpu_status spectral_decompose(struct decomposition *c, const struct accel_call *call,
                                   struct accel_call *done)
{
    const struct accel_span *given = &call->span[ACCEL_a];
    const enum accel_dtype dtype = call->routine->dtype;
    const char uplo = call->blas.flag[ACCEL_uplo];
    struct spectral s = {.c = c,
                         .dtype = dtype,
                         .size = (int64_t)accel_dtype_size(dtype),
                         .order = call->blas.size[ACCEL_n],
                         .vectors = call->blas.flag[ACCEL_jobz] == 'V',
                         .unit = accel_is_double(dtype) ? 0x1p-53 : 0x1p-24,
                         .random = 1};
    const struct matrix a = matrix_of_span(given);
    struct packed_memory w = {.ptr = NULL}, vectors = {.ptr = NULL};
    *done = *call;
    if (s.order < 2 || !has_memory(&s))
        return s.order < 2 ? GPU_UNSUPPORTED : GPU_NO_MEMORY;
    w = packed_take(s.order * (int64_t)accel_dtype_size(accel_real_dtype(dtype)), c->estimates);
    if (!w.ptr)
        spectral_note(&s, GPU_NO_MEMORY);
    spectral_note_passes(&s, 0.5, s.order);
    if (spectral_is_well(&s) && !c->estimates)
        examine(&s, a, uplo);
    if (spectral_is_well(&s))
        vectors = solve_divided(&s, a, uplo, w.ptr);
    if (spectral_is_well(&s) && !c->estimates)
        sort(&s, w.ptr, packed_at(vectors.ptr, s.order, s.order, dtype));
    if (!spectral_is_well(&s) || c->estimates || !s.vectors)
        packed_free(&vectors);
    if (!spectral_is_well(&s) || c->estimates) {
        packed_free(&w);
        return s.status;
    }
    done->span[ACCEL_x].ptr = w.ptr;
    if (s.vectors) {
        done->span[ACCEL_a].ptr = vectors.ptr;
        done->span[ACCEL_a].ld = s.order;
    }
    return GPU_OK;
}
