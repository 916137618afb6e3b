/*
 * The table of operations (ops.def), and what is asked of a routine's operation where there is no
 * call. Constant data, pure functions.
 */
#ifndef ACCEL_OP_H
#define ACCEL_OP_H

#include "call/operation.h"

#define OP(name) extern const struct accel_op op_##name;
#include "ops.def"
#undef OP

/* For an operation's definition: what it shares with no other one. */
#define OP_OWN(name, ...)                                                                          \
    .name = &(const struct accel_##name)                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define OP_TRAITS(...)  .traits = {__VA_ARGS__}
#define OP_COST(...)    OP_OWN(cost, __VA_ARGS__)
#define OP_RULES(...)   OP_OWN(rules, __VA_ARGS__)
#define OP_GPU(...)     OP_OWN(gpu, __VA_ARGS__)
#define OP_FOREIGN(...) OP_OWN(foreign, __VA_ARGS__)

/* Returns a call's real floating-point operations, 8 for a complex multiply-add, 2 for a real one:
 * by the formula of its row (ops/names.c), which those of other libraries do not have. */
double accel_flops(const struct accel_call *call);

/* Returns op->cost->flops(call): for the rows of other libraries. */
double accel_op_flops(const struct accel_call *call);

/* Gives the log the fields that say what was called. */
void accel_describe(const struct accel_call *call, const struct accel_fields *fields);

/* Gives the log the factors that decide which operands are read, as "0", "1" or "other". */
void accel_describe_scalars(const struct accel_call *call, const struct accel_fields *fields);

/* In the order of ops.def. */
extern const struct accel_op *const accel_ops[];

static inline const struct accel_op *accel_op_of(const struct accel_routine *routine)
{
    return accel_ops[routine->op];
}

/* Returns a call of the routine, without arguments: one product, whole. */
static inline struct accel_call accel_call_of(const struct accel_routine *routine)
{
    return (struct accel_call){
        .routine = routine, .op = accel_op_of(routine), .batch = 1, .parts = 1};
}

/* Returns the sample's routine of this type, or NULL. */
const struct accel_routine *accel_sample_of(enum accel_sample sample, enum accel_dtype dtype);

static inline bool accel_is_lapack(const struct accel_routine *routine)
{
    return accel_op_of(routine)->traits.group == ACCEL_LAPACK;
}

/* Returns whether the routine is of BLAS or LAPACK: the table has its arguments. */
static inline bool accel_is_blas(const struct accel_routine *routine)
{
    return !accel_op_of(routine)->foreign;
}

static inline bool accel_is_level2(const struct accel_routine *routine)
{
    return accel_op_of(routine)->traits.group == ACCEL_LEVEL_2;
}

static inline bool accel_is_batch(const struct accel_routine *routine)
{
    return accel_op_of(routine)->traits.group == ACCEL_BATCH;
}

/* Returns whether the call is one of several parts of a caller's call. */
static inline bool accel_is_part(const struct accel_call *call)
{
    return call->parts > 1;
}

static inline bool accel_only_moves(const struct accel_routine *routine)
{
    return accel_op_of(routine)->traits.moves;
}

static inline bool accel_is_hermitian(const struct accel_routine *routine)
{
    return accel_op_of(routine)->traits.hermitian;
}

/* Returns whether the device's solver library computes it. */
static inline bool accel_uses_solver(const struct accel_routine *routine)
{
    return accel_is_lapack(routine) && !accel_only_moves(routine);
}

/* Returns whether this is LAPACKE in row-major order. LAPACKE transposes and calls the Fortran
 * name, which is decided; this call is the original's. */
static inline bool accel_is_rows_of_lapack(const struct accel_call *call)
{
    return call->blas.layout == ACCEL_ROW_MAJOR && call->op->traits.group == ACCEL_LAPACK;
}

#endif
