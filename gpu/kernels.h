/*
 * cuBLAS's Level-3 functions over the four types: one function each. Operands are on the device; the work
 * is put on the lane's stream. Scalars are read before the return. The 64-bit functions are used where this
 * cuBLAS has them; see kernels_fit(). A launch is noted in the work.
 *
 * Shapes, flags and the other arguments are those of the BLAS routine of the same name, flags as letters
 * (N T C, L R, U L, N U).
 */
#ifndef ACCEL_KERNELS_H
#define ACCEL_KERNELS_H

#include "run.h"

/* Whether sizes up to `size` can be passed: all, or those below 2^31; and whether all sizes of a call can, and
 * the leading dimensions of operands that are used in place. */
bool kernels_fit(int64_t size);
bool kernels_fit_call(const struct accel_call *call);

enum gpu_status kernel_gemm(struct gpu_work *work, char transa, char transb, int64_t m, int64_t n,
                            int64_t k, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b, struct accel_complex beta, struct gpu_tile c);

/* symm or hemm, by the call's family. */
enum gpu_status kernel_symm(struct gpu_work *work, char side, char uplo, int64_t m, int64_t n,
                            struct accel_complex alpha, struct gpu_tile a, struct gpu_tile b,
                            struct accel_complex beta, struct gpu_tile c);

/* syrk or herk, and syr2k or her2k, by the call's family. */
enum gpu_status kernel_syrk(struct gpu_work *work, char uplo, char trans, int64_t n, int64_t k,
                            struct accel_complex alpha, struct gpu_tile a,
                            struct accel_complex beta, struct gpu_tile c);
enum gpu_status kernel_syr2k(struct gpu_work *work, char uplo, char trans, int64_t n, int64_t k,
                             struct accel_complex alpha, struct gpu_tile a, struct gpu_tile b,
                             struct accel_complex beta, struct gpu_tile c);

/* B := alpha op(A) B or alpha B op(A), in place. */
enum gpu_status kernel_trmm(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b);
enum gpu_status kernel_trsm(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct gpu_tile a,
                            struct gpu_tile b);

#endif
