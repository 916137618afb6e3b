/*
 * LAPACK's rules beyond the routine table: arguments that depend on each other, the least lengths
 * of workspace, calls with nothing to do. Source: each routine's documentation
 * (https://www.netlib.org/lapack/explore-html/). Pure functions.
 */
#ifndef ACCEL_LAPACK_RULES_H
#define ACCEL_LAPACK_RULES_H

#include "ops/op.h"
#include "call/shape.h"
#include "call/lapack_shape.h"

/* Returns the name of an argument that the original would complain of, or NULL. Flags, sizes and
 * leading dimensions must be right. Asks for the lengths of workspace of LAPACK 3.11, except in a
 * workspace query. */
const char *lapack_fault(const struct accel_call *call);

/* The same without the range of eigenvalues, which it does not read. */
const char *lapack_shape_fault(const struct accel_call *call);

/* Returns whether LAPACK reads a scalar, or an INTEGER that is no size. The call has no fault in
 * its shapes; it need not have the values behind the argument. True for a value that LAPACK reads
 * for some matrices only (rcond). */
bool lapack_looks_at(const struct accel_call *call, const struct accel_arg *arg);

/* Returns the operation's least lengths of workspace, or 1. */
struct accel_lengths lapack_least_lengths(const struct accel_call *call);

/* Applies op->rules->left to what the original has answered to a workspace query. */
void lapack_lengths_left(const struct accel_call *call, struct accel_lengths *lengths);

/* Returns whether a length of workspace is -1: a question for the best one. */
bool lapack_is_query(const struct accel_call *call);

/* Returns whether only some of the eigenvalues are asked for. The call may be any. */
bool lapack_is_part(const struct accel_call *call);

/* Returns whether the routine has nothing to do. */
bool lapack_is_empty(const struct accel_call *call);

/* Returns whether the operation has steps for the GPU, and the scalars are numbers. Does not ask
 * op->gpu->is_supported. */
bool lapack_is_supported(const struct accel_call *call);

/* Returns the least bytes that the GPU needs: copies of all operands, A once more if the operation
 * iterates, and the square of a packed triangle. */
double lapack_gpu_bytes(const struct accel_call *call);

/* Returns the bytes of an operand that cross the link up, or down: of A's triangle, and of a
 * pencil's B, little more than what is stored; eigenvectors take all of A's place, if they come
 * there. */
double lapack_sent_bytes(const struct accel_call *call, const struct accel_span *x, bool down);

/* ---- For the operations ---- */

/* Reasons for op->gpu->whole. */
#define LAPACK_CONDENSES                                                                           \
    "each column of the condensed form takes a product with all that is left of the matrix"
#define LAPACK_PIVOTS_BOTH_SIDES                                                                   \
    "symmetric pivoting exchanges rows and columns across the whole triangle"

/* Nominal figures of operations that multiply blocks, solve for right-hand sides, reflect columns,
 * and iterate. Half of an iteration is products of a matrix with a vector. */
#define LAPACK_ITERATES_NOMINAL                                                                    \
    .nominal = {.cpu_share = 0.15, .gpu_share = 0.03, .gpu_step_ms = 0.06}
#define LAPACK_UNPACKS "a packed triangle becomes a square there"
extern const struct accel_cost lapack_blocks_cost, lapack_solves_cost, lapack_reflects_cost,
    lapack_iterates_cost;
#define LAPACK_TRAITS(...)   OP_TRAITS(.group = ACCEL_LAPACK, __VA_ARGS__)
#define LAPACK_BLOCKS(...)   LAPACK_TRAITS(__VA_ARGS__), .cost = &lapack_blocks_cost
#define LAPACK_SOLVES(...)   LAPACK_TRAITS(__VA_ARGS__), .cost = &lapack_solves_cost
#define LAPACK_REFLECTS(...) LAPACK_TRAITS(__VA_ARGS__), .cost = &lapack_reflects_cost
#define LAPACK_ITERATES(...)                                                                       \
    LAPACK_TRAITS(.iterates = true, __VA_ARGS__), .cost = &lapack_iterates_cost

/* The largest side of a square matrix, and of any, that memory could hold. Within these limits, no
 * length overflows. */
#define LAPACK_SQUARE_MOST ((int64_t)1 << 29)
#define LAPACK_SIDE_MOST   ((int64_t)1 << 58)

/* What the lengths of workspace depend on; the sizes are cut down to those limits. */
struct lapack_sizes {
    const struct accel_call *call;
    int64_t m, n, nrhs;
    int64_t mn, mx; /* the smaller and the larger of m and n */
    bool is_complex, vectors;
};

/* Returns a workspace of n elements. */
struct accel_lengths lapack_n_workspace(const struct lapack_sizes *sizes);

/* LAPACK's ilaenv: columns of a block of ?sytrd and ?hetrd (ISPEC = 1), and the reflectors up to
 * which ?geqrf and ?orgqr use no blocks (ISPEC = 3). */
enum { LAPACK_SYTRD_BLOCK = 32, LAPACK_QR_CROSSOVER = 128 };

/* op->rules->left of routines that leave a length for blocks only where they use blocks: n
 * otherwise. reflectors: how many; crossover: up to so many they use none. */
void lapack_left_by_blocks(const struct lapack_sizes *sizes, int64_t reflectors, int64_t crossover,
                           struct accel_lengths *lengths);

/* Returns whether LAPACK first reduces the long side to the short one by QR (ilaenv, ISPEC = 6). */
bool lapack_is_tall(int64_t longer, int64_t shorter);

/* is_empty of operations that factor the matrix even without right-hand sides. */
bool lapack_has_no_matrix(const struct accel_call *call);

#endif
