/*
 * Large blocks of memory of our own, of which the one that was given back last stays for the next
 * call: to clear fresh pages takes as long as to write them. Its contents are of no use, and the
 * kernel may take its pages whenever memory is short (MADV_FREE in madvise(2)); after ten seconds
 * without a call it goes back. None stays if the address space is limited (RLIMIT_AS, RLIMIT_DATA),
 * or the kernel promises no more memory than there is. Thread-safe; neither malloc nor stdio.
 */
#ifndef ACCEL_BLOCK_CACHE_H
#define ACCEL_BLOCK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/* Smaller blocks are left to malloc(): glibc maps those above 32 MiB by themselves, whatever the
 * program has freed before. */
#define BLOCK_CACHE_LEAST (INT64_C(64) << 20)

/* Returns a block of at least so many bytes, in huge pages where there are some: the kept one,
 * unless that is smaller, or more than twice as large; NULL if there is no memory, or it is smaller
 * than BLOCK_CACHE_LEAST. errno stays. */
void *block_cache_take(int64_t bytes);

/* Returns whether memory is such a block; then it is given back. */
bool block_cache_give_back(void *memory);

/* Returns the bytes of the block that is kept; 0: there is none. */
int64_t block_cache_bytes(void);

/* Returns the bytes of blocks in use that were kept before: the kernel still counts their pages as
 * memory that is available, even if they have been written again since. */
int64_t block_cache_reused_bytes(void);

#endif
