/* What LAPACK's callers share, and what LAPACK needs of a Fortran run-time library. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "solver_lapack.h"

void xerbla_(const char *name, const int *info, size_t length);
void _gfortran_concat_string(size_t length, char *to, size_t first_length, const char *first,
                             size_t second_length, const char *second);

/* Says nothing: the parameters were checked, and of NaNs LAPACK complains deep inside. */
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name;
    (void)info;
    (void)length;
}

void _gfortran_concat_string(size_t length, char *to, size_t first_length, const char *first,
                             size_t second_length, const char *second)
{
    for (size_t i = 0; i < length; i++) {
        size_t j = i - first_length;
        to[i] = i < first_length ? first[i] : j < second_length ? second[j] : ' ';
    }
}

struct words words_of(const struct solver_call *x)
{
    static const char operations[] = {
        [CUBLAS_OP_N] = 'N', [CUBLAS_OP_T] = 'T', [CUBLAS_OP_C] = 'C'};
    return (struct words){
        .job = x->jobz == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N',
        .side = x->side == CUBLAS_SIDE_LEFT ? 'L' : 'R',
        .uplo = x->uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U',
        .diag = x->diag == CUBLAS_DIAG_UNIT ? 'U' : 'N',
        .trans = operations[x->trans],
        .itype = (int)x->itype,
        .m = (int)x->m,
        .n = (int)x->n,
        .k = (int)x->k,
        .lda = (int)x->at[A].ld,
        .ldb = (int)x->at[B].ld,
        .ldvt = (int)x->at[VT].ld,
    };
}

void *memory(int64_t count, size_t bytes)
{
    void *found = calloc((size_t)larger(1, count), bytes);
    if (found == NULL)
        abort();
    return found;
}

int *narrow_pivots(const int64_t *pivots, int64_t count)
{
    int *narrow = memory(count, sizeof *narrow);
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (int)pivots[i];
    return narrow;
}

static bool is_finite(const struct solver_call *x, enum operand operand, const void *bytes)
{
    const struct matrix *matrix = &x->at[operand];
    int64_t first, end;
    int64_t numbers = is_complex(x) ? 2 : 1;
    bool single = real_bytes(x) == sizeof(float);
    for (int64_t j = 0; j < matrix->columns; j++) {
        part_of_column(matrix, j, &first, &end);
        for (int64_t i = (j * matrix->ld + first) * numbers; i < (j * matrix->ld + end) * numbers;
             i++)
            if (!(single ? isfinite(((const float *)bytes)[i])
                         : isfinite(((const double *)bytes)[i])))
                return false;
    }
    return true;
}

bool gives_up(const struct solver_call *x, enum operand operand, void *const *at, int *info)
{
    if (is_finite(x, operand, at[operand]))
        return false;
    for (int i = A; i <= VALUES; i++)
        if (at[i] != NULL)
            destroy(&x->at[i], 0, at[i]);
    *info = (int)x->n;
    return true;
}
