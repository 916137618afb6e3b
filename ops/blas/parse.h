/*
 * Reads a call of BLAS or LAPACK: from a caller's registers and stack, in one of the ABIs, to the canonical call. Driven by the
 * routine table; no routine is named here. Pure functions of their arguments, any thread.
 */
#ifndef ACCEL_PARSE_H
#define ACCEL_PARSE_H

#include "ops/call.h"
#include "ops/passing.h"

/* One of the groups that blas_groups() counts; {0, 0} where that is less than 1. */
struct accel_group {
    int64_t number;
    int64_t products; /* of the groups before it: the sum of their `batch`, where positive */
};

/* Reads the caller's arguments. Flags and sizes that are wrong are passed on as they are: see accel_call_fault(). */
void blas_parse(struct accel_call *call, const struct accel_routine *routine,
                const struct accel_passed *passed, struct accel_group group);

/* How many groups of products a call has, as its caller says; 1 for what is no grouped batch. */
int64_t blas_groups(const struct accel_routine *routine, const struct accel_passed *passed);

/* Whether m and n of all groups are small, as the entries ask it of calls of one group. */
bool blas_is_small(const struct accel_routine *routine, const struct accel_passed *passed,
                   int64_t groups, bool (*is_small)(int64_t size));

/* Whether a call whose INTEGER width is not known can only be an ILP64 one: read with 64-bit
 * integers it is valid, its matrices fit an address space, and a size or leading dimension is
 * beyond 32 bits. Where no value is, both readings are the same call of BLAS; LAPACK writes integers, too. */
bool blas_is_wide(const struct accel_routine *routine, const struct accel_passed *passed);

#endif
