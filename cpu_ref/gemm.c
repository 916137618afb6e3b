#include "gemm.h"

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
