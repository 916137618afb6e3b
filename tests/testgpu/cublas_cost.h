/* What a kernel costs: each routine's operations, as struct routine has them. */
#ifndef TESTGPU_CUBLAS_COST_H
#define TESTGPU_CUBLAS_COST_H

#include "cublas_routine.h"

double operations_of_gemm(const struct blas_call *call);
double operations_of_symm(const struct blas_call *call);
double operations_of_syrk(const struct blas_call *call);
double operations_of_syr2k(const struct blas_call *call);
double operations_of_triangular(const struct blas_call *call);

/* Each operand is moved once, and a batch fills the device as one of its products does. */
struct testgpu_cost cost_of(const struct blas_call *call);

#endif
