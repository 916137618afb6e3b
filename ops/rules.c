#include "rules.h"

#include "shape.h"
#include "ops/lapack/rules.h"

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
        return call->blas.groups < 0;
    default:
        return false;
    }
}

/* What is wrong with an argument whatever the others are, or with a leading dimension. */
static const char *argument_fault(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    if (!accel_is_blas(routine))
        return NULL;
    if (call->blas.layout == ACCEL_NO_LAYOUT)
        return "layout";
    if (accel_is_rows_of_lapack(call))
        return NULL; /* its shapes are not these; it is not ours */
    for (int i = 0; i < routine->args; i++)
        if (is_faulty(call, i))
            return routine->arg[i].name;
    return NULL;
}

/* Whether LAPACK's own rules are for this call. */
static bool is_lapack_call(const struct accel_call *call)
{
    return accel_is_lapack(call->routine) && call->blas.layout != ACCEL_NO_LAYOUT &&
           !accel_is_rows_of_lapack(call);
}

const char *accel_call_shape_fault(const struct accel_call *call)
{
    const char *fault = argument_fault(call);
    return fault || !is_lapack_call(call) ? fault : lapack_shape_fault(call);
}

const char *accel_call_fault(const struct accel_call *call)
{
    const char *fault = argument_fault(call);
    return fault || !is_lapack_call(call) ? fault : lapack_fault(call);
}

bool accel_call_touches_nothing(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    if (accel_is_lapack(routine))
        return lapack_is_empty(call);
    for (int i = 0; i < routine->args; i++) /* with k = 0, C is scaled */
        if (routine->arg[i].kind == ACCEL_ARG_SIZE && routine->arg[i].slot != ACCEL_k &&
            call->blas.size[routine->arg[i].slot] == 0)
            return true;
    return call->batch == 0;
}

bool accel_call_looks_at(const struct accel_call *call, const struct accel_arg *arg)
{
    if (accel_call_shape_fault(call))
        return false;
    if (accel_is_lapack(call->routine))
        return lapack_looks_at(call, arg);
    bool adds = !accel_has_size(call->routine, ACCEL_k) || call->blas.size[ACCEL_k] > 0;
    return !accel_call_touches_nothing(call) && (adds || arg->slot != ACCEL_alpha);
}

bool accel_call_empty(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    if (accel_is_lapack(routine))
        return lapack_is_empty(call);
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_SIZE && call->blas.size[routine->arg[i].slot] == 0)
            return true;
    return call->batch == 0 || accel_adds_nothing(call);
}

/* OpenBLAS's extension, conjugated and not transposed: for others it is an error. Row-major calls of Level 2 become the same. */
static bool is_extension(const struct accel_call *call)
{
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG && arg->slot != ACCEL_side && call->blas.given[i] == 'R')
            return true;
    }
    return false;
}

bool accel_call_is_supported(const struct accel_call *call)
{
    const struct accel_op *op = accel_op_of(call->routine);
    if (accel_is_lapack(call->routine))
        return lapack_is_supported(call) && !is_extension(call);
    if (!accel_is_blas(call->routine))
        return !op->is_supported || op->is_supported(call);
    return !is_extension(call);
}
