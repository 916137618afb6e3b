/*
 * For the checks of results: vectors in one block of memory that is freed as a whole, and bounds.
 */
#ifndef ACCEL_CPU_REF_VECTORS_H
#define ACCEL_CPU_REF_VECTORS_H

#include <float.h>
#include <stdlib.h>

#include "apply.h"
#include "verify.h"

/* The elements of a random vector have magnitudes from 1 to 2. */
#define RANDOM_MOST 2.0

struct vectors {
    double *memory;
    int64_t length, used; /* doubles */
    uint64_t random;
};

/* Makes room for `count` vectors of up to n elements, complex or not. False without memory. */
static inline bool vectors_open(struct vectors *v, int64_t count, int64_t n, uint64_t seed)
{
    int64_t length;
    *v = (struct vectors){.random = seed * 2 + 1};
    if (!accel_mul(count, 2 * (n + 1), &length) || length > INT64_MAX / 8)
        return false;
    v->length = length;
    v->memory = malloc((size_t)length * sizeof(double));
    return v->memory;
}

static inline void vectors_close(struct vectors *v)
{
    free(v->memory);
}

/* Returns a vector of n zeros. */
static inline double *vector_zero(struct vectors *v, int64_t n)
{
    double *x = v->memory + v->used;
    v->used += n;
    memset(x, 0, (size_t)n * sizeof *x);
    return x;
}

/* Uniform in [0, 1): xorshift64* (S. Vigna, An experimental exploration of Marsaglia's xorshift
 * generators). */
static inline double random_next(struct vectors *v)
{
    v->random ^= v->random >> 12;
    v->random ^= v->random << 25;
    v->random ^= v->random >> 27;
    return (double)((v->random * 0x2545f4914f6cdd1du) >> 11) * 0x1p-53;
}

/* Fills n elements with real numbers of either sign, from 1 to RANDOM_MOST in magnitude. */
static inline double *vector_random(struct vectors *v, int64_t n, enum accel_dtype dtype)
{
    int64_t parts = parts_of(dtype);
    double *x = vector_zero(v, n * parts);
    for (int64_t i = 0; i < n; i++) {
        double z = 1 + random_next(v);
        x[i * parts] = random_next(v) < 0.5 ? -z : z;
    }
    return x;
}

static inline double dot_self(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static inline double unit_roundoff(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? 0x1p-53 : 0x1p-24;
}

/* The largest number of a type. */
static inline double most_of(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? DBL_MAX : (double)FLT_MAX;
}

static inline bool is_number(double x)
{
    return x - x == 0;
}

/* Whether products of matrices with this norm, and the squares of the products, keep full
 * precision. */
static inline double least_moderate(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? 1e-60 : 1e-25;
}

static inline bool is_moderate(enum accel_dtype dtype, double norm)
{
    const double least = least_moderate(dtype);
    return norm == 0 || (norm < 1 / least && norm > least);
}

/* Whether the norm of a result, or the scale of its residual, is beyond what is judged: NaN,
 * infinite or very large. */
static inline bool is_huge(enum accel_dtype dtype, double size)
{
    return !(size < 1 / least_moderate(dtype));
}

/* Judges a result that is huge: it is wrong if the scale that is due is far from that. Else it may
 * be beyond the range of its type. */
static inline double judge_huge(enum accel_dtype dtype, double due)
{
    const double margin = 1e6; /* `due` is an estimate */
    return is_huge(dtype, margin * due) ? CPU_REF_NOT_JUDGED : INFINITY;
}

/* Below this number, rounding is no longer relative. */
static inline double least_precise(enum accel_dtype dtype)
{
    return smallest_normal(dtype) / unit_roundoff(dtype);
}

/* The norm by which rounding counts where a call factors a matrix: the elements of the factors err
 * by what underflows, besides. */
static inline double factored_size(enum accel_dtype dtype, double norm)
{
    return norm == 0 ? 0 : norm + least_precise(dtype);
}

/* The scale of A X = B, by norms. Elements of a solution may have vanished, unless all of it is 0
 * as its right-hand sides are. */
static inline double solution_scale(enum accel_dtype dtype, double a, double x, double b)
{
    return a * (x + (x + b == 0 ? 0 : least_precise(dtype))) + b;
}

/* fmax() without libm: libaccel.so needs libc alone. */
static inline double greater_of(double x, double y)
{
    return x > y ? x : y;
}

/* sqrt(x^2 + y^2), also where the squares overflow or underflow. */
static inline double hypotenuse(double x, double y)
{
    const double a = x < 0 ? -x : x, b = y < 0 ? -y : y, longer = a < b ? b : a,
                 shorter = a < b ? a : b, share = shorter == longer ? 1 : shorter / longer;
    return longer * sqrt(1 + share * share);
}

/* sqrt(error / bound); both arguments are squares. */
static inline double ratio_of_squares(double error, double bound)
{
    if (error == 0)
        return 0;
    return is_number(error) && bound > 0 ? sqrt(error / bound) : INFINITY;
}

/* *worst becomes the error's ratio to its bound if that is more. */
static inline void note_error(double *worst, double error, double bound)
{
    const double ratio = error == 0 ? 0 : error / bound;
    if (!(ratio <= *worst)) /* a NaN is wrong */
        *worst = ratio == ratio ? ratio : INFINITY;
}

#endif
