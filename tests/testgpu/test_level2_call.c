/* Calls a Level 2 routine by its kind, type and width. */
#include "test_level2.h"
#include "test_calls.h"

bool takes_operation(enum kind kind)
{
    return kind == GEMV || takes_diagonal(kind);
}

bool takes_diagonal(enum kind kind)
{
    return kind == TRMV || kind == TRSV;
}

bool takes_uplo(enum kind kind)
{
    return !takes_m(kind) && kind != COPY;
}

bool takes_m(enum kind kind)
{
    return kind == GEMV || kind == GER || kind == GERU || kind == GERC;
}

bool takes_a(enum kind kind)
{
    return kind != COPY;
}

bool takes_y(enum kind kind)
{
    return kind != SYR && kind != HER && !takes_diagonal(kind);
}

bool takes_alpha(enum kind kind)
{
    return kind < TRMV;
}

bool takes_beta(enum kind kind)
{
    return kind <= HEMV;
}

bool takes_real_alpha(enum kind kind)
{
    return kind == HER;
}

bool updates_matrix(enum kind kind)
{
    return kind >= GER && kind <= HER2;
}

bool conjugates(enum kind kind)
{
    return kind == HEMV || kind == HER || kind == HER2;
}

bool takes_type(enum kind kind, enum type type)
{
    if (is_real(type))
        return kind != GERU && kind != GERC && !conjugates(kind);
    return kind != GER && kind != SYMV;
}

cublasStatus_t level2_call(cublasHandle_t handle, const struct trial *t)
{
    void *a = (void *)t->a, *x = (void *)t->x, *y = (void *)t->y;
    switch (t->kind) {
        CASE(GEMV, ALL_ONES, gemv, _v2, handle, t->trans, t->m, t->n, t->alpha, a, t->lda, x,
             t->incx, t->beta, y, t->incy);
        CASE(SYMV, REAL_ONES, symv, _v2, handle, t->uplo, t->n, t->alpha, a, t->lda, x, t->incx,
             t->beta, y, t->incy);
        CASE(HEMV, COMPLEX_ONES, hemv, _v2, handle, t->uplo, t->n, t->alpha, a, t->lda, x, t->incx,
             t->beta, y, t->incy);
        CASE(GER, REAL_ONES, ger, _v2, handle, t->m, t->n, t->alpha, x, t->incx, y, t->incy, a,
             t->lda);
        CASE(GERU, COMPLEX_ONES, geru, _v2, handle, t->m, t->n, t->alpha, x, t->incx, y, t->incy, a,
             t->lda);
        CASE(GERC, COMPLEX_ONES, gerc, _v2, handle, t->m, t->n, t->alpha, x, t->incx, y, t->incy, a,
             t->lda);
        CASE(SYR, ALL_ONES, syr, _v2, handle, t->uplo, t->n, t->alpha, x, t->incx, a, t->lda);
        CASE(HER, COMPLEX_ONES, her, _v2, handle, t->uplo, t->n, t->alpha, x, t->incx, a, t->lda);
        CASE(SYR2, ALL_ONES, syr2, _v2, handle, t->uplo, t->n, t->alpha, x, t->incx, y, t->incy, a,
             t->lda);
        CASE(HER2, COMPLEX_ONES, her2, _v2, handle, t->uplo, t->n, t->alpha, x, t->incx, y, t->incy,
             a, t->lda);
        CASE(TRMV, ALL_ONES, trmv, _v2, handle, t->uplo, t->trans, t->diag, t->n, a, t->lda, x,
             t->incx);
        CASE(TRSV, ALL_ONES, trsv, _v2, handle, t->uplo, t->trans, t->diag, t->n, a, t->lda, x,
             t->incx);
        CASE(COPY, ALL_ONES, copy, _v2, handle, t->n, x, t->incx, y, t->incy);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}
