/*
 * Elements in higher precision. Pure functions.
 */
#ifndef ACCEL_CPU_REF_ELEMENT_H
#define ACCEL_CPU_REF_ELEMENT_H

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "call/call.h"

typedef long double complex value;

static inline float bfloat16(uint16_t upper)
{
    uint32_t bits = (uint32_t)upper << 16;
    float z;
    memcpy(&z, &bits, sizeof z);
    return z;
}

static inline value load_value(const void *at, int64_t index, enum accel_dtype dtype)
{
    switch (dtype) {
    case ACCEL_BFLOAT16:
        return bfloat16(((const uint16_t *)at)[index]);
    case ACCEL_FLOAT32:
        return ((const float *)at)[index];
    case ACCEL_FLOAT64:
        return ((const double *)at)[index];
    case ACCEL_COMPLEX64:
        return ((const float complex *)at)[index];
    default:
        return ((const double complex *)at)[index];
    }
}

static inline double smallest_normal(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? DBL_MIN : (double)FLT_MIN;
}

/* The magnitude that the reference tests use: |re| + |im|. */
static inline long double magnitude(value z)
{
    return fabsl(creall(z)) + fabsl(cimagl(z));
}

static inline bool is_finite(value z)
{
    return isfinite(creall(z)) && isfinite(cimagl(z));
}

#endif
