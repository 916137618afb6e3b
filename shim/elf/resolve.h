/*
 * The caller's original: the function that the dynamic linker would bind for this caller without
 * libaccel. Looks, in this order, in
 *   1. the global scope after us (RTLD_NEXT), because libraries of the start win without libaccel,
 *      too; if dlopen(RTLD_GLOBAL) has added the library after the caller, only behind 2
 *   2. the scope of the object that was opened by dlopen(RTLD_LOCAL), as in Python, and brought the
 *      calling object in; then libraries that are kept for the caller, and the caller's own scope
 *   3. the loaded objects one by one, for a function pointer that was handed out, or a tail call
 *   4. ACCEL_ORIGINAL
 * Never returns an address inside libaccel, nor one in an object that comes before it.
 */
#ifndef ACCEL_RESOLVE_H
#define ACCEL_RESOLVE_H

#include "dispatch/dispatch.h"
#include "shim/arch/entry.h"
#include "ops/names.h"

/* One provider's function under one name. It is never freed: another thread may hold it. An equal
 * one is the same. */
struct accel_original {
    void *function;
    void *computes; /* the same, or what it is a wrapper of: its library is the CPU's */
    bool ours;      /* known to be the routine of the table; else calls only jump to it */
    int width;      /* bits of INTEGER: 32 or 64; 0: not ours, or not of BLAS or LAPACK */
    int layout;     /* what the operation's accepts() returned; 0: not ours, or of BLAS or LAPACK;
                     * negative: not ours, its own calls are */
    /* Not ours yet: before their first call, programs choose what oneMKL's functions are
     * (MKL_Set_Interface_Layer), and a look-up must be cheap. */
    bool unasked;
    bool global; /* of a library of the program's start: the same for every caller */
    /* The ILP64 function, if stage 3 found both an LP64 provider, which this is, and an ILP64 one,
     * and nothing tells which of them the caller means; else NULL. An LP64 function serves both
     * kinds of callers (the lower half of a 64-bit size comes first), unless a size is beyond 32
     * bits: see blas_is_wide(). */
    const struct accel_original *wide;
    _Atomic(const struct dispatch_library *) library; /* NULL until asked for: see library.h */
};

/* Finds the original of exported entry `entry` for the code at return address `ret`; NULL if there
 * is none. Takes the dynamic linker's locks: hold none of ours. Thread-safe. */
const struct accel_original *accel_resolve(uint32_t entry, uintptr_t ret);

/* Finds what a look-up without libaccel would find: stage 1, and stage 2 if ret is not 0. Then
 * keeps it for the caller, as the real dlsym does. */
void *accel_resolve_scopes(uint32_t entry, uintptr_t ret);

/* For RTLD_NEXT: returns whether the object of the code at ret comes before libaccel in the order
 * of loading, and finds a name in the objects between the two. Both are loaded at start, so this
 * order stays. */
bool accel_resolve_is_before_us(uintptr_t ret);
void *accel_resolve_between(const char *name, uintptr_t ret);

/* Makes the original of an exported name from its function, which dlsym has found: unasked, from
 * symbol tables alone, and later, at a call, as it is. NULL if memory is short; the first, also if
 * it is certain that the function is not the table's. Thread-safe. */
const struct accel_original *accel_resolve_unasked(uint32_t entry, void *function);
const struct accel_original *accel_resolve_known(uint32_t entry, void *function);

/* Returns the library that defines a function, for an operation of another library. */
struct accel_provider accel_resolve_provider(void *function);

#endif
