/*
 * A library whose names are those of BLAS by chance: other arguments, in registers and on the stack, and other results. Each function
 * is called by the library itself, through the dynamic linker, and says what it got.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct pair {
    double re, im;
};
struct large {
    int64_t values[9];
};

double dgemm_(int count, double x, long second, float y, struct pair z, struct large all,
              int64_t third, int64_t fourth, int64_t fifth, int64_t sixth, long double wide,
              double v, double w, double q, double r, int64_t last);
struct large dgesv_(int8_t small, double x);
int sgemm_(const char *format, ...);
struct pair zgemm_(double x);

double dgemm_(int count, double x, long second, float y, struct pair z, struct large all,
              int64_t third, int64_t fourth, int64_t fifth, int64_t sixth, long double wide,
              double v, double w, double q, double r, int64_t last)
{
    double sum = count + 2 * x + 3 * (double)second + 4 * y + 5 * z.re + 6 * z.im +
                 7 * (double)third + 8 * (double)fourth + 9 * (double)fifth + 10 * (double)sixth +
                 11 * (double)wide + 12 * v + 13 * w + 14 * q + 15 * r + 16 * (double)last;
    for (int i = 0; i < 9; i++)
        sum += (17 + i) * (double)all.values[i];
    return sum;
}

struct large dgesv_(int8_t small, double x)
{
    struct large result;
    for (int i = 0; i < 9; i++)
        result.values[i] = small * i + (int64_t)x;
    return result;
}

int sgemm_(const char *format, ...)
{
    char text[100];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return strcmp(text, "1 2.5 three 4.25 5 6 7 8 9.5");
}

struct pair zgemm_(double x)
{
    return (struct pair){x, -x};
}

/* What the dynamic linker's place for a call leaves in a register must not count: from many places. */
#define CALL                                                                                       \
    wrong += sgemm_("%d %g %s %g %d %d %d %d %g", 1, 2.5, "three", 4.25, 5, 6, 7, 8, 9.5) != 0;
#define TIMES_8(x)   x x x x x x x x
#define TIMES_256(x) TIMES_8(TIMES_8(x x x x))

/* The number of functions that were wrong. */
int foreign_calls(void);

int foreign_calls(void)
{
    const struct pair z = {1.5, -2.5};
    const struct large all = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        double sum = dgemm_(i, 0.5, -3, 4.0f, z, all, 1, 2, 3, 4, 0.25L, 5, 6, 7, 8, 9);
        wrong += sum != i + 1 - 9 + 16 + 7.5 - 15 + 7 + 16 + 27 + 40 + 2.75 + 60 + 78 + 98 + 120 +
                            144 + 1005;
        const struct large result = dgesv_(-2, 7);
        for (int j = 0; j < 9; j++)
            wrong += result.values[j] != 7 - 2 * j;
        TIMES_256(CALL)
        const struct pair other = zgemm_(i);
        wrong += other.re != i || other.im != -i;
    }
    return wrong;
}
