/*
 * The hash of tables: XXH3, 64 bits. Where equal hashes must mean equal contents, there is a digest
 * of 128 bits (gpu/pack/digest.h).
 */
#ifndef ACCEL_HASH_H
#define ACCEL_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *bytes, size_t size);

/* Of a text behind what has been hashed before; 0: nothing has. */
uint64_t hash_text(uint64_t before, const char *text);

#endif
