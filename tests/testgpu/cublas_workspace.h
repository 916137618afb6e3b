/* The workspaces in which kernels of cuBLAS work, or will. */
#ifndef TESTGPU_CUBLAS_WORKSPACE_H
#define TESTGPU_CUBLAS_WORKSPACE_H

#include "cublas.h"

struct use;

/* Notes that a kernel is put on the handle's stream, and that it has ended. NULL: too many are on
 * their way, of which a device that has failed runs none any more. */
struct use *workspace_take(cublasHandle_t handle);
void workspace_give(struct use *use);

#endif
