/*
 * Calls that are cut into parts, each a call of its own, which several devices compute at the same
 * time. Pure functions.
 */
#ifndef ACCEL_CUT_H
#define ACCEL_CUT_H

#include "call/call.h"
#include "gpu/plan/schedule.h"

/* Where an operation says that calls may be cut (op->gpu->cuts): so that no part needs what another
 * one writes. */
enum accel_cuts {
    ACCEL_CUT_ROWS = 1, /* between rows of the result */
    ACCEL_CUT_COLS = 2,
    ACCEL_CUT_PRODUCTS = 4, /* between the products of a batch */
    /* Into blocks of a triangle. A part has call->blas.head, gap and omits, so no original can
     * compute it. */
    ACCEL_CUT_TRIANGLE = 8
};

/* A part of a result: rows and columns of the matrix that the call writes. Of a batch, `cols`
 * products from `col` on. Of a lower triangle, two groups of lines: `cols` from `col` on, which may
 * be none, then `rows` from `row` on, and blocks between these groups; an upper triangle is seen as
 * its mirror image. */
struct accel_region {
    int64_t row, col, rows, cols;
    /* Of a triangle: those that the part has, as bits of enum schedule_blocks; else 0 */
    int64_t blocks;
};

/* Returns the places where a call may be cut, as bits; 0: it is whole. */
unsigned accel_cuts_of(const struct accel_call *call);

/* Returns all of a call's result. Its cuts must not be 0. */
struct accel_region accel_cut_whole(const struct accel_call *call);

/* Returns the call that computes a part. Its operands are in the caller's memory, as those of the
 * whole. */
struct accel_call accel_cut_part(const struct accel_call *call, const struct accel_region *region);

/* No original computes a part of a triangle: it gets a copy of the triangle around the part, and
 * the part comes back from there. */

/* Returns the bytes of host memory that this takes for any part of the call; 0: originals compute
 * its parts themselves. */
int64_t accel_cut_copy_bytes(const struct accel_call *call);

/* Has the original compute a part, by original(context, call), with such memory. Returns what that
 * returns. */
bool accel_cut_by_original(const struct accel_call *part, void *copy,
                           bool (*original)(void *context, const struct accel_call *call),
                           void *context);

#endif
