#include "typical.h"

#include <string.h>

#include "call/shape.h"

bool accel_has_dimension(const struct accel_routine *routine, int dimension)
{
    return accel_is_blas(routine) ? accel_has_size(routine, (enum accel_size)dimension)
                                  : dimension < accel_op_of(routine)->cost->dimensions;
}

bool accel_reads_matrix(const struct accel_routine *routine)
{
    bool reads = accel_is_level2(routine);
    for (int i = 0; reads && i < routine->args; i++)
        reads = routine->arg[i].kind != ACCEL_ARG_MATRIX || routine->arg[i].access == ACCEL_READ;
    return reads;
}

/* Returns the letter that programs mostly pass. */
static char typical_flag(const struct accel_arg *arg)
{
    switch (arg->slot) {
    case ACCEL_uplo:
        return 'L';
    case ACCEL_jobz:
    case ACCEL_jobu:
    case ACCEL_jobvt:
    case ACCEL_jobvr:
        return strchr(arg->allowed, 'S') ? 'S' : 'V';
    default:
        return strchr(arg->allowed, 'N') ? 'N' : *arg->allowed;
    }
}

void shape_typical(struct accel_call *call, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS])
{
    *call = accel_call_of(routine);
    if (!accel_is_blas(routine)) {
        if (call->op->cost->typical)
            call->op->cost->typical(call, size);
        return;
    }
    call->blas.width = 32;
    call->blas.scalar[ACCEL_alpha].re = call->blas.scalar[ACCEL_beta].re = 1;
    call->blas.scalar[ACCEL_rcond].re = -1; /* the type's own precision */
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG)
            call->blas.given[i] = call->blas.flag[arg->slot] = typical_flag(arg);
        if (arg->kind == ACCEL_ARG_SIZE && arg->slot < ACCEL_DIMENSIONS)
            call->blas.given[i] = call->blas.size[arg->slot] = size[arg->slot];
        if (arg->kind == ACCEL_ARG_INTEGER && arg->slot == ACCEL_itype)
            call->blas.given[i] = call->blas.size[arg->slot] = 1;
        if (arg->kind == ACCEL_ARG_VECTOR)
            call->span[arg->slot].inc = 1;
    }
    shape_operands(call);
    for (struct accel_span *x = call->span; x < call->span + ACCEL_SPANS; x++) {
        x->ld = accel_max(1, x->rows);
        if (!accel_mul(x->ld, x->cols, &x->stride))
            x->stride = INT64_MAX; /* a log may have such sizes */
    }
}

void shape_of_order(struct accel_call *call, const struct accel_routine *routine, int64_t order)
{
    const int64_t size[ACCEL_DIMENSIONS] = {order, order, order, order};
    shape_typical(call, routine, size);
    call->blas.scalar[ACCEL_beta].re = 0;
}
