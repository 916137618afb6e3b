/*
 * Fills the data that the entries' stubs read (slots, gate and call-site table), under one lock.
 */
#ifndef ACCEL_SLOTS_H
#define ACCEL_SLOTS_H

#include "dispatch/dispatch.h"
#include "resolve.h"

/* Returns the original for an entry (exported or bound) and a return address; resolves it on the
 * first call of a caller. If there is none, ends the process with a message, as the dynamic linker
 * would without libaccel: there is nothing to call. */
const struct accel_original *accel_slots_original(uint32_t entry, uintptr_t ret);

/* Returns the exported entry of an entry number: for a bound entry, that of its name. */
uint32_t accel_slots_exported(uint32_t entry);

/* Returns how often an original has been found so far. Thread-safe. */
unsigned long long accel_slots_originals(void);

/* Sets the entries for the calls that the dispatcher wants to see now. Cheap if nothing has
 * changed. */
void accel_slots_follow(void);

/* Returns a bound entry for `function`, which dlsym has found under an exported name: the same
 * entry for the same function. Returns `function` itself if it is not known to be BLAS, the pool is
 * used up, or memory is short. */
void *accel_slots_bind(uint32_t entry, void *function);

/* Forgets all originals if an object has been unloaded since the last time. */
void accel_slots_drop_if_unloaded(void);

#endif
