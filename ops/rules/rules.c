#include "rules.h"

#include "call/shape.h"
#include "lapack_rules.h"

static bool is_faulty(const struct accel_call *call, int i)
{
    const struct accel_arg *arg = &call->routine->arg[i];
    const struct accel_span *x = &call->span[accel_span_of(arg)];
    switch (arg->kind) {
    case ACCEL_ARG_FLAG:
        return call->blas.flag[arg->slot] == '?';
    case ACCEL_ARG_SIZE:
        return call->blas.size[arg->slot] < 0;
    case ACCEL_ARG_LD:
        return x->ld < 1 || x->ld < x->rows;
    case ACCEL_ARG_INC:
        return x->inc == 0;
    case ACCEL_ARG_BATCH:
        return call->batch < 0;
    case ACCEL_ARG_GROUPS:
        return call->parts < 0;
    default:
        return false;
    }
}

static bool is_lapack(const struct accel_call *call)
{
    return call->op->traits.group == ACCEL_LAPACK;
}

/* Returns the first argument that is wrong whatever the others are, or a wrong leading
 * dimension. */
static const char *argument_fault(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    if (call->op->foreign)
        return NULL;
    if (call->blas.layout == ACCEL_NO_LAYOUT)
        return "layout";
    if (accel_is_rows_of_lapack(call))
        return NULL; /* these are not its shapes, and the original gets it */
    for (int i = 0; i < routine->args; i++)
        if (is_faulty(call, i))
            return routine->arg[i].name;
    return NULL;
}

/* Returns whether LAPACK's own rules apply. */
static bool has_lapack_rules(const struct accel_call *call)
{
    return is_lapack(call) && call->blas.layout == ACCEL_COLUMN_MAJOR;
}

const char *accel_call_shape_fault(const struct accel_call *call)
{
    const char *fault = argument_fault(call);
    return fault || !has_lapack_rules(call) ? fault : lapack_shape_fault(call);
}

const char *accel_call_fault(const struct accel_call *call)
{
    const char *fault = argument_fault(call);
    return fault || !has_lapack_rules(call) ? fault : lapack_fault(call);
}

bool accel_call_touches_nothing(const struct accel_call *call)
{
    if (is_lapack(call))
        return lapack_is_empty(call);
    return accel_has_zero_size(call, ACCEL_k) || call->batch == 0; /* k = 0 scales C */
}

bool accel_call_looks_at(const struct accel_call *call, const struct accel_arg *arg)
{
    if (is_lapack(call))
        return lapack_looks_at(call, arg);
    bool adds = !accel_has_size(call->routine, ACCEL_k) || call->blas.size[ACCEL_k] > 0;
    return !accel_call_touches_nothing(call) && (adds || arg->slot != ACCEL_alpha);
}

bool accel_call_empty(const struct accel_call *call)
{
    if (is_lapack(call))
        return lapack_is_empty(call);
    return accel_has_zero_size(call, ACCEL_SIZES) || call->batch == 0 || accel_adds_nothing(call);
}

/* Returns whether the caller passed OpenBLAS's flag R (conjugated, not transposed), which is an
 * error elsewhere. A row-major call of Level 2 may have R in flag[], but not in given[]. */
static bool is_extension(const struct accel_call *call)
{
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG && arg->slot != ACCEL_side && call->blas.given[i] == 'R')
            return true;
    }
    return false;
}

void accel_call_lengths_left(const struct accel_call *call, struct accel_lengths *lengths)
{
    lapack_lengths_left(call, lengths);
}

bool accel_call_is_supported(const struct accel_call *call)
{
    const struct accel_gpu *gpu = call->op->gpu;
    if (is_lapack(call) && !lapack_is_supported(call))
        return false;
    return !is_extension(call) && (!gpu || !gpu->is_supported || gpu->is_supported(call));
}
