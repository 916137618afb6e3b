/*
 * singular_values N: a product of order N, and then the singular values of another matrix of that order, which are 1, 2, ..., N. What the
 * GPU has in its memory from the product is none of the matrix's. Ends with status 0 where they are right.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);
void dgesvd_(const char *, const char *, const int32_t *, const int32_t *, double *,
             const int32_t *, double *, double *, const int32_t *, double *, const int32_t *,
             double *, const int32_t *, int32_t *, size_t, size_t);

static double *numbers(size_t count)
{
    double *x = calloc(count, sizeof *x);
    if (!x)
        abort();
    return x;
}

int main(int argc, char **argv)
{
    const int32_t n = argc > 1 ? atoi(argv[1]) : 0, lwork = 64 * n;
    const double one = 1, zero = 0;
    if (n < 2)
        return 2;
    const size_t order = (size_t)n;
    double *a = numbers(order * order), *b = numbers(order * order), *c = numbers(order * order);
    double *values = numbers(order), *work = numbers(64 * order), unused = 0;
    int32_t info = -1;
    for (size_t i = 0; i < order * order; i++) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
    }
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
    for (size_t j = 0; j < order; j++)
        for (size_t i = 0; i < order; i++)
            a[j * order + i] = i == (j + 3) % order ? (double)(j + 1) : 0;
    dgesvd_("N", "N", &n, &n, a, &n, values, &unused, &n, &unused, &n, work, &lwork, &info, 1, 1);
    int wrong = info != 0;
    for (int32_t i = 0; i < n; i++)
        wrong += !(fabs(values[i] - (n - i)) <= 1e-11 * n);
    printf("%d wrong, info %d\n", wrong, info);
    return wrong != 0;
}
