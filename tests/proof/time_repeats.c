/*
 * time_repeats ROUTINE N CALLS: an ordinary program that multiplies by the same matrix again and
 * again. ROUTINE is dgemv (a vector) or dgemm (16 vectors at once); the matrix is square, of order
 * N, in host memory, and nobody writes to it. Each call has other vectors. Prints one line: the
 * milliseconds of each call, and a sum of all results, which is the same with any library up to
 * rounding. Exit status 1, with a line on stderr, if memory is short or the last result is wrong; 2
 * if an argument is wrong.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "products.h"

/* Behind the last argument: the hidden lengths of CHARACTER arguments. */
extern void dgemv_(const char *, const int *, const int *, const double *, const double *,
                   const int *, const double *, const int *, const double *, double *, const int *,
                   size_t);
extern void dgemm_(const char *, const char *, const int *, const int *, const int *,
                   const double *, const double *, const int *, const double *, const int *,
                   const double *, double *, const int *, size_t, size_t);

enum { THIN = 16, MOST_N = 65536, MOST_CALLS = 100 };

static uint64_t state = 88172645;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}

static void fill(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = uniform();
}

static double one_call(bool thin, int n, const double *a, const double *x, double *y)
{
    static const double one = 1, zero = 0;
    const int next = 1, columns = THIN;
    const double start = accel_now_ms();
    if (thin)
        dgemm_("N", "N", &n, &columns, &n, &one, a, &n, x, &n, &zero, y, &n, 1, 1);
    else
        dgemv_("N", &n, &n, &one, a, &n, x, &next, &zero, y, &next, 1);
    return accel_now_ms() - start;
}

/* How far y = A x is off, by distance() of products.h: at most 1, where it is right. NaN: no
 * memory. */
static double judge(const double *a, const double *x, const double *y, size_t n, size_t columns)
{
    struct matrix by = {a, sizeof *a, n, n, WHOLE, 0, 0},
                  vectors = {x, sizeof *x, n, columns, WHOLE, 0, 0},
                  results = {y, sizeof *y, n, columns, WHOLE, 0, 0};
    double *signs = malloc(2 * n * sizeof *signs), *between = signs + n;
    double expected[THIN], found[THIN], off = NAN;
    if (signs) {
        draw_signs(signs, n);
        product_by_columns(&by, signs, between);
        product_by_columns(&vectors, between, expected);
        product_by_columns(&results, signs, found);
        off = distance(expected, found, columns, sizeof *a, by.squares, vectors.longest);
    }
    free(signs);
    return off;
}

static int integer(const char *text, int most)
{
    char *end;
    const long value = strtol(text, &end, 10);
    return *end == '\0' && value > 0 && value <= most ? (int)value : 0;
}

int main(int argc, char **argv)
{
    const bool thin = argc == 4 && strcmp(argv[1], "dgemm") == 0;
    const int n = argc == 4 ? integer(argv[2], MOST_N) : 0;
    const int calls = argc == 4 ? integer(argv[3], MOST_CALLS) : 0;
    if (n == 0 || calls == 0 || (!thin && strcmp(argv[1], "dgemv") != 0)) {
        fprintf(stderr, "usage: time_repeats dgemv|dgemm N CALLS\n");
        return 2;
    }
    const size_t order = (size_t)n, results = order * (thin ? THIN : 1);
    double *a = malloc(order * order * sizeof *a);
    double *x = malloc(results * sizeof *x), *y = calloc(results, sizeof *y), sum = 0;
    if (!a || !x || !y) {
        fprintf(stderr, "time_repeats: no memory\n");
        return 1;
    }
    fill(a, order * order);
    for (int i = 0; i < calls; i++) {
        fill(x, results);
        printf("%.6f ", one_call(thin, n, a, x, y));
        for (size_t k = 0; k < results; k++)
            sum += fabs(y[k]);
    }
    const double off = judge(a, x, y, order, results / order);
    if (off <= 1) {
        printf("%.17g\n", sum);
    } else {
        printf("\n");
        fflush(stdout); /* before the other stream's line, where both are one */
        fprintf(stderr, "the last result is off by %.3g times what rounding explains\n", off);
    }
    free(a);
    free(x);
    free(y);
    return off <= 1 ? 0 : 1;
}
