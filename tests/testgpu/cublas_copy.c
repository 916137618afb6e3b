/* copy: x is A, y the result. */
#include <string.h>
#include "cublas_routine.h"

static bool describe(struct blas_call *x)
{
    set_vector(&x->a, x->n);
    set_vector(&x->c, x->n);
    return true;
}

static void compute(const struct blas_call *x, const void *from, const void *none, void *to)
{
    (void)none;
    for (int64_t i = 0; i < x->n; i++)
        memcpy((char *)to + (size_t)vector_index(&x->c, i) * x->c.element,
               (const char *)from + (size_t)vector_index(&x->a, i) * x->a.element, x->c.element);
}

static const struct routine copy = {"copy", NO_ALPHA | ONLY_MOVES, describe, compute, NULL};

#define COPY(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, INTEGER n, const ELEMENT *x,           \
                                     INTEGER incx, ELEMENT *y, INTEGER incy)                       \
    {                                                                                              \
        struct blas_call call = {                                                                  \
            .routine = &(ROUTINE),                                                                 \
            .precision = PRECISION,                                                                \
            .n = n,                                                                                \
            .a = MATRIX(x, incx),                                                                  \
            .c = MATRIX(y, incy),                                                                  \
        };                                                                                         \
        BLAS_CALL(handle, call);                                                                   \
    }

ALL_TYPES(COPY, copy, _v2, copy)
