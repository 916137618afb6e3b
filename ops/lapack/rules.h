/*
 * What LAPACK asks of a call beyond what the routine table says: the arguments that depend on each other, the least
 * lengths of workspace, and when there is nothing to do. After the documentation of each routine
 * (https://www.netlib.org/lapack/explore-html/). Pure functions.
 */
#ifndef ACCEL_LAPACK_RULES_H
#define ACCEL_LAPACK_RULES_H

#include "ops/op.h"
#include "ops/shape.h"
#include "shape.h"

/* The argument that the original would complain of, or NULL. For calls whose flags, sizes and leading dimensions are
 * right. The lengths of workspace are those that LAPACK 3.11 asks for; of a workspace query they do not count. */
const char *lapack_fault(const struct accel_call *call);

/* The same without the range of eigenvalues, of which nothing is looked at. */
const char *lapack_shape_fault(const struct accel_call *call);

/* Whether LAPACK looks at a scalar, or at an INTEGER that is no size, of a call without such a fault. What stands behind
 * the argument need not be there. A value that only some matrices make LAPACK look at (rcond) counts. */
bool lapack_looks_at(const struct accel_call *call, const struct accel_arg *arg);

/* The least lengths of workspace: the operation's, or 1. */
struct accel_lengths lapack_least_lengths(const struct accel_call *call);

/* Whether one of the lengths of workspace is -1. */
bool lapack_is_query(const struct accel_call *call);

/* Whether the routine returns at once. */
bool lapack_is_empty(const struct accel_call *call);

/* Whether the GPU's libraries have it, with these flags. */
bool lapack_is_supported(const struct accel_call *call);

/* Bytes that the GPU needs at least: copies of all operands, and as much as A again for the iterations. */
double lapack_gpu_bytes(const struct accel_call *call);

/* ---- For the operations ---- */

/* The nominal figures of those that are made of products of blocks, that solve for right-hand sides, that reflect columns, and that
 * iterate: half of that is products of a matrix with a vector. */
#define LAPACK_BLOCKS   .group = ACCEL_LAPACK, .nominal = {0.6, 0.6, 0.003}
#define LAPACK_SOLVES   .group = ACCEL_LAPACK, .nominal = {0.7, 0.7, 0.0005}
#define LAPACK_REFLECTS .group = ACCEL_LAPACK, .nominal = {0.5, 0.4, 0.008}
#define LAPACK_ITERATES .group = ACCEL_LAPACK, .iterates = true, .nominal = {0.15, 0.03, 0.06}

/* Sizes beyond these are those of no matrix: a side of a square one, and of any. With them, no length overflows. */
#define LAPACK_SQUARE_MOST ((int64_t)1 << 29)
#define LAPACK_SIDE_MOST   ((int64_t)1 << 58)

/* The sizes of a call, no larger than those, for its lengths of workspace. */
struct lapack_sizes {
    int64_t m, n, nrhs;
    int64_t mn, mx; /* the smaller and the larger of m and n */
    bool is_complex, vectors;
};

/* A workspace of n elements. */
struct accel_lengths lapack_n_workspace(const struct accel_call *call,
                                        const struct lapack_sizes *sizes);

/* Whether the long side is reduced to the short one by QR first (ilaenv, ISPEC = 6). */
bool lapack_is_tall(int64_t longer, int64_t shorter);

/* is_empty of those that factor the matrix without right-hand sides, too. */
bool lapack_has_no_matrix(const struct accel_call *call);

/* is_supported where there must be right-hand sides. */
bool lapack_has_right_sides(const struct accel_call *call);

#endif
