/* trttp and tpttr: a triangle packed column by column, and back. */
#include <limits.h>
#include <string.h>
#include "cublas_routine.h"

static int64_t packed_length(int64_t n)
{
    return n * (n + 1) / 2;
}

/* Their sizes are int, and so may be what they compute of them. */
static bool fits_int(int64_t n)
{
    if (packed_length(n) <= INT_MAX)
        return true;
    testgpu_fault("packed_too_long", "n=%lld", (long long)n);
    return false;
}

static bool describe_trttp(struct blas_call *x)
{
    set_shape(&x->a, x->n, x->n, part_of(x->uplo));
    set_vector(&x->c, packed_length(x->n));
    return fits_int(x->n);
}

static bool describe_tpttr(struct blas_call *x)
{
    set_vector(&x->a, packed_length(x->n));
    set_shape(&x->c, x->n, x->n, part_of(x->uplo));
    return fits_int(x->n);
}

/* The columns' parts one after the other; the bytes of each, and where they are in the square. */
static size_t column_of(const struct matrix *square, int64_t column, size_t *offset)
{
    int64_t first, end;
    part_of_column(square, column, &first, &end);
    *offset = (size_t)(column * square->ld + first) * square->element;
    return (size_t)(end - first) * square->element;
}

static void pack(const struct blas_call *x, const void *square, const void *none, void *packed)
{
    char *to = packed;
    (void)none;
    for (int64_t j = 0; j < x->n; j++) {
        size_t offset, bytes = column_of(&x->a, j, &offset);
        memcpy(to, (const char *)square + offset, bytes);
        to += bytes;
    }
}

static void unpack(const struct blas_call *x, const void *packed, const void *none, void *square)
{
    const char *from = packed;
    (void)none;
    for (int64_t j = 0; j < x->n; j++) {
        size_t offset, bytes = column_of(&x->c, j, &offset);
        memcpy((char *)square + offset, from, bytes);
        from += bytes;
    }
}

static const struct routine trttp = {"trttp", NO_ALPHA, describe_trttp, pack, NULL};
static const struct routine tpttr = {"tpttr", NO_ALPHA, describe_tpttr, unpack, NULL};

#define COMMON_FIELDS(PRECISION, ROUTINE)                                                          \
    .routine = &(ROUTINE), .precision = (PRECISION), .uplo = uplo, .n = n

#define TRTTP(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                    \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo, INTEGER n,      \
                                     const ELEMENT *a, INTEGER lda, ELEMENT *ap)                   \
    {                                                                                              \
        struct blas_call x = {COMMON_FIELDS(PRECISION, ROUTINE), .a = MATRIX(a, lda),              \
                              .c = MATRIX(ap, 1)};                                                 \
        BLAS_CALL(handle, x);                                                                      \
    }

#define TPTTR(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                    \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo, INTEGER n,      \
                                     const ELEMENT *ap, ELEMENT *a, INTEGER lda)                   \
    {                                                                                              \
        struct blas_call x = {COMMON_FIELDS(PRECISION, ROUTINE), .a = MATRIX(ap, 1),               \
                              .c = MATRIX(a, lda)};                                                \
        BLAS_CALL(handle, x);                                                                      \
    }

NARROW_TYPES(TRTTP, trttp, , trttp)
NARROW_TYPES(TPTTR, tpttr, , tpttr)
