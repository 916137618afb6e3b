/* Triangles packed and unpacked. */
#include <math.h>
#include <string.h>
#include "test_calls.h"

enum { LARGEST = 13, LDA = 15, AREA = LDA * LARGEST, LENGTH = LARGEST * (LARGEST + 1) / 2 };

struct trial {
    bool unpack;
    enum type type;
    cublasFillMode_t uplo;
    int n, lda;
};

/* A is in f->a, AP in f->b. */
static cublasStatus_t convert(const struct fixture *f, const struct trial *t)
{
    void *a = (void *)f->a, *ap = (void *)f->b;
    if (t->unpack) {
        ALL_ONES(tpttr, , f->handle, t->uplo, t->n, ap, a, t->lda);
    } else {
        ALL_ONES(trttp, , f->handle, t->uplo, t->n, a, t->lda, ap);
    }
}

/* What is copied comes bit by bit; what is not, as the memory outside, stays. */
static int perform(const struct fixture *f, const struct trial *t)
{
    static double complex x[AREA];
    static char square[sizeof x], packed[sizeof x], got[sizeof x];
    const size_t bytes = type_bytes(t->type);
    const CUdeviceptr result = t->unpack ? f->a : f->b;
    for (int i = 0; i < AREA; i++)
        x[i] = value(t->type);
    OK(cuMemcpyHtoD(f->a, square, narrow(t->type, x, square, AREA)));
    for (int i = 0; i < AREA; i++)
        x[i] = value(t->type);
    OK(cuMemcpyHtoD(f->b, packed, narrow(t->type, x, packed, AREA)));
    BLAS_OK(convert(f, t));
    OK(cuStreamSynchronize(f->stream));
    char *next = packed;
    for (int j = 0; j < t->n; j++)
        for (int i = 0; i < t->n; i++) {
            char *at = square + (size_t)(j * LDA + i) * bytes;
            if (t->uplo == CUBLAS_FILL_MODE_LOWER ? i < j : i > j)
                continue;
            memcpy(t->unpack ? at : next, t->unpack ? next : at, bytes);
            next += bytes;
        }
    OK(cuMemcpyDtoH(got, result, AREA * bytes));
    CHECK(memcmp(got, t->unpack ? square : packed, AREA * bytes) == 0);
    return 0;
}

static int packed_right(void)
{
    static const int sizes[] = {0, 1, 2, 5, LARGEST};
    static const int bases[] = {2, 4, 2, 5};
    int digits[4] = {0};
    struct fixture f;
    CHECK(set_up(&f) == 0);
    do {
        const struct trial t = {digits[0], (enum type)digits[1], (cublasFillMode_t)digits[2],
                                sizes[digits[3]], LDA};
        CHECK(perform(&f, &t) == 0);
    } while (count_up(digits, bases, sizeof bases / sizeof *bases));
    return tear_down(&f);
}

static int packed_checks(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    for (int unpack = 0; unpack < 2; unpack++)
        for (int type = S; type <= Z; type++) {
            const cublasFillMode_t upper = CUBLAS_FILL_MODE_UPPER;
            const struct trial wrong[] = {{unpack, (enum type)type, upper, -1, 1},
                                          {unpack, (enum type)type, upper, 3, 2},
                                          {unpack, (enum type)type, upper, 0, 0},
                                          {unpack, (enum type)type, CUBLAS_FILL_MODE_FULL, 1, 1}};
            for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                CHECK(convert(&f, &wrong[i]) == CUBLAS_STATUS_INVALID_VALUE);
        }
    return tear_down(&f);
}

/* From n = 65536 on, a packed triangle has more elements than an int. */
static int packed_too_long(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    for (int unpack = 0; unpack < 2; unpack++) {
        const struct trial t = {unpack, S, CUBLAS_FILL_MODE_UPPER, 65536, 65536};
        CHECK(convert(&f, &t) == CUBLAS_STATUS_INVALID_VALUE);
    }
    return tear_down(&f);
}

/* Of both operands' last element, and one after it. */
static int reach(bool unpack, int late)
{
    const struct trial t = {unpack, C, CUBLAS_FILL_MODE_LOWER, LARGEST, LDA};
    const size_t element = type_bytes(t.type);
    CUcontext context;
    struct fixture f;
    OK(cuCtxCreate(&context, NULL, 0, 0));
    BLAS_OK(cublasCreate(&f.handle));
    OK(cuMemAlloc(&f.a, ((LARGEST - 1) * LDA + LARGEST) * element));
    OK(cuMemAlloc(&f.b, LENGTH * element));
    BLAS_OK(convert(&f, &t));
    OK(cuCtxSynchronize());
    *(late == 0 ? &f.a : &f.b) += element;
    BLAS_OK(convert(&f, &t));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy(context));
    return 0;
}

static int packed_out_of_bounds(void)
{
    OK(cuInit(0));
    for (int unpack = 0; unpack < 2; unpack++)
        for (int late = 0; late < 2; late++)
            CHECK(reach(unpack, late) == 0);
    return 0;
}

/* What is there when the kernel runs is packed; the planted error is within the result. */
static int packed_late_and_spoiled(void)
{
    struct fixture f;
    struct gate gate;
    double host[3] = {5, 6, 7}, junk = NAN;
    CHECK(set_up(&f) == 0);
    const struct trial pack = {false, D, CUBLAS_FILL_MODE_UPPER, 2, 2};
    OK(gate_close(&gate, f.stream));
    BLAS_OK(convert(&f, &pack));
    OK(cuMemcpyHtoD(f.a, &host[0], sizeof *host));
    OK(cuMemcpyHtoD(f.a + sizeof *host, &junk, sizeof junk));
    OK(cuMemcpyHtoD(f.a + 2 * sizeof *host, &host[1], 2 * sizeof *host));
    gate_open(&gate);
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(host, f.b, sizeof host));
    CHECK(host[0] == 5 && host[1] == 7 && host[2] == 7);
    return tear_down(&f);
}

const struct scenario packed_scenarios[] = {
    {"packed_right",
     packed_right,
     {"TESTGPU_DELAY_US=0"},
     {"kernels gemm=0 trttp=32 tpttr=32\n", "call name=cublasZtpttr n=10 failed=0"}},
    {"packed_checks", packed_checks, {0}, {"kernels gemm=0\n"}},
    {"packed_out_of_bounds",
     packed_out_of_bounds,
     {0},
     {"fault what=illegal_address where=trttp", "fault what=illegal_address where=tpttr",
      "faults n=4\n"}},
    {"packed_too_long", packed_too_long, {0}, {"fault what=packed_too_long", "faults n=2\n"}},
    {"packed_late_and_spoiled",
     packed_late_and_spoiled,
     {"TESTGPU_WRONG=1"},
     {"planted wrong=1 matched=1 fired=1"}},
    {0},
};
