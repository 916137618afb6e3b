/*
 * neighbours FOLDER STEP...: a program that is linked to a BLAS, and other libraries beside it. Its output must not depend on
 * libaccel.
 *
 *   linked             products by the linked BLAS, by dlsym(RTLD_DEFAULT), by dlsym of the library
 *   open:NAME          products by a library of FOLDER that calls BLAS; `deep` instead: opened with RTLD_DEEPBIND
 *   load:COUNT         threads, of which each calls a library whose BLAS has integers of another width than the next one's
 *   reopen:COUNT:PATH  threads that open a BLAS, look its product up, call it and close it, beside threads that call a library
 *                      bound to the same one, which is opened for all and closed meanwhile
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

typedef void gemm(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                  const double *, const double *, const int32_t *, const double *, const int32_t *,
                  const double *, double *, const int32_t *, size_t, size_t);
gemm dgemm_;

enum { N = 16, THREADS = 4 };

static const char *folder;
static int all_wrong;

/* Of matrices of ones; returns how many elements are wrong. */
static int multiply(gemm *function, int32_t n)
{
    const double one = 1, zero = 0;
    double a[N * N], c[N * N];
    int wrong = 0;
    for (int i = 0; i < n * n; i++)
        a[i] = 1;
    function("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < n * n; i++)
        wrong += c[i] != n;
    return wrong;
}

static int multiply_found(void *handle)
{
    void *found = dlsym(handle, "dgemm_");
    gemm *function;
    int wrong = 0;
    if (!found)
        return 1;
    memcpy(&function, &found, sizeof function);
    for (int32_t n = 1; n <= N; n += 5)
        wrong += multiply(function, n);
    return wrong;
}

static void say(const char *what, int wrong)
{
    printf("%s: %s\n", what, wrong ? "WRONG" : "right");
    all_wrong += wrong;
}

typedef int product_function(int);

static product_function *product_of(void *library)
{
    product_function *product;
    void *found = dlsym(library, "caller_product");
    if (!found)
        exit(2);
    memcpy(&product, &found, sizeof product);
    return product;
}

static void linked(void)
{
    int wrong = 0;
    for (int32_t n = 1; n <= N; n++)
        wrong += multiply(dgemm_, n);
    say("linked", wrong);
    say("looked up", multiply_found(RTLD_DEFAULT));
    say("looked up in the library", multiply_found(load("libblas.so.3", RTLD_NOW | RTLD_LOCAL)));
}

static void opened(const char *name, int mode)
{
    product_function *product = product_of(load_from(folder, name, RTLD_NOW | mode));
    int wrong = 0;
    for (int n = 1; n <= N; n++)
        wrong += product(n) + multiply(dgemm_, n);
    say(name, wrong);
}

struct work {
    product_function *product;
    const char *path;
    int count;
};

static void *call(void *data)
{
    const struct work *work = data;
    intptr_t wrong = 0;
    for (int i = 0; i < work->count; i++)
        wrong += work->product(1 + i % N);
    return (void *)wrong;
}

static void *open_and_close(void *data)
{
    const struct work *work = data;
    intptr_t wrong = 0;
    for (int i = 0; i < work->count; i++) {
        void *library = load(work->path, RTLD_NOW | RTLD_LOCAL);
        wrong += multiply_found(library);
        dlclose(library);
    }
    return (void *)wrong;
}

static int run(void *(*kind[THREADS])(void *), struct work work[THREADS])
{
    pthread_t thread[THREADS];
    intptr_t wrong = 0;
    void *result;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, kind[i], &work[i]) != 0)
            exit(2);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &result);
        wrong += (intptr_t)result;
    }
    return (int)wrong;
}

static void two_under_load(int count)
{
    product_function *both[2] = {
        product_of(load_from(folder, "libcaller_lp64.so", RTLD_NOW | RTLD_LOCAL)),
        product_of(load_from(folder, "libcaller_ilp64.so", RTLD_NOW | RTLD_LOCAL))};
    void *(*kind[THREADS])(void *) = {call, call, call, call};
    struct work work[THREADS];
    for (int i = 0; i < THREADS; i++)
        work[i] = (struct work){both[i % 2], NULL, count};
    say("two at once", run(kind, work));
}

static void *close_and_reopen(void *data)
{
    const struct work *work = data;
    for (int i = 0; i < work->count; i++)
        dlclose(load(work->path, RTLD_NOW | RTLD_GLOBAL));
    return NULL;
}

static void reopen(int count, const char *path)
{
    void *blas = load(path, RTLD_NOW | RTLD_GLOBAL);
    product_function *product =
        product_of(load_from(folder, "libcaller_none.so", RTLD_NOW | RTLD_LOCAL));
    dlclose(blas);
    void *(*kind[THREADS])(void *) = {call, close_and_reopen, open_and_close, open_and_close};
    struct work work[THREADS];
    for (int i = 0; i < THREADS; i++)
        work[i] = (struct work){product, path, count};
    say("bound to it", run(kind, work));
    kind[0] = open_and_close;
    for (int i = 0; i < THREADS; i++)
        work[i].path = i % 2 ? path : "libblis.so.4"; /* nobody is bound to this */
    say("and another one, which goes", run(kind, work));
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    folder = argv[1];
    for (int i = 2; i < argc; i++) {
        const char *rest = strchr(argv[i], ':');
        rest = rest ? rest + 1 : "";
        const char *second = strchr(rest, ':');
        if (strcmp(argv[i], "linked") == 0)
            linked();
        else if (strncmp(argv[i], "open:", 5) == 0)
            opened(rest, RTLD_LOCAL);
        else if (strncmp(argv[i], "deep:", 5) == 0)
            opened(rest, RTLD_LOCAL | RTLD_DEEPBIND);
        else if (strncmp(argv[i], "load:", 5) == 0)
            two_under_load(atoi(rest));
        else if (strncmp(argv[i], "reopen:", 7) == 0 && second)
            reopen(atoi(rest), second + 1);
        else
            return 2;
    }
    return all_wrong != 0;
}
