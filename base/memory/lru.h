/*
 * A cache of fixed size that evicts the least recently used entry (LRU), set-associative: the hash
 * of a key's first 128 bytes chooses the set, whose ways are searched. Keys are compared byte by
 * byte, so they are structs without padding; what differs most comes first. Allocates nothing.
 */
#ifndef ACCEL_LRU_H
#define ACCEL_LRU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/forks.h"

/* The first member of an entry; the second one is its key. */
struct lru_entry {
    uint64_t hash, used; /* used: when, by the cache's count; 0: the entry is free */
};

struct lru {
    void *entry; /* sets * ways of them */
    size_t entry_bytes, key_bytes;
    uint32_t sets, ways;
    uint64_t now;
    pthread_mutex_t lock;
};

/* Defines a static cache of `struct entry`, which has a member `key`. A child of a fork finds its
 * lock free. */
#define LRU(name, entry, sets, ways)                                                               \
    _Static_assert(offsetof(struct entry, key) == sizeof(struct lru_entry), "the key comes next"); \
    static struct entry name##_entries[(sets) * (ways)];                                           \
    static struct lru name = {name##_entries,                                                      \
                              sizeof(struct entry),                                                \
                              sizeof(((struct entry *)0)->key),                                    \
                              (sets),                                                              \
                              (ways),                                                              \
                              0,                                                                   \
                              PTHREAD_MUTEX_INITIALIZER};                                          \
    FORKS_PART(name, &name.lock, NULL)

/* ---- Entries, under the cache's lock ---- */

/* Returns the key's entry, NULL: there is none. */
void *lru_lookup(const struct lru *lru, const void *key);

/* Makes it the most recently used one. */
void lru_touch(struct lru *lru, void *entry);

/* Returns an entry for a key that has none, the most recently used one. The evicted entry's value
 * is still there, zero if there was none: the caller overwrites it. */
void *lru_insert(struct lru *lru, const void *key);

/* Frees all entries. */
void lru_clear(struct lru *lru);

/* ---- Copies of values: all of an entry behind its key. Thread-safe ---- */

bool lru_get(struct lru *lru, const void *key, void *value);
void lru_put(struct lru *lru, const void *key, const void *value);

#endif
