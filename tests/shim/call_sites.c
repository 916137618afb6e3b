/* Many places in one module that call the same routine, as a large library has them. */
#include "entry_cost.h"

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t transa_length,
            size_t transb_length);

/* The statement behind the call is another one in each place, lest the compiler make one of all. */
#define CALL(n)                                                                                    \
    case n:                                                                                        \
        dgemm_("N", "N", &one, &one, &one, &alpha, a, &one, b, &one, &alpha, c, &one, 1, 1);       \
        __asm__ volatile("" ::"i"(n));                                                             \
        break;
#define CALLS_8(n)                                                                                 \
    CALL(n) CALL(n + 1) CALL(n + 2) CALL(n + 3) CALL(n + 4) CALL(n + 5) CALL(n + 6) CALL(n + 7)
#define CALLS_64(n)                                                                                \
    CALLS_8(n)                                                                                     \
    CALLS_8(n + 8)                                                                                 \
    CALLS_8(n + 16) CALLS_8(n + 24) CALLS_8(n + 32) CALLS_8(n + 40) CALLS_8(n + 48) CALLS_8(n + 56)

void call_site(int site)
{
    static const int one = 1;
    static const double alpha = 1, a[1], b[1];
    static double c[1];
    switch (site) {
        CALLS_64(0)
        CALLS_64(64)
        CALLS_64(128)
        CALLS_64(192)
    }
}
