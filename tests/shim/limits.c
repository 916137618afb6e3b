/*
 * limits batch|refused|bfloat16|odd|misaligned|overlap|far LACKING: calls at the limits of what cuBLAS and a kernel take. LACKING is the library of
 * what the distribution's BLAS lacks. Each result is compared with a plain loop's, or is the caller's to look at. Prints "wrong: NAME"
 * for each that is not right, and "done".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "must.h"

typedef const char *chars;
typedef const int32_t *ints;

void dgemm_(chars, chars, ints, ints, ints, const double *, const double *, ints, const double *,
            ints, const double *, double *, ints, size_t, size_t);
void sgemm_(chars, chars, ints, ints, ints, const float *, const float *, ints, const float *, ints,
            const float *, float *, ints, size_t, size_t);
void dsyrk_(chars, chars, ints, ints, const double *, const double *, ints, const double *,
            double *, ints, size_t, size_t);
void dgemv_(chars, ints, ints, const double *, const double *, ints, const double *, ints,
            const double *, double *, ints, size_t);
void dtrmm_(chars, chars, chars, chars, ints, ints, const double *, const double *, ints, double *,
            ints, size_t, size_t, size_t, size_t);
void dgesv_(ints, ints, double *, ints, int32_t *, double *, ints, int32_t *);

static void *lacking;

static void *find(const char *name)
{
    void *found = dlsym(lacking, name);
    if (!found) {
        fprintf(stderr, "%s: no such name\n", name);
        exit(2);
    }
    return found;
}

static void judge(const char *name, bool right)
{
    if (!right)
        printf("wrong: %s\n", name);
}

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-4 * (1 + fabs(y));
}

/* ---- A batch of more products than a kernel's grid has entries ---- */

enum { MANY = 70000 };

typedef void strided(chars, chars, ints, ints, ints, const double *, const double *, ints, ints,
                     const double *, ints, ints, const double *, double *, ints, ints, ints, size_t,
                     size_t);
typedef void grouped(chars, chars, ints, ints, ints, const double *, const double **, ints,
                     const double **, ints, const double *, double **, ints, ints, ints, size_t,
                     size_t);

static const double one = 1, two = 2, none = 0;
static const int32_t at_two = 2, four = 4, single = 1, many = MANY, nothing = 0;

static bool is_product(const double *c, const double *a, double b)
{
    for (int i = 0; i < 4; i++)
        if (c[i] != a[i] * b)
            return false;
    return true;
}

static void batch(void)
{
    static double a[MANY][4], c[MANY][4], back[MANY][4];
    static const double *as[MANY], *bs[MANY];
    static double *cs[MANY];
    static const double b[4] = {3, 0, 0, 3};
    strided *by_strides;
    grouped *by_arrays;
    CUdeviceptr device_a, device_b, device_c;
    bool right = true;
    *(void **)&by_strides = find("dgemm_batch_strided_");
    *(void **)&by_arrays = find("dgemm_batch_");
    for (int i = 0; i < MANY; i++)
        for (int j = 0; j < 4; j++)
            a[i][j] = i + j;
    by_strides("N", "N", &at_two, &at_two, &at_two, &one, a[0], &at_two, &four, b, &at_two,
               &nothing, &none, c[0], &at_two, &four, &many, 1, 1);
    for (int i = 0; i < MANY; i++)
        right = right && is_product(c[i], a[i], 3);
    judge("a long batch with strides", right);

    MUST(cuMemAlloc(&device_a, sizeof a));
    MUST(cuMemAlloc(&device_b, sizeof b));
    MUST(cuMemAlloc(&device_c, sizeof c));
    MUST(cuMemcpyHtoD(device_a, a, sizeof a));
    MUST(cuMemcpyHtoD(device_b, b, sizeof b));
    for (int i = 0; i < MANY; i++) {
        as[i] = (const double *)(uintptr_t)(device_a + (size_t)i * sizeof a[0]);
        bs[i] = (const double *)(uintptr_t)device_b;
        cs[i] = (double *)(uintptr_t)(device_c + (size_t)(MANY - 1 - i) * sizeof c[0]);
    }
    by_arrays("N", "N", &at_two, &at_two, &at_two, &one, as, &at_two, bs, &at_two, &none, cs,
              &at_two, &single, &many, 1, 1);
    MUST(cuMemcpyDtoH(back, device_c, sizeof back));
    right = true;
    for (int i = 0; i < MANY; i++)
        right = right && is_product(back[MANY - 1 - i], a[i], 3);
    judge("a long batch with arrays", right);
}

/* The same in device memory, for a cuBLAS that refuses the second part of each. */
static void refused(void)
{
    static double a[MANY][4], c[MANY][4], back[MANY][4];
    static const double *as[MANY], *bs[MANY];
    static double *cs[MANY];
    static const double b[4] = {3, 0, 0, 3};
    strided *by_strides;
    grouped *by_arrays;
    CUdeviceptr device_a, device_b, device_c;
    *(void **)&by_strides = find("dgemm_batch_strided_");
    *(void **)&by_arrays = find("dgemm_batch_");
    MUST(cuMemAlloc(&device_a, sizeof a));
    MUST(cuMemAlloc(&device_b, sizeof b));
    MUST(cuMemAlloc(&device_c, sizeof c));
    for (int i = 0; i < MANY; i++) {
        as[i] = (const double *)(uintptr_t)(device_a + (size_t)i * sizeof a[0]);
        bs[i] = (const double *)(uintptr_t)device_b;
        cs[i] = (double *)(uintptr_t)(device_c + (size_t)i * sizeof c[0]);
        for (int j = 0; j < 4; j++) {
            a[i][j] = i + j;
            c[i][j] = j - i;
        }
    }
    MUST(cuMemcpyHtoD(device_a, a, sizeof a));
    MUST(cuMemcpyHtoD(device_b, b, sizeof b));
    for (int array = 0; array < 2; array++) {
        bool right = true;
        MUST(cuMemcpyHtoD(device_c, c, sizeof c));
        if (array)
            by_arrays("N", "N", &at_two, &at_two, &at_two, &one, as, &at_two, bs, &at_two, &two, cs,
                      &at_two, &single, &many, 1, 1);
        else
            by_strides("N", "N", &at_two, &at_two, &at_two, &one, as[0], &at_two, &four, bs[0],
                       &at_two, &nothing, &two, cs[0], &at_two, &four, &many, 1, 1);
        MUST(cuMemcpyDtoH(back, device_c, sizeof back));
        for (int i = 0; i < MANY; i++)
            for (int j = 0; j < 4; j++)
                right = right && back[i][j] == 3 * a[i][j] + 2 * c[i][j];
        judge(array ? "arrays, of which a part is refused" : "strides, of which a part is refused",
              right);
    }
}

/* ---- bfloat16: one shape is refused, the next is not ---- */

typedef void bfloat(chars, chars, ints, ints, ints, const float *, const uint16_t *, ints,
                    const uint16_t *, ints, const float *, float *, ints, size_t, size_t);

static void bfloat16(void)
{
    static const uint16_t x[4] = {0x3f80, 0, 0, 0x3f80}, y[4] = {0x4000, 0x4040, 0x4080, 0x40a0};
    static const float f_one = 1, f_none = 0;
    bfloat *multiply;
    *(void **)&multiply = find("sbgemm_");
    for (int i = 0; i < 3; i++) {
        float c[4] = {0};
        multiply("N", "N", &at_two, &at_two, &at_two, &f_one, x, &at_two, y, &at_two, &f_none, c,
                 &at_two, 1, 1);
        judge("bfloat16", c[0] == 2 && c[1] == 3 && c[2] == 4 && c[3] == 5);
    }
}

/* ---- Operands that are at no multiple of anything ---- */

enum { N = 70 };

static double *at_odd(double *values, size_t count, char *memory)
{
    return memcpy(memory + 1, values, count * sizeof *values);
}

static double odd_element(const void *matrix, size_t i)
{
    double x;
    memcpy(&x, (const char *)matrix + i * sizeof x, sizeof x);
    return x;
}

static void odd(void)
{
    static char room[4][N * N * sizeof(double) + 1], integers[N * sizeof(int32_t) + 1];
    static double start[N * N];
    const int32_t n = N, step = 3, length = 20;
    void *a, *b, *c, *d;
    for (int i = 0; i < N * N; i++)
        start[i] = (i * 37 % 101) / 7.0 + (i % (N + 1) == 0 ? 500 : 0);
    a = at_odd(start, N * N, room[0]);
    b = at_odd(start, N * N, room[1]);
    c = at_odd(start, N * N, room[2]);
    dgemm_("N", "T", &n, &n, &n, &one, a, &n, b, &n, &two, c, &n, 1, 1);
    bool right = true;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            double sum = 2 * start[i + j * N];
            for (int k = 0; k < N; k++)
                sum += start[i + k * N] * start[j + k * N];
            right = right && near(odd_element(c, (size_t)(i + j * N)), sum);
        }
    judge("dgemm at odd addresses", right);

    c = at_odd(start, N * N, room[2]);
    d = at_odd(start, N * N, room[3]);
    dgemv_("N", &length, &n, &one, a, &n, c, &step, &one, d, &step, 1);
    right = true;
    for (int i = 0; i < length; i++) {
        double sum = start[i * step];
        for (int k = 0; k < N; k++)
            sum += start[i + k * N] * start[k * step];
        right = right && near(odd_element(d, (size_t)(i * step)), sum) &&
                odd_element(d, (size_t)(i * step + 1)) == start[i * step + 1];
    }
    judge("dgemv at odd addresses", right);

    c = at_odd(start, N * N, room[2]);
    dsyrk_("L", "N", &n, &n, &one, a, &n, &none, c, &n, 1, 1);
    right = true;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += start[i + k * N] * start[j + k * N];
            right =
                right && near(odd_element(c, (size_t)(i + j * N)), i < j ? start[i + j * N] : sum);
        }
    judge("dsyrk at odd addresses", right);

    /* A x = b with b = A (1, 1, ...)' */
    int32_t info = -1;
    double sums[N] = {0};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            sums[i] += start[i + k * N];
    b = at_odd(sums, N, room[1]);
    dgesv_(&n, &single, a, &n, (int32_t *)(void *)(integers + 1), b, &n, &info);
    right = info == 0;
    for (int i = 0; i < N; i++)
        right = right && near(odd_element(b, (size_t)i), 1);
    judge("dgesv at odd addresses", right);
}

/* ---- Operands in device memory at no multiple of their elements ---- */

typedef CUresult allocation(CUdeviceptr *at, size_t bytes);

static CUresult allocate_managed(CUdeviceptr *at, size_t bytes)
{
    return cuMemAllocManaged(at, bytes, CU_MEM_ATTACH_GLOBAL);
}

static CUresult allocate_device(CUdeviceptr *at, size_t bytes)
{
    return cuMemAlloc(at, bytes);
}

/* Of operand `moved` the address is half an element on. */
static double *put_moved(allocation *allocate, const double *values, size_t count, bool moved)
{
    CUdeviceptr at;
    MUST(allocate(&at, (count + 1) * sizeof *values));
    at += moved ? sizeof *values / 2 : 0;
    MUST(cuMemcpyHtoD(at, values, count * sizeof *values));
    return (double *)(uintptr_t)at;
}

static const double *fetch(const double *device)
{
    static double host[N * N];
    MUST(cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)device, sizeof host));
    return host;
}

static void misaligned_in(allocation *allocate, const char *place)
{
    const int32_t n = N, step = 3, length = 20;
    static double start[N * N];
    for (int i = 0; i < N * N; i++)
        start[i] = (i * 37 % 101) / 7.0;
    for (int moved = 0; moved < 3; moved++) {
        double *x[3];
        for (int i = 0; i < 3; i++)
            x[i] = put_moved(allocate, start, N * N, i == moved);
        dgemm_("N", "T", &n, &n, &n, &one, x[0], &n, x[1], &n, &two, x[2], &n, 1, 1);
        const double *c = fetch(x[2]);
        bool right = true;
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) {
                double sum = 2 * start[i + j * N];
                for (int k = 0; k < N; k++)
                    sum += start[i + k * N] * start[j + k * N];
                right = right && near(c[i + j * N], sum);
            }
        judge(place, right);

        x[2] = put_moved(allocate, start, N * N, moved == 2);
        dgemv_("N", &length, &n, &one, x[0], &n, x[1], &step, &one, x[2], &step, 1);
        c = fetch(x[2]);
        right = true;
        for (int i = 0; i < length; i++) {
            double sum = start[i * step];
            for (int k = 0; k < N; k++)
                sum += start[i + k * N] * start[k * step];
            right = right && near(c[i * step], sum) && c[i * step + 1] == start[i * step + 1];
        }
        judge(place, right);
    }
    /* The lower triangle alone is put back. */
    double *a = put_moved(allocate, start, N * N, false);
    double *result = put_moved(allocate, start, N * N, true);
    dsyrk_("L", "N", &n, &n, &one, a, &n, &none, result, &n, 1, 1);
    const double *c = fetch(result);
    bool right = true;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += start[i + k * N] * start[j + k * N];
            right = right && near(c[i + j * N], i < j ? start[i + j * N] : sum);
        }
    judge(place, right);

    /* Pivots are integers; the matrix is aligned. */
    CUdeviceptr pivots;
    int32_t info = -1;
    double sums[N] = {0};
    for (int i = 0; i < N; i++)
        start[i * (N + 1)] += 500;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            sums[i] += start[i + k * N];
    MUST(allocate(&pivots, (N + 1) * sizeof(int32_t)));
    a = put_moved(allocate, start, N * N, false);
    memcpy(start, sums, sizeof sums);
    result = put_moved(allocate, start, N * N, false);
    dgesv_(&n, &single, a, &n, (int32_t *)(uintptr_t)(pivots + 2), result, &n, &info);
    c = fetch(result);
    right = info == 0;
    for (int i = 0; i < N; i++)
        right = right && near(c[i], 1);
    judge(place, right);
}

static void misaligned(void)
{
    misaligned_in(allocate_device, "device memory at odd addresses");
    misaligned_in(allocate_managed, "managed memory at odd addresses");
    /* The context lives: a call that is all right is the GPU's. */
    const int32_t n = 1;
    double *x = put_moved(allocate_device, &two, 1, false);
    double back;
    dgemm_("N", "N", &n, &n, &n, &one, x, &n, x, &n, &none, (double *)memset(&back, 0, sizeof back),
           &n, 1, 1);
    judge("a call after those at odd addresses", back == 4);
}

/* ---- Results that are also inputs ---- */

static void fill(double *x, int count)
{
    for (int i = 0; i < count; i++)
        x[i] = i % 11 - 5;
}

static void print(const char *name, const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * (1 + i % 13);
    printf("%s %.17g\n", name, sum);
}

static void overlap(void)
{
    static double x[4 * N * N];
    const int32_t n = 2, ld = N, half = N / 2;
    fill(x, N * N);
    dgemm_("N", "N", &ld, &ld, &ld, &one, x, &ld, x, &ld, &none, x, &ld, 1, 1);
    print("C is A", x, N * N);
    fill(x, 2 * N * N);
    dgemm_("N", "N", &n, &n, &n, &one, x, &ld, x + 5, &ld, &none, x + 1, &ld, 1, 1);
    print("C begins in A", x, 2 * N * N);
    fill(x, 2 * N * N);
    dgemv_("N", &n, &n, &one, x, &ld, x + ld, &single, &none, x + 1, &single, 1);
    print("y begins in A", x, 2 * N * N);
    fill(x, 2 * N * N);
    dtrmm_("L", "U", "N", "N", &n, &n, &one, x, &ld, x + 1, &ld, 1, 1, 1, 1);
    print("B begins in A", x, 2 * N * N);
    /* Blocks of one matrix, which lie within one another's extents: nothing is shared. */
    fill(x, N * N);
    dgemm_("N", "N", &half, &half, &half, &one, x, &ld, x + half * ld, &ld, &one, x + half, &ld, 1,
           1);
    print("blocks", x, N * N);
}

/* ---- More elements than 2^31 from the first to the last ---- */

static void far(void)
{
    const int64_t ld = 1500000000;
    const int32_t wide = (int32_t)ld, m = 3, n = 3;
    const float f_one = 1, f_two = 2;
    const size_t bytes = (size_t)(2 * ld + m) * sizeof(float);
    float *x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (x[i] == MAP_FAILED) {
            printf("no room\n");
            return;
        }
        for (int64_t j = 0; j < 3; j++)
            for (int64_t k = 0; k < 3; k++)
                x[i][j * ld + k] = (float)(i + 2 * j + k);
    }
    sgemm_("N", "N", &m, &n, &n, &f_one, x[0], &wide, x[1], &wide, &f_two, x[2], &wide, 1, 1);
    bool right = true;
    for (int64_t j = 0; j < 3; j++)
        for (int64_t k = 0; k < 3; k++) {
            float sum = (float)(2 * (2 + 2 * j + k));
            for (int64_t l = 0; l < 3; l++)
                sum += (float)(2 * l + k) * (float)(1 + 2 * j + l);
            right = right && x[2][j * ld + k] == sum;
        }
    judge("sgemm over more than 2^31 elements", right && x[2][ld + 3] == 0 && x[2][ld - 1] == 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"batch", batch}, {"refused", refused},       {"bfloat16", bfloat16},
                 {"odd", odd},     {"misaligned", misaligned}, {"overlap", overlap},
                 {"far", far}};
    CUcontext context;
    lacking = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; lacking && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[1], parts[i].name) == 0) {
            MUST(cuInit(0));
            MUST(cuDevicePrimaryCtxRetain(&context, 0));
            MUST(cuCtxSetCurrent(context));
            parts[i].run();
            printf("done\n");
            return 0;
        }
    fprintf(stderr, "limits batch|refused|bfloat16|odd|misaligned|overlap|far LACKING\n");
    return 2;
}
