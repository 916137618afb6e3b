/*
 * Makes the arguments for an original of BLAS or LAPACK, and completes a call for its caller.
 * Driven by the routine table; names no routine. Pure functions.
 */
#ifndef ACCEL_PASS_H
#define ACCEL_PASS_H

#include "ops/convention.h"

/* Returns the 8-byte words of stack arguments of a call, without the hidden CHARACTER lengths. */
size_t blas_stack_words(const struct accel_routine *routine, enum accel_abi abi);

/* Returns the caller's own arguments once more, in *words. Passes hidden lengths as 1: C callers
 * leave them out, and a callee that gfortran built may reuse their stack slots (GCC PR 90329). */
struct accel_passed blas_repeat(struct accel_words *words, const struct accel_routine *routine,
                                const struct accel_passed *passed);

/* Returns the arguments of a canonical call, such as a part of the caller's or one of its groups,
 * in *words. A batch's operands are where `array` says; those of one product are at `ptr`. */
struct accel_passed blas_pass(struct accel_words *words, enum accel_abi abi, int width,
                              const struct accel_call *call);

/* Returns the caller's call once more as a workspace query, in *words: its lengths are -1, and its
 * workspaces and INFO are in words->value, by argument, so that nothing of the caller's is written.
 * False: the routine answers none. */
bool blas_question(struct accel_words *words, struct accel_passed *question,
                   const struct accel_routine *routine, const struct accel_passed *passed);

/* Completes a call of LAPACK for its caller: INFO = 0, and in the first element of each workspace
 * the length that the original leaves there. answers: what it has answered to blas_question();
 * NULL: it has not been asked, and the caller's own lengths will do. */
void blas_complete(const struct accel_call *call, const struct accel_passed *passed,
                   const struct accel_words *answers, struct accel_result *result);

/* Tells LAPACK's INFO after a call has run: the argument's value, or LAPACKE's result. False: the
 * routine is not of LAPACK. */
bool blas_info(const struct accel_call *call, const struct accel_passed *passed,
               const struct accel_result *result, int64_t *info);

#endif
