/* What is remembered for keys: the latest value of each, as long as it is asked for more often
 * than some 256 others are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "gpu/plan/memo.h"

static struct gpu_key key_of(uint64_t number)
{
    const uint64_t bytes[] = {number};
    return gpu_digest_columns((const char *)bytes, sizeof bytes, 1, sizeof bytes);
}

static bool remembers(struct gpu_key key, uint64_t expected)
{
    uint64_t value = 0;
    const bool found = memo_find(key, &value, sizeof value);
    assert_true(!found || value == expected);
    return found;
}

static void keep(struct gpu_key key, uint64_t value)
{
    memo_keep(key, &value, sizeof value);
}

static void latest_value(void **state)
{
    char all[MEMO_BYTES], found[MEMO_BYTES];
    (void)state;
    assert_false(remembers(key_of(1), 0));
    keep(key_of(1), 10);
    assert_true(remembers(key_of(1), 10) && !remembers(key_of(2), 0));
    keep(key_of(1), 11);
    assert_true(remembers(key_of(1), 11) && remembers(key_of(1), 11));
    for (int word = 0; word < 2; word++) {
        struct gpu_key other = key_of(1);
        other.word[word] ^= 1;
        assert_false(remembers(other, 0));
        keep(other, 12);
        assert_true(remembers(key_of(1), 11) && remembers(other, 12));
    }
    memset(all, 'x', sizeof all);
    memo_keep(key_of(3), all, sizeof all);
    assert_true(memo_find(key_of(3), found, sizeof found));
    assert_memory_equal(found, all, sizeof all);
}

/* One that is asked for stays, whatever comes; one that nobody asks for goes. Of few keys, none
 * goes. */
static void who_is_asked_for_stays(void **state)
{
    enum { MANY = 10000, FEW = 200, SETS = 64, WAYS = 4 };
    int there = 0, of_few = 0;
    (void)state;
    keep(key_of(100), 1);
    keep(key_of(101), 2);
    for (uint64_t i = 1000; i < 1000 + MANY; i++) {
        keep(key_of(i), i);
        assert_true(remembers(key_of(i), i) && remembers(key_of(100), 1));
    }
    assert_false(remembers(key_of(101), 2));
    for (uint64_t i = 1000; i < 1000 + MANY; i++)
        there += remembers(key_of(i), i);
    assert_in_range(there, 240, 256);
    for (uint64_t i = 20000; i < 20000 + FEW; i++)
        keep(key_of(i), i);
    for (uint64_t i = 20000; i < 20000 + FEW; i++)
        of_few += remembers(key_of(i), i);
    assert_in_range(of_few, FEW * 3 / 4, FEW);
    /* Of those that make room for each other, the one that was asked for longest ago goes. */
    for (uint64_t used = 0; used < WAYS; used++) {
        struct gpu_key key[WAYS + 1];
        for (uint64_t i = 0; i <= WAYS; i++)
            key[i] = (struct gpu_key){{SETS * (100 * used + i), 7}};
        for (uint64_t i = 0; i < WAYS; i++)
            keep(key[i], i);
        for (uint64_t i = 0; i < WAYS; i++)
            assert_true(i == used || remembers(key[i], i));
        keep(key[WAYS], WAYS);
        for (uint64_t i = 0; i <= WAYS; i++)
            assert_int_equal(remembers(key[i], i), i != used);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(latest_value),
                                       cmocka_unit_test(who_is_asked_for_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
