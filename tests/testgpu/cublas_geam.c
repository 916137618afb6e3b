/* geam, cuBLAS's own sum of two matrices: C := alpha op(A) + beta op(B). */
#include <complex.h>
#include <string.h>
#include "cublas_routine.h"

/* The result may be an input that is not transposed and has the result's leading dimension. */
static bool is_in_place(const struct blas_call *x, const struct matrix *input,
                        cublasOperation_t operation)
{
    return input->address == 0 || input->address != x->c.address ||
           (operation == CUBLAS_OP_N && input->ld == x->c.ld);
}

static bool describe(struct blas_call *x)
{
    bool a = is_transposed(x->transa);
    bool b = is_transposed(x->transb);
    set_shape(&x->a, a ? x->n : x->m, a ? x->m : x->n, WHOLE);
    set_shape(&x->b, b ? x->n : x->m, b ? x->m : x->n, WHOLE);
    set_shape(&x->c, x->m, x->n, WHOLE);
    return is_in_place(x, &x->a, x->transa) && is_in_place(x, &x->b, x->transb);
}

#define SAME(VALUE) (VALUE)

/* For a type: the element at i, j of factor times the matrix as the operation turns it, the sum. */
#define ARITHMETIC(TYPE, CONJUGATE)                                                                \
    static TYPE TYPE##_term(TYPE factor, const TYPE *matrix, cublasOperation_t operation,          \
                            int64_t ld, int64_t i, int64_t j)                                      \
    {                                                                                              \
        if (matrix == NULL)                                                                        \
            return 0;                                                                              \
        TYPE value = matrix[is_transposed(operation) ? i * ld + j : j * ld + i];                   \
        return factor * (operation == CUBLAS_OP_C ? CONJUGATE(value) : value);                     \
    }                                                                                              \
    static void TYPE##_geam(const struct blas_call *x, const TYPE *a, const TYPE *b, TYPE *c)      \
    {                                                                                              \
        TYPE alpha, beta;                                                                          \
        memcpy(&alpha, x->alpha, sizeof alpha);                                                    \
        memcpy(&beta, x->beta, sizeof beta);                                                       \
        for (int64_t j = 0; j < x->n; j++)                                                         \
            for (int64_t i = 0; i < x->m; i++)                                                     \
                c[j * x->c.ld + i] = TYPE##_term(alpha, a, x->transa, x->a.ld, i, j) +             \
                                     TYPE##_term(beta, b, x->transb, x->b.ld, i, j);               \
    }

typedef float complex complex_float;
typedef double complex complex_double;
ARITHMETIC(float, SAME)
ARITHMETIC(double, SAME)
ARITHMETIC(complex_float, conjf)
ARITHMETIC(complex_double, conj)

static void compute(const struct blas_call *x, const void *a, const void *b, void *c)
{
    switch (x->precision) {
    case SINGLE:
        float_geam(x, a, b, c);
        break;
    case DOUBLE:
        double_geam(x, a, b, c);
        break;
    case COMPLEX:
        complex_float_geam(x, a, b, c);
        break;
    case DOUBLE_COMPLEX:
        complex_double_geam(x, a, b, c);
        break;
    }
}

static const struct routine geam = {"geam", HAS_B | HAS_BETA | BETA_OF_B | IN_PLACE, describe,
                                    compute, NULL};

#define GEAM(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INTEGER m,      \
        INTEGER n, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda, const ELEMENT *beta,       \
        const ELEMENT *b, INTEGER ldb, ELEMENT *c, INTEGER ldc)                                    \
    {                                                                                              \
        struct blas_call x = {                                                                     \
            .routine = &(ROUTINE),                                                                 \
            .precision = PRECISION,                                                                \
            .transa = transa,                                                                      \
            .transb = transb,                                                                      \
            .m = m,                                                                                \
            .n = n,                                                                                \
            .a = MATRIX(a, lda),                                                                   \
            .b = MATRIX(b, ldb),                                                                   \
            .c = MATRIX(c, ldc),                                                                   \
            .alpha_at = alpha,                                                                     \
            .beta_at = beta,                                                                       \
        };                                                                                         \
        BLAS_CALL(handle, x);                                                                      \
    }

ALL_TYPES(GEAM, geam, , geam)
