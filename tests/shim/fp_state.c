/*
 * The floating-point state of a thread is its own: fp_state gpu | cpu. On the GPU a call raises no flag and meets no trap
 * of the program; on the CPU the flags are those of the program's BLAS. Prints what is wrong; exit status 1 then.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <stdio.h>
#include <string.h>

void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
            const float *beta, float *c, const int *ldc, size_t, size_t);

enum { N = 64 };
static float a[N * N], b[N * N], c[N * N];

static int wrong(const char *what, int value)
{
    printf("%s: %#x\n", what, (unsigned)value);
    return 1;
}

int main(int argc, char **argv)
{
    const int n = N, traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT;
    const float denormal = 1e-40f, third = 1.0f / 3, beta = 0;
    int failed = 0;
    for (int i = 0; i < N * N; i++)
        a[i] = b[i] = (float)(i % 7) / 7;
    feclearexcept(FE_ALL_EXCEPT);
    if (argc > 1 && strcmp(argv[1], "gpu") == 0) {
        feenableexcept(traps);
        for (int i = 0; i < 3; i++)
            sgemm_("N", "N", &n, &n, &n, i ? &denormal : &third, a, &n, b, &n, &beta, c, &n, 1, 1);
        if (fegetexcept() != traps)
            failed = wrong("traps have changed", fegetexcept());
        fedisableexcept(traps);
        if (fetestexcept(FE_ALL_EXCEPT))
            failed = wrong("flags are raised", fetestexcept(FE_ALL_EXCEPT));
    } else {
        sgemm_("N", "N", &n, &n, &n, &third, a, &n, b, &n, &beta, c, &n, 1, 1);
        if (!fetestexcept(FE_INEXACT))
            failed = wrong("the flags of the program's BLAS are lost", fetestexcept(FE_ALL_EXCEPT));
    }
    if (c[N + 1] == 0 && argc < 2)
        failed = wrong("no result", 0);
    return failed;
}
