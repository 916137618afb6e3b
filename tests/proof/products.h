/*
 * Products of large matrices with vectors, by plain loops in several threads: what the results of a
 * BLAS are judged by.
 */
#ifndef ACCEL_PROOF_PRODUCTS_H
#define ACCEL_PROOF_PRODUCTS_H

#include <stddef.h>

/* LOWER and UPPER are triangles with the diagonal, BELOW is one without it. */
enum part { WHOLE, LOWER, BELOW, UPPER };

struct matrix {
    const void *numbers; /* by columns, without gaps; a complex number is two rows */
    int item;            /* bytes of a number: 4 or 8 */
    size_t rows, cols;
    enum part part;
    /* Of all numbers and of a column, the largest sum; product_by_columns() sets both */
    double squares, longest;
};

/* Sets products[j] to that of `left` and column j; left is NULL: to the sum of the column's
 * absolute values. */
void product_by_columns(struct matrix *m, const double *left, double *products);

/* Adds to products[i] that of row i and `right`. */
void product_by_rows(const struct matrix *m, const double *right, double *products);

double dot(const double *x, const double *y, size_t count);

/* Fills a vector with 1 and -1, by chance, always the same. */
void draw_signs(double *x, size_t count);

/* How far two vectors of products are apart, at most, over a bound of the rounding errors of the
 * factors' product: one has this sum of squares, a column of the other that length. Numbers of
 * `item` bytes. At most 1, unless something is wrong; NaN, if something is no number. */
double distance(const double *x, const double *y, size_t count, int item, double squares,
                double longest);

#endif
