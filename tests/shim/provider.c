#define _GNU_SOURCE
#include "provider.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/names.h"

/* Weak: not every BLAS has every routine. */
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    extern blas_function name##_ __attribute__((weak));                                            \
    extern blas_function cblas_##name __attribute__((weak));
#include "ops/blas/blas.def"
#undef ROUTINE

/* No table: ld 2.40 leaves weak names that nothing defines at link time to the dynamic linker in
 * code alone. */
static blas_function *linked(uint32_t routine, bool cblas)
{
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    if (routine-- == 0)                                                                            \
        return cblas ? cblas_##name : name##_;
#include "ops/blas/blas.def"
#undef ROUTINE
    return NULL;
}

void provider_open(struct provider *provider)
{
    provider->handle = RTLD_DEFAULT;
    if (!provider->library)
        return;
    provider->handle = dlopen(provider->library, RTLD_NOW | RTLD_LOCAL);
    if (!provider->handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
}

blas_function *provider_find(const struct provider *provider, uint32_t routine, bool cblas)
{
    const char *name = accel_routines[routine].name;
    blas_function *found;
    char symbol[64];
    snprintf(symbol, sizeof symbol, cblas ? "%scblas_%s%s" : "%s%s_%s", provider->prefix, name,
             provider->suffix);
    /* Under libaccel the linked names are always there, so the look-up says whether the BLAS has it. */
    void *address = dlsym(provider->handle, symbol);
    if (!address)
        return NULL;
    if (!provider->library)
        return linked(routine, cblas);
    memcpy(&found, &address, sizeof found);
    return found;
}
