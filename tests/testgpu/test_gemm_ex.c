/* gemmEx of bfloat16 matrices. */
#include <math.h>
#include <string.h>
#include "test_testgpu.h"

enum { M = 7, N = 5, K = 6, LDA = 9, LDB = 8, LDC = 10, AREA = 96 };

static uint16_t a[AREA], b[AREA];
static float c[AREA];

struct product {
    bool wide;
    cublasOperation_t ta, tb;
    int m, n, k, lda;
    const void *alpha;
    cudaDataType type_a, type_b, type_c;
    cublasComputeType_t type;
};

static const float one = 1, zero = 0;

static const struct product good = {
    .m = M,
    .n = N,
    .k = K,
    .lda = LDA,
    .alpha = &one,
    .type_a = CUDA_R_16BF,
    .type_b = CUDA_R_16BF,
    .type_c = CUDA_R_32F,
    .type = CUBLAS_COMPUTE_32F,
};

static cublasStatus_t multiply(const struct fixture *f, const struct product *p, const float *beta)
{
    return (p->wide
                ? cublasGemmEx_64(f->handle, p->ta, p->tb, p->m, p->n, p->k, p->alpha, (void *)f->a,
                                  p->type_a, p->lda, (void *)f->b, p->type_b, LDB, beta,
                                  (void *)f->c, p->type_c, LDC, p->type, CUBLAS_GEMM_DEFAULT)
                : cublasGemmEx(f->handle, p->ta, p->tb, p->m, p->n, p->k, p->alpha, (void *)f->a,
                               p->type_a, p->lda, (void *)f->b, p->type_b, LDB, beta, (void *)f->c,
                               p->type_c, LDC, p->type, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
}

/* Few enough bits that a bfloat16 has them all, and the sums of their products are exact. */
static uint16_t some_bfloat(void)
{
    float value = (float)(int)(noise() * 256) / 64;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float wide(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float expected(const struct product *p, float alpha, float beta, int i, int j)
{
    float sum = 0;
    for (int l = 0; l < K; l++)
        sum += wide(p->ta == CUBLAS_OP_N ? a[l * LDA + i] : a[i * LDA + l]) *
               wide(p->tb == CUBLAS_OP_N ? b[j * LDB + l] : b[l * LDB + j]);
    return alpha * sum + (beta != 0 ? beta * c[j * LDC + i] : 0);
}

static int perform(const struct fixture *f, const struct product *p, float alpha, float beta)
{
    static float got[AREA];
    struct product call = *p;
    float scalars[] = {alpha, beta};
    for (int i = 0; i < AREA; i++) {
        a[i] = some_bfloat();
        b[i] = some_bfloat();
        c[i] = beta != 0 ? (float)noise() : NAN;
    }
    OK(cuMemcpyHtoD(f->a, a, sizeof a));
    OK(cuMemcpyHtoD(f->b, b, sizeof b));
    OK(cuMemcpyHtoD(f->c, c, sizeof c));
    call.alpha = &scalars[0];
    BLAS_OK(multiply(f, &call, &scalars[1]));
    memset(scalars, 0xff, sizeof scalars); /* read at the call */
    OK(cuStreamSynchronize(f->stream));
    OK(cuMemcpyDtoH(got, f->c, sizeof got));
    for (int at = 0; at < AREA; at++) {
        int i = at % LDC, j = at / LDC;
        if (i < M && j < N)
            CHECK(fabsf(got[at] - expected(p, alpha, beta, i, j)) <= 1e-6f);
        else
            CHECK(memcmp(&got[at], &c[at], sizeof *got) == 0);
    }
    return 0;
}

static int gemm_ex_right(void)
{
    static const int bases[] = {2, 3, 3};
    int digits[3] = {0};
    struct fixture f;
    CHECK(set_up(&f) == 0);
    do {
        struct product p = good;
        p.wide = digits[0];
        p.ta = (cublasOperation_t)digits[1];
        p.tb = (cublasOperation_t)digits[2];
        CHECK(perform(&f, &p, 0.75f, -0.5f) == 0);
        CHECK(perform(&f, &p, 1, 0) == 0);
        CHECK(perform(&f, &p, 0, 2) == 0);
    } while (count_up(digits, bases, sizeof bases / sizeof *bases));
    return tear_down(&f);
}

#define REFUSED(STATUS, CHANGE)                                                                    \
    do {                                                                                           \
        struct product p = good;                                                                   \
        CHANGE;                                                                                    \
        CHECK(multiply(&f, &p, &one) == (STATUS));                                                 \
        p.wide = true;                                                                             \
        CHECK(multiply(&f, &p, &one) == (STATUS));                                                 \
    } while (0)

static int gemm_ex_checks(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    REFUSED(CUBLAS_STATUS_NOT_SUPPORTED, p.type_a = CUDA_R_16F);
    REFUSED(CUBLAS_STATUS_NOT_SUPPORTED, p.type_b = CUDA_R_32F);
    REFUSED(CUBLAS_STATUS_NOT_SUPPORTED, p.type_c = CUDA_R_16BF);
    REFUSED(CUBLAS_STATUS_NOT_SUPPORTED, p.type = CUBLAS_COMPUTE_32F_PEDANTIC);
    REFUSED(CUBLAS_STATUS_INVALID_VALUE, p.m = -1);
    REFUSED(CUBLAS_STATUS_INVALID_VALUE, p.lda = M - 1);
    REFUSED(CUBLAS_STATUS_INVALID_VALUE, p.ta = 7);
    REFUSED(CUBLAS_STATUS_INVALID_VALUE, p.alpha = NULL);
    REFUSED(CUBLAS_STATUS_SUCCESS, p.n = 0);
    return tear_down(&f);
}

/* Elements of A and B have two bytes, those of C four. */
static int gemm_ex_out_of_bounds(void)
{
    struct fixture f;
    CUdeviceptr exact;
    CHECK(set_up(&f) == 0);
    OK(cuMemFree(f.a));
    OK(cuMemAlloc(&exact, ((K - 1) * LDA + M) * sizeof *a));
    f.a = exact;
    BLAS_OK(multiply(&f, &good, &zero));
    OK(cuStreamSynchronize(f.stream));
    f.a += sizeof *a;
    BLAS_OK(multiply(&f, &good, &zero));
    CHECK(cuStreamSynchronize(f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int gemm_ex_spoiled(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    struct product p = good;
    p.alpha = &zero;
    OK(cuMemsetD8Async(f.c, 0, sizeof c, f.stream));
    BLAS_OK(multiply(&f, &p, &zero));
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoH(c, f.c, sizeof c));
    int wrong = 0;
    for (int i = 0; i < AREA; i++)
        wrong += c[i] == 1 && i % LDC < M && i / LDC < N;
    CHECK(wrong == 1);
    return tear_down(&f);
}

const struct scenario gemm_ex_scenarios[] = {
    {"gemm_ex_right",
     gemm_ex_right,
     {0},
     {"kernels gemm=0 gemm_ex=54\n", "call name=cublasGemmEx_64 n=27 failed=0"}},
    {"gemm_ex_checks", gemm_ex_checks, {0}, {"call name=cublasGemmEx n=9 failed=8"}},
    {"gemm_ex_out_of_bounds",
     gemm_ex_out_of_bounds,
     {0},
     {"fault what=illegal_address where=gemm_ex", "faults n=1\n"}},
    {"gemm_ex_spoiled",
     gemm_ex_spoiled,
     {"TESTGPU_WRONG=1"},
     {"planted wrong=1 matched=1 fired=1"}},
    {0},
};
