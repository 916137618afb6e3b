/*
 * namespaces BASE SPACE WIDTH: solves and multiplies by SPACE, a library in a namespace of its own (dlmopen) whose integers are
 * of WIDTH bits, beside BASE, which the program opens for all; "-" for none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3 };

static const double matrix[N * N] = {0, 2, 1, 3, 0, 0, 0, 0, 4};
static int failed;

static void check(bool good, const char *what)
{
    printf("%s: %s\n", what, good ? "right" : "WRONG");
    failed |= !good;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return found;
}

/* With bytes behind each integer that must stay, or are no part of it. */
#define TRY(INT)                                                                                   \
    static void try_##INT(void *library)                                                           \
    {                                                                                              \
        void (*solve)(const INT *, const INT *, double *, const INT *, INT *, double *,            \
                      const INT *, INT *);                                                         \
        void (*multiply)(const char *, const char *, const INT *, const INT *, const INT *,        \
                         const double *, const double *, const INT *, const double *, const INT *, \
                         const double *, double *, const INT *, size_t, size_t);                   \
        void *found = find(library, "dgesv_");                                                     \
        memcpy(&solve, &found, sizeof solve);                                                      \
        const INT n[2] = {N, -1}, one[2] = {1, -1};                                                \
        INT info[2] = {-7, -7}, pivots[N + 1] = {-7, -7, -7, -7};                                  \
        double a[N * N], x[N] = {3, 2, 9}, c[N * N], alpha = 1, beta = 0;                          \
        memcpy(a, matrix, sizeof a);                                                               \
        solve(n, one, a, n, pivots, x, n, info);                                                   \
        check(info[0] == 0 && info[1] == -7, "info");                                              \
        check(pivots[0] == 2 && pivots[1] == 2 && pivots[2] == 3 && pivots[3] == -7, "pivots");    \
        check(x[0] == 1 && x[1] == 1 && x[2] == 2, "solution");                                    \
        found = find(library, "dgemm_");                                                           \
        memcpy(&multiply, &found, sizeof multiply);                                                \
        multiply("N", "N", n, n, n, &alpha, matrix, n, matrix, n, &beta, c, n, 1, 1);              \
        check(c[0] == 6 && c[1] == 0 && c[8] == 16, "product");                                    \
    }
TRY(int32_t)
TRY(int64_t)

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    if (strcmp(argv[1], "-") != 0 && !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
        printf("%s\n", dlerror());
        return 2;
    }
    void *library = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 2;
    }
    if (atoi(argv[3]) == 64)
        try_int64_t(library);
    else
        try_int32_t(library);
    return failed;
}
