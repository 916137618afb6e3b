#include "diagonal.h"

#include "call/matrix.h"
#include "call/operation.h"

/* Beyond rounding in any type. */
#define CERTAINLY (1 + 1e-6)

/* The triangle of a matrix that counts. */
struct triangle {
    const struct accel_span *x;
    char uplo;
    int64_t order;
    bool packed;
};

static double number_at(const struct accel_span *x, int64_t i, int64_t j, int part)
{
    return load_real(gpu_element(x, i, j), x->dtype, part);
}

static double stored_at(const struct triangle *t, int64_t i, int64_t j, int part)
{
    return t->packed ? number_at(t->x, triangle_place(t->uplo, t->order, i, j), 0, part)
                     : number_at(t->x, i, j, part);
}

static bool has_zero_diagonal(const struct triangle *t)
{
    const bool parts = accel_is_complex(t->x->dtype);
    for (int64_t i = 0; i < t->order; i++)
        if (stored_at(t, i, i, 0) == 0 && (!parts || stored_at(t, i, i, 1) == 0))
            return true;
    return false;
}

bool lapack_has_zero_diagonal(const struct accel_span *x)
{
    return has_zero_diagonal(&(struct triangle){x, 0, accel_min(x->rows, x->cols), false});
}

/* Returns whether the leading minor of rows i - 1 and i alone is negative; both diagonal elements
 * are above 0. */
static bool has_negative_minor(const struct triangle *t, int64_t i)
{
    const int64_t row = t->uplo == 'U' ? i - 1 : i, col = t->uplo == 'U' ? i : i - 1;
    const double before = stored_at(t, i - 1, i - 1, 0), here = stored_at(t, i, i, 0),
                 re = stored_at(t, row, col, 0),
                 im = accel_is_complex(t->x->dtype) ? stored_at(t, row, col, 1) : 0;
    return re / before * re + im / before * im > here * CERTAINLY;
}

static bool is_indefinite(const struct triangle *t)
{
    for (int64_t i = 0; i < t->order; i++)
        if (!(stored_at(t, i, i, 0) > 0) || (i > 0 && has_negative_minor(t, i)))
            return true;
    return false;
}

bool lapack_is_indefinite(const struct accel_span *x, char uplo)
{
    return is_indefinite(&(struct triangle){x, uplo, x->cols, false});
}

static struct triangle triangle_of_a(const struct accel_call *call)
{
    return (struct triangle){&call->span[ACCEL_a], call->blas.flag[ACCEL_uplo],
                             call->blas.size[ACCEL_n], call->op->traits.packed};
}

bool lapack_hopeless_by_definiteness(const struct accel_call *call)
{
    const struct triangle a = triangle_of_a(call);
    return is_indefinite(&a);
}

bool lapack_hopeless_by_zeros(const struct accel_call *call)
{
    const struct triangle a = triangle_of_a(call);
    return call->blas.flag[ACCEL_diag] != 'U' && has_zero_diagonal(&a);
}
