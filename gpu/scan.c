#include "scan.h"

#include <emmintrin.h> /* SSE2 is part of x86-64 */
#include <math.h>
#include <stddef.h>

/* Several numbers at once, and as many in flight as hide an instruction's latency: this stands between the memory's rate
 * and the bus's. An unordered comparison is false, so that `not less` tells NaNs, too. */
enum { LANES = 4 };

static void look_at_doubles(struct gpu_scan *scan, const double *x, size_t n)
{
    const __m128d magnitude = _mm_castsi128_pd(_mm_set1_epi64x(INT64_MAX));
    const __m128d infinity = _mm_set1_pd(INFINITY);
    __m128d largest[LANES], bad = _mm_setzero_pd();
    size_t i = 0;
    for (int k = 0; k < LANES; k++)
        largest[k] = _mm_setzero_pd();
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (int k = 0; k < LANES; k++) {
            __m128d value = _mm_and_pd(_mm_loadu_pd(x + i + 2 * (size_t)k), magnitude);
            bad = _mm_or_pd(bad, _mm_cmpnlt_pd(value, infinity));
            largest[k] = _mm_max_pd(value, largest[k]);
        }
    for (; i < n; i++) {
        __m128d value = _mm_and_pd(_mm_set1_pd(x[i]), magnitude);
        bad = _mm_or_pd(bad, _mm_cmpnlt_pd(value, infinity));
        largest[0] = _mm_max_pd(value, largest[0]);
    }
    scan->finite = scan->finite && _mm_movemask_pd(bad) == 0;
    for (int k = 0; k < LANES; k++) {
        double parts[2];
        _mm_storeu_pd(parts, largest[k]);
        for (int j = 0; j < 2; j++)
            scan->largest = parts[j] > scan->largest ? parts[j] : scan->largest;
    }
}

static void look_at_floats(struct gpu_scan *scan, const float *x, size_t n)
{
    const __m128 magnitude = _mm_castsi128_ps(_mm_set1_epi32(INT32_MAX));
    const __m128 infinity = _mm_set1_ps(INFINITY);
    __m128 largest[LANES], bad = _mm_setzero_ps();
    size_t i = 0;
    for (int k = 0; k < LANES; k++)
        largest[k] = _mm_setzero_ps();
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int k = 0; k < LANES; k++) {
            __m128 value = _mm_and_ps(_mm_loadu_ps(x + i + 4 * (size_t)k), magnitude);
            bad = _mm_or_ps(bad, _mm_cmpnlt_ps(value, infinity));
            largest[k] = _mm_max_ps(value, largest[k]);
        }
    for (; i < n; i++) {
        __m128 value = _mm_and_ps(_mm_set1_ps(x[i]), magnitude);
        bad = _mm_or_ps(bad, _mm_cmpnlt_ps(value, infinity));
        largest[0] = _mm_max_ps(value, largest[0]);
    }
    scan->finite = scan->finite && _mm_movemask_ps(bad) == 0;
    for (int k = 0; k < LANES; k++) {
        float parts[4];
        _mm_storeu_ps(parts, largest[k]);
        for (int j = 0; j < 4; j++)
            scan->largest = (double)parts[j] > scan->largest ? (double)parts[j] : scan->largest;
    }
}

void gpu_scan_numbers(struct gpu_scan *scan, const void *numbers, int64_t bytes)
{
    if (scan->is_double)
        look_at_doubles(scan, numbers, (size_t)bytes / sizeof(double));
    else
        look_at_floats(scan, numbers, (size_t)bytes / sizeof(float));
}
