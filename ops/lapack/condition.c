/*
 * gecon, pocon: the reciprocal condition number, from the factors of getrf and potrf. Estimates the
 * norm of the inverse like LAPACK 3.11's xLACN2 (N. J. Higham, ACM TOMS 14, 1988, algorithm 674): a
 * few solves on the device, and O(n) on the host between them.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/verify_test.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"

/* A factor of the matrix, up to exchanges of rows, which do not change these norms of the
 * inverse. */
struct triangular_factor {
    char uplo, diag;
    bool adjoint;
};

struct estimate {
    struct solver *s;
    struct array a, vector; /* on the device: the factors, and x during a solve */
    const struct triangular_factor *factor;
    bool adjoint; /* estimate the adjoint of the inverse: the infinity norm */
    int64_t n, parts;
    double *x, *v, *sign; /* `parts` doubles for each element; v is xLACN2's */
    float *single;        /* x in single precision, for the types that have it; else NULL */
    double least;         /* the smallest normal number of the type */
};

/* ---- Vectors ---- */

static double length(const struct estimate *e, int64_t i)
{
    if (e->parts == 1)
        return fabs(e->x[i]);
    double re = fabs(e->x[2 * i]), im = fabs(e->x[2 * i + 1]);
    double larger = re > im ? re : im, smaller = re > im ? im : re;
    return larger > 0 ? larger * test_root(1 + smaller / larger * (smaller / larger)) : larger;
}

static void clear(struct estimate *e)
{
    for (int64_t i = 0; i < e->n * e->parts; i++)
        e->x[i] = 0;
}

static void keep_vector(struct estimate *e)
{
    memcpy(e->v, e->x, (size_t)(e->n * e->parts) * sizeof *e->v);
}

static int64_t largest(const struct estimate *e)
{
    int64_t found = 0;
    double most = -1;
    for (int64_t i = 0; i < e->n; i++) {
        double size = length(e, i);
        found = size > most ? i : found;
        most = size > most ? size : most;
    }
    return found;
}

/* x := its elements over their magnitudes. Returns whether any sign has changed since the last
 * call; true in complex types. */
static bool take_signs(struct estimate *e)
{
    bool other = e->parts == 2;
    for (int64_t i = 0; i < e->n; i++) {
        double *z = &e->x[i * e->parts];
        if (e->parts == 1) {
            *z = *z >= 0 ? 1 : -1;
            other = other || *z != e->sign[i];
            e->sign[i] = *z;
        } else {
            double size = length(e, i);
            z[0] = size > e->least ? z[0] / size : 1;
            z[1] = size > e->least ? z[1] / size : 0;
        }
    }
    return other;
}

static void put_vector(struct estimate *e)
{
    for (int64_t i = 0; e->single && i < e->n * e->parts; i++)
        e->single[i] = (float)e->x[i];
    solver_put(e->s, e->vector, e->single ? (void *)e->single : e->x);
}

static void get_vector(struct estimate *e)
{
    solver_get(e->s, e->single ? (void *)e->single : e->x, e->vector);
    for (int64_t i = 0; e->single && i < e->n * e->parts; i++)
        e->x[i] = (double)e->single[i];
}

/* ---- The estimate ---- */

/* x := inv(A) x, or by the inverse's adjoint; returns its 1-norm. Leaves matrices to LAPACK for
 * which it scales against overflow: singular ones, and almost. */
static double apply_inverse(struct estimate *e, bool adjoint)
{
    double norm = 0;
    adjoint = adjoint != e->adjoint;
    put_vector(e);
    for (int i = 0; i < 2; i++) {
        const struct triangular_factor *f = &e->factor[adjoint ? 1 - i : i];
        solver_trsm(e->s, f->uplo, f->adjoint != adjoint ? solver_adjoint(e->s) : 'N', f->diag,
                    e->a, e->vector);
    }
    get_vector(e);
    for (int64_t i = 0; solver_is_well(e->s) && i < e->n; i++)
        norm += length(e, i);
    if (!(norm >= e->least && norm <= 1 / e->least))
        solver_note(e->s, GPU_UNSUPPORTED);
    return norm;
}

/* Tries the columns of the inverse that promise to be the largest. Returns the norm of the last
 * one. */
static double try_columns(struct estimate *e, double norm)
{
    const int most = 5;
    take_signs(e);
    apply_inverse(e, true);
    int64_t last, column = largest(e);
    for (int i = 2; solver_is_well(e->s); i++) {
        double before = norm;
        clear(e);
        e->x[column * e->parts] = 1;
        norm = apply_inverse(e, false);
        keep_vector(e);
        if (!take_signs(e) || norm <= before)
            break;
        apply_inverse(e, true);
        last = column;
        column = largest(e);
        double there = e->parts == 1 ? e->x[last] : length(e, last);
        if (there == length(e, column) || i == most)
            break;
    }
    return norm;
}

/* Tries a vector of alternating signs, which finds norms that the columns miss by cancellation. */
static double try_alternating(struct estimate *e)
{
    clear(e);
    for (int64_t i = 0; i < e->n; i++)
        e->x[i * e->parts] = (i % 2 ? -1 : 1) * (1 + (double)i / (double)(e->n - 1));
    return 2 * (apply_inverse(e, false) / (3 * (double)e->n));
}

static double inverse_norm(struct estimate *e)
{
    clear(e);
    for (int64_t i = 0; i < e->n; i++)
        e->x[i * e->parts] = 1 / (double)e->n;
    double norm = apply_inverse(e, false);
    keep_vector(e);
    if (e->n == 1)
        return norm;
    norm = try_columns(e, norm);
    double other = try_alternating(e);
    if (other <= norm)
        return norm;
    keep_vector(e);
    return other;
}

/* Writes v, whose norm is the estimate, to elements n + 1 .. 2 n of WORK: LAPACK's xLATDF reads it
 * there after xGECON. */
static void leave_vector(const struct estimate *e)
{
    const struct accel_call *call = e->s->call;
    int i = 0;
    while (i < call->routine->args && call->routine->arg[i].kind != ACCEL_ARG_WORK)
        i++;
    char *work = call->blas.has_work ? (char *)(uintptr_t)call->blas.given[i] : NULL;
    const int64_t numbers = e->n * e->parts;
    if (work && !e->single)
        memcpy(work + numbers * (int64_t)sizeof(double), e->v, (size_t)numbers * sizeof(double));
    for (int64_t k = 0; work && e->single && k < numbers; k++) {
        e->single[k] = (float)e->v[k];
        memcpy(work + (numbers + k) * (int64_t)sizeof(float), &e->single[k], sizeof(float));
    }
}

/* ---- The GPU ---- */

static void return_number(struct solver *s, const struct accel_span *to, double number)
{
    float single = (float)number;
    struct array at = solver_reals(s, 1);
    solver_put(s, at, s->real == ACCEL_FLOAT64 ? (void *)&number : &single);
    solver_return(s, to, at, 0);
}

static void run_condition(struct solver *s, const struct triangular_factor factor[2], bool adjoint)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct estimate e = {.s = s,
                         .a = gpu_in_place(a) ? solver_in_place(a)
                                              : solver_upload(s, a, s->call->blas.flag[ACCEL_uplo]),
                         .vector = solver_array(s, a->cols, 1),
                         .factor = factor,
                         .adjoint = adjoint,
                         .n = a->cols,
                         .parts = accel_is_complex(s->dtype) ? 2 : 1,
                         .least = accel_is_double(s->dtype) ? DBL_MIN : (double)FLT_MIN};
    if (!kernels_fit(s->work, s->call))
        solver_note(s, GPU_UNSUPPORTED);
    double *memory = calloc((size_t)(e.n * e.parts), 4 * sizeof *memory);
    if (!memory)
        solver_note(s, GPU_NO_MEMORY);
    if (solver_is_well(s)) {
        e.x = memory;
        e.v = e.x + e.n * e.parts;
        e.sign = e.v + e.n * e.parts;
        e.single = accel_is_double(s->dtype) ? NULL : (float *)(e.sign + e.n * e.parts);
        double rcond = 1 / inverse_norm(&e) / s->call->blas.scalar[ACCEL_anorm].re;
        if (!(rcond <= 1 / e.least))
            solver_note(s, GPU_UNSUPPORTED);
        if (solver_is_well(s))
            leave_vector(&e);
        return_number(s, &s->call->span[ACCEL_x], rcond);
    }
    free(memory);
}

static void run_gecon(struct solver *s)
{
    static const struct triangular_factor factor[2] = {{'L', 'U', false}, {'U', 'N', false}};
    run_condition(s, factor, s->call->blas.flag[ACCEL_norm] == 'I');
}

static void run_pocon(struct solver *s)
{
    static const struct triangular_factor upper[2] = {{'U', 'N', true}, {'U', 'N', false}};
    static const struct triangular_factor lower[2] = {{'L', 'N', false}, {'L', 'N', true}};
    run_condition(s, s->call->blas.flag[ACCEL_uplo] == 'U' ? upper : lower, false);
}

/* ---- Rules ---- */

static const char *anorm_fault(const struct accel_call *call)
{
    return call->blas.scalar[ACCEL_anorm].re < 0 ? "anorm" : NULL;
}

/* With a norm of 0 or infinity there is nothing to estimate. */
static bool has_norm(const struct accel_call *call)
{
    double anorm = call->blas.scalar[ACCEL_anorm].re;
    return anorm > 0 && isfinite(anorm);
}

/* Not judged: rounding may choose another column, and so another right estimate. */
#define CONDITION(steps_of, ...)                                                                   \
    {                                                                                              \
        LAPACK_SOLVES(.moves = true, __VA_ARGS__), OP_RULES(.fault = anorm_fault),                 \
            OP_GPU(.is_supported = has_norm, .steps = (steps_of))                                  \
    }
const struct accel_op op_gecon = CONDITION(run_gecon);
const struct accel_op op_pocon = CONDITION(run_pocon, .definite = 1 << ACCEL_a);
