#include "spectral_steps.h"

#include <math.h>

#include "base/text/text.h"
#include "ops/names.h"
#include "call/shape.h"
#include "ops/typical.h"

/* ---- Inner calls ---- */

/* Returns the routine of this name behind the type's letter; NULL: there is none. */
static const struct accel_routine *routine_of(const char *name, enum accel_dtype dtype)
{
    char symbol[16];
    struct accel_text text;
    text_start(&text, symbol, sizeof symbol);
    text_char(&text, "sdcz"[dtype]);
    text_string(&text, name);
    text_end(&text);
    return accel_name_called(symbol);
}

struct accel_call spectral_begin(const struct spectral *s, const char *real, const char *hermitian,
                                 int64_t m, int64_t n, int64_t k)
{
    const int64_t size[ACCEL_DIMENSIONS] = {[ACCEL_m] = m, [ACCEL_n] = n, [ACCEL_k] = k};
    struct accel_call call;
    shape_typical(&call, routine_of(accel_is_complex(s->dtype) ? hermitian : real, s->dtype), size);
    call.blas.scalar[ACCEL_beta].re = 0;
    return call;
}

void spectral_put(struct accel_call *call, enum accel_matrix which, struct matrix x)
{
    call->span[which].ptr = x.ptr;
    call->span[which].ld = x.ld;
}

enum gpu_status spectral_try(struct spectral *s, struct accel_call *call)
{
    struct accel_span given[ACCEL_SPANS];
    memcpy(given, call->span, sizeof given);
    shape_operands(call);
    for (int i = 0; i < ACCEL_SPANS; i++)
        call->span[i].ld = given[i].ld;
    return spectral_is_well(s) ? s->c->run(s->c->context, call) : s->status;
}

static void run_step(struct spectral *s, struct accel_call *call)
{
    spectral_note(s, spectral_try(s, call));
}

static char adjoint(const struct spectral *s)
{
    return accel_is_complex(s->dtype) ? 'C' : 'T';
}

void spectral_multiply(struct spectral *s, bool across, struct matrix a, struct matrix b,
                       struct matrix c)
{
    struct accel_call call = spectral_begin(s, "gemm", "gemm", c.rows, c.cols, b.rows);
    call.blas.flag[ACCEL_transa] = across ? adjoint(s) : 'N';
    spectral_put(&call, ACCEL_a, a);
    spectral_put(&call, ACCEL_b, b);
    spectral_put(&call, ACCEL_c, c);
    run_step(s, &call);
}

void spectral_multiply_hermitian(struct spectral *s, double alpha, struct matrix a, char uplo,
                                 struct matrix b, double beta, struct matrix c)
{
    struct accel_call call = spectral_begin(s, "symm", "hemm", c.rows, c.cols, 0);
    call.blas.flag[ACCEL_side] = 'L';
    call.blas.flag[ACCEL_uplo] = uplo;
    call.blas.scalar[ACCEL_alpha].re = alpha;
    call.blas.scalar[ACCEL_beta].re = beta;
    spectral_put(&call, ACCEL_a, a);
    spectral_put(&call, ACCEL_b, b);
    spectral_put(&call, ACCEL_c, c);
    run_step(s, &call);
}

/* c := alpha a a^H, or a^H a if `across`, the lower triangle. */
static void square(struct spectral *s, double alpha, bool across, struct matrix a, struct matrix c)
{
    struct accel_call call = spectral_begin(s, "syrk", "herk", 0, c.cols, across ? a.rows : a.cols);
    call.blas.flag[ACCEL_trans] = across ? adjoint(s) : 'N';
    call.blas.scalar[ACCEL_alpha].re = alpha;
    spectral_put(&call, ACCEL_a, a);
    spectral_put(&call, ACCEL_c, c);
    run_step(s, &call);
}

/* ---- The polar factor ---- */

/* p(x) = a x + b x^3 + c x^5 */
struct quintic {
    double a, b, c;
};

/*
 * The first three are the polynomials that come nearest to 1 on [l, 1], for l = 0.06, 0.238, 0.711
 * (I. Amsel and others, The Polar Express, arXiv:2505.16932, section 3). The coefficients of the
 * first two are divided by a little more than the polynomial's largest value, so that no eigenvalue
 * passes 1. An eigenvalue far below l grows by the factor a. `keeps` has p(1) = 1 and p'(1) = 0:
 * eigenvalues near 1 stay there, smaller ones grow. `settles` is the Newton-Schulz iteration of
 * order 3.
 */
static const struct quintic grows = {4.007904581244506, -10.69517922516186, 7.685278635933325},
                            nears = {3.3332097572516663, -6.373217086652549, 4.038011321416849},
                            arrives = {2.227912436960371, -2.050954069477159, 0.8260871894847561},
                            keeps = {2.9, -3.3, 1.4}, settles = {1.875, -1.25, 0.375};

/* x := p(x / scale). Returns the sum of (1 - lambda^2)^2 over the eigenvalues lambda of x / scale,
 * as they were. */
static double apply_quintic(struct spectral *s, struct spectral_iteration *it,
                            const struct quintic *p, double scale)
{
    const double n = (double)it->x.cols, square_of_scale = scale * scale, a = p->a / scale,
                 b = p->b / (scale * square_of_scale),
                 c = p->c / (scale * square_of_scale * square_of_scale), middle = b / (2 * c);
    const struct matrix x = it->x;
    double squares = 0, fourths = 0;
    spectral_multiply_hermitian(s, 1, x, 'L', x, 0, it->y);
    if (spectral_computes(s)) {
        squares = packed_trace(it->y);
        packed_shift_diagonal(it->y, middle);
    }
    square(s, c, false, it->y, it->t); /* p(x) / x = c (x^2 + middle)^2 + a - c middle^2 */
    if (spectral_computes(s)) {
        fourths = packed_trace(it->t) / c - 2 * middle * squares - n * middle * middle;
        packed_shift_diagonal(it->t, a - c * middle * middle);
    }
    spectral_multiply_hermitian(s, 1, it->t, 'L', x, 0, it->y);
    it->x = it->y;
    it->y = x;
    /* A part that is not Hermitian would grow like the small eigenvalues, for ever. */
    if (spectral_computes(s))
        packed_mirror(it->x, it->x, 'L', 0, 1);
    spectral_note_passes(s, 1, x.cols);
    return n - 2 * squares / square_of_scale + fourths / (square_of_scale * square_of_scale);
}

/* Returns a bound of x's two-norm: |x^4|_F^(1/4), at most n^(1/8) times that, and a little more for
 * its rounding. */
static double bound_of(struct spectral *s, const struct spectral_iteration *it)
{
    spectral_multiply_hermitian(s, 1, it->x, 'L', it->x, 0, it->y);
    square(s, 1, false, it->y, it->t);
    spectral_note_passes(s, 0.5, it->x.cols);
    if (!spectral_is_well(s) || s->c->estimates)
        return 1;
    return 1.01 * sqrt(sqrt(sqrt(packed_norms_of(it->t, 'L', 0).square)));
}

/* Returns how many steps make the eigenvalue that is probably nearest to 0 no less than `grows`
 * keeps. */
static int growing_steps(int64_t n)
{
    int steps = 1;
    for (double least = 0.25 / (double)n; least < 0.06; least *= grows.a)
        steps++;
    return steps;
}

/* An eigenvalue of 1e-13 of the largest gets there. One that rounding alone makes differ from 0 may
 * not. */
enum { STEPS_MOST = 30, STEPS_NOMINAL = 2 };

bool spectral_polar(struct spectral *s, struct spectral_iteration *it)
{
    const double near = accel_is_double(s->dtype) ? 1e-6 : 1e-3 + (double)it->x.cols * s->unit;
    const double scale = bound_of(s, it);
    const int growing = growing_steps(it->x.cols);
    for (int i = 0; i < growing; i++)
        apply_quintic(s, it, &grows, i == 0 ? scale : 1);
    apply_quintic(s, it, &nears, 1);
    double left = apply_quintic(s, it, &arrives, 1);
    const int most = s->c->estimates ? STEPS_NOMINAL : STEPS_MOST;
    for (int i = 0; i < most && spectral_is_well(s); i++) {
        const bool settling = left <= 0.1;
        left = apply_quintic(s, it, settling ? &settles : &keeps, 1);
        if ((settling && left <= near && !s->c->estimates) || isnan(left))
            break;
    }
    const bool reached = left <= near || s->c->estimates; /* not so if it is a NaN */
    apply_quintic(s, it, &settles, 1);
    return reached && spectral_is_well(s);
}

/* ---- Bases of its two eigenspaces ---- */

enum { ROUNDS_MOST = 10, ROUNDS_NOMINAL = 2, SHIFTS_MOST = 4 };

/* w := the Cholesky factor of x^H x + shift. A shift that is too small for the rounding is made
 * larger. Returns how far x^H x is from 1. */
static double factor_gram(struct spectral *s, struct matrix x, struct matrix w)
{
    double distance = 0, shift = 10 * s->unit;
    for (int attempt = 0; spectral_is_well(s); attempt++) {
        square(s, 1, true, x, w);
        spectral_note_passes(s, 0.5, w.cols);
        if (spectral_computes(s)) {
            distance = packed_norms_of(w, 'L', 1).square;
            packed_shift_diagonal(w, distance < 0.01 ? 0 : shift);
        }
        struct accel_call call = spectral_begin(s, "potrf", "potrf", 0, w.cols, 0);
        spectral_put(&call, ACCEL_a, w);
        const enum gpu_status status = spectral_try(s, &call);
        if (status != GPU_UNSUPPORTED || attempt == SHIFTS_MOST) {
            spectral_note(s, status);
            break;
        }
        shift *= 100;
    }
    return distance;
}

/* x := x w^-H, a factor's adjoint. */
static void divide_by_adjoint(struct spectral *s, struct matrix w, struct matrix x)
{
    struct accel_call call = spectral_begin(s, "trsm", "trsm", x.rows, x.cols, 0);
    call.blas.flag[ACCEL_side] = 'R';
    call.blas.flag[ACCEL_trans] = adjoint(s);
    spectral_put(&call, ACCEL_a, w);
    spectral_put(&call, ACCEL_b, x);
    run_step(s, &call);
}

/*
 * Random vectors are projected on it and made orthonormal by their Cholesky factor, with a shift as
 * long as they are ill-conditioned (T. Fukaya and others, Shifted Cholesky QR for computing the QR
 * factorization of ill-conditioned matrices, SIAM J. Sci. Comput. 42(1), 2020). That each round
 * projects them again takes away what the one before has amplified.
 */
void spectral_basis(struct spectral *s, struct matrix u, double sign, struct matrix v, char *room)
{
    const struct matrix x = packed_at(room, v.rows, v.cols, s->dtype),
                        w = packed_at(v.ptr, v.cols, v.cols, s->dtype);
    const int rounds = s->c->estimates ? ROUNDS_NOMINAL : ROUNDS_MOST;
    /* With a two-norm near 1. */
    const double most = sqrt(3.0 / (accel_is_complex(s->dtype) ? 2 : 1) / (double)v.cols) / 2.2;
    bool orthonormal = false;
    if (spectral_computes(s))
        packed_random(v, most, &s->random);
    spectral_note_passes(s, 1, v.rows);
    for (int i = 0; i < rounds && spectral_is_well(s) && !orthonormal; i++) {
        if (!s->c->estimates)
            packed_copy(x, v);
        spectral_multiply_hermitian(s, sign / 2, u, 'L', v, 0.5, x);
        orthonormal = factor_gram(s, x, w) < 0.01 && !s->c->estimates;
        divide_by_adjoint(s, w, x);
        if (spectral_computes(s))
            packed_copy(v, x);
        spectral_note_passes(s, 2, v.rows);
    }
    if (!orthonormal && !s->c->estimates)
        spectral_note(s, GPU_UNSUPPORTED);
}
