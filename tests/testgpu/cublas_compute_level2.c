/* The arithmetic of Level 2, by the same OpenBLAS as that of Level 3. */
#include <complex.h>
#include <string.h>
#include "cublas_compute.h"

typedef void gemv_routine(const char *trans, const int *m, const int *n, const void *alpha,
                          const void *a, const int *lda, const void *x, const int *incx,
                          const void *beta, void *y, const int *incy, size_t);
typedef void symv_routine(const char *uplo, const int *n, const void *alpha, const void *a,
                          const int *lda, const void *x, const int *incx, const void *beta, void *y,
                          const int *incy, size_t);
typedef void ger_routine(const int *m, const int *n, const void *alpha, const void *x,
                         const int *incx, const void *y, const int *incy, void *a, const int *lda);
typedef void syr_routine(const char *uplo, const int *n, const void *alpha, const void *x,
                         const int *incx, void *a, const int *lda, size_t);
typedef void syr2_routine(const char *uplo, const int *n, const void *alpha, const void *x,
                          const int *incx, const void *y, const int *incy, void *a, const int *lda,
                          size_t);
typedef void trmv_routine(const char *uplo, const char *trans, const char *diag, const int *n,
                          const void *a, const int *lda, void *x, const int *incx, size_t, size_t,
                          size_t);

gemv_routine sgemv_, dgemv_, cgemv_, zgemv_;
symv_routine ssymv_, dsymv_, chemv_, zhemv_;
ger_routine sger_, dger_, cgeru_, zgeru_, cgerc_, zgerc_;
syr_routine ssyr_, dsyr_, csyr_, zsyr_, cher_, zher_;
syr2_routine ssyr2_, dsyr2_, cher2_, zher2_;
trmv_routine strmv_, dtrmv_, ctrmv_, ztrmv_, strsv_, dtrsv_, ctrsv_, ztrsv_;

void compute_gemv(const struct blas_call *call, const void *a, const void *x, void *y)
{
    static gemv_routine *const routines[] = {sgemv_, dgemv_, cgemv_, zgemv_};
    struct words w = words_of(call);
    if (a == NULL)
        scale(call, y);
    else
        ALONE(routines[call->precision], &w.transa, &w.m, &w.n, call->alpha, a, &w.lda, x, &w.ldb,
              call->beta, y, &w.ldc, 1);
}

/* OpenBLAS 0.3.21's ssymv reads memory that it has not written where uplo is L: NaN may be
 * there. */
static float *as_upper(const float *lower, int n, int lda)
{
    float *upper = calloc((size_t)n * (size_t)n + 1, sizeof *upper);
    if (upper == NULL)
        abort();
    for (size_t col = 0; col < (size_t)n; col++)
        for (size_t row = col; row < (size_t)n; row++)
            upper[row * (size_t)n + col] = lower[col * (size_t)lda + row];
    return upper;
}

void compute_symv(const struct blas_call *call, const void *a, const void *x, void *y)
{
    static symv_routine *const routines[] = {ssymv_, dsymv_, chemv_, zhemv_};
    struct words w = words_of(call);
    float *upper = NULL;
    if (a != NULL && call->precision == SINGLE && w.uplo == 'L') {
        a = upper = as_upper(a, w.n, w.lda);
        w.uplo = 'U';
        w.lda = w.n > 0 ? w.n : 1;
    }
    if (a == NULL)
        scale(call, y);
    else
        ALONE(routines[call->precision], &w.uplo, &w.n, call->alpha, a, &w.lda, x, &w.ldb,
              call->beta, y, &w.ldc, 1);
    free(upper);
}

static void rank_one(ger_routine *routine, const struct blas_call *call, const void *x,
                     const void *y, void *a)
{
    struct words w = words_of(call);
    if (x != NULL)
        ALONE(routine, &w.m, &w.n, call->alpha, x, &w.lda, y, &w.ldb, a, &w.ldc);
}

void compute_ger(const struct blas_call *call, const void *x, const void *y, void *a)
{
    static ger_routine *const routines[] = {sger_, dger_, cgeru_, zgeru_};
    rank_one(routines[call->precision], call, x, y, a);
}

void compute_gerc(const struct blas_call *call, const void *x, const void *y, void *a)
{
    rank_one(call->precision == COMPLEX ? cgerc_ : zgerc_, call, x, y, a);
}

void compute_syr(const struct blas_call *call, const void *x, const void *none, void *a)
{
    static syr_routine *const routines[][4] = {{ssyr_, dsyr_, csyr_, zsyr_},
                                               {NULL, NULL, cher_, zher_}};
    struct words w = words_of(call);
    (void)none;
    if (x != NULL)
        ALONE(routines[has(call, HERMITIAN)][call->precision], &w.uplo, &w.n, call->alpha, x,
              &w.lda, a, &w.ldc, 1);
}

/* The complex syr2 is not of BLAS; OpenBLAS's crashes where an increment is negative. */
#define COMPLEX_SYR2(NAME, TYPE)                                                                   \
    static void NAME(const struct blas_call *call, const TYPE *x, const TYPE *y, TYPE *a)          \
    {                                                                                              \
        TYPE alpha;                                                                                \
        int64_t first, end;                                                                        \
        memcpy(&alpha, call->alpha, sizeof alpha);                                                 \
        for (int64_t j = 0; j < call->n; j++) {                                                    \
            TYPE xj = alpha * x[vector_index(&call->a, j)];                                        \
            TYPE yj = alpha * y[vector_index(&call->b, j)];                                        \
            part_of_column(&call->c, j, &first, &end);                                             \
            for (int64_t i = first; i < end; i++)                                                  \
                a[j * call->c.ld + i] +=                                                           \
                    x[vector_index(&call->a, i)] * yj + y[vector_index(&call->b, i)] * xj;         \
        }                                                                                          \
    }

COMPLEX_SYR2(csyr2, float complex)
COMPLEX_SYR2(zsyr2, double complex)

void compute_syr2(const struct blas_call *call, const void *x, const void *y, void *a)
{
    static syr2_routine *const routines[] = {ssyr2_, dsyr2_, cher2_, zher2_};
    struct words w = words_of(call);
    if (x == NULL)
        return;
    if (call->precision == COMPLEX && !has(call, HERMITIAN))
        csyr2(call, x, y, a);
    else if (call->precision == DOUBLE_COMPLEX && !has(call, HERMITIAN))
        zsyr2(call, x, y, a);
    else
        ALONE(routines[call->precision], &w.uplo, &w.n, call->alpha, x, &w.lda, y, &w.ldb, a,
              &w.ldc, 1);
}

static void triangular(trmv_routine *routine, const struct blas_call *call, const void *a, void *x)
{
    struct words w = words_of(call);
    ALONE(routine, &w.uplo, &w.transa, &w.diag, &w.n, a, &w.lda, x, &w.ldc, 1, 1, 1);
}

void compute_trmv(const struct blas_call *call, const void *a, const void *none, void *x)
{
    static trmv_routine *const routines[] = {strmv_, dtrmv_, ctrmv_, ztrmv_};
    (void)none;
    triangular(routines[call->precision], call, a, x);
}

void compute_trsv(const struct blas_call *call, const void *a, const void *none, void *x)
{
    static trmv_routine *const routines[] = {strsv_, dtrsv_, ctrsv_, ztrsv_};
    (void)none;
    triangular(routines[call->precision], call, a, x);
}
