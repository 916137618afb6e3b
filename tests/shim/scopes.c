/*
 * scopes WHAT FOLDER: a program without a BLAS of its own, that gets at several by
 * dlopen(RTLD_LOCAL). Prints one line a check; exit status 1 if one failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;
static int failed;

static void *load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void check(bool good, const char *what)
{
    printf("%s: %s\n", what, good ? "right" : "WRONG");
    failed |= !good;
}

typedef int product_function(int n);
typedef void gemm32(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                    const double *, const double *, const int32_t *, const double *,
                    const int32_t *, const double *, double *, const int32_t *, size_t, size_t);
typedef void gemm64(const char *, const char *, const int64_t *, const int64_t *, const int64_t *,
                    const double *, const double *, const int64_t *, const double *,
                    const int64_t *, const double *, double *, const int64_t *, size_t, size_t);

static const double one = 1, zero = 0;
static const double two[4] = {1, 1, 1, 1};

/* Calls through a pointer from this program, which has no BLAS in its scope. Garbage follows the
 * 32-bit integers. */
static bool call32(void *function)
{
    gemm32 *gemm = (gemm32 *)(uintptr_t)function;
    const int32_t n[2] = {2, 0x7fffffff};
    double c[4] = {0};
    gemm("N", "N", n, n, n, &one, two, n, two, n, &zero, c, n, 1, 1);
    return c[0] == 2 && c[1] == 2 && c[2] == 2 && c[3] == 2;
}

static bool call64(void *function)
{
    gemm64 *gemm = (gemm64 *)(uintptr_t)function;
    const int64_t n = 2;
    double c[4] = {0};
    gemm("N", "N", &n, &n, &n, &one, two, &n, two, &n, &zero, c, &n, 1, 1);
    return c[0] == 2 && c[1] == 2 && c[2] == 2 && c[3] == 2;
}

static product_function *product_of(void *handle)
{
    return (product_function *)(uintptr_t)dlsym(handle, "caller_product");
}

static void *handout_of(void *handle)
{
    void *(*handout)(void) = (void *(*)(void))(uintptr_t)dlsym(handle, "caller_handout");
    return handout();
}

static void *many_calls(void *function)
{
    product_function *product = (product_function *)(uintptr_t)function;
    intptr_t wrong = 0;
    for (int i = 0; i < 2000; i++)
        wrong += product(1 + i % 16);
    return (void *)wrong;
}

static void threads(void *handles[], int count)
{
    pthread_t thread[8];
    intptr_t wrong = 0;
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, many_calls,
                       (void *)(uintptr_t)product_of(handles[i % count]));
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(thread[i], &result);
        wrong += (intptr_t)result;
    }
    check(wrong == 0, "8 threads");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    folder = argv[2];
    const char *what = argv[1];
    if (strcmp(what, "local") == 0) {
        void *lp64 = load("libcaller_lp64.so");
        check(product_of(lp64)(16) == 0, "caller's own scope");
        threads(&lp64, 1);
    } else if (strcmp(what, "two") == 0) {
        void *both[] = {load("libcaller_lp64.so"), load("libcaller_ilp64.so")};
        for (int i = 0; i < 4; i++)
            check(product_of(both[i % 2])(3 + i) == 0, i % 2 ? "ILP64" : "LP64");
        threads(both, 2);
    } else if (strcmp(what, "pointer") == 0) {
        check(call32(handout_of(load("libcaller_lp64.so"))), "pointer handed out");
    } else if (strcmp(what, "pointer64") == 0) {
        check(call64(handout_of(load("libcaller_ilp64.so"))), "ILP64 pointer handed out");
    } else if (strcmp(what, "tail") == 0) {
        check(call32(dlsym(load("libcaller_lp64.so"), "caller_tail")), "tail call");
    } else if (strcmp(what, "tail-two") == 0) {
        void *lp64 = load("libcaller_lp64.so"), *ilp64 = load("libcaller_ilp64.so");
        for (int i = 0; i < 2; i++) {
            check(call32(dlsym(lp64, "caller_tail")), "LP64 tail call beside ILP64");
            check(call64(dlsym(ilp64, "caller_tail")), "ILP64 tail call beside LP64");
        }
    } else if (strcmp(what, "dlclose") == 0) {
        /* The same addresses may hold another library, with another integer width, the next time.
         */
        for (int i = 0; i < 20; i++) {
            void *handle = load(i % 2 ? "libcaller_ilp64.so" : "libcaller_lp64.so");
            check(product_of(handle)(4) == 0, "after dlclose");
            void *pointer = handout_of(handle);
            check(i % 2 ? call64(pointer) : call32(pointer), "pointer after dlclose");
            dlclose(handle);
        }
    } else if (strcmp(what, "global") == 0) {
        void *lp64 = load("libcaller_lp64.so");
        check(product_of(lp64)(5) == 0, "before a global one");
        check(dlopen("libopenblas64.so.0", RTLD_NOW | RTLD_GLOBAL) != NULL, "loads a global one");
        check(product_of(lp64)(6) == 0, "a caller that was bound keeps its own");
    } else if (strcmp(what, "original") == 0) {
        /* Nothing is loaded that has it: ACCEL_ORIGINAL. */
        check(product_of(load("libcaller_none.so"))(7) == 0, "ACCEL_ORIGINAL");
    } else {
        return 2;
    }
    return failed;
}
