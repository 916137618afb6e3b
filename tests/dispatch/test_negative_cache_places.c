/* Places whose matrices the GPU gives back: how long each stays on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/negative_cache.h"

/* Returns how many calls in a row must succeed on the CPU before the GPU has the next one. */
static int successes_wanted(uint64_t place)
{
    int count = 0;
    while (negative_cache_holds(place) && count < 1000) {
        negative_cache_note_cpu(place, true);
        count++;
    }
    return count;
}

static void twice_in_a_row(void **state)
{
    const uint64_t place = 11, other = 12;
    (void)state;
    negative_cache_note_gpu(place, false);
    assert_false(negative_cache_holds(place));
    negative_cache_note_gpu(place, true);
    negative_cache_note_gpu(place, false);
    assert_false(negative_cache_holds(place));
    negative_cache_note_gpu(place, false);
    assert_true(negative_cache_holds(place));
    assert_false(negative_cache_holds(other));
    assert_int_equal(successes_wanted(place), 2);
}

static void a_failure_between_begins_anew(void **state)
{
    const uint64_t place = 21;
    (void)state;
    negative_cache_note_gpu(place, false);
    negative_cache_note_gpu(place, false);
    negative_cache_note_cpu(place, true);
    negative_cache_note_cpu(place, false);
    assert_int_equal(successes_wanted(place), 2);
}

static void twice_as_many_each_time(void **state)
{
    static const int wanted[] = {2, 4, 8, 16, 32, 64, 64, 64};
    const uint64_t place = 31;
    (void)state;
    negative_cache_note_gpu(place, false);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        negative_cache_note_gpu(place, false);
        assert_int_equal(successes_wanted(place), wanted[i]);
    }
    negative_cache_note_gpu(place, true);
    negative_cache_note_gpu(place, false);
    assert_false(negative_cache_holds(place));
    negative_cache_note_gpu(place, false);
    assert_int_equal(successes_wanted(place), 2);
}

/* Key 0 is of calls whose past does not matter; of more places than fit, some are never held. */
static void no_place(void **state)
{
    int held = 0;
    (void)state;
    for (int i = 0; i < 4; i++)
        negative_cache_note_gpu(0, false);
    assert_false(negative_cache_holds(0));
    for (uint64_t place = 1000; place < 3000; place++) {
        negative_cache_note_gpu(place, false);
        negative_cache_note_gpu(place, false);
        held += negative_cache_holds(place);
    }
    assert_true(held > 200 && held < 1000);
    assert_false(negative_cache_holds(31));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_in_a_row),
        cmocka_unit_test(a_failure_between_begins_anew),
        cmocka_unit_test(twice_as_many_each_time),
        cmocka_unit_test(no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
