/*
 * A matrix in host memory; and numbers there, of any of BLAS's four types and at any address, as
 * doubles. Pure functions.
 */
#ifndef ACCEL_MATRIX_H
#define ACCEL_MATRIX_H

#include <complex.h>

#include "call.h"

/* Column-major, with `ld` elements from one column to the next. It does not own its memory. */
struct matrix {
    char *ptr;
    int64_t rows, cols, ld;
    enum accel_dtype dtype;
};

static inline struct matrix matrix_of_span(const struct accel_span *x)
{
    return (struct matrix){x->ptr, x->rows, x->cols, x->ld, x->dtype};
}

/* Returns rows x cols elements of it, from (row, col) on. */
static inline struct matrix matrix_part(struct matrix x, int64_t row, int64_t col, int64_t rows,
                                        int64_t cols)
{
    x.ptr += (row + col * x.ld) * (int64_t)accel_dtype_size(x.dtype);
    return (struct matrix){x.ptr, rows, cols, x.ld, x.dtype};
}

/* Returns the number of an element of a triangle that is stored without gaps, column by column, as
 * LAPACK's packed routines have it. */
static inline int64_t triangle_place(char uplo, int64_t order, int64_t row, int64_t col)
{
    return row + (uplo == 'U' ? col * (col + 1) / 2 : col * (2 * order - col - 1) / 2);
}

/* Returns the real numbers in an element: 2 of a complex one, the real part first. */
static inline int64_t parts_of(enum accel_dtype dtype)
{
    return accel_is_complex(dtype) ? 2 : 1;
}

/* Return and set real number i of an array, in which a complex element is two. */
static inline double load_real(const void *numbers, enum accel_dtype dtype, int64_t i)
{
    double wide;
    float narrow;
    if (accel_is_double(dtype))
        return memcpy(&wide, (const char *)numbers + i * 8, 8), wide;
    return memcpy(&narrow, (const char *)numbers + i * 4, 4), (double)narrow;
}
static inline void store_real(void *numbers, enum accel_dtype dtype, int64_t i, double value)
{
    if (accel_is_double(dtype))
        memcpy((char *)numbers + i * 8, &value, 8);
    else
        memcpy((char *)numbers + i * 4, &(float){(float)value}, 4);
}

/* Return and set element i of an array; of a real type, the real part alone. */
static inline double complex load_element(const void *elements, enum accel_dtype dtype, int64_t i)
{
    const int64_t parts = parts_of(dtype);
    const double part[2] = {load_real(elements, dtype, parts * i),
                            parts == 2 ? load_real(elements, dtype, 2 * i + 1) : 0};
    double complex z;
    return memcpy(&z, part, sizeof z), z;
}
static inline void store_element(void *elements, enum accel_dtype dtype, int64_t i,
                                 double complex value)
{
    const int64_t parts = parts_of(dtype);
    store_real(elements, dtype, parts * i, creal(value));
    if (parts == 2)
        store_real(elements, dtype, 2 * i + 1, cimag(value));
}

#endif
