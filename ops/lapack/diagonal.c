#include "diagonal.h"

#include "call/matrix.h"

/* Beyond rounding in any type. */
#define CERTAINLY (1 + 1e-6)

static double number_at(const struct accel_span *x, int64_t i, int64_t j, int part)
{
    return load_real(gpu_element(x, i, j), x->dtype, part);
}

bool lapack_has_zero_diagonal(const struct accel_span *x)
{
    const bool parts = accel_is_complex(x->dtype);
    for (int64_t i = 0; i < accel_min(x->rows, x->cols); i++)
        if (number_at(x, i, i, 0) == 0 && (!parts || number_at(x, i, i, 1) == 0))
            return true;
    return false;
}

/* Returns whether the leading minor of rows i - 1 and i alone is negative; both diagonal elements
 * are above 0. */
static bool has_negative_minor(const struct accel_span *x, char uplo, int64_t i)
{
    const int64_t row = uplo == 'U' ? i - 1 : i, col = uplo == 'U' ? i : i - 1;
    const double before = number_at(x, i - 1, i - 1, 0), here = number_at(x, i, i, 0),
                 re = number_at(x, row, col, 0),
                 im = accel_is_complex(x->dtype) ? number_at(x, row, col, 1) : 0;
    return re / before * re + im / before * im > here * CERTAINLY;
}

bool lapack_is_indefinite(const struct accel_span *x, char uplo)
{
    for (int64_t i = 0; i < x->cols; i++)
        if (!(number_at(x, i, i, 0) > 0) || (i > 0 && has_negative_minor(x, uplo, i)))
            return true;
    return false;
}

bool lapack_hopeless_by_definiteness(const struct accel_call *call)
{
    return lapack_is_indefinite(&call->span[ACCEL_a], call->blas.flag[ACCEL_uplo]);
}

bool lapack_hopeless_by_zeros(const struct accel_call *call)
{
    return call->blas.flag[ACCEL_diag] != 'U' && lapack_has_zero_diagonal(&call->span[ACCEL_a]);
}
