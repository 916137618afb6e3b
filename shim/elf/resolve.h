/*
 * The caller's original: the function that the dynamic linker would have bound for this caller if
 * libaccel were not there. In this order, each for a reason of its own:
 *   1. the global scope after us (RTLD_NEXT): what start-up libraries define wins natively
 *   2. the calling object's own scope: a BLAS that came in with dlopen(RTLD_LOCAL), as in Python
 *   3. the loaded objects one by one: a function pointer that was handed out, a tail call
 *   4. ACCEL_ORIGINAL
 * Never an address inside libaccel itself.
 */
#ifndef ACCEL_RESOLVE_H
#define ACCEL_RESOLVE_H

#include "dispatch/dispatch.h"
#include "shim/arch/x86_64/entry.h"
#include "ops/names.h"

/* One provider's function under one name. Once it is in a table it is never freed: another thread may hold
 * it. */
struct accel_original {
    void *function;
    bool ours; /* known to be what the table says; else it is only to be jumped to */
    int width; /* bits of INTEGER: 32 or 64; 0 where it is not ours, or no function of BLAS or LAPACK */
    bool global; /* found by stage 1: the same for every caller */
    /* Stage 3 found an LP64 provider, which this is, and an ILP64 one, and nothing tells whose
     * caller this is; else NULL. An LP64 function serves both kinds of callers (the lower half of a
     * 64-bit size comes first) unless a size is beyond 32 bits: see blas_is_wide(). */
    const struct accel_original *wide;
    _Atomic(const struct dispatch_library *) library; /* NULL until asked for: see library.h */
};

/* Finds the original of exported entry `entry` for the code at return address `ret`; NULL where
 * there is none. Takes the dynamic linker's locks: hold none of ours. Thread-safe. */
const struct accel_original *accel_resolve(uint32_t entry, uintptr_t ret);

/* Stages 1 and 2 alone, 2 only where ret is not 0: what a look-up without libaccel would find. */
void *accel_resolve_scopes(uint32_t entry, uintptr_t ret);

/* Whether the object of the code at ret comes before libaccel in the order of loading, and what the
 * objects between the two have under a name: for RTLD_NEXT. Both are loaded at start, so that this
 * order stays. */
bool accel_resolve_is_before_us(uintptr_t ret);
void *accel_resolve_between(const char *name, uintptr_t ret);

/* What an exported name is when its original is already known (found by dlsym). Thread-safe. */
const struct accel_original *accel_resolve_known(uint32_t entry, void *function);

/* Gives back one that accel_resolve_known() has returned and nobody else has; NULL is nothing. Thread-safe. */
void accel_original_free(const struct accel_original *original);

#endif
