/* Calls dgemm many times on one small problem. It is a file of its own so that it can be part of a
 * program linked to BLAS or of a library that is opened later with its BLAS in local scope. */
#define _POSIX_C_SOURCE 200809L
#include "call_dgemm.h"

#include <time.h>

enum { COL_MAJOR = 102, NO_TRANS = 111 };

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t, size_t);
void cblas_dgemm(int layout, int transa, int transb, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double call_dgemm(long calls, bool cblas, int m, int n, int k, const double *a, const double *b,
                  double *c)
{
    const double alpha = 1, beta = 0;
    double start = now();
    if (cblas) {
        for (long i = 0; i < calls; i++)
            cblas_dgemm(COL_MAJOR, NO_TRANS, NO_TRANS, m, n, k, alpha, a, m, b, k, beta, c, m);
    } else {
        for (long i = 0; i < calls; i++)
            dgemm_("N", "N", &m, &n, &k, &alpha, a, &m, b, &k, &beta, c, &m, 1, 1);
    }
    return (now() - start) / (double)calls;
}
