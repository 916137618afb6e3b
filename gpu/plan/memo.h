/*
 * Remembers what has been found out for some 256 keys; the one that nobody has asked for for
 * longest makes room. The keys are digests that nobody else's equal: of a shape, rates and memory.
 * Thread-safe.
 */
#ifndef ACCEL_MEMO_H
#define ACCEL_MEMO_H

#include <stddef.h>

#include "gpu/pack/digest.h"

enum { MEMO_BYTES = 96 };

/* Copies what is remembered, of `bytes` <= MEMO_BYTES. Returns false if there is nothing. */
bool memo_find(struct gpu_key key, void *value, size_t bytes);

/* Remembers it, in place of what was there. */
void memo_keep(struct gpu_key key, const void *value, size_t bytes);

#endif
