/* Caches that evict the least recently used entry: the latest value of each key, as long as it is
 * asked for more often than others of its set are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory/hash.h"
#include "base/memory/lru.h"

enum { SETS = 64, WAYS = 4, WORDS = 5 };

struct numbered {
    struct lru_entry lru;
    struct {
        uint64_t word[WORDS];
    } key;
    uint64_t value, twice;
};
LRU(cache, numbered, SETS, WAYS);
LRU(one_set, numbered, 1, WAYS);

struct key {
    uint64_t word[WORDS];
};

struct with_long_key {
    struct lru_entry lru;
    struct long_key {
        char byte[1000];
    } key;
    int64_t value;
};
LRU(long_keyed, with_long_key, 8, WAYS);

struct value {
    uint64_t value, twice;
};

static struct key key_of(uint64_t number)
{
    return (struct key){{1, 2, number, 3, 4}};
}

static bool has_key(struct lru *lru, struct key key, uint64_t expected)
{
    struct value value = {0, 0};
    const bool found = lru_get(lru, &key, &value);
    assert_true(value.value == (found ? expected : 0) && value.twice == 2 * value.value);
    return found;
}

static bool has(struct lru *lru, uint64_t number, uint64_t expected)
{
    return has_key(lru, key_of(number), expected);
}

static void put(struct lru *lru, struct key key, uint64_t value)
{
    lru_put(lru, &key, &(struct value){value, 2 * value});
}

static void latest_value(void **state)
{
    (void)state;
    assert_false(has(&cache, 1, 0));
    put(&cache, key_of(1), 10);
    assert_true(has(&cache, 1, 10) && !has(&cache, 2, 0));
    put(&cache, key_of(1), 11);
    assert_true(has(&cache, 1, 11) && has(&cache, 1, 11));
}

/* Also keys whose hashes are equal, as far as the cache knows. */
static void each_byte_counts(void **state)
{
    const struct key key = key_of(1);
    (void)state;
    lru_clear(&one_set);
    put(&one_set, key, 7);
    for (size_t i = 0; i < sizeof key; i++) {
        struct key other = key;
        ((char *)&other)[i] ^= 1;
        assert_false(has_key(&one_set, other, 0));
        one_set_entries[0].lru.hash = hash_bytes(&other, sizeof other);
        assert_false(has_key(&one_set, other, 0));
        one_set_entries[0].lru.hash = hash_bytes(&key, sizeof key);
        assert_true(has_key(&one_set, key, 7));
    }
}

/* Also those behind what is hashed. */
static void long_keys(void **state)
{
    struct long_key key = {{0}};
    int64_t value;
    (void)state;
    for (size_t i = 0; i < sizeof key; i += 8) {
        lru_clear(&long_keyed);
        value = 1;
        lru_put(&long_keyed, &key, &value);
        key.byte[i]++;
        assert_false(lru_get(&long_keyed, &key, &value));
        value = 2;
        lru_put(&long_keyed, &key, &value);
        assert_true(lru_get(&long_keyed, &key, &value) && value == 2);
        key.byte[i]--;
        assert_true(lru_get(&long_keyed, &key, &value) && value == 1);
    }
}

/* One that is asked for stays, whatever comes; one that nobody asks for goes. Of few keys, none
 * goes. */
static void who_is_asked_for_stays(void **state)
{
    enum { MANY = 10000, FEW = 200 };
    int there = 0, of_few = 0;
    (void)state;
    lru_clear(&cache);
    put(&cache, key_of(100), 1);
    put(&cache, key_of(101), 2);
    for (uint64_t i = 1000; i < 1000 + MANY; i++) {
        put(&cache, key_of(i), i);
        assert_true(has(&cache, i, i) && has(&cache, 100, 1));
    }
    assert_false(has(&cache, 101, 2));
    for (uint64_t i = 1000; i < 1000 + MANY; i++)
        there += has(&cache, i, i);
    assert_in_range(there, 240, 256);
    for (uint64_t i = 20000; i < 20000 + FEW; i++)
        put(&cache, key_of(i), i);
    for (uint64_t i = 20000; i < 20000 + FEW; i++)
        of_few += has(&cache, i, i);
    assert_in_range(of_few, FEW * 3 / 4, FEW);
}

/* Of those that make room for each other, the one that was asked for longest ago goes. */
static void least_recently_used_goes(void **state)
{
    (void)state;
    for (uint64_t used = 0; used < WAYS; used++) {
        lru_clear(&one_set);
        for (uint64_t i = 0; i < WAYS; i++)
            put(&one_set, key_of(i), i);
        for (uint64_t i = 0; i < WAYS; i++)
            assert_true(i == used || has(&one_set, i, i));
        put(&one_set, key_of(WAYS), WAYS);
        for (uint64_t i = 0; i <= WAYS; i++)
            assert_int_equal(has(&one_set, i, i), i != used);
    }
}

/* A look-up does not count as use, and who inserts sees what is evicted. */
static void entries(void **state)
{
    (void)state;
    lru_clear(&one_set);
    for (uint64_t i = 0; i < WAYS; i++) {
        const struct key key = key_of(i);
        assert_null(lru_lookup(&one_set, &key));
        struct numbered *entry = lru_insert(&one_set, &key);
        assert_int_equal(entry->value, 0);
        entry->value = i;
        assert_ptr_equal(lru_lookup(&one_set, &key), entry);
    }
    struct key key = key_of(0);
    struct numbered *first = lru_lookup(&one_set, &key), *second;
    lru_touch(&one_set, first);
    key = key_of(1);
    second = lru_lookup(&one_set, &key);
    key = key_of(WAYS);
    assert_ptr_equal(lru_insert(&one_set, &key), second);
    assert_int_equal(second->value, 1);
    assert_ptr_equal(lru_lookup(&one_set, &key), second);
    key = key_of(1);
    assert_null(lru_lookup(&one_set, &key));
}

static void lock_is_free_in_a_child(void **state)
{
    (void)state;
    put(&cache, key_of(5), 50);
    pthread_mutex_lock(&cache.lock);
    const pid_t child = fork();
    if (child == 0) {
        forks_child();
        struct value value;
        const struct key key = key_of(5);
        alarm(10);
        _exit(lru_get(&cache, &key, &value) && value.value == 50 ? 0 : 1);
    }
    pthread_mutex_unlock(&cache.lock);
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child && status == 0);
}

static void texts(void **state)
{
    (void)state;
    assert_true(hash_text(0, "dgemm") == hash_bytes("dgemm", 5));
    assert_true(hash_text(0, "dgemm") != hash_text(1, "dgemm"));
    assert_true(hash_text(hash_text(0, "a"), "b") != hash_text(hash_text(0, "b"), "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latest_value),
        cmocka_unit_test(each_byte_counts),
        cmocka_unit_test(long_keys),
        cmocka_unit_test(who_is_asked_for_stays),
        cmocka_unit_test(least_recently_used_goes),
        cmocka_unit_test(entries),
        cmocka_unit_test(lock_is_free_in_a_child),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
