/* The results of gemmBatched and gemmStridedBatched, against naive loops. */
#include <math.h>
#include <string.h>
#include "test_batched.h"

static double complex element(const double complex *x, cublasOperation_t operation, int i, int j)
{
    double complex found = operation == CUBLAS_OP_N ? x[j * LD + i] : x[i * LD + j];
    return operation == CUBLAS_OP_C ? conj(found) : found;
}

static int compare(const struct trial *t, const double complex *a, const double complex *b,
                   double complex alpha, double complex beta, const void *before, const void *after)
{
    const size_t bytes = type_bytes(t->type);
    for (int at = 0; at < AREA; at++) {
        int entry = at / STRIDE, i = at % STRIDE % LD, j = at % STRIDE / LD;
        if (i >= M || j >= N) {
            CHECK(memcmp((const char *)before + (size_t)at * bytes,
                         (const char *)after + (size_t)at * bytes, bytes) == 0);
            continue;
        }
        double complex want = 0;
        for (int l = 0; l < K; l++)
            want += element(a + entry * t->stride_a, t->ta, i, l) *
                    element(b + entry * t->stride_b, t->tb, l, j);
        want = (alpha == 0 ? 0 : alpha * want) +
               (beta == 0 ? 0 : beta * widen(t->type, before, (size_t)at));
        CHECK(cabs(widen(t->type, after, (size_t)at) - want) <= 100 * rounding(t->type));
    }
    return 0;
}

static int perform(const struct batch *batch, struct trial *t, double complex alpha,
                   double complex beta)
{
    static double complex a[AREA], b[AREA], c[AREA], packed[AREA], before[AREA], after[AREA];
    double complex scalars[2];
    for (int i = 0; i < AREA; i++) {
        a[i] = alpha == 0 ? NAN : value(t->type);
        b[i] = alpha == 0 ? NAN : value(t->type);
        c[i] = beta == 0 ? NAN : value(t->type);
    }
    OK(cuMemcpyHtoD(batch->f.a, packed, narrow(t->type, a, packed, AREA)));
    OK(cuMemcpyHtoD(batch->f.b, packed, narrow(t->type, b, packed, AREA)));
    OK(cuMemcpyHtoD(batch->f.c, before, narrow(t->type, c, before, AREA)));
    narrow(t->type, &alpha, &scalars[0], 1);
    narrow(t->type, &beta, &scalars[1], 1);
    t->alpha = &scalars[0];
    t->beta = &scalars[1];
    BLAS_OK(multiply_batch(batch->f.handle, t));
    memset(scalars, 0xff, sizeof scalars); /* read at the call */
    OK(cuStreamSynchronize(batch->f.stream));
    OK(cuMemcpyDtoH(after, batch->f.c, AREA * type_bytes(t->type)));
    return compare(t, a, b, alpha, beta, before, after);
}

/* The last digit: all have one B. */
static int batched_right(void)
{
    static const int bases[] = {2, 4, 2, 3, 3, 2};
    int digits[6] = {0};
    struct batch batch;
    CHECK(set_up_batch(&batch) == 0);
    do {
        struct trial t;
        CHECK(batch_trial(&t, digits[0], (enum type)digits[1], &batch) == 0);
        bool real = is_real(t.type);
        t.wide = digits[2];
        t.ta = (cublasOperation_t)digits[3];
        t.tb = (cublasOperation_t)digits[4];
        if (digits[5]) {
            t.stride_b = 0;
            CHECK(!t.pointers || point_at(batch.b, batch.f.b, 0, t.type) == 0);
        }
        double complex alpha = 0.75 + (real ? 0 : 0.5 * I);
        double complex beta = -0.5 + (real ? 0 : 0.25 * I);
        CHECK(perform(&batch, &t, alpha, beta) == 0);
        CHECK(perform(&batch, &t, alpha, 0) == 0);
        CHECK(perform(&batch, &t, 0, beta) == 0);
    } while (count_up(digits, bases, sizeof bases / sizeof *bases));
    return tear_down_batch(&batch);
}

/* Operands and pointers are what they are when the kernel runs. */
static int batched_late(void)
{
    struct batch batch;
    struct trial t;
    struct gate gate;
    double in[COUNT] = {2, 3, 5, 7}, out[COUNT], zero = 0;
    CHECK(set_up_batch(&batch) == 0);
    for (int pointers = 0; pointers < 2; pointers++) {
        CHECK(batch_trial(&t, pointers, D, &batch) == 0);
        t.m = t.n = t.k = 1;
        t.stride_a = t.stride_b = t.stride_c = 1;
        t.beta = &zero;
        OK(gate_close(&gate, batch.f.stream));
        BLAS_OK(multiply_batch(batch.f.handle, &t));
        OK(cuMemcpyHtoD(batch.f.a, in, sizeof in));
        OK(cuMemcpyHtoD(batch.f.b, in, sizeof in));
        CHECK(point_at(batch.a, batch.f.a, 1, D) == 0);
        CHECK(point_at(batch.b, batch.f.b + 3 * sizeof *in, -1, D) == 0);
        CHECK(point_at(batch.c, batch.f.c, 1, D) == 0);
        gate_open(&gate);
        OK(cuStreamSynchronize(batch.f.stream));
        OK(cuMemcpyDtoH(out, batch.f.c, sizeof out));
        for (int i = 0; i < COUNT; i++)
            CHECK(out[i] == in[i] * in[pointers ? COUNT - 1 - i : i]);
    }
    return tear_down_batch(&batch);
}

const struct scenario batched_scenarios[] = {
    {"batched_right",
     batched_right,
     {"TESTGPU_DELAY_US=0"},
     {"kernels gemm=0 gemm_strided_batched=432 gemm_batched=432\n",
      "call name=cublasSgemmBatched_64 n=54 failed=0",
      "call name=cublasZgemmStridedBatched n=54 failed=0"}},
    {"batched_late", batched_late, {0}, {0}},
    {0},
};
