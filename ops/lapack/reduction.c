/*
 * sygst, hegst: a pencil reduced to one matrix, by B's Cholesky factor: A := U^-H A U^-1 or
 * L^-1 A L^-H (itype 1), U A U^H or L^H A L (2, 3). cuSOLVER has no such function. A triangle is
 * halved: its leading part, what is beside, its trailing part, by the steps of LAPACK's ?sygst.
 * They keep A Hermitian, so that its residual does not grow with the condition of B, as that of
 * solutions from both sides does. Small parts are the host's.
 */
#include "call/matrix.h"
#include "cpu_ref/checks.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

typedef double complex number;

static const struct accel_complex one = {1, 0}, minus_one = {-1, 0}, half = {0.5, 0},
                                  minus_half = {-0.5, 0};

/* ---- A small part, on the host ---- */

enum { SMALL = 32 };

/* A lower triangle; of an upper one its adjoint. */
typedef number triangle[SMALL][SMALL];

struct small {
    triangle a, b;
    number elements[SMALL * SMALL]; /* of the routine's type, packed */
};

static void get(struct solver *s, char uplo, struct array from, number *elements, triangle to)
{
    const int64_t n = from.rows;
    solver_get(s, elements, from);
    for (int64_t i = 0; solver_is_well(s) && i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            to[i][j] = uplo == 'L' ? load_element(elements, from.dtype, i + j * n)
                                   : conj(load_element(elements, from.dtype, j + i * n));
}

/* By a place of its own on the device: what comes up covers whole columns. */
static void put_triangle(struct solver *s, char uplo, triangle from, number *elements,
                         struct array place, struct array to)
{
    const int64_t n = to.rows;
    memset(elements, 0, sizeof(number) * SMALL * SMALL);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            if (uplo == 'L')
                store_element(elements, to.dtype, i + j * n, from[i][j]);
            else
                store_element(elements, to.dtype, j + i * n, conj(from[i][j]));
    const struct array part = solver_part(place, 0, 0, n, n);
    solver_put(s, part, elements);
    solver_copy(s, to, part);
}

/* L^-1 A L^-H, a column at a time */
static void reduce_by_factor(triangle a, triangle l, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const number pivot = l[k][k];
        a[k][k] = a[k][k] / pivot / pivot;
        for (int64_t i = k + 1; i < n; i++)
            a[i][k] = a[i][k] / pivot - a[k][k] / 2 * l[i][k];
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = k + 1; j <= i; j++)
                a[i][j] -= a[i][k] * conj(l[j][k]) + l[i][k] * conj(a[j][k]);
        for (int64_t i = k + 1; i < n; i++) {
            a[i][k] -= a[k][k] / 2 * l[i][k];
            for (int64_t j = k + 1; j < i; j++)
                a[i][k] -= l[i][j] * a[j][k];
            a[i][k] /= l[i][i];
        }
    }
}

/* L^H A L, a row at a time */
static void multiply(triangle a, triangle l, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const number pivot = l[k][k];
        for (int64_t j = 0; j < k; j++) {
            number sum = a[k][k] / 2 * l[k][j];
            for (int64_t i = j; i < k; i++)
                sum += a[k][i] * l[i][j];
            a[k][j] = sum;
        }
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j <= i; j++)
                a[i][j] += conj(a[k][i]) * l[k][j] + conj(l[k][i]) * a[k][j];
        for (int64_t j = 0; j < k; j++)
            a[k][j] = pivot * (a[k][j] + a[k][k] / 2 * l[k][j]);
        a[k][k] = pivot * a[k][k] * pivot;
    }
}

/* ---- On the device ---- */

struct reduction {
    struct solver *s;
    char uplo;
    bool upper, divides; /* itype 1 */
    char adjoint;        /* the letter */
    struct small *small;
    struct array place; /* of a small part, on the device */
};

static void reduce_small(const struct reduction *r, struct array a, struct array b)
{
    struct small *small = r->small;
    get(r->s, r->uplo, a, small->elements, small->a);
    get(r->s, r->uplo, b, small->elements, small->b);
    if (!solver_is_well(r->s))
        return;
    if (r->divides)
        reduce_by_factor(small->a, small->b, a.rows);
    else
        multiply(small->a, small->b, a.rows);
    put_triangle(r->s, r->uplo, small->a, small->elements, r->place, a);
}

/* x := op(t)^-1 x or op(t) x, or from the right. */
static void apply_triangle(const struct reduction *r, char side, char op, struct array t,
                           struct array x)
{
    if (!solver_is_well(r->s))
        return;
    struct gpu_work *work = r->s->work;
    solver_note(r->s, r->divides ? gpu_kernels(work)->trsm(work, side, r->uplo, op, 'N', x.rows,
                                                           x.cols, one, t.at, x.at)
                                 : gpu_kernels(work)->trmm(work, side, r->uplo, op, 'N', x.rows,
                                                           x.cols, one, t.at, x.at));
}

/* x += half of h b, or from the right; itype 1: -= */
static void add_half(const struct reduction *r, char side, struct array h, struct array b,
                     struct array x)
{
    GPU_DO(r->s, gpu_kernels(r->s->work)
                     ->symm(r->s->work, accel_is_complex(x.dtype), side, r->uplo, x.rows, x.cols,
                            r->divides ? minus_half : half, h.at, b.at, one, x.at));
}

/* h += x b^H + b x^H, or x^H b + b^H x; itype 1: -= */
static void add_products(const struct reduction *r, char op, struct array x, struct array b,
                         struct array h)
{
    GPU_DO(r->s, gpu_kernels(r->s->work)
                     ->syr2k(r->s->work, accel_is_complex(x.dtype), r->uplo, op, h.rows,
                             op == 'N' ? x.cols : x.rows, r->divides ? minus_one : one, x.at, b.at,
                             one, h.at));
}

/* What is beside the two triangles: the leading one is at one side of it, the trailing one at the
 * other. */
static void reduce_beside(const struct reduction *r, struct array lead_a, struct array lead_b,
                          struct array x, struct array b, struct array trail_a,
                          struct array trail_b)
{
    const char lead = r->upper ? 'L' : 'R', trail = r->upper ? 'R' : 'L';
    const char side = r->divides ? lead : trail;
    const struct array done = r->divides ? lead_a : trail_a, open = r->divides ? trail_a : lead_a;
    apply_triangle(r, lead, r->divides ? r->adjoint : 'N', lead_b, x);
    add_half(r, side, done, b, x);
    add_products(r, r->upper == r->divides ? r->adjoint : 'N', x, b, open);
    add_half(r, side, done, b, x);
    apply_triangle(r, trail, r->divides ? 'N' : r->adjoint, trail_b, x);
}

static void reduce(const struct reduction *r, struct array a, struct array b)
{
    const int64_t n = a.rows, m = (n / 2 + SMALL - 1) / SMALL * SMALL;
    if (n <= SMALL) {
        reduce_small(r, a, b);
        return;
    }
    const struct array lead_a = solver_part(a, 0, 0, m, m), lead_b = solver_part(b, 0, 0, m, m),
                       trail_a = solver_part(a, m, m, n - m, n - m),
                       trail_b = solver_part(b, m, m, n - m, n - m);
    reduce(r, lead_a, lead_b);
    if (r->upper)
        reduce_beside(r, lead_a, lead_b, solver_part(a, 0, m, m, n - m),
                      solver_part(b, 0, m, m, n - m), trail_a, trail_b);
    else
        reduce_beside(r, lead_a, lead_b, solver_part(a, m, 0, n - m, m),
                      solver_part(b, m, 0, n - m, m), trail_a, trail_b);
    reduce(r, trail_a, trail_b);
}

static void run_sygst(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *b = &s->call->span[ACCEL_b];
    const char uplo = s->call->blas.flag[ACCEL_uplo];
    const struct reduction r = {s,
                                uplo,
                                uplo == 'U',
                                s->call->blas.size[ACCEL_itype] == 1,
                                solver_adjoint(s),
                                malloc(sizeof *r.small),
                                solver_array(s, SMALL, SMALL)};
    if (!r.small)
        solver_note(s, GPU_NO_MEMORY);
    if (r.divides)
        solver_refuse_zero_diagonal(s, b);
    const struct array x = solver_upload_hermitian(s, a, uplo),
                       factor = solver_upload_hermitian(s, b, uplo);
    if (solver_is_well(s))
        reduce(&r, x, factor);
    solver_return(s, a, x, uplo);
    free(r.small);
}

static const char *itype_fault(const struct accel_call *call)
{
    return call->blas.size[ACCEL_itype] < 1 || call->blas.size[ACCEL_itype] > 3 ? "itype" : NULL;
}

const struct accel_op op_sygst = {
    LAPACK_BLOCKS(.hermitian = true, .triangles = 1 << ACCEL_a, .definite = 1 << ACCEL_b),
    OP_RULES(.fault = itype_fault, .check = check_sygst),
    OP_GPU(.steps = run_sygst, .whole = "each part of the triangle is multiplied from both sides")};
