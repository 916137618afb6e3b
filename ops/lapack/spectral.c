#include "spectral.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>

#include "base/host_memory.h"
#include "ops/op.h"
#include "ops/shape.h"
#include "packed.h"
#include "rules.h"

struct spectral {
    struct composition *c;
    enum gpu_status status; /* the first failure */
    enum accel_dtype dtype;
    int64_t size, order; /* of an element; of the caller's matrix */
    bool vectors;
    double unit;     /* the type's unit roundoff */
    double norm;     /* of the caller's matrix, Frobenius */
    double effort;   /* of the divisions so far, as cubes of their orders */
    uint64_t random; /* the same for each call: its result is repeatable */
};

static bool is_well(const struct spectral *s)
{
    return s->status == GPU_OK;
}

#define note(s, st)                                                                                \
    ({                                                                                             \
        int st_ = (int)(st);                                                                       \
        if (st_)                                                                                   \
            fprintf(stderr, "DBG note %d line %d\n", st_, __LINE__);                               \
        (note)(s, (enum gpu_status)st_);                                                           \
    })
static void(note)(struct spectral *s, enum gpu_status status)
{
    if (is_well(s))
        s->status = status;
}

/* Notes that the composition itself reads or writes so many matrices of this order. */
static void note_passes(struct spectral *s, double passes, int64_t order)
{
    s->c->host_bytes += passes * (double)order * (double)order * (double)s->size;
}

static struct packed_memory take(struct spectral *s, int64_t order)
{
    int64_t elements, bytes;
    struct packed_memory memory = {.ptr = NULL};
    if (is_well(s) && accel_mul(order, order, &elements) && accel_mul(elements, s->size, &bytes))
        memory = packed_take(bytes, s->c->estimates);
    if (!memory.ptr)
        note(s, GPU_NO_MEMORY);
    return memory;
}

/* ---- Inner calls ---- */

/* Returns the routine of this name behind the type's letter; NULL: there is none. */
static const struct accel_routine *routine_of(const char *name, enum accel_dtype dtype)
{
    static const char letter[] = "sdcz";
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_routines[i].name[0] == letter[dtype] && accel_routines[i].dtype == dtype &&
            strcmp(accel_routines[i].name + 1, name) == 0)
            return &accel_routines[i];
    return NULL;
}

/* Begins a call: nothing transposed, lower triangles, beta = 0. `real`, `hermitian`: the routine's name in real and complex types. */
static struct accel_call begin(const struct spectral *s, const char *real, const char *hermitian,
                               int64_t m, int64_t n, int64_t k)
{
    const int64_t size[ACCEL_DIMENSIONS] = {[ACCEL_m] = m, [ACCEL_n] = n, [ACCEL_k] = k};
    struct accel_call call;
    shape_typical(&call, routine_of(accel_is_complex(s->dtype) ? hermitian : real, s->dtype), size);
    call.blas.scalar[ACCEL_beta].re = 0;
    return call;
}

static void put(struct accel_call *call, enum accel_matrix which, struct packed x)
{
    call->span[which].ptr = x.ptr;
    call->span[which].ld = x.ld;
}

/* Runs it; its flags may have changed since begin(). */
static enum gpu_status try_call(struct spectral *s, struct accel_call *call)
{
    struct accel_span given[ACCEL_SPANS];
    memcpy(given, call->span, sizeof given);
    shape_operands(call);
    for (int i = 0; i < ACCEL_SPANS; i++)
        call->span[i].ld = given[i].ld;
    return is_well(s) ? s->c->run(s->c->context, call) : s->status;
}

static void run(struct spectral *s, struct accel_call *call)
{
    note(s, try_call(s, call));
}

static char adjoint(const struct spectral *s)
{
    return accel_is_complex(s->dtype) ? 'C' : 'T';
}

/* c := op(a) b, a's adjoint if `across`. */
static void multiply(struct spectral *s, bool across, struct packed a, struct packed b,
                     struct packed c)
{
    struct accel_call call = begin(s, "gemm", "gemm", c.rows, c.cols, b.rows);
    call.blas.flag[ACCEL_transa] = across ? adjoint(s) : 'N';
    put(&call, ACCEL_a, a);
    put(&call, ACCEL_b, b);
    put(&call, ACCEL_c, c);
    run(s, &call);
}

/* c := alpha a b + beta c with a Hermitian matrix a. */
static void multiply_hermitian(struct spectral *s, double alpha, struct packed a, char uplo,
                               struct packed b, double beta, struct packed c)
{
    struct accel_call call = begin(s, "symm", "hemm", c.rows, c.cols, 0);
    call.blas.flag[ACCEL_side] = 'L';
    call.blas.flag[ACCEL_uplo] = uplo;
    call.blas.scalar[ACCEL_alpha].re = alpha;
    call.blas.scalar[ACCEL_beta].re = beta;
    put(&call, ACCEL_a, a);
    put(&call, ACCEL_b, b);
    put(&call, ACCEL_c, c);
    run(s, &call);
}

/* c := alpha a a^H, or a^H a if `across`, the lower triangle. */
static void square(struct spectral *s, double alpha, bool across, struct packed a, struct packed c)
{
    struct accel_call call = begin(s, "syrk", "herk", 0, c.cols, across ? a.rows : a.cols);
    call.blas.flag[ACCEL_trans] = across ? adjoint(s) : 'N';
    call.blas.scalar[ACCEL_alpha].re = alpha;
    put(&call, ACCEL_a, a);
    put(&call, ACCEL_c, c);
    run(s, &call);
}

/* ---- The polar factor ---- */

/* p(x) = a x + b x^3 + c x^5 */
struct quintic {
    double a, b, c;
};

/*
 * The first three come nearest to 1 on [l, 1]; l = 0.06, 0.238, 0.711 (I. Amsel and others, The Polar Express, arXiv:2505.16932, section 3). The first
 * two are divided by a little more than their largest value, so that they stay below 1. What is below l grows by p'(0). `keeps` has p(1) = 1, p'(1) = 0,
 * so that what is near 1 stays there, and the rest grows; `settles` is the Newton-Schulz iteration of order 3.
 */
static const struct quintic grows = {4.007904581244506, -10.69517922516186, 7.685278635933325},
                            nears = {3.3332097572516663, -6.373217086652549, 4.038011321416849},
                            arrives = {2.227912436960371, -2.050954069477159, 0.8260871894847561},
                            keeps = {2.9, -3.3, 1.4}, settles = {1.875, -1.25, 0.375};

/* Three matrices of one order. x: Hermitian, all of it. */
struct iteration {
    struct packed x, y, t;
};

/* x := p(x / scale). Returns the sum of (1 - lambda^2)^2 over the eigenvalues lambda of x / scale, as they were. */
static double step(struct spectral *s, struct iteration *it, const struct quintic *p, double scale)
{
    const double n = (double)it->x.cols, square_of_scale = scale * scale, a = p->a / scale,
                 b = p->b / (scale * square_of_scale),
                 c = p->c / (scale * square_of_scale * square_of_scale), middle = b / (2 * c);
    const struct packed x = it->x;
    double squares = 0, fourths = 0;
    multiply_hermitian(s, 1, x, 'L', x, 0, it->y);
    if (is_well(s) && !s->c->estimates) {
        squares = packed_trace(it->y);
        packed_shift_diagonal(it->y, middle);
    }
    square(s, c, false, it->y, it->t); /* p(x) / x = c (x^2 + middle)^2 + a - c middle^2 */
    if (is_well(s) && !s->c->estimates) {
        fourths = packed_trace(it->t) / c - 2 * middle * squares - n * middle * middle;
        packed_shift_diagonal(it->t, a - c * middle * middle);
    }
    multiply_hermitian(s, 1, it->t, 'L', x, 0, it->y);
    it->x = it->y;
    it->y = x;
    /* What is not Hermitian would grow like the small eigenvalues, for ever. */
    if (is_well(s) && !s->c->estimates)
        packed_mirror(it->x, it->x, 'L', 0, 1);
    note_passes(s, 1, x.cols);
    return n - 2 * squares / square_of_scale + fourths / (square_of_scale * square_of_scale);
}

/* Returns a bound of x's two-norm: |x^4|_F^(1/4), at most n^(1/8) times that, and a little more for its rounding. */
static double bound_of(struct spectral *s, const struct iteration *it)
{
    multiply_hermitian(s, 1, it->x, 'L', it->x, 0, it->y);
    square(s, 1, false, it->y, it->t);
    note_passes(s, 0.5, it->x.cols);
    if (!is_well(s) || s->c->estimates)
        return 1;
    return 1.01 * sqrt(sqrt(sqrt(packed_norms_of(it->t, 'L', 0).square)));
}

/* Returns how many steps make the eigenvalue that is probably nearest to 0 no less than `grows` keeps. */
static int growing_steps(int64_t n)
{
    int steps = 1;
    for (double least = 0.25 / (double)n; least < 0.06; least *= grows.a)
        steps++;
    return steps;
}

/* An eigenvalue of 1e-13 of the largest gets there. One that rounding alone makes differ from 0 may not. */
enum { STEPS_MOST = 30, STEPS_NOMINAL = 2 };

/* x := its polar factor: eigenvalues -1 and 1. Returns whether that is reached. */
static bool make_polar(struct spectral *s, struct iteration *it)
{
    const double near = accel_is_double(s->dtype) ? 1e-6 : 1e-3 + (double)it->x.cols * s->unit;
    const double scale = bound_of(s, it);
    const int growing = growing_steps(it->x.cols);
    for (int i = 0; i < growing; i++)
        step(s, it, &grows, i == 0 ? scale : 1);
    step(s, it, &nears, 1);
    double left = step(s, it, &arrives, 1);
    const int most = s->c->estimates ? STEPS_NOMINAL : STEPS_MOST;
    for (int i = 0; i < most && is_well(s); i++) {
        const bool settling = left <= 0.1;
        left = step(s, it, settling ? &settles : &keeps, 1);
        if ((settling && left <= near && !s->c->estimates) || isnan(left))
            break;
    }
    const bool reached = left <= near || s->c->estimates; /* not so if it is a NaN */
    step(s, it, &settles, 1);
    return reached && is_well(s);
}

/* ---- Bases of its two eigenspaces ---- */

enum { ROUNDS_MOST = 10, ROUNDS_NOMINAL = 2, SHIFTS_MOST = 4 };

/* w := the Cholesky factor of x^H x + shift. A shift that is too small for the rounding is made larger. Returns how far x^H x is from 1. */
static double factor_gram(struct spectral *s, struct packed x, struct packed w)
{
    double distance = 0, shift = 10 * s->unit;
    for (int attempt = 0; is_well(s); attempt++) {
        square(s, 1, true, x, w);
        note_passes(s, 0.5, w.cols);
        if (is_well(s) && !s->c->estimates) {
            distance = packed_norms_of(w, 'L', 1).square;
            packed_shift_diagonal(w, distance < 0.01 ? 0 : shift);
        }
        struct accel_call call = begin(s, "potrf", "potrf", 0, w.cols, 0);
        put(&call, ACCEL_a, w);
        const enum gpu_status status = try_call(s, &call);
        if (status != GPU_UNSUPPORTED || attempt == SHIFTS_MOST) {
            note(s, status);
            break;
        }
        shift *= 100;
    }
    return distance;
}

/* x := x w^-H, a factor's adjoint. */
static void divide(struct spectral *s, struct packed w, struct packed x)
{
    struct accel_call call = begin(s, "trsm", "trsm", x.rows, x.cols, 0);
    call.blas.flag[ACCEL_side] = 'R';
    call.blas.flag[ACCEL_trans] = adjoint(s);
    put(&call, ACCEL_a, w);
    put(&call, ACCEL_b, x);
    run(s, &call);
}

/*
 * v := an orthonormal basis of the eigenspace of u to the eigenvalue `sign`; v must have as many columns as that has dimensions. Random vectors are
 * projected on it and made orthonormal by their Cholesky factor, with a shift as long as they are ill-conditioned (T. Fukaya and others, Shifted
 * Cholesky QR for computing the QR factorization of ill-conditioned matrices, SIAM J. Sci. Comput. 42(1), 2020). That each round
 * projects them again takes away what the one before has amplified. room: as large as v.
 */
static void make_basis(struct spectral *s, struct packed u, double sign, struct packed v,
                       char *room)
{
    const struct packed x = packed_at(room, v.rows, v.cols, s->dtype),
                        w = packed_at(v.ptr, v.cols, v.cols, s->dtype);
    const int rounds = s->c->estimates ? ROUNDS_NOMINAL : ROUNDS_MOST;
    /* With a two-norm near 1. */
    const double most = sqrt(3.0 / (accel_is_complex(s->dtype) ? 2 : 1) / (double)v.cols) / 2.2;
    bool orthonormal = false;
    if (is_well(s) && !s->c->estimates)
        packed_random(v, most, &s->random);
    note_passes(s, 1, v.rows);
    for (int i = 0; i < rounds && is_well(s) && !orthonormal; i++) {
        if (!s->c->estimates)
            packed_copy(x, v);
        multiply_hermitian(s, sign / 2, u, 'L', v, 0.5, x);
        orthonormal = factor_gram(s, x, w) < 0.01 && !s->c->estimates;
        divide(s, w, x);
        if (is_well(s) && !s->c->estimates)
            packed_copy(v, x);
        note_passes(s, 2, v.rows);
    }
    if (!orthonormal && !s->c->estimates)
        note(s, GPU_UNSUPPORTED);
}

/* ---- Dividing ---- */

static void solve(struct spectral *s, struct packed a, char *w);

static int in_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median of the diagonal. */
static double median_of(struct spectral *s, struct packed a)
{
    double *const values = malloc((size_t)a.cols * sizeof *values);
    double median = 0;
    if (!values) {
        note(s, GPU_NO_MEMORY);
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
static void solve_multiple(struct packed a, struct packed vectors, char *w)
{
    const double mean = packed_trace(a) / (double)a.cols;
    packed_identity(vectors);
    for (int64_t i = 0; i < a.cols; i++)
        packed_set_real(w, a.dtype, i, mean);
}

/* So many cubes of the caller's order may be divided. One division of halves after the other takes 4/3; a spectrum that is mostly at one end takes
 * some more. */
#define EFFORT_MOST 4.0

/* What a division leaves out, as a Frobenius norm, may be so many times the unit roundoff, the order and the matrix's norm. */
#define BETWEEN_MOST 4.0

/* sigma is beside the median by a part of the eigenvalues' deviation: many of them may be equal, and then the median is one. */
static const double beside[] = {0.01, -0.013, 0.031};
enum { SIGMAS = sizeof beside / sizeof *beside };

/* Makes the polar factor of a - sigma in it->x. Returns how many eigenvalues are above sigma; 0: it has not been found. */
static int64_t divide_spectrum(struct spectral *s, struct packed a, char uplo, double median,
                               double norm, struct iteration *it)
{
    const int64_t n = a.cols;
    const double deviation = norm / sqrt((double)n);
    for (int i = 0; i < SIGMAS && is_well(s); i++) {
        const double order = (double)n / (double)s->order;
        s->effort += order * order * order;
        note_passes(s, 2, n);
        if (s->effort > EFFORT_MOST)
            break;
        if (!s->c->estimates)
            packed_mirror(it->x, a, uplo, median + beside[i] * deviation, 1 / norm);
        const bool reached = make_polar(s, it);
        if (s->c->estimates)
            return n / 2;
        if (1)
            fprintf(stderr, "DBG reached %d effort %g trace %g\n", reached, s->effort,
                    packed_trace(it->x));
        const double above = ((double)n + packed_trace(it->x)) / 2;
        const int64_t count = is_well(s) && reached && above > 0 ? (int64_t)(above + 0.5) : 0;
        const double off = above - (double)count;
        if (count > 0 && count < n && off < 0.1 && off > -0.1)
            return count;
    }
    note(s, GPU_UNSUPPORTED);
    return 0;
}

/* Solves the parts of a in the bases v, those below sigma first, and returns a's vectors in `to`. room: as large as a. */
static void solve_parts(struct spectral *s, struct packed a, char uplo, struct packed v,
                        int64_t below, struct packed to, char *room, char *w)
{
    const int64_t n = a.cols, above = n - below;
    const struct packed low = packed_at(room, below, below, s->dtype),
                        high = packed_at(room + below * below * s->size, above, above, s->dtype),
                        between =
                            packed_at(high.ptr + above * above * s->size, below, above, s->dtype),
                        v_low = packed_columns(v, 0, below),
                        v_high = packed_columns(v, below, above),
                        to_low = packed_columns(to, 0, below),
                        to_high = packed_columns(to, below, above);
    multiply_hermitian(s, 1, a, uplo, v, 0, to);
    multiply(s, true, v_low, to_low, low);
    multiply(s, true, v_high, to_high, high);
    multiply(s, true, v_low, to_high, between);
    note_passes(s, 0.25, n);
    const double bound = BETWEEN_MOST * (double)s->order * s->unit * s->norm;
    if (is_well(s) && !s->c->estimates && !(packed_square(between) <= bound * bound))
        note(s, GPU_UNSUPPORTED);
    solve(s, low, w);
    solve(s, high, w + below * (int64_t)accel_dtype_size(accel_real_dtype(s->dtype)));
    if (!s->vectors)
        return;
    multiply(s, false, v_low, low, to_low);
    multiply(s, false, v_high, high, to_high);
}

/* Returns a's vectors, without gaps, in memory that the caller frees; its eigenvalues in w. Without s->vectors, any memory, or none. */
static struct packed_memory solve_divided(struct spectral *s, struct packed a, char uplo, char *w)
{
    const int64_t n = a.cols;
    struct packed_memory memory[3];
    double median = 0, square = 1;
    for (int i = 0; i < 3; i++)
        memory[i] = take(s, n);
    struct iteration it = {packed_at(memory[0].ptr, n, n, s->dtype),
                           packed_at(memory[1].ptr, n, n, s->dtype),
                           packed_at(memory[2].ptr, n, n, s->dtype)};
    if (is_well(s) && !s->c->estimates) {
        median = median_of(s, a);
        square = packed_norms_of(a, uplo, median).square;
    }
    const double little = (double)n * s->unit * s->norm;
    int result = 2;
    if (is_well(s) && !s->c->estimates && square <= little * little) {
        solve_multiple(a, it.t, w);
    } else if (is_well(s)) {
        const int64_t above = divide_spectrum(s, a, uplo, median, sqrt(square), &it);
        const struct packed u = it.x, v = it.y;
        make_basis(s, u, -1, packed_columns(v, 0, n - above), it.t.ptr);
        make_basis(s, u, 1, packed_columns(v, n - above, above), it.t.ptr);
        if (is_well(s))
            solve_parts(s, a, uplo, v, n - above, it.t, u.ptr, w);
    }
    for (int i = 0; i < 3; i++)
        if (i != result)
            packed_free(&memory[i]);
    return memory[result];
}

/* a := its vectors, or anything without s->vectors; w: its eigenvalues. a: the lower triangle counts, without gaps. */
static void solve(struct spectral *s, struct packed a, char *w)
{
    struct accel_call call = begin(s, "syevd", "heevd", 0, a.cols, 0);
    call.blas.flag[ACCEL_jobz] = s->vectors ? 'V' : 'N';
    put(&call, ACCEL_a, a);
    call.span[ACCEL_x].ptr = w;
    if (!is_well(s))
        return;
    if (s->c->fits(s->c->context, &call)) {
        const enum gpu_status status = try_call(s, &call);
        if (status != GPU_NO_MEMORY) {
            note(s, status);
            return;
        }
    }
    if (a.cols < 2) {
        note(s, GPU_NO_MEMORY);
        return;
    }
    struct packed_memory vectors = solve_divided(s, a, 'L', w);
    if (is_well(s) && s->vectors && !s->c->estimates)
        packed_copy(a, packed_at(vectors.ptr, a.rows, a.cols, s->dtype));
    note_passes(s, 2, a.cols);
    packed_free(&vectors);
}

/* ---- The call ---- */

/* Eigenvalues at the edge of a part are in order up to rounding. */
static void sort(const struct spectral *s, char *w, struct packed vectors)
{
    for (int64_t i = 1; i < s->order; i++)
        for (int64_t j = i; j > 0; j--) {
            const double here = packed_real(w, s->dtype, j),
                         before = packed_real(w, s->dtype, j - 1);
            if (here >= before)
                break;
            packed_set_real(w, s->dtype, j, before);
            packed_set_real(w, s->dtype, j - 1, here);
            if (s->vectors)
                packed_swap_columns(vectors, j, j - 1);
        }
}

/* Refuses what LAPACK would scale, as solver_refuse_extremes() does, and numbers that are not finite. */
static void examine(struct spectral *s, struct packed a, char uplo)
{
    const double smallest = accel_is_double(s->dtype) ? 6.7e-139 : 9.1e-13;
    const struct packed_norms norms = packed_norms_of(a, uplo, 0);
    s->norm = sqrt(norms.square);
    if (!norms.finite || !(norms.largest > smallest && norms.largest < 1 / smallest))
        note(s, GPU_UNSUPPORTED);
}

/* Whether the host has memory for the first division, and for one of a half within it. */
static bool has_memory(const struct spectral *s)
{
    const double wanted = 4.0 * (double)s->order * (double)s->order * (double)s->size;
    return wanted <= (double)(host_memory_available() / 8 * 7);
}

enum gpu_status spectral_compose(struct composition *c, const struct accel_call *call,
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
    struct packed a = {given->ptr, s.order, s.order, given->ld, dtype};
    struct packed_memory w = {.ptr = NULL}, vectors = {.ptr = NULL};
    *done = *call;
    if (s.order < 2 || !has_memory(&s))
        return s.order < 2 ? GPU_UNSUPPORTED : GPU_NO_MEMORY;
    w = packed_take(s.order * (int64_t)accel_dtype_size(accel_real_dtype(dtype)), c->estimates);
    if (!w.ptr)
        note(&s, GPU_NO_MEMORY);
    note_passes(&s, 0.5, s.order);
    if (is_well(&s) && !c->estimates)
        examine(&s, a, uplo);
    if (is_well(&s))
        vectors = solve_divided(&s, a, uplo, w.ptr);
    if (is_well(&s) && !c->estimates)
        sort(&s, w.ptr, packed_at(vectors.ptr, s.order, s.order, dtype));
    if (!is_well(&s) || c->estimates || !s.vectors)
        packed_free(&vectors);
    if (!is_well(&s) || c->estimates) {
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
