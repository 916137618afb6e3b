/*
 * A library of the routines that the distribution's BLAS libraries lack, as calls of the gemm of the BLAS
 * that it is linked to. After oneMKL's reference for gemm_batch and gemm_batch_strided, LAPACK 3.12's
 * dgemmtr.f, and OpenBLAS's interface/gemm.c for sbgemm.
 */
#include <stdlib.h>
#include <string.h>

#include "interfaces.h"

#define REAL_s     float
#define REAL_d     double
#define REAL_c     const void *
#define REAL_z     const void *
#define PASS_s(at) *(const float *)(at)
#define PASS_d(at) *(const double *)(at)
#define PASS_c(at) (at)
#define PASS_z(at) (at)
#define BYTES_s    4
#define BYTES_d    8
#define BYTES_c    8
#define BYTES_z    16
#define AT_s(x)    (&(x))
#define AT_d(x)    (&(x))
#define AT_c(x)    (x)
#define AT_z(x)    (x)

#define INT  const blas_int *
#define CHAR const char *

/* s- and dgemm of OpenBLAS 0.3.21 read A and B with alpha = 0 (small matrices, AVX-512); these routines must not, and ask for a
 * product of no columns then. */
static blas_int depth(const void *alpha, size_t bytes, blas_int k)
{
    static const char zero[BYTES_z];
    return memcmp(alpha, zero, bytes) == 0 ? 0 : k;
}
#define DEPTH(t, alpha, k) depth(alpha, BYTES_##t, k)

#define FORTRAN(t)                                                                                 \
    void t##gemm_(CHAR, CHAR, INT, INT, INT, const void *, const void *, INT, const void *, INT,   \
                  const void *, void *, INT, size_t, size_t);                                      \
    void t##gemm_batch_(CHAR, CHAR, INT, INT, INT, const char *, const void **, INT,               \
                        const void **, INT, const char *, void **, INT, INT, INT, size_t, size_t); \
    void t##gemm_batch_(CHAR transa, CHAR transb, INT m, INT n, INT k, const char *alpha,          \
                        const void **a, INT lda, const void **b, INT ldb, const char *beta,        \
                        void **c, INT ldc, INT group_count, INT group_size, size_t length_a,       \
                        size_t length_b)                                                           \
    {                                                                                              \
        for (blas_int g = 0; g < *group_count; g++)                                                \
            for (blas_int i = 0; i < group_size[g]; i++)                                           \
                t##gemm_(transa + g, transb + g, m + g, n + g,                                     \
                         &(blas_int){DEPTH(t, alpha + g * BYTES_##t, k[g])},                       \
                         alpha + g * BYTES_##t, *a++, lda + g, *b++, ldb + g,                      \
                         beta + g * BYTES_##t, *c++, ldc + g, length_a, length_b);                 \
    }                                                                                              \
    void t##gemm_batch_strided_(CHAR, CHAR, INT, INT, INT, const void *, const char *, INT, INT,   \
                                const char *, INT, INT, const void *, char *, INT, INT, INT,       \
                                size_t, size_t);                                                   \
    void t##gemm_batch_strided_(CHAR transa, CHAR transb, INT m, INT n, INT k, const void *alpha,  \
                                const char *a, INT lda, INT stridea, const char *b, INT ldb,       \
                                INT strideb, const void *beta, char *c, INT ldc, INT stridec,      \
                                INT batch_size, size_t length_a, size_t length_b)                  \
    {                                                                                              \
        for (blas_int i = 0; i < *batch_size; i++)                                                 \
            t##gemm_(transa, transb, m, n, &(blas_int){DEPTH(t, alpha, *k)}, alpha,                \
                     a + i * *stridea * BYTES_##t, lda, b + i * *strideb * BYTES_##t, ldb, beta,   \
                     c + i * *stridec * BYTES_##t, ldc, length_a, length_b);                       \
    }

#define CBLAS(t)                                                                                   \
    void cblas_##t##gemm(int, int, int, blas_int, blas_int, blas_int, REAL_##t, const void *,      \
                         blas_int, const void *, blas_int, REAL_##t, void *, blas_int);            \
    void cblas_##t##gemm_batch(int, const int *, const int *, INT, INT, INT, const char *,         \
                               const void **, INT, const void **, INT, const char *, void **, INT, \
                               blas_int, INT);                                                     \
    void cblas_##t##gemm_batch(int layout, const int *transa, const int *transb, INT m, INT n,     \
                               INT k, const char *alpha, const void **a, INT lda, const void **b,  \
                               INT ldb, const char *beta, void **c, INT ldc, blas_int group_count, \
                               INT group_size)                                                     \
    {                                                                                              \
        for (blas_int g = 0; g < group_count; g++)                                                 \
            for (blas_int i = 0; i < group_size[g]; i++)                                           \
                cblas_##t##gemm(layout, transa[g], transb[g], m[g], n[g],                          \
                                DEPTH(t, alpha + g * BYTES_##t, k[g]),                             \
                                PASS_##t(alpha + g * BYTES_##t), *a++, lda[g], *b++, ldb[g],       \
                                PASS_##t(beta + g * BYTES_##t), *c++, ldc[g]);                     \
    }                                                                                              \
    void cblas_##t##gemm_batch_strided(int, int, int, blas_int, blas_int, blas_int, REAL_##t,      \
                                       const char *, blas_int, blas_int, const char *, blas_int,   \
                                       blas_int, REAL_##t, char *, blas_int, blas_int, blas_int);  \
    void cblas_##t##gemm_batch_strided(int layout, int transa, int transb, blas_int m, blas_int n, \
                                       blas_int k, REAL_##t alpha, const char *a, blas_int lda,    \
                                       blas_int stridea, const char *b, blas_int ldb,              \
                                       blas_int strideb, REAL_##t beta, char *c, blas_int ldc,     \
                                       blas_int stridec, blas_int batch_size)                      \
    {                                                                                              \
        for (blas_int i = 0; i < batch_size; i++)                                                  \
            cblas_##t##gemm(layout, transa, transb, m, n, DEPTH(t, AT_##t(alpha), k), alpha,       \
                            a + i * stridea * BYTES_##t, lda, b + i * strideb * BYTES_##t, ldb,    \
                            beta, c + i * stridec * BYTES_##t, ldc);                               \
    }

/* ---- gemmt, and LAPACK's name for it: one triangle of a whole product ---- */

static char *copy_of(const char *matrix, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy)
        abort();
    return memcpy(copy, matrix, bytes);
}

/* Elements of `bytes` each; element (i, j) is i + j * ld. */
static void put_triangle(char *c, const char *whole, blas_int n, blas_int ld, int upper,
                         size_t bytes)
{
    for (blas_int j = 0; j < n; j++) {
        blas_int from = upper ? 0 : j, to = upper ? j + 1 : n;
        size_t at = (size_t)(from + j * ld) * bytes;
        memcpy(c + at, whole + at, (size_t)(to - from) * bytes);
    }
}

static size_t extent(blas_int rows, blas_int cols, blas_int ld)
{
    return rows > 0 && cols > 0 ? (size_t)((cols - 1) * ld + rows) : 0;
}

#define GEMMT(t, name)                                                                             \
    void t##name##_(CHAR, CHAR, CHAR, INT, INT, const void *, const void *, INT, const void *,     \
                    INT, const void *, char *, INT, size_t, size_t, size_t);                       \
    void t##name##_(CHAR uplo, CHAR transa, CHAR transb, INT n, INT k, const void *alpha,          \
                    const void *a, INT lda, const void *b, INT ldb, const void *beta, char *c,     \
                    INT ldc, size_t length, size_t length_a, size_t length_b)                      \
    {                                                                                              \
        char *whole = copy_of(c, extent(*n, *n, *ldc) * BYTES_##t);                                \
        (void)length;                                                                              \
        t##gemm_(transa, transb, n, n, &(blas_int){DEPTH(t, alpha, *k)}, alpha, a, lda, b, ldb,    \
                 beta, whole, ldc, length_a, length_b);                                            \
        put_triangle(c, whole, *n, *ldc, *uplo == 'U' || *uplo == 'u', BYTES_##t);                 \
        free(whole);                                                                               \
    }                                                                                              \
    void cblas_##t##name(int, int, int, int, blas_int, blas_int, REAL_##t, const void *, blas_int, \
                         const void *, blas_int, REAL_##t, char *, blas_int);                      \
    void cblas_##t##name(int layout, int uplo, int transa, int transb, blas_int n, blas_int k,     \
                         REAL_##t alpha, const void *a, blas_int lda, const void *b, blas_int ldb, \
                         REAL_##t beta, char *c, blas_int ldc)                                     \
    {                                                                                              \
        char *whole = copy_of(c, extent(n, n, ldc) * BYTES_##t);                                   \
        cblas_##t##gemm(layout, transa, transb, n, n, DEPTH(t, AT_##t(alpha), k), alpha, a, lda,   \
                        b, ldb, beta, whole, ldc);                                                 \
        put_triangle(c, whole, n, ldc, (uplo == 121) == (layout == 102), BYTES_##t);               \
        free(whole);                                                                               \
    }

#define ALL(t) FORTRAN(t) CBLAS(t) GEMMT(t, gemmt) GEMMT(t, gemmtr)
ALL(s)
ALL(d)
ALL(c)
ALL(z)

/* ---- sbgemm: a product of two bfloat16 is a float ---- */

static float *floats_of(const uint16_t *matrix, blas_int rows, blas_int cols, blas_int ld)
{
    size_t n = extent(rows, cols, ld);
    float *floats = malloc((n + 1) * sizeof *floats);
    if (!floats)
        abort();
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)matrix[i] << 16;
        memcpy(&floats[i], &bits, sizeof bits);
    }
    return floats;
}

void cblas_sbgemm(int, int, int, blas_int, blas_int, blas_int, float, const uint16_t *, blas_int,
                  const uint16_t *, blas_int, float, float *, blas_int);
void cblas_sbgemm(int layout, int transa, int transb, blas_int m, blas_int n, blas_int k,
                  float alpha, const uint16_t *a, blas_int lda, const uint16_t *b, blas_int ldb,
                  float beta, float *c, blas_int ldc)
{
    /* As stored by columns: a row-major matrix has its rows there. */
    int tall_a = (transa == 111) == (layout == 102), tall_b = (transb == 111) == (layout == 102);
    float *a32 = floats_of(a, tall_a ? m : k, tall_a ? k : m, lda);
    float *b32 = floats_of(b, tall_b ? k : n, tall_b ? n : k, ldb);
    cblas_sgemm(layout, transa, transb, m, n, DEPTH(s, &alpha, k), alpha, a32, lda, b32, ldb, beta,
                c, ldc);
    free(a32);
    free(b32);
}

static int code_of(CHAR trans)
{
    return *trans == 'N' || *trans == 'n' ? 111 : 112;
}

void sbgemm_(CHAR, CHAR, INT, INT, INT, const float *, const uint16_t *, INT, const uint16_t *, INT,
             const float *, float *, INT, size_t, size_t);
void sbgemm_(CHAR transa, CHAR transb, INT m, INT n, INT k, const float *alpha, const uint16_t *a,
             INT lda, const uint16_t *b, INT ldb, const float *beta, float *c, INT ldc,
             size_t length_a, size_t length_b)
{
    (void)length_a;
    (void)length_b;
    cblas_sbgemm(102, code_of(transa), code_of(transb), *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta,
                 c, *ldc);
}
