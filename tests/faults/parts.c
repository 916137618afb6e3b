/*
 * parts M N K: one dgemm, by a BLAS of its own that keeps account of what it was asked for (libparts.so, -DPARTS_BLAS). Says
 *     elements=M*N by_cpu=… twice=… wrong=…
 * how many elements of C there are, how many of them the CPU was asked to compute, how many of those more than once, and how many
 * are not what they should be. Integers, so that the order of a sum does not matter.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);

/* Where it was asked to compute. */
enum { PARTS_MAX = 64 };
struct part {
    double *c;
    int m, n, ld;
};
extern struct part parts[PARTS_MAX];
extern int part_count;

#ifdef PARTS_BLAS

/* A library is taken for BLAS by eight of its names, and asked by isamax_ for the width of its integers. */
#    define NEVER_CALLED(name)                                                                     \
        void name(void);                                                                           \
        void name(void)                                                                            \
        {                                                                                          \
            abort();                                                                               \
        }
NEVER_CALLED(sgemm_)
NEVER_CALLED(cgemm_)
NEVER_CALLED(zgemm_)
NEVER_CALLED(dsymm_)
NEVER_CALLED(dsyrk_)
NEVER_CALLED(dtrmm_)
NEVER_CALLED(dtrsm_)

struct part parts[PARTS_MAX];
int part_count;

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t length_a, size_t length_b)
{
    (void)length_a, (void)length_b;
    if (*transa != 'N' || *transb != 'N' || part_count == PARTS_MAX)
        abort();
    parts[part_count++] = (struct part){c, *m, *n, *ldc};
    for (int j = 0; j < *n; j++) {
        double *column = c + (size_t)j * (size_t)*ldc;
        for (int i = 0; i < *m; i++)
            column[i] *= *beta;
        for (int p = 0; p < *k; p++) {
            double factor = *alpha * b[(size_t)j * (size_t)*ldb + (size_t)p];
            const double *from = a + (size_t)p * (size_t)*lda;
            for (int i = 0; i < *m; i++)
                column[i] += from[i] * factor;
        }
    }
}

#else

static double number(size_t i)
{
    return (double)(i * 7 % 11) - 5;
}

static double *matrix(size_t elements)
{
    double *x = malloc(elements * sizeof *x);
    if (!x)
        abort();
    for (size_t i = 0; i < elements; i++)
        x[i] = number(i);
    return x;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int m = atoi(argv[1]), n = atoi(argv[2]), k = atoi(argv[3]);
    const size_t elements = (size_t)m * (size_t)n;
    const double alpha = 2, beta = 3;
    double *a = matrix((size_t)m * (size_t)k), *b = matrix((size_t)k * (size_t)n),
           *c = matrix(elements);
    unsigned char *times = calloc(elements, 1);
    dgemm_("N", "N", &m, &n, &k, &alpha, a, &m, b, &k, &beta, c, &m, 1, 1);
    for (int p = 0; p < part_count; p++)
        for (int j = 0; j < parts[p].n; j++)
            for (int i = 0; i < parts[p].m; i++)
                times[(size_t)(parts[p].c - c) + (size_t)j * (size_t)parts[p].ld + (size_t)i]++;
    size_t by_cpu = 0, twice = 0, wrong = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            size_t at = (size_t)j * (size_t)m + (size_t)i;
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[(size_t)p * (size_t)m + (size_t)i] * b[(size_t)j * (size_t)k + (size_t)p];
            wrong += c[at] != alpha * sum + beta * number(at);
            by_cpu += times[at] > 0;
            twice += times[at] > 1;
        }
    printf("elements=%zu by_cpu=%zu twice=%zu wrong=%zu\n", elements, by_cpu, twice, wrong);
    return wrong != 0;
}

#endif
