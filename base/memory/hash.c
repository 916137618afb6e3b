#include "hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

uint64_t hash_text(uint64_t before, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text), before);
}
