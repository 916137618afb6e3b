/*
 * Judging the result of any routine of the table on the CPU: its value in higher precision, and the
 * error bound of the reference BLAS tests. Pure functions; any thread.
 *
 * Of cpu_ref/, which judges results: it includes the vocabulary of calls (headers of ops/) alone.
 */
#ifndef ACCEL_CPU_REF_JUDGE_H
#define ACCEL_CPU_REF_JUDGE_H

#include "ops/call.h"

/* The reference BLAS test programs fail a result whose ratio is above this (dblat3.f, THRESH). */
#define CPU_REF_THRESHOLD 16.0

/* The machine epsilon of a type as the reference tests use it: 2^-23 or 2^-52. */
double cpu_ref_epsilon(enum accel_dtype dtype);

/*
 * The worst ratio over the elements of the output (a triangle of it where the routine writes a
 * triangle; of a batch, of every product's) of
 *   |C - C_ref| / (eps (sum of |alpha| |X| |Y| over the call's products X Y + |beta| |C_before|)),
 * C_ref computed in long double, |X| |Y| the product of the matrices of magnitudes (so it grows with
 * k), plus what underflow may add: the smallest normal number for each multiplication. For trsm and trsv, whose result X solves op(A) X = alpha B, |op(A) X - alpha B| /
 * (eps (|op(A)| |X| + |alpha| |B|)). After dmmch and dmvch of the reference BLAS tests
 * (https://www.netlib.org/blas/dblat3.f, dblat2.f).
 *   call    of the routine the operation, the arguments and the type alone; the output operand holds the result, the
 *           others what they held before the call. All in host memory; nothing is kept or written
 *   layout  how the matrices are stored. Canonical calls: ACCEL_COLUMN_MAJOR. With ACCEL_ROW_MAJOR
 *           flags, sizes and operands are those of the row-major call itself, rows and cols as its
 *           writer means them
 *   before  the output as it was before the call, in the order in which it is stored, without gaps;
 *           of a batch one behind the other. May be NULL where it does not enter the result (beta,
 *           trmm's or trsm's alpha is 0)
 * What the routine does not read is not read here: the other triangle, a unit diagonal, imaginary
 * parts on a Hermitian diagonal, the inputs where alpha is 0.
 *
 * NaN and Inf: infinity is returned for an element that is finite in one of result and reference alone.
 * NaN and Inf count as the same. Two things are left to the implementation, so they are not judged:
 *   a triangular matrix's other triangle is zero, and an implementation may multiply with those zeros:
 *   an element that is finite but for such a product with a NaN or Inf of the other factor;
 *   the imaginary part on a Hermitian diagonal where the real part is not finite, or where there is
 *   nothing to add and beta is 1 (the reference leaves what it finds). Else it must be 0.
 * Inputs must not hold zeros where they hold NaN or Inf, for an implementation may skip zeros; nor
 * may the matrix of a solver: 1 / Inf is a number.
 * Costs two to four operations for each of the routine's, at the speed of a plain loop.
 */
double cpu_ref_ratio(const struct accel_call *call, enum accel_layout layout, const void *before);

#endif
