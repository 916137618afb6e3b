/*
 * Reads a call of BLAS or LAPACK from a caller's registers and stack, in one of the ABIs, into the
 * canonical call. Driven by the routine table; names no routine. Pure functions.
 */
#ifndef ACCEL_PARSE_H
#define ACCEL_PARSE_H

#include "call/call.h"
#include "call/passing.h"

/* Reads the caller's arguments. Leaves wrong flags and sizes as they are: see
 * accel_call_fault(). */
void blas_parse(struct accel_call *call, const struct accel_routine *routine,
                const struct accel_passed *passed);

/* Reads one group of a grouped batch. before: the products of the groups before it; a group with a
 * negative number has none. */
void blas_parse_group(struct accel_call *call, const struct accel_routine *routine,
                      const struct accel_passed *passed, int64_t group, int64_t before);

/* See accel_convention.shape: without leading dimensions and increments, which BLAS and LAPACK read
 * only if flags and sizes are right. 0: of a batch, whose sizes may be in arrays. */
int blas_shape(uint64_t word[ACCEL_ARGS_MAX + 1], const struct accel_routine *routine,
               const struct accel_passed *passed);

/* Returns the number of groups that the caller passes; 1 in any other call than a grouped batch. */
int64_t blas_groups(const struct accel_routine *routine, const struct accel_passed *passed);

/* Returns whether a call of unknown INTEGER width can only be an ILP64 one: with 64-bit integers it
 * is valid, its matrices fit an address space, and a size or leading dimension does not fit 32
 * bits. If all fit, both readings are the same call of BLAS; not of LAPACK, which also writes
 * integers. */
bool blas_is_wide(const struct accel_routine *routine, const struct accel_passed *passed);

#endif
