/*
 * lookups: what dlsym and dlerror answer, in every way of asking. Its output must not depend on
 * libaccel: addresses are named by the object that they really lead to, and called where they are a
 * product.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void gemm(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                  const double *, const double *, const int32_t *, const double *, const int32_t *,
                  const double *, double *, const int32_t *, size_t, size_t);

static void use(const char *what, void *function)
{
    const char *error = dlerror();
    printf("%s: ", what);
    if (!function) {
        printf("none (%s)", error ? error : "no message");
        printf("%s\n", dlerror() ? ", twice" : "");
        return;
    }
    const int32_t n = 2;
    const double one = 1, zero = 0, a[4] = {1, 2, 3, 4};
    double c[4] = {0};
    ((gemm *)(uintptr_t)function)("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    printf("%g %g %g %g%s%s\n", c[0], c[1], c[2], c[3], error ? " and a message" : "",
           dlerror() ? ", the call left one" : "");
}

static const char *object(void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info))
        return "none";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

/* A library that asks: which is not linked to a BLAS. */
static void ask_elsewhere(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *(*look_up)(void *, const char *);
    void *found = library ? dlsym(library, "asker_look_up") : NULL;
    if (!found) {
        printf("%s\n", dlerror());
        return;
    }
    memcpy(&look_up, &found, sizeof look_up);
    use("a library, default", look_up(RTLD_DEFAULT, "dgesv_"));
    use("a library, next", look_up(RTLD_NEXT, "dgesv_"));
    use("a library, its own handle", look_up(library, "dgesv_"));
    use("a library, the program's handle", look_up(dlopen(NULL, RTLD_NOW), "dgesv_"));
}

/* What comes after a look-up that failed makes its message go, or stay. */
static void fail_and_go_on(void *self)
{
    dlsym(RTLD_DEFAULT, "cblas_dgemm");
    dlsym(self, "qsort");
    use("after one that was found", NULL);
    dlsym(RTLD_DEFAULT, "cblas_dgemm");
    dlclose(dlopen(NULL, RTLD_NOW));
    use("after dlopen and dlclose", NULL);
    dlopen("/no/such/library.so", RTLD_NOW);
    use("of dlopen", NULL);
    dlsym(RTLD_DEFAULT, "cblas_dgemm");
    dlsym(self, "no_such_name");
    use("of another name", NULL);
}

int main(int argc, char **argv)
{
    dlopen("/no/such/library.so", RTLD_NOW);
    use("the first message", NULL);
    void *self = dlopen(NULL, RTLD_NOW);
    use("default, nothing loaded", dlsym(RTLD_DEFAULT, "dgemm_"));
    use("next, nothing loaded", dlsym(RTLD_NEXT, "dgemm_64_"));
    use("self, nothing loaded", dlsym(self, "dgemm_"));
    if (argc > 1)
        ask_elsewhere(argv[1]);
    fail_and_go_on(self);
    void *blas = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!blas)
        return 2;
    use("handle", dlsym(blas, "dgemm_"));
    use("handle, again", dlsym(blas, "dgemm_"));
    use("handle, no such name", dlsym(blas, "dgemm_64_"));
    use("default, loaded local", dlsym(RTLD_DEFAULT, "dgemm_"));
    use("self, loaded local", dlsym(self, "dgemm_"));
    printf("same pointer twice: %d\n", dlsym(blas, "dgemm_") == dlsym(blas, "dgemm_"));
    printf("another name: %s\n", object(dlsym(blas, "daxpy_")));
    printf("another name, default: %s\n", object(dlsym(RTLD_DEFAULT, "qsort")));
    printf("another name, next: %s\n", object(dlsym(RTLD_NEXT, "qsort")));
    printf("no such name: %s\n", object(dlsym(RTLD_DEFAULT, "no_such_name")));
    const char *message = dlerror();
    printf("message: %s\n", message ? message : "none");
    printf("message, again: %s\n", dlerror() ? "there" : "none");
    if (!dlopen("libblas.so.3", RTLD_NOW | RTLD_GLOBAL))
        return 2;
    use("default, loaded global", dlsym(RTLD_DEFAULT, "dgemm_"));
    use("self, loaded global", dlsym(self, "dgemm_"));
    return 0;
}
