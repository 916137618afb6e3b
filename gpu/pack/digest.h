/*
 * Digests of 128 bits (XXH3), which tell what memory contains: of the program's own, and of copies
 * on their way to the device.
 */
#ifndef ACCEL_DIGEST_H
#define ACCEL_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

/* Tells contents of device memory: a digest. */
struct gpu_key {
    uint64_t word[2];
};

static inline bool gpu_key_is(const struct gpu_key *a, const struct gpu_key *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* Digests of what a matrix has of the pages at its two edges; none: zero. */
struct gpu_edges {
    struct gpu_key first, last;
};

/* Returns the digest of columns of `bytes` bytes each, `step` bytes from one to the next. It
 * depends on neither the step nor on how the bytes are divided into columns. */
struct gpu_key gpu_digest_columns(const char *first, int64_t bytes, int64_t columns, int64_t step);

/* Returns the digest of parts one after the other: that of the parts before, joined with the next
 * one's. */
struct gpu_key gpu_digest_join(struct gpu_key before, struct gpu_key next);

#endif
