#include "op.h"

const struct accel_op *const accel_ops[] = {
#define OP(name) &op_##name,
#include "ops.def"
#undef OP
};

double accel_op_flops(const struct accel_call *call)
{
    return accel_op_of(call->routine)->flops(call);
}
