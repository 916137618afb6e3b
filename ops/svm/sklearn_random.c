/* The random numbers of sklearn/svm/src/newrand/newrand.h: those of std::mt19937 (Matsumoto,
 * Nishimura 1998), cut to a range. */
#include "sklearn.h"

enum { WORDS = 624, DISTANCE = 397 };

struct numbers {
    uint32_t word[WORDS];
    int next;
};

static void seed_with(struct numbers *random, uint32_t seed)
{
    random->next = WORDS;
    random->word[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++) {
        const uint32_t before = random->word[i - 1];
        random->word[i] = 1812433253u * (before ^ before >> 30) + i;
    }
}

static void refill(struct numbers *random)
{
    uint32_t *w = random->word;
    for (int i = 0; i < WORDS; i++) {
        const uint32_t y = (w[i] & 0x80000000u) | (w[(i + 1) % WORDS] & 0x7fffffffu);
        w[i] = w[(i + DISTANCE) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    random->next = 0;
}

static uint32_t draw(struct numbers *random)
{
    if (random->next == WORDS)
        refill(random);
    uint32_t y = random->word[random->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Lemire's way to a range without bias. */
static uint32_t draw_below(struct numbers *random, uint32_t range)
{
    uint64_t product = (uint64_t)draw(random) * range;
    if ((uint32_t)product < range)
        for (const uint32_t least = -range % range; (uint32_t)product < least;)
            product = (uint64_t)draw(random) * range;
    return (uint32_t)(product >> 32);
}

/* scikit-learn seeds before its first shuffle, and again when it trains a fold. It trains at least
 * three of a pair's five folds: two at most leave nothing to train, with all rows of a class. So
 * each shuffle begins at the seed. */
void sklearn_shuffle(int *place, int count, int seed)
{
    struct numbers random;
    seed_with(&random, (uint32_t)seed);
    for (int i = 0; i < count; i++) {
        const int j = i + (int)draw_below(&random, (uint32_t)(count - i)), kept = place[i];
        place[i] = place[j];
        place[j] = kept;
    }
}
