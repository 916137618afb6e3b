/*
 * repeated CALL COUNT: makes the same call of order 64 so many times: what one call costs is the difference between two counts.
 *
 *   gemm, syrk, trsm, getrf   on host memory
 *   gemv                      on device memory
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { N = 64 };

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);
void dsyrk_(const char *, const char *, const int32_t *, const int32_t *, const double *,
            const double *, const int32_t *, const double *, double *, const int32_t *, size_t,
            size_t);
void dtrsm_(const char *, const char *, const char *, const char *, const int32_t *,
            const int32_t *, const double *, const double *, const int32_t *, double *,
            const int32_t *, size_t, size_t, size_t, size_t);
void dgemv_(const char *, const int32_t *, const int32_t *, const double *, const double *,
            const int32_t *, const double *, const int32_t *, const double *, double *,
            const int32_t *, size_t);
void dgetrf_(const int32_t *, const int32_t *, double *, const int32_t *, int32_t *, int32_t *);

static const int32_t n = N, inc = 1;
static const double one = 1, zero = 0;
static double a[N * N], b[N * N], c[N * N];
static int32_t pivots[N];

static void gemm(void)
{
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
}

static void syrk(void)
{
    dsyrk_("U", "N", &n, &n, &one, a, &n, &zero, c, &n, 1, 1);
}

static void trsm(void)
{
    memcpy(c, b, sizeof b);
    dtrsm_("L", "U", "N", "U", &n, &n, &one, a, &n, c, &n, 1, 1, 1, 1);
}

static void getrf(void)
{
    int32_t info;
    memcpy(c, a, sizeof a);
    dgetrf_(&n, &n, c, &n, pivots, &info);
}

static double *device;

static void gemv(void)
{
    if (!device) {
        CUdevice first;
        CUcontext context;
        CUdeviceptr memory;
        MUST(cuInit(0));
        MUST(cuDeviceGet(&first, 0));
        MUST(cuDevicePrimaryCtxRetain(&context, first));
        MUST(cuCtxSetCurrent(context));
        MUST(cuMemAlloc(&memory, sizeof a + 2 * N * sizeof *a));
        MUST(cuMemsetD8(memory, 0, sizeof a + 2 * N * sizeof *a));
        device = (double *)(uintptr_t)memory;
    }
    dgemv_("N", &n, &n, &one, device, &n, device + N * N, &inc, &zero, device + N * N + N, &inc, 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"gemm", gemm}, {"syrk", syrk}, {"trsm", trsm}, {"getrf", getrf}, {"gemv", gemv}};
    for (int i = 0; i < N * N; i++) {
        a[i] = i % (N + 1) == 0 ? 4 : (double)(i % 7) / N;
        b[i] = (double)(i % 5);
    }
    for (size_t i = 0; argc == 3 && i < sizeof calls / sizeof *calls; i++)
        if (strcmp(argv[1], calls[i].name) == 0) {
            for (long left = atol(argv[2]); left > 0; left--)
                calls[i].call();
            return 0;
        }
    fprintf(stderr, "usage: repeated gemm|syrk|trsm|getrf|gemv COUNT\n");
    return 2;
}
