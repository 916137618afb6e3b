/*
 * B := alpha inv(op(A)) B, or alpha B inv(op(A)), of operands on the device: by its BLAS, or by a
 * kernel of our own and products.
 *
 * The own way (gpu_solve_by_own()) divides the triangle in halves until one has at most some blocks
 * of the kernel's (gpu/own/substitution.cu), which solves by them; what the first half's solution
 * contributes to the other one's right-hand sides is a product. So most of the operations are
 * products. cuBLAS 13.1 solves by a triangle in 2 to 10 times as long as it multiplies by one, on
 * an H100, orders 64 to 1024 (docs/measurements, NVIDIA-H100-80GB-HBM3-2026-11-27.calls.txt).
 */
#ifndef ACCEL_TRIANGLE_SOLVE_H
#define ACCEL_TRIANGLE_SOLVE_H

#include "gpu/device/kernels.h"

/* The arguments are those of gpu_kernels.trsm(). A failure may leave a part of B solved, so B must
 * not be where the program has it. */
enum gpu_status triangle_solve(struct gpu_work *work, char side, char uplo, char trans, char diag,
                               int64_t m, int64_t n, struct accel_complex alpha, struct dmat a,
                               struct dmat b);

#endif
