#include "shape.h"

#include "op.h"

#include <string.h>

/* An operand's type, of those that the table names. */
static enum accel_dtype dtype_of(const struct accel_call *call, const struct accel_arg *arg)
{
    switch ((enum accel_dtype)arg->dtype) {
    case ACCEL_SAME:
        return call->routine->dtype;
    case ACCEL_REALS:
        return accel_real_dtype(call->routine->dtype);
    case ACCEL_INTEGERS:
        return call->width == 64 ? ACCEL_INT64 : ACCEL_INT32;
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
    char flag = arg->transposed_by == ACCEL_noflag ? 'N' : call->flag[arg->transposed_by];
    return flag != 'N' && flag != 'R';
}

/* Shapes of the operands as they are stored, from the sizes and flags. */
void shape_operands(struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    const int triangles = accel_op_of(routine)->triangles;
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
        x->access = (enum accel_access)arg->access;
        x->dtype = dtype_of(call, arg);
        if (triangles >> arg->slot & 1 && call->flag[ACCEL_uplo] != '*')
            x->triangle = call->flag[ACCEL_uplo];
    }
}

/* The first of a dimension's rows or columns that are left. */
static int64_t first_of(int dimension, int64_t row, int64_t col)
{
    return dimension == ACCEL_m ? row : dimension == ACCEL_n ? col : 0;
}

struct accel_call shape_part(const struct accel_call *call, int64_t row, int64_t col, int64_t rows,
                             int64_t cols)
{
    struct accel_call part = *call;
    if (accel_has_size(call->routine, ACCEL_m))
        part.size[ACCEL_m] = rows;
    part.size[ACCEL_n] = cols;
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
        if (x->inc) /* a vector that is stored backwards has its last element first */
            skip = x->inc * (x->inc > 0 ? down : down + x->cols - call->span[arg->slot].cols);
        x->ptr = (char *)x->ptr + skip * (int64_t)accel_dtype_size(x->dtype);
    }
    return part;
}

/* The letter of a flag that programs mostly pass. */
static char typical_flag(const struct accel_arg *arg)
{
    switch (arg->slot) {
    case ACCEL_uplo:
        return 'L';
    case ACCEL_side:
        return 'L';
    case ACCEL_range:
        return 'A';
    case ACCEL_jobz:
    case ACCEL_jobu:
    case ACCEL_jobvt:
        return strchr(arg->allowed, 'S') ? 'S' : 'V';
    case ACCEL_jobvr:
        return 'V';
    default:
        return strchr(arg->allowed, 'N') ? 'N' : *arg->allowed;
    }
}

void shape_typical(struct accel_call *call, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS])
{
    *call = (struct accel_call){.routine = routine, .width = 32, .batch = 1, .groups = 1};
    call->scalar[ACCEL_alpha].re = call->scalar[ACCEL_beta].re = 1;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG)
            call->given[i] = call->flag[arg->slot] = typical_flag(arg);
        if (arg->kind == ACCEL_ARG_SIZE && arg->slot < ACCEL_DIMENSIONS)
            call->given[i] = call->size[arg->slot] = size[arg->slot];
        if (arg->kind == ACCEL_ARG_INTEGER && arg->slot == ACCEL_itype)
            call->given[i] = call->size[arg->slot] = 1;
    }
    shape_operands(call);
    for (int i = 0; i < ACCEL_MATRICES; i++)
        call->span[i].ld = accel_max(1, call->span[i].rows);
}
