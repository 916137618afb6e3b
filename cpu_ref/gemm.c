#include "gemm.h"

#include "element.h"

double cpu_ref_epsilon(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? 0x1p-52 : 0x1p-23;
}

/* Element (row, col) of op(x). */
static value element(const struct accel_operand *x, char flag, int64_t row, int64_t col,
                     enum accel_dtype dtype)
{
    bool transposed = flag == 'T' || flag == 'C';
    int64_t index = transposed ? row * x->ld + col : col * x->ld + row;
    value z = load(x->ptr, index, dtype);
    return flag == 'C' || flag == 'R' ? conjl(z) : z;
}

double cpu_ref_gemm_ratio(const struct accel_call *call, const void *before)
{
    enum accel_dtype dtype = call->routine->dtype;
    const struct accel_operand *a = &call->operand[ACCEL_a], *b = &call->operand[ACCEL_b],
                               *c = &call->operand[ACCEL_c];
    value alpha = call->scalar[ACCEL_alpha].re + call->scalar[ACCEL_alpha].im * (value)_Complex_I;
    value beta = call->scalar[ACCEL_beta].re + call->scalar[ACCEL_beta].im * (value)_Complex_I;
    int64_t k = alpha == 0 ? 0 : call->size[ACCEL_k];
    long double worst = 0;
    for (int64_t col = 0; col < c->cols; col++)
        for (int64_t row = 0; row < c->rows; row++) {
            value sum = 0;
            long double scale = 0;
            for (int64_t p = 0; p < k; p++) {
                value x = element(a, call->flag[ACCEL_transa], row, p, dtype);
                value y = element(b, call->flag[ACCEL_transb], p, col, dtype);
                sum += x * y;
                scale += magnitude(x) * magnitude(y);
            }
            sum *= alpha;
            scale *= magnitude(alpha);
            if (beta != 0) {
                value old = load(before, col * c->rows + row, dtype);
                sum += beta * old;
                scale += magnitude(beta) * magnitude(old);
            }
            value got = load(c->ptr, col * c->ld + row, dtype);
            if (is_finite(got) != is_finite(sum))
                return INFINITY;
            if (!is_finite(sum))
                continue;
            long double error = magnitude(got - sum);
            if (error == 0)
                continue;
            long double ratio = error / (cpu_ref_epsilon(dtype) * scale);
            if (!(ratio <= worst))
                worst = ratio;
        }
    return (double)worst;
}

void cpu_ref_gemm_call(cpu_ref_gemm_lp64 *original, const struct accel_call *call)
{
    const char transa = call->flag[ACCEL_transa], transb = call->flag[ACCEL_transb];
    const int32_t m = (int32_t)call->size[ACCEL_m], n = (int32_t)call->size[ACCEL_n],
                  k = (int32_t)call->size[ACCEL_k], lda = (int32_t)call->operand[ACCEL_a].ld,
                  ldb = (int32_t)call->operand[ACCEL_b].ld,
                  ldc = (int32_t)call->operand[ACCEL_c].ld;
    double alpha[2] = {call->scalar[ACCEL_alpha].re, call->scalar[ACCEL_alpha].im};
    double beta[2] = {call->scalar[ACCEL_beta].re, call->scalar[ACCEL_beta].im};
    float alpha32[2] = {(float)alpha[0], (float)alpha[1]};
    float beta32[2] = {(float)beta[0], (float)beta[1]};
    bool is_double = accel_is_double(call->routine->dtype);
    original(&transa, &transb, &m, &n, &k, is_double ? (void *)alpha : alpha32,
             call->operand[ACCEL_a].ptr, &lda, call->operand[ACCEL_b].ptr, &ldb,
             is_double ? (void *)beta : beta32, call->operand[ACCEL_c].ptr, &ldc, 1, 1);
}
