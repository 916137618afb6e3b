/*
 * The argument adapters: between a caller's registers and stack in one of the ABIs and the
 * canonical call, both ways. Driven by the routine table; no routine is named here. Pure functions
 * of their arguments, any thread.
 *
 * Of shim/, where calls come in: it includes dispatch/, ops/, base/ and the headers of gpu/. shim/elf/ knows ELF, shim/arch/ the processor.
 */
#ifndef ACCEL_ADAPTER_H
#define ACCEL_ADAPTER_H

#include "shim/arch/x86_64/entry.h"
#include "ops/names.h"

/* One of the groups that accel_adapter_groups() counts; {0, 0} where that is less than 1. */
struct accel_group {
    int64_t number;
    int64_t products; /* of the groups before it: the sum of their `batch`, where positive */
};

/* Reads the caller's arguments. width is the provider's INTEGER width in bits, 32 or 64. Flags and sizes
 * that are wrong are passed on as they are: see accel_call_fault(). */
void accel_adapter_read(struct accel_call *call, const struct accel_routine *routine,
                        enum accel_abi abi, int width, const struct accel_frame *frame,
                        struct accel_group group);

/* How many groups of products a call has, as its caller says; 1 for what is no grouped batch. */
int64_t accel_adapter_groups(const struct accel_routine *routine, enum accel_abi abi, int width,
                             const struct accel_frame *frame);

/* Whether m and n of all groups are below the gate (dispatch/small.h), as the entries ask it of calls of one group. */
bool accel_adapter_is_small(const struct accel_routine *routine, enum accel_abi abi, int width,
                            const struct accel_frame *frame, int64_t groups);

/* Whether a call whose INTEGER width is not known can only be an ILP64 one: read with 64-bit
 * integers it is valid, its matrices fit an address space, and a size or leading dimension is
 * beyond 32 bits. Where no value is, both readings are the same call of BLAS; LAPACK writes integers, too. */
bool accel_adapter_is_wide(const struct accel_routine *routine, enum accel_abi abi,
                           const struct accel_frame *frame);

/* How many 8-byte words of stack arguments a call has, the hidden CHARACTER lengths not counted. */
size_t accel_adapter_stack_words(const struct accel_routine *routine, enum accel_abi abi);

/* Tells a caller of LAPACK that its call has been done: INFO = 0, and in the first element of each workspace a length
 * that is enough. */
void accel_adapter_succeed(const struct accel_routine *routine, enum accel_abi abi, int width,
                           const struct accel_frame *frame, struct accel_result *result);

/* Calls the original with the caller's own arguments once more. Hidden lengths are passed as 1: C
 * callers leave them out, and a gfortran-built callee may reuse their stack slots (GCC PR 90329). */
struct accel_result accel_adapter_forward(void *original, const struct accel_routine *routine,
                                          enum accel_abi abi, const struct accel_frame *frame);

/* Calls the original with a canonical call, such as a part of the caller's or one of its groups. The operands
 * of a batch are where `array` says, or, for one product, at `ptr`. */
struct accel_result accel_adapter_call(void *original, enum accel_abi abi, int width,
                                       const struct accel_call *call);

#endif
