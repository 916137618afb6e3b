/*
 * columns CASE: one call of Level 2 or 3 on integers in host memory, whose result comes down in several pieces and is an input, too;
 * and whether every element is what it should be. The last line is "CASE: 0 wrong" or "CASE: … wrong".
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dsymm_(const char *, const char *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t,
            size_t);
void dtrmm_(const char *, const char *, const char *, const char *, const int *, const int *,
            const double *, const double *, const int *, double *, const int *, size_t, size_t,
            size_t, size_t);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
            const double *, const double *, const int *, double *, const int *, size_t, size_t,
            size_t, size_t);
void dsyrk_(const char *, const char *, const int *, const int *, const double *, const double *,
            const int *, const double *, double *, const int *, size_t, size_t);
void dger_(const int *, const int *, const double *, const double *, const int *, const double *,
           const int *, double *, const int *);

/* Of A's order, and of the other side: 1 MiB is not quite half of the result. */
enum { ORDER = 400, FREE = 700, DEPTH = 20 };
static const int order = ORDER, other = FREE, depth = DEPTH, one = 1;
static const double alpha = 2, beta = 3, unit = 1;

static double a[FREE * FREE], b[FREE * FREE], c[FREE * FREE], before[FREE * FREE];

static double number(size_t i)
{
    return (double)(i * 7 % 11) - 5;
}

/* A unit lower triangle with ones beside its diagonal: what it solves stays an integer. */
static double triangle(int i, int j)
{
    return i == j ? 1 : i == j + 1 ? 1 : 0;
}

static double symmetric(int i, int j)
{
    return i >= j ? a[j * ORDER + i] : a[i * ORDER + j];
}

static double should_be(const char *name, int i, int j)
{
    static double last;
    int ld = strstr(name, "syrk") ? FREE : ORDER;
    double old = before[j * ld + i], sum = 0;
    if (strcmp(name, "dsymm") == 0) {
        for (int p = 0; p < ORDER; p++)
            sum += symmetric(i, p) * b[j * ORDER + p];
        return alpha * sum + beta * old;
    }
    if (strcmp(name, "dtrmm") == 0)
        return old + (i > 0 ? before[j * ld + i - 1] : 0);
    if (strcmp(name, "dtrsm") == 0)
        return last = old - (i > 0 ? last : 0);
    if (strcmp(name, "dger") == 0)
        return old + alpha * a[i] * b[j];
    if (strchr(name, 'U') ? i > j : i < j)
        return old;
    for (int p = 0; p < DEPTH; p++)
        sum += a[p * FREE + i] * a[p * FREE + j];
    return alpha * sum + beta * old;
}

int main(int argc, char **argv)
{
    const char *name = argc == 2 ? argv[1] : "";
    long wrong = 0;
    bool rank_k = strncmp(name, "dsyrk", 5) == 0;
    for (size_t i = 0; i < FREE * FREE; i++) {
        a[i] = number(i);
        b[i] = number(3 * i + 1);
        c[i] = before[i] = number(5 * i + 2);
    }
    if (strncmp(name, "dtr", 3) == 0)
        for (int j = 0; j < ORDER; j++)
            for (int i = 0; i < ORDER; i++)
                a[j * ORDER + i] = triangle(i, j);
    if (strcmp(name, "dsymm") == 0)
        dsymm_("L", "L", &order, &other, &alpha, a, &order, b, &order, &beta, c, &order, 1, 1);
    else if (strcmp(name, "dtrmm") == 0)
        dtrmm_("L", "L", "N", "N", &order, &other, &unit, a, &order, c, &order, 1, 1, 1, 1);
    else if (strcmp(name, "dtrsm") == 0)
        dtrsm_("L", "L", "N", "N", &order, &other, &unit, a, &order, c, &order, 1, 1, 1, 1);
    else if (strcmp(name, "dger") == 0)
        dger_(&order, &other, &alpha, a, &one, b, &one, c, &order);
    else if (rank_k)
        dsyrk_(strchr(name, 'U') ? "U" : "L", "N", &other, &depth, &alpha, a, &other, &beta, c,
               &other, 1, 1);
    else
        return 2;
    for (int j = 0; j < FREE; j++)
        for (int i = 0; i < (rank_k ? FREE : ORDER); i++)
            wrong += c[j * (rank_k ? FREE : ORDER) + i] != should_be(name, i, j);
    printf("%s: %ld wrong\n", name, wrong);
    return wrong != 0;
}
