/* The arithmetic of Level 3, by an OpenBLAS inside this library that no other library can see or
 * replace. */
#include <complex.h>
#include <string.h>
#include "cublas_compute.h"

typedef void gemm_routine(const char *transa, const char *transb, const int *m, const int *n,
                          const int *k, const void *alpha, const void *a, const int *lda,
                          const void *b, const int *ldb, const void *beta, void *c, const int *ldc,
                          size_t, size_t);
typedef void symm_routine(const char *side, const char *uplo, const int *m, const int *n,
                          const void *alpha, const void *a, const int *lda, const void *b,
                          const int *ldb, const void *beta, void *c, const int *ldc, size_t,
                          size_t);
typedef void syrk_routine(const char *uplo, const char *trans, const int *n, const int *k,
                          const void *alpha, const void *a, const int *lda, const void *beta,
                          void *c, const int *ldc, size_t, size_t);
typedef void syr2k_routine(const char *uplo, const char *trans, const int *n, const int *k,
                           const void *alpha, const void *a, const int *lda, const void *b,
                           const int *ldb, const void *beta, void *c, const int *ldc, size_t,
                           size_t);
typedef void triangular_routine(const char *side, const char *uplo, const char *trans,
                                const char *diag, const int *m, const int *n, const void *alpha,
                                const void *a, const int *lda, void *b, const int *ldb, size_t,
                                size_t, size_t, size_t);

gemm_routine sgemm_, dgemm_, cgemm_, zgemm_;
symm_routine ssymm_, dsymm_, csymm_, zsymm_, chemm_, zhemm_;
syrk_routine ssyrk_, dsyrk_, csyrk_, zsyrk_, cherk_, zherk_;
syr2k_routine ssyr2k_, dsyr2k_, csyr2k_, zsyr2k_, cher2k_, zher2k_;
triangular_routine strmm_, dtrmm_, ctrmm_, ztrmm_, strsm_, dtrsm_, ctrsm_, ztrsm_;

static char letter(cublasOperation_t operation)
{
    return operation == CUBLAS_OP_N ? 'N' : operation == CUBLAS_OP_T ? 'T' : 'C';
}

static int signed_ld(const struct matrix *matrix)
{
    return (int)(matrix->backwards ? -matrix->ld : matrix->ld);
}

struct words words_of(const struct blas_call *x)
{
    return (struct words){
        .side = x->side == CUBLAS_SIDE_LEFT ? 'L' : 'R',
        .uplo = x->uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U',
        .diag = x->diag == CUBLAS_DIAG_UNIT ? 'U' : 'N',
        .transa = letter(x->transa),
        .transb = letter(x->transb),
        .m = (int)x->m,
        .n = (int)x->n,
        .k = (int)x->k,
        .lda = signed_ld(&x->a),
        .ldb = signed_ld(&x->b),
        .ldc = signed_ld(&x->c),
    };
}

#define LEAVE(ELEMENT)            (void)(ELEMENT)
#define MAKE_REAL_SINGLE(ELEMENT) *(ELEMENT) = crealf(*(ELEMENT))
#define MAKE_REAL_DOUBLE(ELEMENT) *(ELEMENT) = creal(*(ELEMENT))

/* The result's part times a factor, which for one is nothing but what the diagonal needs. */
#define SCALE(NAME, TYPE, FACTOR, DIAGONAL)                                                        \
    static void NAME(const struct matrix *matrix, const void *factor, void *c)                     \
    {                                                                                              \
        FACTOR by;                                                                                 \
        int64_t first, end;                                                                        \
        memcpy(&by, factor, sizeof by);                                                            \
        for (int64_t j = 0; j < matrix->columns; j++) {                                            \
            TYPE *column = (TYPE *)c + j * matrix->ld;                                             \
            part_of_column(matrix, j, &first, &end);                                               \
            for (int64_t i = first; i < end; i++)                                                  \
                column[i] = by == 0 ? 0 : by == 1 ? column[i] : by * column[i];                    \
            DIAGONAL(&column[j]);                                                                  \
        }                                                                                          \
    }

SCALE(scale_single, float, float, LEAVE)
SCALE(scale_double, double, double, LEAVE)
SCALE(scale_complex, float complex, float complex, LEAVE)
SCALE(scale_double_complex, double complex, double complex, LEAVE)
SCALE(scale_hermitian, float complex, float, MAKE_REAL_SINGLE)
SCALE(scale_double_hermitian, double complex, double, MAKE_REAL_DOUBLE)

void scale(const struct blas_call *x, void *c)
{
    static void (*const ways[][4])(const struct matrix *, const void *, void *) = {
        {scale_single, scale_double, scale_complex, scale_double_complex},
        {NULL, NULL, scale_hermitian, scale_double_hermitian}};
    ways[has(x, REAL_BETA)][x->precision](&x->c, x->beta, c);
}

void compute_gemm(const struct blas_call *x, const void *a, const void *b, void *c)
{
    static gemm_routine *const routines[] = {sgemm_, dgemm_, cgemm_, zgemm_};
    struct words w = words_of(x);
    if (a == NULL || b == NULL)
        scale(x, c);
    else
        ALONE(routines[x->precision], &w.transa, &w.transb, &w.m, &w.n, &w.k, x->alpha, a, &w.lda,
              b, &w.ldb, x->beta, c, &w.ldc, 1, 1);
}

void compute_symm(const struct blas_call *x, const void *a, const void *b, void *c)
{
    static symm_routine *const routines[][4] = {{ssymm_, dsymm_, csymm_, zsymm_},
                                                {NULL, NULL, chemm_, zhemm_}};
    struct words w = words_of(x);
    if (a == NULL || b == NULL)
        scale(x, c);
    else
        ALONE(routines[has(x, HERMITIAN)][x->precision], &w.side, &w.uplo, &w.m, &w.n, x->alpha, a,
              &w.lda, b, &w.ldb, x->beta, c, &w.ldc, 1, 1);
}

void compute_syrk(const struct blas_call *x, const void *a, const void *b, void *c)
{
    static syrk_routine *const routines[][4] = {{ssyrk_, dsyrk_, csyrk_, zsyrk_},
                                                {NULL, NULL, cherk_, zherk_}};
    struct words w = words_of(x);
    (void)b;
    if (a == NULL)
        scale(x, c);
    else
        ALONE(routines[has(x, HERMITIAN)][x->precision], &w.uplo, &w.transa, &w.n, &w.k, x->alpha,
              a, &w.lda, x->beta, c, &w.ldc, 1, 1);
}

void compute_syr2k(const struct blas_call *x, const void *a, const void *b, void *c)
{
    static syr2k_routine *const routines[][4] = {{ssyr2k_, dsyr2k_, csyr2k_, zsyr2k_},
                                                 {NULL, NULL, cher2k_, zher2k_}};
    struct words w = words_of(x);
    if (a == NULL || b == NULL)
        scale(x, c);
    else
        ALONE(routines[has(x, HERMITIAN)][x->precision], &w.uplo, &w.transa, &w.n, &w.k, x->alpha,
              a, &w.lda, b, &w.ldb, x->beta, c, &w.ldc, 1, 1);
}

/* From B, or from nowhere: zeros. */
static void fill(const struct blas_call *x, const char *b, char *c)
{
    size_t element = element_bytes(x->precision);
    size_t height = (size_t)x->m * element;
    for (int64_t j = 0; j < x->n; j++) {
        char *column = c + (size_t)j * (size_t)x->c.ld * element;
        if (b == NULL)
            memset(column, 0, height);
        else
            memmove(column, b + (size_t)j * (size_t)x->b.ld * element, height);
    }
}

void compute_trmm(const struct blas_call *x, const void *a, const void *b, void *c)
{
    static triangular_routine *const routines[] = {strmm_, dtrmm_, ctrmm_, ztrmm_};
    struct words w = words_of(x);
    if (b != c)
        fill(x, b, c);
    if (a != NULL)
        ALONE(routines[x->precision], &w.side, &w.uplo, &w.transa, &w.diag, &w.m, &w.n, x->alpha, a,
              &w.lda, c, &w.ldc, 1, 1, 1, 1);
}

void compute_trsm(const struct blas_call *x, const void *a, const void *b, void *c)
{
    static triangular_routine *const routines[] = {strsm_, dtrsm_, ctrsm_, ztrsm_};
    struct words w = words_of(x);
    if (a == NULL)
        fill(x, b, c);
    else
        ALONE(routines[x->precision], &w.side, &w.uplo, &w.transa, &w.diag, &w.m, &w.n, x->alpha, a,
              &w.lda, c, &w.ldc, 1, 1, 1, 1);
}
