#include "op.h"

const struct accel_op *const accel_ops[] = {
#define OP(name) &op_##name,
#include "ops.def"
#undef OP
};
