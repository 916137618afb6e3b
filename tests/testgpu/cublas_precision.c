/*
 * Level 3 in the precisions that a handle's math mode asks for: TF32, single precision by nine
 * products of bfloat16, double precision by a fixed point (the Ozaki scheme). Each is really
 * computed by its parts, so that results differ from native ones as they do on a device. As the
 * documentation has it, the fixed point takes as many bits as double precision's own error asks
 * for; with more than 79, with Inf or NaN, or with too small a workspace, the product is native,
 * and nothing is said but by the count of bits.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cublas_cost.h"
#include "cublas_gemm.h"
#include "cublas_precision.h"

enum { MOST_BITS = 79, BF16_PARTS = 3, PARTS_MOST = 10 };

/* The values of CUBLAS_FP32_EMULATED_BF16X9_MATH and CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH, which
 * older headers lack. */
enum { BF16X9_MATH = 4, FIXED_MATH = 8 };

/* ---- An operand in parts, whose sum it is ---- */

struct operand {
    const struct matrix *shape;
    const void *elements;
    /* A row of op(A), a column of op(B): what shares an exponent is a column as stored */
    bool by_column;
    int64_t reals; /* for each element */
};

static double real_at(const struct blas_call *x, const struct operand *o, int64_t row,
                      int64_t column, int64_t part)
{
    const int64_t at = (column * o->shape->ld + row) * o->reals + part;
    return is_single(x->precision) ? (double)((const float *)o->elements)[at]
                                   : ((const double *)o->elements)[at];
}

static int64_t lines_of(const struct operand *o)
{
    return o->by_column ? o->shape->columns : o->shape->rows;
}

/* The number of element `at` of a line as it is stored. */
static double in_line(const struct blas_call *x, const struct operand *o, int64_t line, int64_t at,
                      int64_t part)
{
    return o->by_column ? real_at(x, o, at, line, part) : real_at(x, o, line, at, part);
}

/* 2^exponent is above all numbers of an element; INT_MIN: it is zero. */
static int exponent_of(const struct blas_call *x, const struct operand *o, int64_t line, int64_t at)
{
    int most = INT_MIN;
    for (int64_t part = 0; part < o->reals; part++) {
        int exponent;
        const double number = in_line(x, o, line, at, part);
        frexp(number, &exponent);
        if (number != 0 && exponent > most)
            most = exponent;
    }
    return most;
}

static bool is_finite(const struct blas_call *x, const struct operand *o)
{
    for (int64_t line = 0; line < lines_of(o); line++)
        for (int64_t at = 0; at < x->k; at++)
            for (int64_t part = 0; part < o->reals; part++)
                if (!isfinite(in_line(x, o, line, at, part)))
                    return false;
    return true;
}

/* [line * k + at], and the greatest of each line. */
static int *exponents_of(const struct blas_call *x, const struct operand *o, int *greatest)
{
    int *exponents = malloc(sizeof *exponents * (size_t)(lines_of(o) * x->k));
    for (int64_t line = 0; exponents != NULL && line < lines_of(o); line++) {
        greatest[line] = INT_MIN;
        for (int64_t at = 0; at < x->k; at++) {
            int e = exponent_of(x, o, line, at);
            exponents[line * x->k + at] = e;
            greatest[line] = e > greatest[line] ? e : greatest[line];
        }
    }
    return exponents;
}

/* By how many bits the greatest product of an element's sum is below the product of the greatest of
 * its row and its column. */
static int lost_bits(const struct blas_call *x, const struct operand *a, const struct operand *b)
{
    int most = 0;
    int *high_a = malloc(sizeof *high_a * (size_t)lines_of(a)),
        *high_b = malloc(sizeof *high_b * (size_t)lines_of(b));
    int *low_a = high_a != NULL ? exponents_of(x, a, high_a) : NULL,
        *low_b = high_b != NULL ? exponents_of(x, b, high_b) : NULL;
    for (int64_t i = 0; low_a != NULL && low_b != NULL && i < lines_of(a); i++)
        for (int64_t j = 0; j < lines_of(b); j++) {
            int greatest = INT_MIN;
            for (int64_t l = 0; l < x->k; l++) {
                const int ea = low_a[i * x->k + l], eb = low_b[j * x->k + l];
                if (ea != INT_MIN && eb != INT_MIN && ea + eb > greatest)
                    greatest = ea + eb;
            }
            if (greatest != INT_MIN && high_a[i] + high_b[j] - greatest > most)
                most = high_a[i] + high_b[j] - greatest;
        }
    free(low_a);
    free(low_b);
    free(high_a);
    free(high_b);
    return most;
}

/* Returns the next part of a number, of which the rest is given. */
typedef double take_function(double rest, int exponent, int part, int width);

/* Returns a single-precision number without the bits that the mask lacks. */
static double cut(double number, uint32_t mask)
{
    uint32_t bits;
    float single = (float)number;
    memcpy(&bits, &single, sizeof bits);
    bits &= mask;
    memcpy(&single, &bits, sizeof single);
    return single;
}

static double take_bfloat16(double rest, int exponent, int part, int width)
{
    (void)exponent;
    (void)part;
    (void)width;
    return cut(rest, 0xffff0000u);
}

static double take_fixed(double rest, int exponent, int part, int width)
{
    const int point = exponent - (part + 1) * width;
    return ldexp(nearbyint(ldexp(rest, -point)), point);
}

/* Returns packed copies of an operand, one for each part. */
static void *split(const struct blas_call *x, const struct operand *o, take_function *take,
                   int parts, int width)
{
    const int64_t rows = o->shape->rows, columns = o->shape->columns,
                  reals = rows * columns * o->reals;
    const size_t one = is_single(x->precision) ? sizeof(float) : sizeof(double);
    char *copies = malloc(one * (size_t)(reals * parts) + 1);
    for (int64_t line = 0; copies != NULL && line < lines_of(o); line++) {
        int exponent = INT_MIN;
        for (int64_t at = 0; take == take_fixed && at < x->k; at++) {
            const int e = exponent_of(x, o, line, at);
            exponent = e > exponent ? e : exponent;
        }
        for (int64_t at = 0; at < x->k; at++)
            for (int64_t half = 0; half < o->reals; half++) {
                double rest = in_line(x, o, line, at, half);
                const int64_t element = o->by_column ? line * rows + at : at * rows + line;
                for (int part = 0; part < parts; part++) {
                    const double number = exponent == INT_MIN && take == take_fixed
                                              ? 0
                                              : take(rest, exponent, part, width);
                    const int64_t to = part * reals + element * o->reals + half;
                    rest -= number;
                    if (one == sizeof(float))
                        ((float *)(void *)copies)[to] = (float)number;
                    else
                        ((double *)(void *)copies)[to] = number;
                }
            }
    }
    return copies;
}

static struct operand left_of(const struct blas_call *x, const void *a)
{
    return (struct operand){&x->a, a, is_transposed(x->transa),
                            (x->precision == COMPLEX || x->precision == DOUBLE_COMPLEX ? 2 : 1)};
}

static struct operand right_of(const struct blas_call *x, const void *b)
{
    return (struct operand){&x->b, b, !is_transposed(x->transb),
                            (x->precision == COMPLEX || x->precision == DOUBLE_COMPLEX ? 2 : 1)};
}

/* C := alpha (sum of A_i B_j) + beta C, over i + j < diagonals, the least products first. False
 * without memory. */
static bool sum_of_parts(const struct blas_call *x, const void *a, const void *b, void *c,
                         take_function *take, int parts, int width, int diagonals)
{
    const struct operand left = left_of(x, a), right = right_of(x, b);
    const size_t bytes_a = element_bytes(x->precision) * (size_t)(x->a.rows * x->a.columns),
                 bytes_b = element_bytes(x->precision) * (size_t)(x->b.rows * x->b.columns);
    char *as = split(x, &left, take, parts, width), *bs = split(x, &right, take, parts, width);
    const bool there = as != NULL && bs != NULL;
    struct blas_call each = *x;
    each.a.ld = x->a.rows;
    each.b.ld = x->b.rows;
    for (int diagonal = diagonals - 1; there && diagonal >= 0; diagonal--)
        for (int i = 0; i <= diagonal; i++) {
            if (i >= parts || diagonal - i >= parts)
                continue;
            compute_gemm(&each, as + (size_t)i * bytes_a, bs + (size_t)(diagonal - i) * bytes_b, c);
            memset(each.beta, 0, sizeof each.beta);
            if (is_single(x->precision))
                memcpy(each.beta, &(float){1}, sizeof(float));
            else
                memcpy(each.beta, &(double){1}, sizeof(double));
        }
    free(as);
    free(bs);
    return there;
}

/* ---- The routines ---- */

static void compute_bf16x9(const struct blas_call *x, const void *a, const void *b, void *c)
{
    if (a == NULL || b == NULL ||
        !sum_of_parts(x, a, b, c, take_bfloat16, BF16_PARTS, 0, 2 * BF16_PARTS - 1))
        compute_gemm(x, a, b, c);
}

static void compute_fixed(const struct blas_call *x, const void *a, const void *b, void *c)
{
    const struct operand left = left_of(x, a), right = right_of(x, b);
    int bits = MOST_BITS + 1, width = (52 - (int)log2((double)(2 * x->k))) / 2;
    if (a != NULL && b != NULL && is_finite(x, &left) && is_finite(x, &right))
        bits = 55 + lost_bits(x, &left, &right);
    const int parts = (bits + width - 1) / width;
    if (bits > MOST_BITS || parts > PARTS_MOST ||
        !sum_of_parts(x, a, b, c, take_fixed, parts, width, parts)) {
        compute_gemm(x, a, b, c);
        return;
    }
    *x->retained_bits = bits;
}

/* Without the bits that TF32 lacks, then as ever: for all routines in single precision. */
static float *cut_copy(const struct matrix *shape, const void *elements)
{
    const size_t reals = matrix_bytes(shape) / sizeof(float);
    float *copy = elements != NULL ? malloc(reals * sizeof *copy) : NULL;
    for (size_t i = 0; copy != NULL && i < reals; i++)
        copy[i] = (float)cut((double)((const float *)elements)[i], 0xffffe000u);
    return copy;
}

static void compute_tf32(const struct blas_call *x, const void *a, const void *b, void *c)
{
    float *as = cut_copy(&x->a, a), *bs = cut_copy(&x->b, b);
    x->routine->compute(x, as != NULL ? as : a, bs != NULL ? bs : b, c);
    free(as);
    free(bs);
}

/* The triangle of C := alpha X Y + beta C, where op(X) is n x k and op(Y) k x n, as a product of
 * its own. */
static void add_product(const struct blas_call *x, const void *left, const void *right,
                        const unsigned char alpha[16], const unsigned char beta[16], void *c,
                        void (*product)(const struct blas_call *, const void *, const void *,
                                        void *))
{
    const bool across = is_transposed(x->transa);
    const cublasOperation_t dash = has(x, HERMITIAN) ? CUBLAS_OP_C : CUBLAS_OP_T;
    struct blas_call whole = *x;
    whole.m = x->n;
    whole.transa = across ? dash : CUBLAS_OP_N;
    whole.transb = across ? CUBLAS_OP_N : dash;
    whole.b = (struct matrix){.ld = x->b.rows > 0 ? x->b.ld : x->a.ld};
    describe_gemm(&whole);
    memcpy(whole.alpha, alpha, sizeof whole.alpha);
    memcpy(whole.beta, beta, sizeof whole.beta);
    product(&whole, left, right, c);
}

/* C's other triangle is not touched: the product goes to a copy. */
static void compute_rank_k(const struct blas_call *x, const void *a, const void *b, char *c,
                           void (*product)(const struct blas_call *, const void *, const void *,
                                           void *))
{
    const size_t element = element_bytes(x->precision), ld = (size_t)x->c.ld;
    const bool two = has(x, HAS_B);
    unsigned char one[16] = {0}, other[16];
    char *copy = malloc(matrix_bytes(&x->c));
    if (a == NULL || (two && b == NULL) || copy == NULL) {
        free(copy);
        x->routine->compute(x, a, b, c);
        return;
    }
    memcpy(copy, c, matrix_bytes(&x->c));
    memcpy(other, x->alpha, sizeof other);
    if (has(x, HERMITIAN) && two) { /* her2k: alpha's conjugate */
        if (is_single(x->precision))
            ((float *)(void *)other)[1] *= -1;
        else
            ((double *)(void *)other)[1] *= -1;
    }
    if (is_single(x->precision))
        memcpy(one, &(float){1}, sizeof(float));
    else
        memcpy(one, &(double){1}, sizeof(double));
    add_product(x, a, two ? b : a, x->alpha, x->beta, copy, product);
    if (two)
        add_product(x, b, a, other, one, copy, product);
    for (int64_t column = 0; column < x->c.columns; column++) {
        int64_t first, end;
        part_of_column(&x->c, column, &first, &end);
        const size_t at = ((size_t)column * ld + (size_t)first) * element;
        memcpy(c + at, copy + at, (size_t)(end - first) * element);
        const size_t diagonal = (size_t)column * (ld + 1) * element;
        if (has(x, HERMITIAN)) /* it is real */
            memset(c + diagonal + element / 2, 0, element / 2);
    }
    free(copy);
}

static void compute_rank_k_bf16x9(const struct blas_call *x, const void *a, const void *b, void *c)
{
    compute_rank_k(x, a, b, c, compute_bf16x9);
}

static void compute_rank_k_fixed(const struct blas_call *x, const void *a, const void *b, void *c)
{
    compute_rank_k(x, a, b, c, compute_fixed);
}

/* With TESTGPU_GFLOPS. */
enum { FIXED_GAIN = 4, BF16X9_GAIN = 2, TF32_GAIN = 8 };

static const struct math_mode modes[] = {
    {"gemm", FIXED_MATH, "gemm_emulated", FIXED_GAIN, compute_fixed},
    {"gemm_batched", FIXED_MATH, "gemm_batched_emulated", FIXED_GAIN, compute_fixed},
    {"gemm_strided_batched", FIXED_MATH, "gemm_strided_batched_emulated", FIXED_GAIN,
     compute_fixed},
    {"syrk", FIXED_MATH, "syrk_emulated", FIXED_GAIN, compute_rank_k_fixed},
    {"herk", FIXED_MATH, "herk_emulated", FIXED_GAIN, compute_rank_k_fixed},
    {"syr2k", FIXED_MATH, "syr2k_emulated", FIXED_GAIN, compute_rank_k_fixed},
    {"her2k", FIXED_MATH, "her2k_emulated", FIXED_GAIN, compute_rank_k_fixed},
    {"gemm", BF16X9_MATH, "gemm_bf16x9", BF16X9_GAIN, compute_bf16x9},
    {"gemm_batched", BF16X9_MATH, "gemm_batched_bf16x9", BF16X9_GAIN, compute_bf16x9},
    {"gemm_strided_batched", BF16X9_MATH, "gemm_strided_batched_bf16x9", BF16X9_GAIN,
     compute_bf16x9},
    {"syrk", BF16X9_MATH, "syrk_bf16x9", BF16X9_GAIN, compute_rank_k_bf16x9},
    {"herk", BF16X9_MATH, "herk_bf16x9", BF16X9_GAIN, compute_rank_k_bf16x9},
    {"syr2k", BF16X9_MATH, "syr2k_bf16x9", BF16X9_GAIN, compute_rank_k_bf16x9},
    {"her2k", BF16X9_MATH, "her2k_bf16x9", BF16X9_GAIN, compute_rank_k_bf16x9},
    {"gemm", CUBLAS_TF32_TENSOR_OP_MATH, "gemm_tf32", TF32_GAIN, compute_tf32},
    {"gemm_batched", CUBLAS_TF32_TENSOR_OP_MATH, "gemm_batched_tf32", TF32_GAIN, compute_tf32},
    {"gemm_strided_batched", CUBLAS_TF32_TENSOR_OP_MATH, "gemm_strided_batched_tf32", TF32_GAIN,
     compute_tf32},
    {"syrk", CUBLAS_TF32_TENSOR_OP_MATH, "syrk_tf32", TF32_GAIN, compute_tf32},
    {"herk", CUBLAS_TF32_TENSOR_OP_MATH, "herk_tf32", TF32_GAIN, compute_tf32},
    {"syr2k", CUBLAS_TF32_TENSOR_OP_MATH, "syr2k_tf32", TF32_GAIN, compute_tf32},
    {"her2k", CUBLAS_TF32_TENSOR_OP_MATH, "her2k_tf32", TF32_GAIN, compute_tf32},
    {"symm", CUBLAS_TF32_TENSOR_OP_MATH, "symm_tf32", TF32_GAIN, compute_tf32},
    {"hemm", CUBLAS_TF32_TENSOR_OP_MATH, "hemm_tf32", TF32_GAIN, compute_tf32},
    {"trmm", CUBLAS_TF32_TENSOR_OP_MATH, "trmm_tf32", TF32_GAIN, compute_tf32},
    {"trsm", CUBLAS_TF32_TENSOR_OP_MATH, "trsm_tf32", TF32_GAIN, compute_tf32},
};

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* cuBLAS, "Fixed-Point Workspace Requirements", with dynamic control. */
static size_t fixed_workspace(const struct blas_call *x)
{
    const bool rank_k = x->m == 0; /* its result is n x n */
    const size_t m = (size_t)(rank_k ? x->n : x->m), n = (size_t)x->n, k = (size_t)x->k,
                 slices = 10, batch = has(x, BATCHED) ? (size_t)x->batch : 1;
    const size_t padded_m = round_up(m, 1024), padded_n = round_up(n, 1024),
                 padded_k = round_up(k, 128);
    const size_t mult = x->precision == DOUBLE ? 1 : 2, limit = (size_t)1 << 32;
    size_t result = 4 * padded_m * padded_n * mult * mult * slices;
    result = (result < limit ? result : limit) * ((k + 8191) / 8192);
    const size_t complex_result = mult == 2 ? 8 * m * n * 4 : 0;
    const size_t product = (padded_m + padded_n) * padded_k * mult * slices +
                           4 * (padded_m + padded_n) * mult +
                           (result > complex_result ? result : complex_result);
    const size_t adaptive = 4 * (m * ((k + 63) / 64) + n * ((k + 63) / 64) + m * n) * mult;
    return (size_t)((double)(batch * (product > adaptive ? product : adaptive)) * 1.25) +
           ((size_t)128 << 20);
}

/* Whether cuBLAS of this version has the mode on the device, and room for it. */
static bool can(cublasHandle_t handle, const struct blas_call *x, int math)
{
    const int capability = testgpu_capability(), version = testgpu_cublas_version();
    const bool rank_k = strncmp(x->routine->name, "gemm", 4) != 0;
    if (math == CUBLAS_TF32_TENSOR_OP_MATH)
        return is_single(x->precision) && capability >= 80;
    if (math == BF16X9_MATH)
        return is_single(x->precision) && (capability == 100 || capability == 103) &&
               version >= (rank_k ? 130100 : 120900);
    return !is_single(x->precision) && version >= (rank_k ? 130300 : 130100) &&
           (rank_k ? capability == 100 : capability >= 80) &&
           handle->workspace_bytes >= fixed_workspace(x);
}

const struct math_mode *math_mode_of(cublasHandle_t handle, const struct blas_call *x)
{
    const int math = (int)handle->math & 15;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if ((int)modes[i].math == math && strcmp(x->routine->name, modes[i].of) == 0 &&
            can(handle, x, math))
            return &modes[i];
    return NULL;
}
