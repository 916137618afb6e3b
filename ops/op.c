#include "op.h"

#include "describe.h"

const struct accel_op *const accel_ops[] = {
#define OP(name) &op_##name,
#include "ops.def"
#undef OP
};

void accel_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    const struct accel_foreign *foreign = accel_op_of(call->routine)->foreign;
    if (foreign)
        foreign->describe(call, fields);
    else
        blas_describe(call, fields);
}

void accel_describe_scalars(const struct accel_call *call, const struct accel_fields *fields)
{
    if (accel_is_blas(call->routine))
        blas_describe_scalars(call, fields);
}

double accel_op_flops(const struct accel_call *call)
{
    return accel_op_of(call->routine)->cost->flops(call);
}

const struct accel_routine *accel_sample_of(enum accel_sample sample, enum accel_dtype dtype)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i])->cost->sample == sample &&
            accel_routines[i].dtype == dtype)
            return &accel_routines[i];
    return NULL;
}
