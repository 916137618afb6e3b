/*
 * A canonical gemm call on an original. Any thread.
 */
#ifndef ACCEL_CPU_REF_GEMM_H
#define ACCEL_CPU_REF_GEMM_H

#include "cpu_ref/judge.h"

static inline double cpu_ref_gemm_ratio(const struct accel_call *call, const void *before)
{
    return cpu_ref_ratio(call, ACCEL_COLUMN_MAJOR, before);
}

/* The original, through its own type: the Fortran interface of ?gemm with LP64 integers, for all
 * four types (the scalars and matrices are of the routine's). Hidden lengths are passed. */
typedef void cpu_ref_gemm_lp64(const char *transa, const char *transb, const int32_t *m,
                               const int32_t *n, const int32_t *k, const void *alpha, const void *a,
                               const int32_t *lda, const void *b, const int32_t *ldb,
                               const void *beta, void *c, const int32_t *ldc, size_t transa_length,
                               size_t transb_length);

/* Runs a canonical call on the original. Sizes must fit 32 bits. */
void cpu_ref_gemm_call(cpu_ref_gemm_lp64 *original, const struct accel_call *call);

#endif
