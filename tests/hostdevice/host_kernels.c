/* BLAS, by OpenBLAS. */
#include <limits.h>

#include "call/operation.h"
#include "host_device.h"

#define IS_COMPLEX accel_is_complex(work->call->routine->dtype)

/* A scalar of the call's type. */
union scalar {
    double in_double[2];
    float in_float[2];
};

static union scalar scalar_of(const struct gpu_work *work, struct accel_complex z)
{
    if (accel_is_double(work->call->routine->dtype))
        return (union scalar){.in_double = {z.re, z.im}};
    return (union scalar){.in_float = {(float)z.re, (float)z.im}};
}

#define SCALAR(z) ((union scalar[1]){scalar_of(work, z)})

static const struct accel_complex one = {1, 0};

/* Defines a kernel that is one routine of OpenBLAS; where `condition` holds, it is `other`, a
 * kernel of Level 3. */
#define KERNEL(kernel, parameters, condition, other, name, ...)                                    \
    static enum gpu_status kernel parameters                                                       \
    {                                                                                              \
        if (condition)                                                                             \
            return other;                                                                          \
        host_blas(work->call->routine->dtype, name)(__VA_ARGS__, LENGTHS);                         \
        return GPU_OK;                                                                             \
    }

KERNEL(gemm,
       (struct gpu_work * work, char transa, char transb, int64_t m, int64_t n, int64_t k,
        struct accel_complex alpha, struct dmat a, struct dmat b, struct accel_complex beta,
        struct dmat c),
       false, GPU_OK, "gemm", &transa, &transb, INTEGER(m), INTEGER(n), INTEGER(k), SCALAR(alpha),
       MATRIX(a), MATRIX(b), SCALAR(beta), MATRIX(c))
KERNEL(symm,
       (struct gpu_work * work, bool hermitian, char side, char uplo, int64_t m, int64_t n,
        struct accel_complex alpha, struct dmat a, struct dmat b, struct accel_complex beta,
        struct dmat c),
       false, GPU_OK, hermitian ? "hemm" : "symm", &side, &uplo, INTEGER(m), INTEGER(n),
       SCALAR(alpha), MATRIX(a), MATRIX(b), SCALAR(beta), MATRIX(c))
KERNEL(syrk,
       (struct gpu_work * work, bool hermitian, char uplo, char trans, int64_t n, int64_t k,
        struct accel_complex alpha, struct dmat a, struct accel_complex beta, struct dmat c),
       false, GPU_OK, hermitian ? "herk" : "syrk", &uplo, &trans, INTEGER(n), INTEGER(k),
       SCALAR(alpha), MATRIX(a), SCALAR(beta), MATRIX(c))
KERNEL(syr2k,
       (struct gpu_work * work, bool hermitian, char uplo, char trans, int64_t n, int64_t k,
        struct accel_complex alpha, struct dmat a, struct dmat b, struct accel_complex beta,
        struct dmat c),
       false, GPU_OK, hermitian ? "her2k" : "syr2k", &uplo, &trans, INTEGER(n), INTEGER(k),
       SCALAR(alpha), MATRIX(a), MATRIX(b), SCALAR(beta), MATRIX(c))
KERNEL(trmm,
       (struct gpu_work * work, char side, char uplo, char trans, char diag, int64_t m, int64_t n,
        struct accel_complex alpha, struct dmat a, struct dmat b),
       false, GPU_OK, "trmm", &side, &uplo, &trans, &diag, INTEGER(m), INTEGER(n), SCALAR(alpha),
       MATRIX(a), MATRIX(b))
KERNEL(trsm,
       (struct gpu_work * work, char side, char uplo, char trans, char diag, int64_t m, int64_t n,
        struct accel_complex alpha, struct dmat a, struct dmat b),
       false, GPU_OK, "trsm", &side, &uplo, &trans, &diag, INTEGER(m), INTEGER(n), SCALAR(alpha),
       MATRIX(a), MATRIX(b))
KERNEL(transpose,
       (struct gpu_work * work, char trans, int64_t m, int64_t n, struct dmat a, struct dmat b),
       false, GPU_OK, "omatcopy", &(char){'C'}, &trans, INTEGER(trans == 'N' ? m : n),
       INTEGER(trans == 'N' ? n : m), SCALAR(one), MATRIX(a), MATRIX(b))
KERNEL(pack_triangle,
       (struct gpu_work * work, char uplo, int64_t n, struct dmat a, gpu_address packed), false,
       GPU_OK, "trttp", &uplo, INTEGER(n), MATRIX(a), (void *)(uintptr_t)packed, INTEGER(0))
KERNEL(unpack_triangle,
       (struct gpu_work * work, char uplo, int64_t n, gpu_address packed, struct dmat a), false,
       GPU_OK, "tpttr", &uplo, INTEGER(n), (void *)(uintptr_t)packed, MATRIX(a), INTEGER(0))

KERNEL(gemv,
       (struct gpu_work * work, char trans, int64_t m, int64_t n, struct accel_complex alpha,
        struct dmat a, struct dmat x, struct accel_complex beta, struct dmat y),
       trans == 'R', gemm(work, 'N', 'C', 1, m, n, alpha, x, a, beta, y), "gemv", &trans,
       INTEGER(m), INTEGER(n), SCALAR(alpha), MATRIX(a), MATRIX(x), SCALAR(beta), MATRIX(y))
KERNEL(ger,
       (struct gpu_work * work, enum gpu_outer outer, int64_t m, int64_t n,
        struct accel_complex alpha, struct dmat x, struct dmat y, struct dmat a),
       outer == GPU_CONJUGATED_X, gemm(work, 'C', 'N', m, n, 1, alpha, x, y, one, a),
       outer == GPU_CONJUGATED_Y ? "gerc"
       : IS_COMPLEX              ? "geru"
                                 : "ger",
       INTEGER(m), INTEGER(n), SCALAR(alpha), MATRIX(x), MATRIX(y), MATRIX(a))
KERNEL(symv,
       (struct gpu_work * work, char uplo, int64_t n, struct accel_complex alpha, struct dmat a,
        struct dmat x, struct accel_complex beta, struct dmat y),
       work->call->blas.conjugated, symm(work, true, 'R', uplo, 1, n, alpha, a, x, beta, y),
       IS_COMPLEX ? "hemv" : "symv", &uplo, INTEGER(n), SCALAR(alpha), MATRIX(a), MATRIX(x),
       SCALAR(beta), MATRIX(y))
KERNEL(syr,
       (struct gpu_work * work, char uplo, int64_t n, struct accel_complex alpha, struct dmat x,
        struct dmat a),
       work->call->blas.conjugated, syrk(work, true, uplo, 'C', n, 1, alpha, x, one, a),
       IS_COMPLEX ? "her" : "syr", &uplo, INTEGER(n), SCALAR(alpha), MATRIX(x), MATRIX(a))
KERNEL(syr2,
       (struct gpu_work * work, char uplo, int64_t n, struct accel_complex alpha, struct dmat x,
        struct dmat y, struct dmat a),
       work->call->blas.conjugated, syr2k(work, true, uplo, 'C', n, 1, alpha, y, x, one, a),
       IS_COMPLEX ? "her2" : "syr2", &uplo, INTEGER(n), SCALAR(alpha), MATRIX(x), MATRIX(y),
       MATRIX(a))
KERNEL(trmv,
       (struct gpu_work * work, char uplo, char trans, char diag, int64_t n, struct dmat a,
        struct dmat x),
       trans == 'R', trmm(work, 'R', uplo, 'C', diag, 1, n, one, a, x), "trmv", &uplo, &trans,
       &diag, INTEGER(n), MATRIX(a), MATRIX(x))
KERNEL(trsv,
       (struct gpu_work * work, char uplo, char trans, char diag, int64_t n, struct dmat a,
        struct dmat x),
       trans == 'R', trsm(work, 'R', uplo, 'C', diag, 1, n, one, a, x), "trsv", &uplo, &trans,
       &diag, INTEGER(n), MATRIX(a), MATRIX(x))
KERNEL(copy, (struct gpu_work * work, int64_t n, struct dmat x, struct dmat y), false, GPU_OK,
       "copy", INTEGER(n), MATRIX(x), MATRIX(y))

/* One product of a batch. */
static void multiply(struct gpu_work *work, bool scaling, struct dmat a, struct dmat b,
                     struct dmat c)
{
    const struct blas_arguments *x = &work->call->blas;
    gemm(work, scaling ? 'N' : x->flag[ACCEL_transa], scaling ? 'N' : x->flag[ACCEL_transb],
         x->size[ACCEL_m], x->size[ACCEL_n], scaling ? 1 : x->size[ACCEL_k],
         scaling ? one : x->scalar[ACCEL_alpha], a, b, x->scalar[ACCEL_beta], c);
}

static enum gpu_status gemm_strided(struct gpu_work *work, bool scaling, int64_t batch,
                                    struct dmat a, int64_t stride_a, struct dmat b,
                                    int64_t stride_b, struct dmat c, int64_t stride_c)
{
    for (int64_t i = 0; i < batch; i++)
        multiply(work, scaling, dmat_from(work, a, i * stride_a, 0),
                 dmat_from(work, b, i * stride_b, 0), dmat_from(work, c, i * stride_c, 0));
    return GPU_OK;
}

static enum gpu_status gemm_array(struct gpu_work *work, bool scaling, int64_t batch, struct dmat a,
                                  struct dmat b, struct dmat c)
{
#define NUMBER(x) ((struct dmat){((const gpu_address *)AT(x))[i], (x).ld})
    for (int64_t i = 0; i < batch; i++)
        multiply(work, scaling, NUMBER(a), NUMBER(b), NUMBER(c));
    return GPU_OK;
}

static bool takes(int64_t size)
{
    return size <= INT_MAX;
}

static bool has_bfloat16(const struct gpu_work *work)
{
    (void)work;
    return false;
}

/* clang-format off */
const struct gpu_kernels host_kernels = {
    .takes = takes, .has_bfloat16 = has_bfloat16, .gemm = gemm, .gemm_strided = gemm_strided,
    .gemm_array = gemm_array, .symm = symm, .syrk = syrk, .syr2k = syr2k, .trmm = trmm,
    .trsm = trsm, .transpose = transpose, .pack_triangle = pack_triangle,
    .unpack_triangle = unpack_triangle, .gemv = gemv, .ger = ger, .symv = symv, .syr = syr,
    .syr2 = syr2, .trmv = trmv, .trsv = trsv, .copy = copy,
};
/* clang-format on */
