/*
 * plug_ins CASE FOLDER PROVIDER: libraries that come and go in another order than the one in which they need each other. Prints
 * what each step finds; its output must not depend on libaccel. PROVIDER is the path of a BLAS, to which nothing here is linked.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

static const char *folder, *provider;

static void use(void *plug_in)
{
    int (*product)(int);
    void *found = dlsym(plug_in, "caller_product");
    memcpy(&product, &found, sizeof product);
    printf("product: %s\n", product(7) == 0 ? "right" : "WRONG");
}

static void unload(const char *what, void *handle)
{
    int status = dlclose(handle);
    void *there = dlopen(provider, RTLD_NOLOAD | RTLD_LAZY);
    printf("after dlclose of %s (%d): the provider is %s\n", what, status,
           there ? "there" : "gone");
    if (there)
        dlclose(there);
    dlerror();
}

static bool call(void *function)
{
    void (*gemm)(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                 const double *, const double *, const int32_t *, const double *, const int32_t *,
                 const double *, double *, const int32_t *, size_t, size_t);
    const int32_t n = 1;
    const double one = 1, zero = 0, two = 2;
    double c = 0;
    memcpy(&gemm, &function, sizeof gemm);
    gemm("N", "N", &n, &n, &n, &one, &two, &n, &two, &n, &zero, &c, &n, 1, 1);
    return c == 4;
}

/* The provider is closed while a plug-in is bound to it, which needs dgemm_ and names no library that has it. */
static void early(int mode, bool called)
{
    void *blas = load(provider, RTLD_NOW | RTLD_GLOBAL);
    void *plug_in = load_from(folder, "libcaller_none.so", mode);
    if (called)
        use(plug_in);
    unload("the provider", blas);
    use(plug_in);
    unload("the plug-in", plug_in);
}

static void two(void)
{
    void *blas = load(provider, RTLD_NOW | RTLD_GLOBAL);
    void *first = load_from(folder, "libcaller_none.so", RTLD_NOW);
    void *second = load_from(folder, "libcaller_none_too.so", RTLD_NOW);
    unload("the provider", blas);
    use(first);
    unload("the first plug-in", first);
    use(second);
    unload("the second plug-in", second);
}

static void again(void)
{
    for (int i = 0; i < 3; i++)
        early(RTLD_NOW, i == 1);
}

static void unneeded(void)
{
    void *plug_in = load_from(folder, "libcaller_lp64.so", RTLD_NOW); /* has a BLAS of its own */
    use(plug_in);
    unload("the provider, which nobody needs", load(provider, RTLD_NOW | RTLD_GLOBAL));
    unload("the provider, which is local", load(provider, RTLD_NOW | RTLD_LOCAL));
    use(plug_in);
    unload("the plug-in", plug_in);
}

/* glibc keeps what it has found for somebody in the global scope. */
static void looked_up(void)
{
    void *blas = load(provider, RTLD_NOW | RTLD_GLOBAL);
    void *found = dlsym(RTLD_DEFAULT, "dgemm_");
    unload("the provider", blas);
    printf("found: %s\n", found && call(found) ? "right" : "WRONG");
}

/* It is what another library is linked to that is bound. */
static void inner(void)
{
    void *outer = load_from(folder, "libcaller_lp64.so", RTLD_NOW | RTLD_GLOBAL);
    void *plug_in = load_from(folder, "libcaller_none.so", RTLD_NOW);
    unload("the library that is linked to the provider", outer);
    use(plug_in);
    unload("the plug-in", plug_in);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    folder = argv[2];
    provider = argv[3];
    const char *what = argv[1];
    if (strcmp(what, "not-called") == 0)
        early(RTLD_NOW, false);
    else if (strcmp(what, "called") == 0)
        early(RTLD_NOW, true);
    else if (strcmp(what, "called-lazily") == 0)
        early(RTLD_LAZY, true);
    else if (strcmp(what, "two") == 0)
        two();
    else if (strcmp(what, "again") == 0)
        again();
    else if (strcmp(what, "unneeded") == 0)
        unneeded();
    else if (strcmp(what, "looked-up") == 0)
        looked_up();
    else if (strcmp(what, "inner") == 0)
        inner();
    else
        return 2;
    return 0;
}
