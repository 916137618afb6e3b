#include "scan.h"

#include <emmintrin.h> /* SSE2 is part of x86-64 */
#include <math.h>
#include <stddef.h>

/* Vectors in flight: as many as hide an instruction's latency, because this stands between the memory's rate and the bus's. */
enum { VECTORS = 4 };

#define LOOK(k, loaded, end)                                                                       \
    do {                                                                                           \
        value = _mm_and_##end(loaded, magnitude);                                                  \
        bad = _mm_or_##end(bad, _mm_cmpnlt_##end(value, infinity));                                \
        largest[k] = _mm_max_##end(value, largest[k]);                                             \
    } while (0)

/* Defines a function that looks at n numbers of `type`, with the instructions _mm_..._<end>. An unordered comparison is
 * false, so that `not less` finds NaNs, too. */
#define LOOK_AT(name, type, vector, end, all_but_sign)                                             \
    static void name(struct gpu_scan *scan, const type *x, size_t n)                               \
    {                                                                                              \
        enum { WIDTH = sizeof(vector) / sizeof(type), BLOCK = VECTORS * WIDTH };                   \
        const vector magnitude = all_but_sign, infinity = _mm_set1_##end(INFINITY);                \
        vector value, largest[VECTORS], bad = _mm_setzero_##end();                                 \
        type parts[BLOCK];                                                                         \
        size_t i = 0;                                                                              \
        for (int k = 0; k < VECTORS; k++)                                                          \
            largest[k] = _mm_setzero_##end();                                                      \
        for (; i + BLOCK <= n; i += BLOCK)                                                         \
            for (int k = 0; k < VECTORS; k++)                                                      \
                LOOK(k, _mm_loadu_##end(x + i + WIDTH * k), end);                                  \
        for (; i < n; i++)                                                                         \
            LOOK(0, _mm_set1_##end(x[i]), end);                                                    \
        scan->finite = scan->finite && _mm_movemask_##end(bad) == 0;                               \
        for (int k = 0; k < VECTORS; k++)                                                          \
            _mm_storeu_##end(parts + WIDTH * k, largest[k]);                                       \
        for (int j = 0; j < BLOCK; j++)                                                            \
            scan->largest = (double)parts[j] > scan->largest ? (double)parts[j] : scan->largest;   \
    }
LOOK_AT(look_at_doubles, double, __m128d, pd, _mm_castsi128_pd(_mm_set1_epi64x(INT64_MAX)))
LOOK_AT(look_at_floats, float, __m128, ps, _mm_castsi128_ps(_mm_set1_epi32(INT32_MAX)))

void gpu_scan_numbers(struct gpu_scan *scan, const void *numbers, int64_t bytes)
{
    if (scan->is_double)
        look_at_doubles(scan, numbers, (size_t)bytes / sizeof(double));
    else
        look_at_floats(scan, numbers, (size_t)bytes / sizeof(float));
}
