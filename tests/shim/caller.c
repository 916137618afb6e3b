/*
 * A library that calls BLAS, built in several ways: with 32- or 64-bit integers, linked to a BLAS
 * or not.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef TEST_ILP64
typedef int64_t blas_int;
#else
typedef int32_t blas_int;
#endif

void dgemm_(const char *, const char *, const blas_int *, const blas_int *, const blas_int *,
            const double *, const double *, const blas_int *, const double *, const blas_int *,
            const double *, double *, const blas_int *, size_t, size_t);

/* Integers with garbage behind them: read with the wrong width, they are wild. */
struct sizes {
    blas_int n;
    uint32_t garbage;
};

/* C = A A for an n x n matrix of ones, n <= 16; returns the number of elements that are not n. */
int caller_product(int n)
{
    const struct sizes size = {n, 0x7fffffff};
    const double one = 1, zero = 0;
    double a[256] = {0}, c[256] = {0};
    int wrong = 0;
    for (int i = 0; i < n * n; i++) {
        a[i] = 1;
        c[i] = -1;
    }
    dgemm_("N", "N", &size.n, &size.n, &size.n, &one, a, &size.n, a, &size.n, &zero, c, &size.n, 1,
           1);
    for (int i = 0; i < n * n; i++)
        wrong += c[i] != n;
    return wrong;
}

/* The return address is then that of whoever called this function. */
void caller_tail(const char *ta, const char *tb, const blas_int *m, const blas_int *n,
                 const blas_int *k, const double *alpha, const double *a, const blas_int *lda,
                 const double *b, const blas_int *ldb, const double *beta, double *c,
                 const blas_int *ldc, size_t la, size_t lb)
{
    dgemm_(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
}

/* A function pointer for others, as SciPy's cython_blas hands them out. */
void *caller_handout(void)
{
    return (void *)(uintptr_t)dgemm_;
}
