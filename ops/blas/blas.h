/*
 * For the operations of BLAS: their includes, and parts of their definitions.
 */
#ifndef ACCEL_BLAS_H
#define ACCEL_BLAS_H

#include "cpu_ref/checks.h"
#include "ops/cut.h"
#include "ops/op.h"
#include "call/shape.h"

/* gemm's op->gpu->scheduled, also of a batch's one product. */
void gemm_describe(const struct accel_call *call, struct scheduled *scheduled);

/* All of BLAS counts with the rates of a large product. */
/* A product reaches a product's rate. */
#define BLAS_NOMINAL .nominal = {.cpu_share = 1, .gpu_share = 1}
extern const struct accel_cost blas_cost;

/* An operation of Level 3, without its cost; `...`: more members of its struct accel_traits. */
#define BLAS_LEVEL_3(run_call, describe, cuts_of, equation_of, ...)                                \
    OP_TRAITS(.group = ACCEL_LEVEL_3, __VA_ARGS__), OP_RULES(.equation = (equation_of)),           \
        OP_GPU(.run = (run_call), .scheduled = (describe), .cuts = (cuts_of))

/* op->gpu->cuts of a result with a square factor at its side, which every part needs as a whole. */
static inline unsigned blas_cuts_beside(const struct accel_call *call)
{
    return call->blas.flag[ACCEL_side] == 'L' ? ACCEL_CUT_COLS : ACCEL_CUT_ROWS;
}

#endif
