/*
 * Judges the results of time_calls. u is a vector of 1 and -1: where A = B C, it compares u A with
 * (u B) C, or A u with B (C u).
 */
#include "products.h"
#include "time_calls.h"

#include <math.h>
#include <string.h>

struct vectors {
    double *u, *expected, *between, *found; /* VECTORS of them */
};

static struct vectors draw(const struct data *d)
{
    const size_t most = 2 * (size_t)d->n;
    struct vectors v = {d->vectors, d->vectors + most, d->vectors + 2 * most,
                        d->vectors + 3 * most};
    memset(d->vectors, 0, VECTORS * most * sizeof *d->vectors);
    draw_signs(v.u, most);
    return v;
}

/* A complex matrix is one of pairs of rows: the real part, the imaginary part. */
static struct matrix matrix(const struct data *d, const char *numbers, enum part part)
{
    const size_t n = (size_t)d->n, rows = d->routine->item == 16 ? 2 * n : n;
    return (struct matrix){numbers, d->routine->item == 4 ? 4 : 8, rows, n, part, 0, 0};
}

/* By `item` of numbers, not of elements. */
static double off(const struct data *d, const struct vectors *v, double squares, double longest)
{
    return distance(v->expected, v->found, (size_t)d->n, d->routine->item == 4 ? 4 : 8, squares,
                    longest);
}

/* A symmetric matrix, of which the lower triangle is stored. */
static void product_by_symmetric(struct matrix *lower, const double *u, double *products)
{
    struct matrix below = *lower;
    below.part = BELOW;
    product_by_columns(lower, u, products);
    product_by_rows(&below, u, products);
}

/*
 * Of complex numbers, u has the real parts, and the imaginary parts with the other sign: a product
 * with pairs of rows is then the real part of that with complex columns. `between` is such a
 * vector, too, and takes the imaginary part from u times the imaginary unit.
 */
static void complex_between(struct matrix *a, struct vectors *v)
{
    const size_t n = a->cols;
    double *turned = v->found, *imaginary = v->expected;
    for (size_t i = 0; i < n; i++) {
        turned[2 * i] = -v->u[2 * i + 1];
        turned[2 * i + 1] = v->u[2 * i];
    }
    product_by_columns(a, turned, imaginary);
    product_by_columns(a, v->u, turned);
    for (size_t i = 0; i < n; i++) {
        v->between[2 * i] = turned[i];
        v->between[2 * i + 1] = -imaginary[i];
    }
}

/* z = x y. */
double judge_product(const struct data *d)
{
    struct vectors v = draw(d);
    struct matrix a = matrix(d, d->x, WHOLE), b = matrix(d, d->y, WHOLE),
                  c = matrix(d, d->z, WHOLE);
    if (d->routine->item == 16)
        complex_between(&a, &v);
    else
        product_by_columns(&a, v.u, v.between);
    product_by_columns(&b, v.between, v.expected);
    product_by_columns(&c, v.u, v.found);
    return off(d, &v, a.squares, b.longest);
}

/* x x^T is the symmetric matrix of this lower triangle. The rows of x are as long as its
 * columns. */
static double judge_times_itself(const struct data *d, enum part of_x, const char *lower)
{
    struct vectors v = draw(d);
    struct matrix x = matrix(d, d->x, of_x), square = matrix(d, lower, LOWER);
    product_by_columns(&x, v.u, v.between);
    product_by_rows(&x, v.between, v.expected);
    product_by_symmetric(&square, v.u, v.found);
    return off(d, &v, x.squares, x.longest);
}

/* y = x x^T, the lower triangle. */
double judge_square(const struct data *d)
{
    return judge_times_itself(d, WHOLE, d->y);
}

/* The triangle y times x is what x was. */
double judge_solution(const struct data *d)
{
    struct vectors v = draw(d);
    struct matrix l = matrix(d, d->y, LOWER), x = matrix(d, d->x, WHOLE),
                  b = matrix(d, d->source, WHOLE);
    product_by_columns(&l, v.u, v.between);
    product_by_columns(&x, v.between, v.found);
    product_by_columns(&b, v.u, v.expected);
    return off(d, &v, l.squares, x.longest);
}

/* P^T L U is what x was. L's diagonal of ones is not stored. */
double judge_lu(const struct data *d)
{
    const size_t n = (size_t)d->n;
    struct vectors v = draw(d);
    struct matrix l = matrix(d, d->x, BELOW), u = matrix(d, d->x, UPPER),
                  a = matrix(d, d->source, WHOLE);
    product_by_columns(&l, v.u, v.between);
    for (size_t i = 0; i < n; i++)
        v.between[i] += v.u[i];
    product_by_columns(&u, v.between, v.found);
    for (size_t i = n; i-- > 0;) {
        if (d->pivots[i] < 1 || d->pivots[i] > d->n)
            return NAN;
        const size_t other = (size_t)d->pivots[i] - 1;
        const double mine = v.u[i];
        v.u[i] = v.u[other];
        v.u[other] = mine;
    }
    product_by_columns(&a, v.u, v.expected);
    return off(d, &v, l.squares + (double)n, u.longest);
}

/* L L^T is what x was, both as lower triangles. */
double judge_cholesky(const struct data *d)
{
    return judge_times_itself(d, LOWER, d->source);
}

/* Q R is what x was. Q is reflections, one after the other, each by a column below the diagonal,
 * and a factor. */
double judge_qr(const struct data *d)
{
    const size_t n = (size_t)d->n;
    struct vectors v = draw(d);
    struct matrix r = matrix(d, d->x, UPPER), a = matrix(d, d->source, WHOLE);
    memcpy(v.between, v.u, n * sizeof *v.between);
    for (size_t k = 0; k < n; k++) {
        const double *below = (const double *)(const void *)d->x + k * n + k + 1;
        double *rest = v.between + k + 1;
        const double share = d->values[k] * (rest[-1] + dot(below, rest, n - k - 1));
        rest[-1] -= share;
        for (size_t i = 0; i < n - k - 1; i++)
            rest[i] -= share * below[i];
    }
    product_by_columns(&r, v.between, v.found);
    product_by_columns(&a, v.u, v.expected);
    return off(d, &v, (double)n, r.longest);
}

static void scale(double *x, const struct data *d)
{
    for (int i = 0; i < d->n; i++)
        x[i] *= d->values[i];
}

/* V D V^T is the symmetric matrix that x was, of whose lower triangle the first column is whole. */
double judge_eigenvectors(const struct data *d)
{
    struct vectors v = draw(d);
    struct matrix vectors = matrix(d, d->x, WHOLE), a = matrix(d, d->source, LOWER);
    product_by_columns(&vectors, v.u, v.between);
    scale(v.between, d);
    product_by_rows(&vectors, v.between, v.found);
    product_by_symmetric(&a, v.u, v.expected);
    return off(d, &v, (double)d->n, a.longest);
}

/* U S V^T is what x was. */
double judge_singular_vectors(const struct data *d)
{
    struct vectors v = draw(d);
    struct matrix left = matrix(d, d->y, WHOLE), right = matrix(d, d->z, WHOLE),
                  a = matrix(d, d->source, WHOLE);
    product_by_columns(&left, v.u, v.between);
    scale(v.between, d);
    product_by_columns(&right, v.between, v.found);
    product_by_columns(&a, v.u, v.expected);
    return off(d, &v, (double)d->n, a.longest);
}
