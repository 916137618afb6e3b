/*
 * forks before|after: a product in the child of a fork, made before or after the parent's first
 * one. Both print the sum of their results.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

enum { N = 50 };

static void product(const char *who)
{
    static double a[N * N], c[N * N];
    const int32_t n = N;
    const double one = 1, zero = 0;
    double sum = 0;
    for (int i = 0; i < N * N; i++)
        a[i] = 1;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < N * N; i++)
        sum += c[i];
    printf("%s %d %g\n", who, (int)getpid(), sum);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "after") == 0)
        product("parent");
    pid_t child = fork();
    if (child == 0) {
        product("child");
        product("child");
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    product("parent");
    return status != 0;
}
