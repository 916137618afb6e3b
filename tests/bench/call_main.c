/* Usage: call_dgemm CALLS M N K [cblas] [turns]; prints nanoseconds per call. With "turns" it does
 * so once for each line that it reads, so that two such programs can take turns on one CPU.
 *
 * Built with LOCAL_SCOPE the program has no BLAS of its own: it opens libcall_dgemm.so from its own
 * folder with RTLD_LOCAL, as CPython opens extension modules, and only that library's scope has it.
 */
#include "call_dgemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double (*call_fn)(long, bool, int, int, int, const double *, const double *, double *);

#ifdef LOCAL_SCOPE
#    include <dlfcn.h>

static call_fn find_call(void)
{
    call_fn call;
    void *library = dlopen("libcall_dgemm.so", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "call_dgemm") : NULL;

    if (!symbol) {
        fprintf(stderr, "call_dgemm_local: %s\n", dlerror());
        exit(1);
    }
    memcpy(&call, &symbol, sizeof call); /* ISO C has no cast from an object to a function */
    return call;
}
#else
static call_fn find_call(void)
{
    return call_dgemm;
}
#endif

static double *filled(long count)
{
    double *x = malloc((size_t)count * sizeof *x);
    if (!x)
        exit(1);
    for (long i = 0; i < count; i++)
        x[i] = 1.0 / (double)(i + 1);
    return x;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s CALLS M N K [cblas] [turns]\n", argv[0]);
        return 2;
    }
    call_fn call = find_call();
    long calls = atol(argv[1]);
    int m = atoi(argv[2]), n = atoi(argv[3]), k = atoi(argv[4]);
    bool cblas = argc > 5 && strcmp(argv[5], "cblas") == 0;
    bool turns = strcmp(argv[argc - 1], "turns") == 0;
    double *a = filled((long)m * k), *b = filled((long)k * n), *c = filled((long)m * n);

    if (!turns)
        printf("%.3f\n", call(calls, cblas, m, n, k, a, b, c));
    for (int next; turns && (next = getchar()) != EOF;) {
        if (next == '\n') {
            printf("%.3f\n", call(calls, cblas, m, n, k, a, b, c));
            fflush(stdout);
        }
    }
    free(a);
    free(b);
    free(c);
    return 0;
}
