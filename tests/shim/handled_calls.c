/*
 * handled_calls LIBRARY: first calls of names of BLAS, look-ups of others, and a library that comes and goes; and a handler of SIGUSR1, which
 * calls another name each time. Prints how many names the handler has called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void gemm(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                  const void *, const void *, const int32_t *, const void *, const int32_t *,
                  const void *, void *, const int32_t *, size_t, size_t);
typedef void trsm(const char *, const char *, const char *, const char *, const int32_t *,
                  const int32_t *, const void *, const void *, const int32_t *, void *,
                  const int32_t *, size_t, size_t, size_t, size_t);
gemm sgemm_, dgemm_, cgemm_, zgemm_;
trsm strsm_, dtrsm_, ctrsm_, ztrsm_, strmm_, dtrmm_, ctrmm_, ztrmm_;

static gemm *const products[] = {sgemm_, cgemm_, zgemm_};
static trsm *const by_handler[] = {strsm_, dtrsm_, ctrsm_, ztrsm_, strmm_, dtrmm_, ctrmm_, ztrmm_};
enum { PRODUCTS = sizeof products / sizeof *products };
enum { BY_HANDLER = sizeof by_handler / sizeof *by_handler };
static const int32_t none = 0, one = 1;
static const double numbers[2];
static volatile sig_atomic_t called;

static void handle(int number)
{
    double nothing[2];
    (void)number;
    if (called < BY_HANDLER)
        by_handler[called++]("L", "L", "N", "N", &none, &none, numbers, numbers, &one, nothing,
                             &one, 1, 1, 1, 1);
}

static bool multiply(void)
{
    const double alpha = 1, beta = 0, a = 3, b = 2;
    double c = 0;
    dgemm_("N", "N", &one, &one, &one, &alpha, &a, &one, &b, &one, &beta, &c, &one, 1, 1);
    return c == 6;
}

int main(int argc, char **argv)
{
    double nothing[2];
    bool right = true;
    if (argc != 2 || signal(SIGUSR1, handle) == SIG_ERR)
        return 2;
    for (int i = 0; i < PRODUCTS; i++)
        products[i]("N", "N", &none, &none, &none, numbers, numbers, &one, numbers, &one, numbers,
                    nothing, &one, 1, 1);
    right = multiply() && dlsym(RTLD_DEFAULT, "dsyrk_") && dlsym(RTLD_DEFAULT, "dsymm_");
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
        right = right && library && dlclose(library) == 0 && multiply();
    }
    printf("%s, %d by the handler\n", right ? "right" : "WRONG", (int)called);
    return 0;
}
