/* Calls a Level 3 routine by its kind, type and width. */
#include "test_level3.h"
#include "test_calls.h"

bool has_side(enum kind kind)
{
    return kind == SYMM || kind == HEMM || has_diagonal(kind);
}

bool has_operation(enum kind kind)
{
    return kind != SYMM && kind != HEMM;
}

bool has_diagonal(enum kind kind)
{
    return kind == TRMM || kind == TRSM;
}

bool has_b(enum kind kind)
{
    return kind != SYRK && kind != HERK && kind != TRSM;
}

bool has_beta(enum kind kind)
{
    return !has_diagonal(kind);
}

bool is_rank_update(enum kind kind)
{
    return kind >= SYRK && kind <= HER2K;
}

bool is_hermitian(enum kind kind)
{
    return kind == HEMM || kind == HERK || kind == HER2K;
}

bool has_real_scalar(enum kind kind, bool beta)
{
    return kind == HERK || (kind == HER2K && beta);
}

cublasStatus_t call(cublasHandle_t handle, const struct trial *t)
{
    void *a = (void *)t->a, *b = (void *)t->b, *c = (void *)t->c;
    switch (t->kind) {
        CASE(SYMM, ALL_ONES, symm, _v2, handle, t->side, t->uplo, t->m, t->n, t->alpha, a, t->lda,
             b, t->ldb, t->beta, c, t->ldc);
        CASE(HEMM, COMPLEX_ONES, hemm, _v2, handle, t->side, t->uplo, t->m, t->n, t->alpha, a,
             t->lda, b, t->ldb, t->beta, c, t->ldc);
        CASE(SYRK, ALL_ONES, syrk, _v2, handle, t->uplo, t->ta, t->n, t->k, t->alpha, a, t->lda,
             t->beta, c, t->ldc);
        CASE(HERK, COMPLEX_ONES, herk, _v2, handle, t->uplo, t->ta, t->n, t->k, t->alpha, a, t->lda,
             t->beta, c, t->ldc);
        CASE(SYR2K, ALL_ONES, syr2k, _v2, handle, t->uplo, t->ta, t->n, t->k, t->alpha, a, t->lda,
             b, t->ldb, t->beta, c, t->ldc);
        CASE(HER2K, COMPLEX_ONES, her2k, _v2, handle, t->uplo, t->ta, t->n, t->k, t->alpha, a,
             t->lda, b, t->ldb, t->beta, c, t->ldc);
        CASE(TRMM, ALL_ONES, trmm, _v2, handle, t->side, t->uplo, t->ta, t->diag, t->m, t->n,
             t->alpha, a, t->lda, b, t->ldb, c, t->ldc);
        CASE(TRSM, ALL_ONES, trsm, _v2, handle, t->side, t->uplo, t->ta, t->diag, t->m, t->n,
             t->alpha, a, t->lda, c, t->ldc);
        CASE(GEAM, ALL_ONES, geam, , handle, t->ta, t->tb, t->m, t->n, t->alpha, a, t->lda, t->beta,
             b, t->ldb, c, t->ldc);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}
