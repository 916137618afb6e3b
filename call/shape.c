#include "shape.h"

#include "lapack_shape.h"
#include "matrix.h"
#include "operation.h"

int64_t accel_call_size(const struct accel_call *call, int which)
{
    if (which == ACCEL_order)
        which = call->blas.flag[ACCEL_side] == 'R' ? ACCEL_n : ACCEL_m;
    return which < ACCEL_SIZES ? call->blas.size[which] : lapack_size(call, which);
}

const int64_t *accel_sizes(const struct accel_call *call)
{
    return call->op->cost->sizes ? call->op->cost->sizes(call) : call->blas.size;
}

bool accel_has_size(const struct accel_routine *routine, enum accel_size size)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_SIZE && routine->arg[i].slot == size)
            return true;
    return false;
}

bool accel_has_zero_size(const struct accel_call *call, enum accel_size except)
{
    const struct accel_arg *arg = call->routine->arg;
    for (int i = 0; i < call->routine->args; i++)
        if (arg[i].kind == ACCEL_ARG_SIZE && arg[i].slot != except &&
            call->blas.size[arg[i].slot] == 0)
            return true;
    return false;
}

bool accel_has_scalar(const struct accel_routine *routine, enum accel_scalar scalar)
{
    for (int i = 0; i < routine->args; i++)
        if ((routine->arg[i].kind == ACCEL_ARG_SCALAR || routine->arg[i].kind == ACCEL_ARG_REAL) &&
            routine->arg[i].slot == scalar)
            return true;
    return false;
}

bool accel_adds_nothing(const struct accel_call *call)
{
    return accel_has_scalar(call->routine, ACCEL_alpha) &&
           accel_is_zero(call->blas.scalar[ACCEL_alpha]);
}

bool accel_is_read(const struct accel_call *call, const struct accel_span *x)
{
    if (x->access == ACCEL_WRITE)
        return false;
    return x->access == ACCEL_READ || !accel_has_scalar(call->routine, ACCEL_beta) ||
           !accel_is_zero(call->blas.scalar[ACCEL_beta]);
}

/* Resolves the types that only the table names. */
static enum accel_dtype dtype_of(const struct accel_call *call, const struct accel_arg *arg)
{
    switch ((enum accel_dtype)arg->dtype) {
    case ACCEL_SAME:
        return call->routine->dtype;
    case ACCEL_REALS:
        return accel_real_dtype(call->routine->dtype);
    case ACCEL_INTEGERS:
        return call->blas.width == 64 ? ACCEL_INT64 : ACCEL_INT32;
    default:
        return (enum accel_dtype)arg->dtype;
    }
}

static bool is_operand(const struct accel_arg *arg)
{
    return arg->kind == ACCEL_ARG_MATRIX || arg->kind == ACCEL_ARG_VECTOR;
}

static bool is_transposed(const struct accel_call *call, const struct accel_arg *arg)
{
    char flag = arg->transposed_by == ACCEL_noflag ? 'N' : call->blas.flag[arg->transposed_by];
    return flag != 'N' && flag != 'R';
}

struct accel_call accel_placed_call(const struct accel_call *call, unsigned operands)
{
    struct accel_call copy = *call;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (operands & 1u << i)
            copy.span[i].place = ACCEL_PLACED;
    return copy;
}

void shape_operands(struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    const int triangles = call->op->traits.triangles;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (!is_operand(arg))
            continue;
        struct accel_span *x = &call->span[arg->slot];
        bool transposed = is_transposed(call, arg);
        bool matrix = arg->kind == ACCEL_ARG_MATRIX;
        int64_t first = accel_call_size(call, transposed ? arg->cols : arg->rows);
        x->rows = matrix ? first : 1;
        x->cols = matrix ? accel_call_size(call, transposed ? arg->rows : arg->cols) : first;
        if (matrix && arg->cols == ACCEL_one) /* a packed triangle: it has no leading dimension */
            x->ld = accel_max(1, x->rows);
        x->access = (enum accel_access)arg->access;
        x->dtype = dtype_of(call, arg);
        if (triangles >> arg->slot & 1 && call->blas.flag[ACCEL_uplo] != '*')
            x->triangle = call->blas.flag[ACCEL_uplo];
    }
}

/* Returns the first row or column of a dimension: `row` along m, `col` along n. */
static int64_t first_of(int dimension, int64_t row, int64_t col)
{
    return dimension == ACCEL_m ? row : dimension == ACCEL_n ? col : 0;
}

struct accel_call shape_part(const struct accel_call *call, int64_t row, int64_t col, int64_t rows,
                             int64_t cols)
{
    struct accel_call part = *call;
    if (accel_has_size(call->routine, ACCEL_m))
        part.blas.size[ACCEL_m] = rows;
    part.blas.size[ACCEL_n] = cols;
    shape_operands(&part);
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (!is_operand(arg))
            continue;
        struct accel_span *x = &part.span[arg->slot];
        bool transposed = is_transposed(call, arg);
        int64_t down = first_of(transposed ? arg->cols : arg->rows, row, col);
        int64_t across = first_of(transposed ? arg->rows : arg->cols, row, col);
        int64_t skip = down + across * x->ld;
        if (x->inc) /* with inc < 0, memory begins with the last element */
            skip = x->inc * (x->inc > 0 ? down : down + x->cols - call->span[arg->slot].cols);
        x->ptr = (char *)x->ptr + skip * (int64_t)accel_dtype_size(x->dtype);
        x->array = NULL; /* of a batch of one; its array has the whole matrix */
    }
    return part;
}

double shape_steps(const struct accel_call *call)
{
    const int sizes = call->op->traits.group == ACCEL_LAPACK ? ACCEL_k : ACCEL_DIMENSIONS;
    const int64_t *size = accel_sizes(call);
    int64_t least = 0;
    for (int i = 0; i < sizes; i++)
        if (size[i] > 0 && (least == 0 || size[i] < least))
            least = size[i];
    return (double)least;
}

bool shape_is_small(const struct accel_call *call, bool (*is_small)(int64_t size))
{
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if (!is_small(call->blas.size[i]) && !(i == ACCEL_k && call->span[ACCEL_a].array))
            return false;
    return true;
}

static bool is_packed(const struct accel_call *call, const struct accel_span *x)
{
    return call->op->traits.packed && x == &call->span[ACCEL_a];
}

int64_t shape_diagonal(const struct accel_call *call, const struct accel_span *x)
{
    if (is_packed(call, x))
        return call->blas.size[ACCEL_n];
    return x->rows < x->cols ? x->rows : x->cols;
}

int64_t shape_diagonal_place(const struct accel_call *call, const struct accel_span *x, int64_t ld,
                             int64_t i)
{
    return is_packed(call, x)
               ? triangle_place(call->blas.flag[ACCEL_uplo], call->blas.size[ACCEL_n], i, i)
               : i * ld + i;
}
