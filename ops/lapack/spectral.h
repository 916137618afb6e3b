/*
 * Eigenvalues and eigenvectors of a Hermitian matrix that is too large for any device, by spectral
 * divide and conquer: Y. Nakatsukasa, N. J. Higham, Stable and efficient spectral divide and
 * conquer algorithms for the symmetric eigenvalue decomposition and the SVD, SIAM J. Sci. Comput.
 * 35(3), 2013. The polar factor U of A - sigma I has the eigenvectors of A, and eigenvalues -1 and
 * 1. Orthonormal bases V2 and V1 of its two eigenspaces divide A into V2^H A V2 and V1^H A V1,
 * whose eigenvalues are those of A below and above sigma. These are divided in turn until a device
 * takes them as a whole. All that takes time is Level 3, and Cholesky factors of small matrices of
 * products.
 */
#ifndef ACCEL_LAPACK_SPECTRAL_H
#define ACCEL_LAPACK_SPECTRAL_H

#include "ops/decompose.h"

/* For op->gpu->decompose of syev and syevd, on operands in host memory. Fills in *done: the call,
 * with results in memory of its own where the original's would be, ascending eigenvalues in ACCEL_x
 * and, with jobz = V, vectors in ACCEL_a; decomposition_free() frees them. After a failure there
 * are none: GPU_UNSUPPORTED also for a spectrum that does not divide, numbers that are not finite,
 * and those that LAPACK would scale; GPU_NO_MEMORY without host memory: four times the matrix. The
 * bounds of rounding are not checked here. */
enum gpu_status spectral_decompose(struct decomposition *c, const struct accel_call *call,
                                   struct accel_call *done);

#endif
