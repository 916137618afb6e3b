/*
 * Judges the result of any BLAS routine on the CPU: computes it in higher precision, and compares
 * with the error bound of the reference BLAS tests. Pure functions, thread-safe.
 *
 * cpu_ref/ judges results. It includes the description of calls (headers of ops/) and nothing else.
 */
#ifndef ACCEL_CPU_REF_JUDGE_H
#define ACCEL_CPU_REF_JUDGE_H

#include "call/call.h"

/* The reference BLAS test programs fail a result whose ratio is above this (dblat3.f, THRESH). */
#define CPU_REF_THRESHOLD 16.0

/* The machine epsilon of a type as the reference tests use it: 2^-23 or 2^-52. */
double cpu_ref_epsilon(enum accel_dtype dtype);

/*
 * The worst ratio over the elements of the output (a triangle of it where the routine writes a
 * triangle; of a batch, of every product's) of
 *   |C - C_ref| / (eps (sum of |alpha| |X| |Y| over the call's products X Y + |beta| |C_before|)),
 * C_ref computed in long double, |X| |Y| the product of the matrices of magnitudes (so it grows
 * with k), plus what underflow may add: the smallest normal number for each multiplication, and
 * that number times each element of X and Y if alpha is not 1, since alpha X or alpha Y may
 * underflow, too. For trsm and trsv, whose result X solves op(A) X = alpha B, |op(A) X - alpha B| /
 * (eps (|op(A)| |X| + |alpha| |B|)), plus the same, and what elements of X may have lost by
 * underflow. After dmmch and dmvch of the reference BLAS tests
 * (https://www.netlib.org/blas/dblat3.f, dblat2.f).
 *   call    of the routine the operation, the arguments and the type alone; the output operand
 *           holds the result, the others what they held before the call. All in host memory;
 *           nothing is kept or written
 *   layout  how the matrices are stored. Canonical calls: ACCEL_COLUMN_MAJOR. With ACCEL_ROW_MAJOR
 *           flags, sizes and operands are those of the row-major call itself, rows and cols as its
 *           writer means them
 *   before  the output as it was before the call, in the order in which it is stored, without gaps;
 *           of a batch one behind the other. May be NULL where it does not enter the result (beta,
 *           trmm's or trsm's alpha is 0)
 * Reads only elements that the routine reads: not the other triangle, a unit diagonal, imaginary
 * parts on a Hermitian diagonal, or the inputs if alpha is 0.
 *
 * NaN and Inf: returns infinity if an element is finite in the result but not in the reference, or
 * the other way round. NaN and Inf count as the same. Two cases depend on the implementation and
 * are not judged:
 *   an implementation may multiply with the zeros of a triangular matrix's other triangle: an
 *   element that is finite unless such a zero is multiplied with a NaN or Inf; the imaginary part
 *   on a Hermitian diagonal, if the real part is not finite, or if nothing is added and beta is 1
 *   (the reference leaves it as it is). Otherwise it must be 0.
 * Inputs with NaN or Inf must have no zeros, because an implementation may skip zeros; the matrix
 * of a solver must have neither, because 1 / Inf is a number. Costs two to four operations for each
 * operation of the routine, at the speed of a plain loop.
 */
double cpu_ref_ratio(const struct accel_call *call, enum accel_layout layout, const void *before);

#endif
