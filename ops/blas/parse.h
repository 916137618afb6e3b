/*
 * Reads a call of BLAS or LAPACK: from a caller's registers and stack, in one of the ABIs, to the canonical call. Driven by the
 * routine table; no routine is named here. Pure functions of their arguments, any thread.
 */
#ifndef ACCEL_PARSE_H
#define ACCEL_PARSE_H

#include "ops/call.h"
#include "ops/passing.h"

/* Reads the caller's arguments. Flags and sizes that are wrong are passed on as they are: see accel_call_fault(). */
void blas_parse(struct accel_call *call, const struct accel_routine *routine,
                const struct accel_passed *passed);

/* The same of another group of a grouped batch than the first. before: the sum of the batches of those before it, where positive. */
void blas_parse_group(struct accel_call *call, const struct accel_routine *routine,
                      const struct accel_passed *passed, int64_t group, int64_t before);

/* How many groups of products a call has, as its caller says; 1 for what is no grouped batch. */
int64_t blas_groups(const struct accel_routine *routine, const struct accel_passed *passed);

/* Whether a call whose INTEGER width is not known can only be an ILP64 one: read with 64-bit
 * integers it is valid, its matrices fit an address space, and a size or leading dimension is
 * beyond 32 bits. Where no value is, both readings are the same call of BLAS; LAPACK writes integers, too. */
bool blas_is_wide(const struct accel_routine *routine, const struct accel_passed *passed);

#endif
