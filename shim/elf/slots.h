/*
 * What the entries' stubs read: slots, gate and call-site table; filled here, under one lock.
 */
#ifndef ACCEL_SLOTS_H
#define ACCEL_SLOTS_H

#include "dispatch/dispatch.h"
#include "resolve.h"

/* The original for an entry (exported or bound) and a return address, from what is known; resolves
 * it on the first call of a caller. Ends the process with a message where there is none: there is
 * nothing to call, and without libaccel the dynamic linker would have ended it as well. */
const struct accel_original *accel_slots_original(uint32_t entry, uintptr_t ret);

/* The exported entry behind an entry number: a bound entry's own name. */
uint32_t accel_slots_exported(uint32_t entry);

/* Whether calls of an entry go to that function, whoever calls; how often an original has been found so far. Thread-safe. */
bool accel_slots_calls(uint32_t entry, const void *function);
unsigned long long accel_slots_originals(void);

/* Lets the entries follow what the dispatcher wants to see; cheap when nothing changed. */
void accel_slots_follow(void);

/* A function pointer for `function`, found by dlsym under an exported name: a bound entry, the same
 * for the same function. `function` itself when the pool is used up or memory is short. */
void *accel_slots_bind(uint32_t entry, void *function);

/* Forgets what may have gone with an unloaded object. */
void accel_slots_drop_if_unloaded(void);

#endif
