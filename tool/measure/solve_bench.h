/*
 * Measures how fast the GPU solves by a triangle, for each real type, by its BLAS and by a kernel
 * of our own (gpu/exec/blas/triangle_solve.h). That kernel counts only if its results pass the
 * tests of ACCEL_VERIFY in forms that stand for all, and if it gains a twentieth.
 */
#ifndef ACCEL_TOOL_SOLVE_BENCH_H
#define ACCEL_TOOL_SOLVE_BENCH_H

#include "workload.h"

struct solve_bench {
    /* [0]: by cuBLAS; [1]: by our own. The bytes are measured with many right-hand sides, the time
     * of a row with few. 0: not measured, or not to be used. */
    struct schedule_solving by[ACCEL_DTYPES][2];
    /* From so many right-hand sides on our own is faster; 0: it is not, or is not right */
    int64_t own_nrhs[ACCEL_DTYPES];
};

/* Takes some milliseconds, and sets what is faster by gpu_solve_by_own(). */
struct solve_bench solve_bench_run(struct gpu_device *device, struct workload_memory *memory);

/* ---- Its parts, for tests ---- */

/* The triangles and right-hand sides that are measured. */
enum { SOLVE_SMALL, SOLVE_FEW, SOLVE_MANY, SOLVE_RIGHT, SOLVE_SHAPES };
struct solve_shape {
    char side; /* of the triangle */
    int64_t order, nrhs;
};
extern const struct solve_shape solve_shapes[SOLVE_SHAPES];

/* Milliseconds of one shape; infinite if it failed, gave wrong results, or was not tried. product:
 * with a square of the triangle's order, which has twice as many operations. */
struct solve_times {
    double product, blas, own;
};

/* Returns whether our own kernel is not so slow at a shape that it need not be tried at larger
 * ones. */
bool solve_own_is_near(const struct solve_times *times);

/* Returns from how many right-hand sides on our own kernel is to be used; 0: never. */
int64_t solve_own_nrhs(const struct solve_times times[SOLVE_SHAPES]);

/* Returns zeros if a shape failed. */
struct schedule_solving solve_rates_of(enum accel_dtype dtype,
                                       const struct solve_times times[SOLVE_SHAPES], bool own);

#endif
