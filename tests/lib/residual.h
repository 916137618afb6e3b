/*
 * Judges the results of LAPACK routines on the CPU by the scaled residuals of LAPACK's own test
 * programs, in long double. Pure functions, thread-safe.
 *
 * A ratio is |error| / (eps * scale), eps = 2^-24 or 2^-53. The comment of each function has the
 * scale, and the program of LAPACK's TESTING/LIN or TESTING/EIG that it comes from
 * (https://www.netlib.org/lapack/). Norms are one-norms unless the comment names another. The ratio
 * is infinite if a result is NaN or Inf, if pivots name no row, or if an order is not as
 * documented; 0 if there is nothing to judge. Inputs are finite. Elements that the routine does not
 * read are not read here.
 */
#ifndef TESTS_RESIDUAL_H
#define TESTS_RESIDUAL_H

#include "cpu_ref/apply.h"

/* LAPACK's test programs fail a result whose ratio is not below this (TESTING/dtest.in). */
#define CPU_REF_RESIDUAL_THRESHOLD 30.0

/* Vectors are contiguous: tau of the routine's type, w and s of its real type. Pivots count from 1,
 * as in LAPACK. op: 'N', 'T' or 'C'. */

/* ---- Factorizations, solutions, inverses ---- */

/* getrf: |P A - L U| / (n |A|). dget01 */
double residual_lu(const struct view *a, const struct view *lu, const int64_t *ipiv);

/* potrf, factor TRIANGULAR: |A - L L^H| / (n |A|). dpot01 */
double residual_cholesky(const struct view *a, const struct view *factor);

/* sytrf, hetrf, factor GENERAL, a SYMMETRIC or HERMITIAN: |A - U D U^H| / (n |A|). dsyt01 */
double residual_ldl(const struct view *a, const struct view *factor, const int64_t *ipiv);

/* Any solver, the worst column: |b - op(A) x| / (|A| |x|). dget02, dpot02, dtrt02 */
double residual_solution(const struct view *a, char op, const struct view *x, const struct view *b);

/* getri, potri, trtri: |I - A X| / (n |A| |X|), or the same of X A if that is less: implementations
 * differ in the side that they solve from. dget03, dpot03, dtrt01 */
double residual_inverse(const struct view *a, const struct view *inverse);

/* lauum, before TRIANGULAR, after HERMITIAN: |U U^H - A| / (n |U| |U^H|), or L^H L. */
double residual_triangle_square(const struct view *before, const struct view *after);

/* ---- Orthogonal factors ---- */

/* |I - Q^H Q| / max(1, rows), of the columns; of the rows |I - Q Q^H| / max(1, cols). dort01 */
double residual_orthogonal(const struct view *q, bool by_rows);

/* geqrf: |A - Q R| / (m |A|), and Q orthogonal. dqrt01 */
double residual_qr(const struct view *a, const struct view *qr, const void *tau);

/* orgqr: |Q - H(1) ... H(k)| / m, and Q orthogonal. qr holds the k reflectors. dqrt02 */
double residual_generated(const struct view *qr, const void *tau, const struct view *q);

/* ormqr: |op(Q) C - result| / (max(m, n) |C|), C op(Q) for side = 'R'. dqrt03 */
double residual_applied(char side, char op, const struct view *qr, const void *tau,
                        const struct view *before, const struct view *after);

/* ---- Eigenvalues and singular values ---- */

/* syev and others, the columns of z beside w: |A Z - Z W| / (n |A|), Z orthogonal, w ascending.
 * dsyt21, dsyt22 */
double residual_eigen(const struct view *a, const struct view *z, const void *w);

/* sygv and others: |A Z - B Z W| / (n |A| |Z|) for itype 1, |A B Z - Z W| / (n |A| |B| |Z|) for 2,
 * B A for 3; |I - Z^H B Z| / (n |B| |Z|^2) for 1 and 2, |B - Z Z^H| / (n |B|) for 3 if Z is
 * square; w ascending. dsgt01 */
double residual_generalized(int itype, const struct view *a, const struct view *b,
                            const struct view *z, const void *w);

/* sygst, with the factor of B, TRIANGULAR: L, or U = L^H: |A - L C L^H| / (n |L| |L^H| |C|) for
 * itype 1, |C - L^H A L| / (n |L| |L^H| |A|) for 2 and 3. LAPACK's programs judge it by the
 * eigenvalues alone. */
double residual_reduced(int itype, const struct view *a, const struct view *factor,
                        const struct view *reduced);

/* gesvd, gesdd: |A - U S VT| / (max(m, n) |A|), U's columns and VT's rows orthogonal, s descending
 * and not negative. u and vt may have more columns and rows than s has elements; either may be
 * NULL: then |U^H A A^H U - S^2| / (max(m, n) |A|^2). dbdt01 */
double residual_svd(const struct view *a, const struct view *u, const void *s,
                    const struct view *vt);

/* geev: |A V - V W| / (n |A|) of right eigenvectors, |A^H V - V W^H| of left ones; unit length, the
 * largest element real; conjugated pairs side by side, the positive imaginary part first. Sums of
 * the first three powers of w against the traces of A's. wi: of the real types; vl, vr: NULL if
 * not computed. dget22 */
double residual_geev(const struct view *a, const void *wr, const void *wi, const struct view *vl,
                     const struct view *vr);

/* For known values: the greatest |got - expected| / (n scale). dtype is the routine's. */
double residual_values(enum accel_dtype dtype, int64_t n, const void *got,
                       const long double *expected, long double scale);

/* ---- Least squares ---- */

/* The worst column: |op(A)^H (b - op(A) x)| / (max(m, n) |A| (|b| + |A| |x|)). dqrt17 */
double residual_least_squares(const struct view *a, char op, const struct view *x,
                              const struct view *b);

/* The distance of x from the range of op(A)^H, whose rank is known: |x - P x| / (max(m, n) |x|) in
 * the two-norm. For well-conditioned matrices only: a solver's range is that of a matrix eps away.
 * dqrt14 */
double residual_minimum_norm(const struct view *a, char op, int64_t rank, const struct view *x);

#endif
