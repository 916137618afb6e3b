/*
 * OpenBLAS's gemv of complex numbers, for LAPACK's calls and the stand-ins' own. OpenBLAS 0.3.21
 * (zgemv_n_HASWELL and those made of it, cgemv_n_PRESCOTT) loads one element of x more than there
 * are, which lies a whole increment behind the last: W of lasyf ends before it. Where that matters
 * x is packed, with room for one more.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "testgpu.h"

#define GEMV_PARAMETERS                                                                            \
    const char *trans, const int *m, const int *n, const void *alpha, const void *a,               \
        const int *lda, const void *x, const int *incx, const void *beta, void *y,                 \
        const int *incy, size_t length

typedef void gemv_routine(GEMV_PARAMETERS);
gemv_routine __real_cgemv_, __real_zgemv_, __wrap_cgemv_, __wrap_zgemv_;

static void call_on_copy(gemv_routine *routine, size_t element, GEMV_PARAMETERS)
{
    const bool turned = *trans == 'T' || *trans == 'C';
    const int64_t count = turned ? *m : *n, step = *incx;
    const int one = 1;
    if (count <= 0 || step == 0) {
        routine(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, length);
        return;
    }
    char *copy = calloc((size_t)count + 1, element);
    if (copy == NULL)
        abort();
    const char *first = (const char *)x + (step < 0 ? (1 - count) * step * (int64_t)element : 0);
    for (int64_t i = 0; i < count; i++)
        memcpy(copy + (size_t)i * element, first + i * step * (int64_t)element, element);
    routine(trans, m, n, alpha, a, lda, copy, &one, beta, y, incy, length);
    free(copy);
}

void __wrap_cgemv_(GEMV_PARAMETERS)
{
    call_on_copy(__real_cgemv_, 2 * sizeof(float), trans, m, n, alpha, a, lda, x, incx, beta, y,
                 incy, length);
}

void __wrap_zgemv_(GEMV_PARAMETERS)
{
    call_on_copy(__real_zgemv_, 2 * sizeof(double), trans, m, n, alpha, a, lda, x, incx, beta, y,
                 incy, length);
}
