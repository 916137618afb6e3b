/*
 * Judging the result of any Level 3 routine on the CPU: its value in higher precision, and the
 * error bound of the reference BLAS tests. Pure functions; any thread.
 */
#ifndef ACCEL_CPU_REF_LEVEL3_H
#define ACCEL_CPU_REF_LEVEL3_H

#include "cpu_ref/gemm.h" /* CPU_REF_THRESHOLD, cpu_ref_epsilon() */

/*
 * The worst ratio over the elements of the output (C; B of trmm and trsm; a triangle of it where
 * the routine writes a triangle) of |C - C_ref| / (eps (sum of |alpha| |X| |Y| over the call's
 * products X Y + |beta| |C_before|)), C_ref computed in long double, |X| |Y| the product of the
 * matrices of magnitudes. For trsm, whose result X solves op(A) X = alpha B, |op(A) X - alpha B| /
 * (eps (|op(A)| |X| + |alpha| |B|)). After dmmch of the reference BLAS tests
 * (https://www.netlib.org/blas/dblat3.f, zblat3.f). call    the canonical call, of the routine the
 * family and dtype alone; the output operand holds the result, the other operands what they held
 * before the call. All in host memory: m x n, n x k ... by sizes and flags as in routines.def;
 * nothing is kept or written before  the output as it was before the call, the whole rectangle
 * packed (leading dimension = rows); may be NULL where it does not enter the result (beta, trmm's
 * or trsm's alpha is 0) What the routine does not read is not read here: the other triangle, a unit
 * diagonal, imaginary parts on a Hermitian diagonal, A and B where alpha is 0. Returns infinity
 * where an element is NaN or infinite in one of result and reference alone (trsm: in the result),
 * and where a Hermitian result's diagonal is not real; with nothing to add and beta = 1 the
 * reference BLAS leaves imaginary parts there as they are, and they may be. Costs two to four
 * operations for each of the routine's, at the speed of a plain loop.
 */
double cpu_ref_level3_ratio(const struct accel_call *call, const void *before);

#endif
