/* gemm in the precision that a handle's math mode asks for. */
#ifndef TESTGPU_CUBLAS_PRECISION_H
#define TESTGPU_CUBLAS_PRECISION_H

#include "cublas_routine.h"

/* Returns the routine that computes a call: its own, or that of the handle's math mode. */
const struct routine *in_math_mode(cublasHandle_t handle, const struct blas_call *call);

#endif
