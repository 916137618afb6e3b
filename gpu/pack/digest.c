#include "digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct gpu_key key_of_digest(XXH128_hash_t digest)
{
    return (struct gpu_key){{digest.low64, digest.high64}};
}

struct gpu_key gpu_digest_columns(const char *first, int64_t bytes, int64_t columns, int64_t step)
{
    XXH3_state_t state;
    if (step == bytes)
        return key_of_digest(XXH3_128bits(first, (size_t)(bytes * columns)));
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (int64_t i = 0; i < columns; i++)
        XXH3_128bits_update(&state, first + i * step, (size_t)bytes);
    return key_of_digest(XXH3_128bits_digest(&state));
}

struct gpu_key gpu_digest_join(struct gpu_key before, struct gpu_key next)
{
    const uint64_t both[] = {before.word[0], before.word[1], next.word[0], next.word[1]};
    return key_of_digest(XXH3_128bits(both, sizeof both));
}
