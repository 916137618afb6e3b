/*
 * A library whose constructor multiplies, and looks a BLAS function up, before anything of the program has
 * started: also before a preloaded library's own constructor.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

double early_result;
void *early_pointer;

__attribute__((constructor)) static void multiply(void)
{
    const int32_t n = 1;
    const double two = 2, zero = 0;
    dgemm_("N", "N", &n, &n, &n, &two, &two, &n, &two, &n, &zero, &early_result, &n, 1, 1);
    early_pointer = dlsym(RTLD_DEFAULT, "dgemm_");
}
