/*
 * A BLAS whose functions are chosen when they are bound (IFUNC), of which the third of isamax and the product are real.
 */
#include <stdint.h>

static void multiply(const char *ta, const char *tb, const int32_t *m, const int32_t *n,
                     const int32_t *k, const double *alpha, const double *a, const int32_t *lda,
                     const double *b, const int32_t *ldb, const double *beta, double *c,
                     const int32_t *ldc)
{
    (void)ta, (void)tb;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            double sum = 0;
            for (int l = 0; l < *k; l++)
                sum += a[i + l * *lda] * b[l + j * *ldb];
            c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);
        }
}

static int32_t largest(const int32_t *n, const float *x, const int32_t *inc)
{
    int32_t found = 0;
    for (int32_t i = 0; i < *n; i++)
        if (found == 0 || x[i * *inc] > x[(found - 1) * *inc])
            found = i + 1;
    return found;
}

static void nothing(void) {}

typedef void gemm(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                  const double *, const double *, const int32_t *, const double *, const int32_t *,
                  const double *, double *, const int32_t *);
typedef int32_t amax(const int32_t *, const float *, const int32_t *);
typedef void other(void);

static gemm *choose_gemm(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse2") ? multiply : 0;
}
static amax *choose_amax(void)
{
    return largest;
}
static other *choose_other(void)
{
    return nothing;
}
gemm dgemm_ __attribute__((ifunc("choose_gemm")));
amax isamax_ __attribute__((ifunc("choose_amax")));
other sgemm_ __attribute__((ifunc("choose_other")));
other cgemm_ __attribute__((ifunc("choose_other")));
other zgemm_ __attribute__((ifunc("choose_other")));
other dsymm_ __attribute__((ifunc("choose_other")));
other dsyrk_ __attribute__((ifunc("choose_other")));
other dtrsm_ __attribute__((ifunc("choose_other")));
other dtrmm_ __attribute__((ifunc("choose_other")));
