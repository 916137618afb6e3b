/*
 * Checks the result of a call by reading its matrices a few times: Freivalds' test of products (R.
 * Freivalds, Probabilistic machines can use less running time, IFIP 1977), and the residuals of
 * LAPACK's tests times a random vector. A wrong element goes unseen if it is within the rounding
 * bound; otherwise practically never. Pure functions of their arguments, thread-safe. They allocate
 * a few vectors.
 */
#ifndef ACCEL_CPU_REF_VERIFY_H
#define ACCEL_CPU_REF_VERIFY_H

#include "call/call.h"

/* The value for a result that cannot be judged. */
#define CPU_REF_NOT_JUDGED (-1.0)

/*
 * Returns the error divided by the rounding bound: above 1, or infinite, the result is wrong.
 * Returns CPU_REF_NOT_JUDGED for NaN or Inf in the inputs, unless an element of BLAS's result is
 * wrong that these do not reach (clean.h), for very large numbers there, for results that are
 * beyond the range of their type where the right ones may be, for norms whose squares underflow,
 * for eigenvalues of a part of the spectrum without vectors, and without memory.
 *   call    valid, not empty, after it has run: written operands hold the results. All in memory
 *           that the host can read; the function writes none of it
 *   before  for each written operand its former contents as a packed matrix (ld = rows); NULL if
 *           these do not enter the result
 *   seed    of the random vector, any number
 *   input_error  of products: the relative error of each input as it was multiplied; 0: the inputs
 *                were used as they are
 * The bounds, u being the unit roundoff of the routine's type (2^-24, 2^-53), |X| the Frobenius
 * norm, |x| the length of a row:
 *   products   each element of C r - alpha A (B r) - beta C0 r: 12 (k + 16) u (|alpha| |a_i| |B| +
 *              |beta| |c0_i|), the usual bound of an element (k u |a_i| |b_j|), summed over the row
 *              with random signs of r; 24 input_error |alpha| |a_i| |B| more: both inputs have that
 *              error (Blanchard, Higham, Lopez, Mary, Pranesh, Mixed precision block fused
 *              multiply-add, SIAM J. Sci. Comput. 42, 2020, section 3); solutions of triangular
 *              systems by the same bound as a whole
 *   Level 2    every element: (k + 16) u, at least 32 u, times the sum of the magnitudes of what is
 *              added (cpu_ref_ratio())
 *   copies and exchanges: every element, exactly
 *   LAPACK     the length of the residual times r: 60 n u times the norms that LAPACK's test
 *              programs scale with; where a call factors and solves, a matrix counts as larger by
 *              the least normal number divided by u
 * and for each, on top, the rounding of this test in double precision.
 */
double cpu_ref_verify(const struct accel_call *call, const void *const before[ACCEL_SPANS],
                      uint64_t seed, double input_error);

/* Of two results of one call, each as cpu_ref_verify() returns it: not judged if one cannot be,
 * unless another is wrong. */
static inline double cpu_ref_worse_of(double a, double b)
{
    const double worse = a > b ? a : b;
    return worse <= 1 && (a < 0 || b < 0) ? CPU_REF_NOT_JUDGED : worse;
}

/* The same for operations with op->rules->check, LAPACK's and GSL's; cpu_ref_verify() calls it. */
double cpu_ref_verify_lapack(const struct accel_call *call, const void *const before[ACCEL_SPANS],
                             uint64_t seed);

#endif
