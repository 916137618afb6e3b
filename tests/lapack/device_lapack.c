/*
 * device_lapack [NAME]: a program that uses CUDA itself and passes host, device and managed memory to LAPACK, mixed in one call: as with host
 * memory alone. NAME: of the cases, those that begin with it.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { N = 20, LD = 23, NRHS = 6, BUFFERS = 3, LENGTH = LD * N };
enum place { HOST, DEVICE, MANAGED, PLACES };

/* The arguments of one call: matrices and vectors, pivots too, in memory of LENGTH doubles each. */
typedef void run(void *const at[BUFFERS]);

void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dgeqrf_(const int *, const int *, double *, const int *, double *, double *, const int *,
             int *);
void dtrtri_(const char *, const char *, const int *, double *, const int *, int *, size_t, size_t);
void dsyevd_(const char *, const char *, const int *, double *, const int *, double *, double *,
             const int *, int *, const int *, int *, size_t, size_t);
void dlacpy_(const char *, const int *, const int *, const double *, const int *, double *,
             const int *, size_t);
void dlaswp_(const int *, double *, const int *, const int *, const int *, const int *,
             const int *);

static const int n = N, ld = LD, nrhs = NRHS, rows = N - 3;
static int info;

static void gesv(void *const at[BUFFERS])
{
    dgesv_(&n, &nrhs, at[0], &ld, at[1], at[2], &ld, &info);
}

static void potrf(void *const at[BUFFERS])
{
    dpotrf_("U", &n, at[0], &ld, &info, 1);
}

static void geqrf(void *const at[BUFFERS])
{
    static double work[64 * N];
    const int lwork = 64 * N;
    dgeqrf_(&rows, &n, at[0], &ld, at[1], work, &lwork, &info);
}

static void trtri_unit(void *const at[BUFFERS])
{
    dtrtri_("L", "U", &n, at[0], &ld, &info, 1, 1);
}

static void syevd(void *const at[BUFFERS])
{
    static double work[1 + 6 * N + 2 * N * N];
    static int iwork[3 + 5 * N];
    const int lwork = 1 + 6 * N + 2 * N * N, liwork = 3 + 5 * N;
    dsyevd_("N", "L", &n, at[0], &ld, at[1], work, &lwork, iwork, &liwork, &info, 1, 1);
    if (!info)
        MUST(cuCtxSynchronize());
}

static void lacpy(void *const at[BUFFERS])
{
    dlacpy_("A", &rows, &n, at[0], &ld, at[1], &ld, 1);
}

static void lacpy_upper(void *const at[BUFFERS])
{
    dlacpy_("U", &n, &n, at[0], &ld, at[1], &ld, 1);
}

static void laswp(void *const at[BUFFERS])
{
    const int k1 = 2, k2 = 9, inc = 1;
    dlaswp_(&n, at[0], &ld, &k1, &k2, at[1], &inc);
}

static void laswp_backwards(void *const at[BUFFERS])
{
    const int k1 = 2, k2 = 9, inc = -2;
    dlaswp_(&n, at[0], &ld, &k1, &k2, at[1], &inc);
}

/* What a call leaves behind on purpose: the input of syevd without vectors. */
static const struct {
    const char *name;
    run *run;
    int buffers, destroyed; /* the first so many */
    bool swaps;             /* the second are row numbers */
} cases[] = {
    {"dgesv", gesv, 3, 0, false},
    {"dpotrf", potrf, 1, 0, false},
    {"dgeqrf", geqrf, 2, 0, false},
    {"dtrtri", trtri_unit, 1, 0, false},
    {"dsyevd", syevd, 2, 1, false},
    {"dlacpy", lacpy, 2, 0, false},
    {"dlacpy, a triangle", lacpy_upper, 2, 0, false},
    {"dlaswp", laswp, 2, 0, true},
    {"dlaswp, backwards", laswp_backwards, 2, 0, true},
};

static void fill(double memory[BUFFERS][LENGTH], bool swaps)
{
    static unsigned seed = 5;
    for (int i = 0; i < BUFFERS; i++)
        for (int j = 0; j < LENGTH; j++)
            memory[i][j] = (double)rand_r(&seed) / RAND_MAX - 0.5;
    for (int i = 0; i < N; i++) /* definite */
        memory[0][i * (LD + 1)] += N;
    for (int i = 0; swaps && i < 2 * N; i++)
        ((int *)memory[1])[i] = 1 + (i * 7) % N;
}

static void *put(enum place place, void *host)
{
    CUdeviceptr ptr;
    if (place == HOST)
        return host;
    if (place == DEVICE)
        MUST(cuMemAlloc(&ptr, LENGTH * sizeof(double)));
    else
        MUST(cuMemAllocManaged(&ptr, LENGTH * sizeof(double), CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemcpyHtoD(ptr, host, LENGTH * sizeof(double)));
    return (void *)(uintptr_t)ptr;
}

static void get(enum place place, void *host, void *at)
{
    if (place == HOST)
        return;
    MUST(cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)at, LENGTH * sizeof(double)));
    MUST(cuMemFree((CUdeviceptr)(uintptr_t)at));
}

/* As close as two ways of computing it are; integers are alike, bit for bit, as are the bytes of neither. */
static bool alike(const double *x, const double *y)
{
    for (int i = 0; i < LENGTH; i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0 &&
            !(fabs(x[i] - y[i]) <= 1e-11 * (1 + fabs(y[i]))))
            return false;
    return true;
}

static int check(size_t which)
{
    double before[BUFFERS][LENGTH], expected[BUFFERS][LENGTH], memory[BUFFERS][LENGTH];
    void *at[BUFFERS];
    int wrong = 0, combinations = 1;
    fill(before, cases[which].swaps);
    memcpy(expected, before, sizeof before);
    for (int i = 0; i < BUFFERS; i++)
        at[i] = expected[i];
    cases[which].run(at);
    for (int i = 0; i < cases[which].buffers; i++)
        combinations *= PLACES;
    for (int combination = 1; combination < combinations; combination++) {
        enum place place[BUFFERS] = {HOST, HOST, HOST};
        int rest = combination;
        memcpy(memory, before, sizeof before);
        for (int i = 0; i < cases[which].buffers; i++, rest /= PLACES)
            place[i] = (enum place)(rest % PLACES);
        for (int i = 0; i < BUFFERS; i++)
            at[i] = put(place[i], memory[i]);
        info = -77;
        cases[which].run(at);
        for (int i = 0; i < BUFFERS; i++)
            get(place[i], memory[i], at[i]);
        bool right = cases[which].run == lacpy || cases[which].run == lacpy_upper ||
                     cases[which].swaps || info == 0;
        for (int i = cases[which].destroyed; i < BUFFERS; i++)
            right = right && alike(memory[i], expected[i]);
        if (!right)
            printf("wrong: %s, places %d %d %d, info %d\n", cases[which].name, place[0], place[1],
                   place[2], info);
        wrong += !right;
    }
    printf("%s: %d combinations\n", cases[which].name, combinations - 1);
    return wrong;
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    CUdevice device;
    CUcontext context, current;
    int wrong = 0, found = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxPushCurrent(context));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strncmp(cases[i].name, wanted, strlen(wanted)) == 0) {
            wrong += check(i);
            found++;
        }
    if (!found)
        return 2;
    MUST(cuCtxGetCurrent(&current));
    printf("%d wrong\n", wrong + (current != context));
    return wrong != 0;
}
