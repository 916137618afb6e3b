#include "scan.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Vectors of 16 bytes, of f64 or f32. An unordered comparison is false, so that `not less` finds
 * NaNs, too; of a NaN and a number, the larger one is the number. */
#ifdef __aarch64__
#    include <arm_neon.h>
#    define VECTOR_f64        float64x2_t
#    define VECTOR_f32        float32x4_t
#    define MASK_f64          uint64x2_t
#    define MASK_f32          uint32x4_t
#    define ALL(t, x)         vdupq_n_##t(x)
#    define LOAD(t, p)        vld1q_##t(p)
#    define STORE(t, p, x)    vst1q_##t(p, x)
#    define MAGNITUDE(t, x)   vabsq_##t(x)
#    define LARGER(t, x, y)   vmaxnmq_##t(x, y)
#    define NOT_LESS(t, x, y) (~vcltq_##t(x, y))
#    define EITHER(t, x, y)   ((x) | (y))
#    define ANY(t, x)         (vmaxvq_u32((uint32x4_t)(x)) != 0)
#else
#    include <emmintrin.h> /* SSE2 is part of x86-64 */
#    define VECTOR_f64        __m128d
#    define VECTOR_f32        __m128
#    define MASK_f64          __m128d
#    define MASK_f32          __m128
#    define OF_f64(operation) _mm_##operation##_pd
#    define OF_f32(operation) _mm_##operation##_ps
#    define ALL(t, x)         OF_##t(set1)(x)
#    define LOAD(t, p)        OF_##t(loadu)(p)
#    define STORE(t, p, x)    OF_##t(storeu)(p, x)
#    define MAGNITUDE(t, x)   OF_##t(andnot)(ALL(t, -0.0), x)
#    define LARGER(t, x, y)   OF_##t(max)(x, y)
#    define NOT_LESS(t, x, y) OF_##t(cmpnlt)(x, y)
#    define EITHER(t, x, y)   OF_##t(or)(x, y)
#    define ANY(t, x)         (OF_##t(movemask)(x) != 0)
#endif

/* Vectors in flight: as many as hide an instruction's latency, because this stands between the
 * memory's rate and the bus's. */
enum { VECTORS = 4 };

#define LOOK(t, k, loaded)                                                                         \
    do {                                                                                           \
        value = MAGNITUDE(t, loaded);                                                              \
        bad = EITHER(t, bad, NOT_LESS(t, value, infinity));                                        \
        largest[k] = LARGER(t, value, largest[k]);                                                 \
    } while (0)

/* Defines a function that looks at n numbers of `type`, which is t. */
#define LOOK_AT(name, type, t)                                                                     \
    static void name(struct gpu_scan *scan, const type *x, size_t n)                               \
    {                                                                                              \
        enum { WIDTH = sizeof(VECTOR_##t) / sizeof(type), BLOCK = VECTORS * WIDTH };               \
        const VECTOR_##t infinity = ALL(t, INFINITY), zero = ALL(t, 0);                            \
        VECTOR_##t value, largest[VECTORS];                                                        \
        MASK_##t bad = (MASK_##t)zero;                                                             \
        type parts[BLOCK];                                                                         \
        size_t i = 0;                                                                              \
        for (int k = 0; k < VECTORS; k++)                                                          \
            largest[k] = zero;                                                                     \
        for (; i + BLOCK <= n; i += BLOCK)                                                         \
            for (int k = 0; k < VECTORS; k++)                                                      \
                LOOK(t, k, LOAD(t, x + i + WIDTH * k));                                            \
        for (; i < n; i++)                                                                         \
            LOOK(t, 0, ALL(t, x[i]));                                                              \
        scan->finite = scan->finite && !ANY(t, bad);                                               \
        for (int k = 0; k < VECTORS; k++)                                                          \
            STORE(t, parts + WIDTH * k, largest[k]);                                               \
        for (int j = 0; j < BLOCK; j++)                                                            \
            scan->largest = (double)parts[j] > scan->largest ? (double)parts[j] : scan->largest;   \
    }
LOOK_AT(look_at_doubles, double, f64)
LOOK_AT(look_at_floats, float, f32)

void gpu_scan_numbers(struct gpu_scan *scan, const void *numbers, int64_t bytes)
{
    if (scan->is_double)
        look_at_doubles(scan, numbers, (size_t)bytes / sizeof(double));
    else
        look_at_floats(scan, numbers, (size_t)bytes / sizeof(float));
}
