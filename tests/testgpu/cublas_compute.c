/* The arithmetic, by an OpenBLAS inside this library that no other library can see or replace. */
#include <complex.h>
#include <pthread.h>
#include <string.h>
#include "cublas.h"

#define DECLARE_GEMM(NAME)                                                                         \
    void NAME(const char *transa, const char *transb, const int *m, const int *n, const int *k,    \
              const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,     \
              const void *beta, void *c, const int *ldc, size_t transa_length,                     \
              size_t transb_length)
DECLARE_GEMM(sgemm_);
DECLARE_GEMM(dgemm_);
DECLARE_GEMM(cgemm_);
DECLARE_GEMM(zgemm_);

char *__wrap_getenv(const char *name);

/* OpenBLAS's getenv: it gets no settings of the program's, and starts no threads. */
char *__wrap_getenv(const char *name)
{
    static char one[] = "1";
    return strcmp(name, "OPENBLAS_NUM_THREADS") == 0 ? one : NULL;
}

size_t element_bytes(enum precision precision)
{
    static const size_t bytes[] = {4, 8, 8, 16};
    return bytes[precision];
}

/* C := beta C, in the type's own words. */
#define SCALE(TYPE)                                                                                \
    do {                                                                                           \
        TYPE factor_;                                                                              \
        memcpy(&factor_, g->beta, sizeof factor_);                                                 \
        for (int j_ = 0; j_ < g->n; j_++) {                                                        \
            TYPE *column_ = (TYPE *)c + (size_t)j_ * (size_t)g->ldc;                               \
            for (int i_ = 0; i_ < g->m; i_++)                                                      \
                column_[i_] = factor_ == 0 ? 0 : factor_ * column_[i_];                            \
        }                                                                                          \
    } while (0)

static void scale(const struct gemm *g, void *c)
{
    switch (g->precision) {
    case SINGLE:
        SCALE(float);
        break;
    case DOUBLE:
        SCALE(double);
        break;
    case COMPLEX:
        SCALE(float complex);
        break;
    case DOUBLE_COMPLEX:
        SCALE(double complex);
        break;
    }
}

void compute_gemm(const struct gemm *g, const void *a, const void *b, void *c)
{
    static void (*const routines[])(const char *, const char *, const int *, const int *,
                                    const int *, const void *, const void *, const int *,
                                    const void *, const int *, const void *, void *, const int *,
                                    size_t, size_t) = {sgemm_, dgemm_, cgemm_, zgemm_};
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (a == NULL || b == NULL) {
        /* OpenBLAS's kernels for small sizes would read A and B though alpha is zero. */
        scale(g, c);
        return;
    }
    pthread_mutex_lock(&one_at_a_time);
    routines[g->precision](&g->transa, &g->transb, &g->m, &g->n, &g->k, g->alpha, a, &g->lda, b,
                           &g->ldb, g->beta, c, &g->ldc, 1, 1);
    pthread_mutex_unlock(&one_at_a_time);
}
