/*
 * Large blocks: the last one stays for the next call that it fits, its pages with it; other memory
 * is not mistaken for one; a fork's child has none; and after a while without a call it goes back
 * (TEST_LONG=1).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/memory/host_memory.h"
#include "base/memory/block_cache.h"

#define LARGE (BLOCK_CACHE_LEAST + 12345)

static void the_last_one_stays(void **state)
{
    (void)state;
    errno = EDOM;
    char *block = block_cache_take(LARGE);
    assert_non_null(block);
    assert_int_equal(block_cache_bytes(), 0);
    assert_false(host_memory_is_there(block + LARGE - 1));
    memset(block, 1, LARGE);
    char *other = block_cache_take(LARGE);
    assert_true(other && other != block);
    assert_true(block_cache_give_back(block));
    assert_true(block_cache_bytes() >= LARGE);
    assert_true(host_memory_is_there(block + LARGE - 1));
    assert_ptr_equal(block_cache_take(LARGE / 2 + BLOCK_CACHE_LEAST / 2), block);
    assert_int_equal(block_cache_bytes(), 0);
    memset(block, 2, LARGE);
    assert_true(block_cache_give_back(other)); /* the larger of two, or the later one */
    assert_true(block_cache_give_back(block));
    assert_ptr_equal(block_cache_take(LARGE), block);
    assert_true(block_cache_give_back(block));
    assert_int_equal(errno, EDOM);
}

static void others_have_their_own(void **state)
{
    (void)state;
    const int64_t kept = block_cache_bytes();
    assert_true(kept >= LARGE);
    char *larger = block_cache_take(3 * LARGE);
    assert_non_null(larger);
    assert_int_equal(block_cache_bytes(), 0); /* not both */
    larger[3 * LARGE - 1] = 1;
    assert_true(block_cache_give_back(larger));
    char *small = block_cache_take(LARGE); /* a third of it */
    assert_true(small && small != larger);
    assert_int_equal(block_cache_bytes(), 0);
    assert_true(block_cache_give_back(small));
}

static void other_memory_is_none(void **state)
{
    void *memory = malloc(LARGE);
    (void)state;
    assert_null(block_cache_take(BLOCK_CACHE_LEAST - 1));
    assert_null(block_cache_take(INT64_MAX));
    assert_false(block_cache_give_back(NULL));
    assert_false(block_cache_give_back(memory));
    free(memory);
}

static void too_many_have_none(void **state)
{
    enum { MANY = 20 };
    void *block[MANY];
    int count = 0;
    (void)state;
    for (int i = 0; i < MANY; i++)
        count += (block[i] = block_cache_take(LARGE)) != NULL;
    assert_in_range(count, 4, MANY - 1);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(block_cache_give_back(block[i]), block[i] != NULL);
    assert_true(block_cache_bytes() >= LARGE);
}

/* Returns whether a child ends well. */
static bool in_child(bool (*run)(void))
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        forks_child();
        _exit(!run());
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool has_none(void)
{
    char *block;
    bool well = block_cache_bytes() == 0 && (block = block_cache_take(LARGE)) != NULL;
    if (well)
        block[LARGE / 2] = 1;
    return well && block_cache_give_back(block);
}

static bool has_no_memory(void)
{
    const struct rlimit little = {256 << 20, 256 << 20};
    return setrlimit(RLIMIT_AS, &little) == 0 && block_cache_take(4 * LARGE) == NULL &&
           block_cache_take(4 * LARGE) == NULL;
}

static void children_have_none(void **state)
{
    (void)state;
    assert_true(block_cache_bytes() > 0);
    assert_true(in_child(has_none));
    assert_true(in_child(has_no_memory));
    assert_true(block_cache_bytes() > 0);
}

/* The kernel counts the pages of a block that was kept as available, even if they have been written
 * again. */
static void reused_memory_is_not_available(void **state)
{
    const int64_t large = INT64_C(6) * LARGE;
    (void)state;
    char *block = block_cache_take(large);
    assert_non_null(block);
    assert_int_equal(block_cache_reused_bytes(), 0);
    memset(block, 1, (size_t)large);
    assert_true(block_cache_give_back(block));
    const int64_t before = host_memory_available();
    assert_ptr_equal(block_cache_take(large), block);
    memset(block, 1, (size_t)large);
    assert_true(block_cache_reused_bytes() >= large);
    /* Others use memory, too. */
    assert_true(before == INT64_MAX || host_memory_available() < before - large / 2);
    assert_true(block_cache_give_back(block));
    assert_int_equal(block_cache_reused_bytes(), 0);
}

static bool has_limit(void)
{
    const struct rlimit limit = {INT64_C(64) << 30, INT64_C(64) << 30};
    char *block = block_cache_take(LARGE);
    bool well = block && setrlimit(RLIMIT_AS, &limit) == 0;
    return well && block_cache_give_back(block) && block_cache_bytes() == 0;
}

static void nothing_stays_under_a_limit(void **state)
{
    (void)state;
    assert_true(in_child(has_limit));
}

static void goes_back(void **state)
{
    const char *is_long = getenv("TEST_LONG");
    (void)state;
    if (!is_long || strcmp(is_long, "1") != 0)
        return; /* ten seconds */
    assert_true(block_cache_bytes() > 0);
    for (int i = 0; i < 150 && block_cache_bytes() > 0; i++)
        usleep(100000);
    assert_int_equal(block_cache_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_stays),
        cmocka_unit_test(others_have_their_own),
        cmocka_unit_test(other_memory_is_none),
        cmocka_unit_test(too_many_have_none),
        cmocka_unit_test(children_have_none),
        cmocka_unit_test(reused_memory_is_not_available),
        cmocka_unit_test(nothing_stays_under_a_limit),
        cmocka_unit_test(goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
