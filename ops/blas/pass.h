/*
 * What the original of BLAS or LAPACK is called with, and what a caller finds after its call. Driven by the routine table; no
 * routine is named here. Pure functions of their arguments, any thread.
 */
#ifndef ACCEL_PASS_H
#define ACCEL_PASS_H

#include "ops/convention.h"

/* How many 8-byte words of stack arguments a call has, the hidden CHARACTER lengths not counted. */
size_t blas_stack_words(const struct accel_routine *routine, enum accel_abi abi);

/* The caller's own arguments once more, in *words. Hidden lengths are passed as 1: C callers leave them out, and a
 * gfortran-built callee may reuse their stack slots (GCC PR 90329). */
struct accel_passed blas_repeat(struct accel_words *words, const struct accel_routine *routine,
                                const struct accel_passed *passed);

/* The arguments of a canonical call, such as a part of the caller's or one of its groups, in *words. The operands of a batch are
 * where `array` says, or, for one product, at `ptr`. */
struct accel_passed blas_pass(struct accel_words *words, enum accel_abi abi, int width,
                              const struct accel_call *call);

/* Tells a caller of LAPACK that its call has been done: INFO = 0, and in the first element of each workspace a length
 * that is enough. */
void blas_complete(const struct accel_call *call, const struct accel_passed *passed,
                   struct accel_result *result);

#endif
