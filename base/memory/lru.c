#include "lru.h"

#include <string.h>

#include "hash.h"

/* What is behind these bytes is compared alone: to hash it would take longer. */
enum { HASHED_MOST = 128 };

static uint64_t hash_of(const struct lru *lru, const void *key)
{
    return hash_bytes(key, lru->key_bytes < HASHED_MOST ? lru->key_bytes : HASHED_MOST);
}

static char *set_of(const struct lru *lru, uint64_t hash)
{
    const uint64_t set = (hash >> 32) * lru->sets >> 32;
    return (char *)lru->entry + set * lru->ways * lru->entry_bytes;
}

static struct lru_entry *find_entry(const struct lru *lru, const void *key, uint64_t hash)
{
    char *way = set_of(lru, hash);
    for (uint32_t i = 0; i < lru->ways; i++, way += lru->entry_bytes) {
        struct lru_entry *entry = (void *)way;
        if (entry->hash == hash && entry->used > 0 && memcmp(entry + 1, key, lru->key_bytes) == 0)
            return entry;
    }
    return NULL;
}

void *lru_lookup(const struct lru *lru, const void *key)
{
    return find_entry(lru, key, hash_of(lru, key));
}

void lru_touch(struct lru *lru, void *entry)
{
    ((struct lru_entry *)entry)->used = ++lru->now;
}

static void *insert(struct lru *lru, const void *key, uint64_t hash)
{
    char *way = set_of(lru, hash);
    struct lru_entry *oldest = (void *)way;
    for (uint32_t i = 1; i < lru->ways; i++) {
        struct lru_entry *entry = (void *)(way += lru->entry_bytes);
        if (entry->used < oldest->used)
            oldest = entry;
    }
    oldest->hash = hash;
    memcpy(oldest + 1, key, lru->key_bytes);
    lru_touch(lru, oldest);
    return oldest;
}

void *lru_insert(struct lru *lru, const void *key)
{
    return insert(lru, key, hash_of(lru, key));
}

void lru_clear(struct lru *lru)
{
    memset(lru->entry, 0, lru->sets * lru->ways * lru->entry_bytes);
    lru->now = 0;
}

static char *value_of_entry(const struct lru *lru, struct lru_entry *entry)
{
    return (char *)(entry + 1) + lru->key_bytes;
}

static size_t value_bytes(const struct lru *lru)
{
    return lru->entry_bytes - sizeof(struct lru_entry) - lru->key_bytes;
}

bool lru_get(struct lru *lru, const void *key, void *value)
{
    const uint64_t hash = hash_of(lru, key);
    pthread_mutex_lock(&lru->lock);
    struct lru_entry *entry = find_entry(lru, key, hash);
    if (entry) {
        lru_touch(lru, entry);
        memcpy(value, value_of_entry(lru, entry), value_bytes(lru));
    }
    pthread_mutex_unlock(&lru->lock);
    return entry;
}

void lru_put(struct lru *lru, const void *key, const void *value)
{
    const uint64_t hash = hash_of(lru, key);
    pthread_mutex_lock(&lru->lock);
    struct lru_entry *entry = find_entry(lru, key, hash);
    if (entry)
        lru_touch(lru, entry);
    else
        entry = insert(lru, key, hash);
    memcpy(value_of_entry(lru, entry), value, value_bytes(lru));
    pthread_mutex_unlock(&lru->lock);
}
