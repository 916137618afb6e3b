/*
 * libR.so, as far as R's package FNN needs it: scripts/gpu-proof runs the package's own code on
 * machines without R.
 */
#include <stdio.h>
#include <stdlib.h>

#define R_FUNCTION __attribute__((visibility("default")))

R_FUNCTION void *R_chk_calloc(size_t count, size_t size);
R_FUNCTION void R_chk_free(void *memory);
R_FUNCTION _Noreturn void Rf_error(const char *format, ...);
R_FUNCTION void Rprintf(const char *format, ...);
R_FUNCTION void REprintf(const char *format, ...);
R_FUNCTION int R_registerRoutines(void *info, const void *c, const void *call, const void *fortran,
                                  const void *external);
R_FUNCTION int R_useDynamicSymbols(void *info, int use);
R_FUNCTION int R_forceSymbols(void *info, int force);

void *R_chk_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        Rf_error("no memory");
    return memory;
}

void R_chk_free(void *memory)
{
    free(memory);
}

void Rf_error(const char *format, ...)
{
    fprintf(stderr, "FNN: %s\n", format);
    exit(1);
}

void Rprintf(const char *format, ...)
{
    fputs(format, stderr);
}

void REprintf(const char *format, ...)
{
    fputs(format, stderr);
}

/* The package's tables are not used: its function is looked up. */
int R_registerRoutines(void *info, const void *c, const void *call, const void *fortran,
                       const void *external)
{
    (void)info, (void)c, (void)call, (void)fortran, (void)external;
    return 1;
}

int R_useDynamicSymbols(void *info, int use)
{
    (void)info, (void)use;
    return 0;
}

int R_forceSymbols(void *info, int force)
{
    (void)info, (void)force;
    return 0;
}
