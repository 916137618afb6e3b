/*
 * Singular values on the device, by whichever of cuSOLVER's algorithms is faster there.
 */
#ifndef ACCEL_SVD_ALGORITHM_H
#define ACCEL_SVD_ALGORITHM_H

#include "gpu/exec/lapack/solver.h"

/* Computes what solver_library.gesvd() does, by the algorithm that gpu_svd_choose() has set. */
void svd_of(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
            struct array u, struct array vt);

#endif
