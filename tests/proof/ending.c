/* Computes for MICROSECONDS and ends, whatever a thread of libaccel is at then: loading CUDA,
 * starting it, or nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 512 };

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    static double a[N * N], c[N * N];
    const double one = 1, zero = 0, end = now() + (argc == 2 ? atof(argv[1]) * 1e-6 : 0);
    const int n = N;
    if (argc != 2) {
        fprintf(stderr, "usage: %s MICROSECONDS\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < N * N; i++)
        a[i] = 1;
    do
        dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    while (now() < end);
    return c[0] != N || c[N * N - 1] != N;
}
