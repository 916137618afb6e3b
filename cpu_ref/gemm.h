/*
 * Judging a product on the CPU: its value in higher precision, and the error bound of the reference
 * BLAS tests. Pure functions; any thread.
 */
#ifndef ACCEL_CPU_REF_GEMM_H
#define ACCEL_CPU_REF_GEMM_H

#include "gpu/call.h"

/* The reference BLAS test programs fail a result whose ratio is above this (dblat3.f, THRESH). */
#define CPU_REF_THRESHOLD 16.0

/* The machine epsilon of a type as the reference tests use it: 2^-23 or 2^-52. */
double cpu_ref_epsilon(enum accel_dtype dtype);

/*
 * The worst ratio over the elements of C of
 *   |C - C_ref| / (eps (|alpha| |A| |B| + |beta| |C_before|)),
 * |A| |B| being the product of the matrices of magnitudes (so it grows with k), and C_ref computed
 * in long double. After dmmch of the reference BLAS tests (https://www.netlib.org/blas/dblat3.f).
 *   call    the canonical call; its operand C holds the result; operands in host memory
 *   before  C as it was before the call, packed (leading dimension = rows); may be NULL where beta
 * is 0 Returns infinity where an element is NaN or infinite in one of the two alone. Costs 2mnk
 * operations at the speed of a plain loop.
 */
double cpu_ref_gemm_ratio(const struct accel_call *call, const void *before);

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
