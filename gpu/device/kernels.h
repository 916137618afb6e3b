/*
 * BLAS on the device: one function for a routine's four types. Operands are on the device; a
 * function puts its kernel on the call's stream, and notes that in the work. Scalars are read
 * before it returns.
 *
 * The type is the call's. Shapes, flags and the other arguments are those of the BLAS routine of
 * the same name, flags as letters (N T C, L R, U L, N U).
 */
#ifndef ACCEL_KERNELS_H
#define ACCEL_KERNELS_H

#include "work.h"

/* The largest order of a triangle that is packed or unpacked: n (n + 1) / 2 < 2^31. */
enum { GPU_PACKED_MOST = 65535 };

/* How ?ger's vectors are taken: x y', x y^H, conj(x) y'. */
enum gpu_outer { GPU_PLAIN, GPU_CONJUGATED_Y, GPU_CONJUGATED_X };

struct gpu_kernels {
    /* Returns whether the device's BLAS takes `size`: all, or those below 2^31. */
    bool (*takes)(int64_t size);

    /* Returns whether this device and its BLAS multiply bfloat16. */
    bool (*has_bfloat16)(const struct gpu_work *work);

    enum gpu_status (*gemm)(struct gpu_work *work, char transa, char transb, int64_t m, int64_t n,
                            int64_t k, struct accel_complex alpha, struct dmat a, struct dmat b,
                            struct accel_complex beta, struct dmat c);

    /* Compute `batch` products, at most KERNEL_BATCH_MOST (gpu/plan/scheduled.h), with the call's
     * flags, scalars and sizes: of matrices at regular distances, in elements, or of tiles that are
     * device arrays of pointers to matrices on the device. scaling: C := beta C; A is m x 1, B is 1
     * x n, of zeros. */
    enum gpu_status (*gemm_strided)(struct gpu_work *work, bool scaling, int64_t batch,
                                    struct dmat a, int64_t stride_a, struct dmat b,
                                    int64_t stride_b, struct dmat c, int64_t stride_c);
    enum gpu_status (*gemm_array)(struct gpu_work *work, bool scaling, int64_t batch, struct dmat a,
                                  struct dmat b, struct dmat c);

    /* hermitian: hemm, herk, her2k. */
    enum gpu_status (*symm)(struct gpu_work *work, bool hermitian, char side, char uplo, int64_t m,
                            int64_t n, struct accel_complex alpha, struct dmat a, struct dmat b,
                            struct accel_complex beta, struct dmat c);

    enum gpu_status (*syrk)(struct gpu_work *work, bool hermitian, char uplo, char trans, int64_t n,
                            int64_t k, struct accel_complex alpha, struct dmat a,
                            struct accel_complex beta, struct dmat c);
    enum gpu_status (*syr2k)(struct gpu_work *work, bool hermitian, char uplo, char trans,
                             int64_t n, int64_t k, struct accel_complex alpha, struct dmat a,
                             struct dmat b, struct accel_complex beta, struct dmat c);

    /* B := alpha op(A) B or alpha B op(A), in place. */
    enum gpu_status (*trmm)(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct dmat a,
                            struct dmat b);
    enum gpu_status (*trsm)(struct gpu_work *work, char side, char uplo, char trans, char diag,
                            int64_t m, int64_t n, struct accel_complex alpha, struct dmat a,
                            struct dmat b);

    /* B := op(A), m x n, apart from A. */
    enum gpu_status (*transpose)(struct gpu_work *work, char trans, int64_t m, int64_t n,
                                 struct dmat a, struct dmat b);

    /* Copy the triangle uplo of an n x n matrix to and from LAPACK's packed storage, of n (n + 1) /
     * 2 elements; the rest of the matrix is not touched. Return GPU_UNSUPPORTED if n is above
     * GPU_PACKED_MOST, or ld is beyond 32 bits. */
    enum gpu_status (*pack_triangle)(struct gpu_work *work, char uplo, int64_t n, struct dmat a,
                                     gpu_address packed);
    enum gpu_status (*unpack_triangle)(struct gpu_work *work, char uplo, int64_t n,
                                       gpu_address packed, struct dmat a);

    /* ---- Level 2. It lacks conjugated forms (trans = R, and a call that is `conjugated`): Level 3
     * computes them, and needs vectors with inc > 0. ---- */

    enum gpu_status (*gemv)(struct gpu_work *work, char trans, int64_t m, int64_t n,
                            struct accel_complex alpha, struct dmat a, struct dmat x,
                            struct accel_complex beta, struct dmat y);

    /* A := alpha x y' + A, alpha x y^H + A, or alpha conj(x) y' + A. */
    enum gpu_status (*ger)(struct gpu_work *work, enum gpu_outer outer, int64_t m, int64_t n,
                           struct accel_complex alpha, struct dmat x, struct dmat y, struct dmat a);

    /* By the type: symv or hemv, syr or her, syr2 or her2. */
    enum gpu_status (*symv)(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct dmat a, struct dmat x, struct accel_complex beta, struct dmat y);
    enum gpu_status (*syr)(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                           struct dmat x, struct dmat a);
    enum gpu_status (*syr2)(struct gpu_work *work, char uplo, int64_t n, struct accel_complex alpha,
                            struct dmat x, struct dmat y, struct dmat a);

    enum gpu_status (*trmv)(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct dmat a, struct dmat x);
    enum gpu_status (*trsv)(struct gpu_work *work, char uplo, char trans, char diag, int64_t n,
                            struct dmat a, struct dmat x);
    enum gpu_status (*copy)(struct gpu_work *work, int64_t n, struct dmat x, struct dmat y);
};

static inline const struct gpu_kernels *gpu_kernels(const struct gpu_work *work)
{
    return work->device->functions->kernels;
}

/* Returns whether the device's BLAS takes all sizes of a call, and the leading dimensions of
 * operands that it uses in place. */
bool kernels_fit(const struct gpu_work *work, const struct accel_call *call);

/* C := beta C, for k = 0 or alpha = 0. The device's BLAS does not say what it does then, so this is
 * a product of zeros, of depth 1. With beta = 0, C is not read. kernels_zeros() takes the zeros,
 * max(m, n) of the call's type: call it before anything is overwritten. */
enum gpu_status kernels_zeros(struct gpu_work *work, int64_t count, gpu_address *zeros);
enum gpu_status kernels_scale(struct gpu_work *work, int64_t m, int64_t n,
                              struct accel_complex beta, gpu_address zeros, struct dmat c);
/* Scales a triangle alone. hermitian: beta is real, and the diagonal becomes real. */
enum gpu_status kernels_scale_triangle(struct gpu_work *work, bool hermitian, char uplo, int64_t n,
                                       struct accel_complex beta, gpu_address zeros, struct dmat c);

#endif
