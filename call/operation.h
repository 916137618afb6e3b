/*
 * What an operation is: what the routines of several types do alike. Each is defined in a file of
 * its library's folder (ops/blas/, ops/lapack/, ...), and a call carries its own (call->op).
 * Constant data; the functions are pure, except those of the GPU and `guide`.
 */
#ifndef ACCEL_OPERATION_H
#define ACCEL_OPERATION_H

#include "op_cost.h"
#include "op_foreign.h"
#include "op_gpu.h"
#include "op_rules.h"
#include "op_traits.h"

/* An operation, in five groups of properties and functions, which operations share where they are
 * equal. */
struct accel_op {
    struct accel_traits traits;          /* in place: a pointer is a relocation at each start */
    const struct accel_cost *cost;       /* never NULL */
    const struct accel_rules *rules;     /* NULL: no rules beyond the routine's row */
    const struct accel_gpu *gpu;         /* NULL: the GPU does not compute it */
    const struct accel_foreign *foreign; /* NULL: BLAS and LAPACK */
};

/* Returns the operation's rules, or none. */
static inline const struct accel_rules *accel_rules_of(const struct accel_op *op)
{
    static const struct accel_rules none;
    return op->rules ? op->rules : &none;
}

/* Returns how the GPU computes the operation: in no way, if it does not. */
static inline const struct accel_gpu *accel_gpu_of(const struct accel_op *op)
{
    static const struct accel_gpu none;
    return op->gpu ? op->gpu : &none;
}

/* Returns the kind of products by which a device computes the call in a precision that the user
 * asks for: none if inputs are narrower than the routine's type. */
static inline enum gpu_products accel_product_kind(const struct accel_call *call)
{
    return call->span[0].dtype == call->routine->dtype ? call->op->traits.products
                                                       : GPU_NO_PRODUCTS;
}

#endif
