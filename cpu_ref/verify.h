/*
 * Whether the result of a call is right, at the cost of reading its matrices a few times: Freivalds' test of products (R.
 * Freivalds, Probabilistic machines can use less running time, IFIP 1977), and the residuals of LAPACK's tests taken times a
 * random vector. A wrong element goes unseen where it is within what rounding may do, and else with probability zero but for
 * the vector's own resolution. Pure functions of their arguments; any thread. They take memory for a few vectors.
 */
#ifndef ACCEL_CPU_REF_VERIFY_H
#define ACCEL_CPU_REF_VERIFY_H

#include "ops/call.h"

/* What there is to say of a result that is not judged. */
#define CPU_REF_NOT_JUDGED (-1.0)

/*
 * The error over what rounding may make it: above 1, or infinite, the result is wrong. CPU_REF_NOT_JUDGED where it cannot be told:
 * inputs or results beyond the range of their type, NaN or Inf in the inputs, eigenvalues of a part of the spectrum without
 * vectors, no memory.
 *   call    valid, not empty, as it stands after the call: the operands that are written hold the results. All in memory that
 *           the host reads; nothing is written
 *   before  for each operand that is written, what it held before the call as a packed matrix (ld = rows); NULL where that
 *           does not enter the result
 *   seed    of the random vector, any number
 * The bounds, u being the unit roundoff of the routine's type (2^-24, 2^-53), |X| the Frobenius norm, |x| the length of a row:
 *   products   each element of C r - alpha A (B r) - beta C0 r: 12 (k + 16) u (|alpha| |a_i| |B| + |beta| |c0_i|), what field
 *              tests of the BLAS allow an element (k u |a_i| |b_j|), summed over the row with the signs of r at random;
 *              solutions of triangular systems by the same as a whole
 *   Level 2, copies and exchanges: every element, by cpu_ref_ratio() or exactly
 *   LAPACK     the length of the residual times r: 60 n u times the norms that LAPACK's test programs scale with
 * and to each what this test itself may round in double precision.
 */
double cpu_ref_verify(const struct accel_call *call, const void *const before[ACCEL_MATRICES],
                      uint64_t seed);

/* The same of LAPACK's routines alone, for cpu_ref_verify(). */
double cpu_ref_verify_lapack(const struct accel_call *call,
                             const void *const before[ACCEL_MATRICES], uint64_t seed);

#endif
