/* What gemm and its relatives share. */
#ifndef TESTGPU_CUBLAS_GEMM_H
#define TESTGPU_CUBLAS_GEMM_H

#include "cublas_compute.h"

bool describe_gemm(struct blas_call *call);

/* For functions that have gemm's parameters under these names, and perhaps others. */
#define GEMM_FIELDS(PRECISION, ROUTINE)                                                            \
    .routine = &(ROUTINE), .precision = (PRECISION), .transa = transa, .transb = transb, .m = m,   \
    .n = n, .k = k, .a = MATRIX(a, lda), .b = MATRIX(b, ldb), .c = MATRIX(c, ldc),                 \
    .alpha_at = alpha, .beta_at = beta

#endif
