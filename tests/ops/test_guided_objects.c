/* Where the objects of guided libraries compute (ops/places.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ops/places.h"

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);

static bool is_short;
static int held; /* allocations that nobody has freed */

void *__wrap_malloc(size_t size)
{
    void *memory = is_short ? NULL : __real_malloc(size);
    held += memory != NULL;
    return memory;
}

void __wrap_free(void *memory)
{
    held -= memory != NULL;
    __real_free(memory);
}

enum { OBJECTS = 4 };
static const char object[OBJECTS];

static int set_up(void **state)
{
    (void)state;
    held = 0;
    return 0;
}

static int forget_all(void **state)
{
    (void)state;
    for (int i = 0; i < OBJECTS; i++)
        place_remove(&object[i]);
    return 0;
}

/* Compared with a plain array, in random order. */
static void as_an_array(void **state)
{
    enum place expected[OBJECTS] = {PLACE_UNKNOWN};
    unsigned random = 1;
    (void)state;
    for (int round = 0; round < 5000; round++) {
        random = random * 1664525 + 1013904223;
        const int i = random >> 8 & 3, what = random >> 10 & 3;
        const enum place place = (enum place)(PLACE_CHOSEN + (random >> 12) % PLACE_ASIDE);
        if (what == 0) {
            place_add(&object[i], place);
            expected[i] = place;
        } else if (what == 1) {
            place_remove(&object[i]);
            expected[i] = PLACE_UNKNOWN;
        } else {
            place_put(&object[i], place);
            expected[i] = expected[i] == PLACE_UNKNOWN ? PLACE_UNKNOWN : place;
        }
        int known = 0;
        for (int k = 0; k < OBJECTS; k++) {
            assert_int_equal(place_of(&object[k]), expected[k]);
            known += expected[k] != PLACE_UNKNOWN;
        }
        assert_int_equal(held, known); /* no more memory than they take */
    }
}

/* The object that was there has gone, too. */
static void memory_that_is_short(void **state)
{
    (void)state;
    place_add(&object[0], PLACE_OPEN);
    place_add(&object[1], PLACE_LEFT);
    is_short = true;
    place_add(&object[0], PLACE_ON_GPU);
    is_short = false;
    assert_int_equal(place_of(&object[0]), PLACE_UNKNOWN);
    assert_int_equal(place_of(&object[1]), PLACE_LEFT);
    assert_int_equal(held, 1);
}

static bool says(void *context)
{
    const bool *answer = context;
    return *answer;
}

static bool must_not_be_asked(void *context)
{
    (void)context;
    fail();
    return true;
}

static void moves(void **state)
{
    bool answer = false;
    (void)state;
    place_add(&object[0], PLACE_OPEN);
    place_add(&object[1], PLACE_OPEN);
    assert_false(place_move(&object[0], PLACE_LEFT, PLACE_ON_GPU, must_not_be_asked, NULL));
    assert_false(place_move(&object[2], PLACE_UNKNOWN, PLACE_ON_GPU, must_not_be_asked, NULL));
    assert_false(place_move(&object[0], PLACE_OPEN, PLACE_ON_GPU, says, &answer));
    assert_int_equal(place_of(&object[0]), PLACE_OPEN);
    answer = true;
    assert_true(place_move(&object[0], PLACE_OPEN, PLACE_ON_GPU, says, &answer));
    assert_int_equal(place_of(&object[0]), PLACE_ON_GPU);
    assert_int_equal(place_of(&object[1]), PLACE_OPEN);
    assert_int_equal(place_of(&object[2]), PLACE_UNKNOWN);
}

#define OF_OBJECTS(test) cmocka_unit_test_setup_teardown(test, set_up, forget_all)

int main(void)
{
    const struct CMUnitTest tests[] = {OF_OBJECTS(as_an_array), OF_OBJECTS(memory_that_is_short),
                                       OF_OBJECTS(moves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
