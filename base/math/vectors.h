/* The host's vectors. */
#ifndef ACCEL_BASE_VECTORS_H
#define ACCEL_BASE_VECTORS_H

#include <stdint.h>

static inline double vector_dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Returns x' M y for a diagonal matrix. */
static inline double vector_dot_by(int64_t n, const double *x, const double *m, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * m[i] * y[i];
    return sum;
}

/* Squares do not overflow. */
static inline double vector_norm(int64_t n, const double *x)
{
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = __builtin_fabs(x[i]) > largest ? __builtin_fabs(x[i]) : largest;
    for (int64_t i = 0; largest > 0 && i < n; i++)
        sum += x[i] / largest * (x[i] / largest);
    return largest * __builtin_sqrt(sum);
}

/* y += a x */
static inline void vector_add(int64_t n, double a, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

#endif
