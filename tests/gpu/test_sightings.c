/*
 * Which operands are kept, and which are looked for: the second sighting keeps, the third looks; what changes often is left alone for
 * longer and longer; the table has room for what is seen often; a fork's child has seen nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/forks.h"
#include "gpu/sightings.h"

static struct accel_span matrix_at(uintptr_t address)
{
    return (struct accel_span){
        .ptr = (void *)address, .rows = 100, .cols = 200, .ld = 101, .dtype = ACCEL_FLOAT64};
}

static int forget(void **state)
{
    (void)state;
    forks_child();
    return 0;
}

/* Sees it as a call does; `changed`: with other contents than before. */
static enum sighting see(const struct accel_span *x, bool changed)
{
    const struct gpu_key key = {{1, 2}};
    const enum sighting how = sightings_see(x);
    const enum sighting then = how == SIGHTING_LOOK ? sightings_looked(x, !changed) : how;
    if (then == SIGHTING_KEEP)
        sightings_kept(x, &key);
    return how;
}

static void keeps_at_the_second_and_looks_at_the_third(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key key = {{0, 0}};
    (void)state;
    assert_int_equal(see(&x, false), SIGHTING_PLAIN);
    assert_false(sightings_expect(&x, &key));
    assert_int_equal(see(&x, false), SIGHTING_KEEP);
    assert_true(sightings_expect(&x, &key));
    assert_true(key.word[0] == 1 && key.word[1] == 2);
    for (int i = 0; i < 100; i++)
        assert_int_equal(see(&x, false), SIGHTING_LOOK);
}

static void another_shape_is_another_operand(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct accel_span other[] = {x, x, x, x, x};
    (void)state;
    see(&x, false);
    other[0].ptr = (void *)(uintptr_t)8192;
    other[1].rows--;
    other[2].cols--;
    other[3].ld++;
    other[4].dtype = ACCEL_COMPLEX64;
    for (int i = 0; i < 5; i++)
        assert_int_equal(see(&other[i], false), SIGHTING_PLAIN);
    assert_int_equal(see(&x, false), SIGHTING_KEEP);
}

/* One that was not kept after all, because the call failed. */
static void keeps_until_it_is_kept(void **state)
{
    const struct accel_span x = matrix_at(4096);
    (void)state;
    assert_int_equal(sightings_see(&x), SIGHTING_PLAIN);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sightings_see(&x), SIGHTING_KEEP);
}

static int digests_of(const struct accel_span *x, int calls, bool changes)
{
    int digests = 0;
    for (int i = 0; i < calls; i++)
        digests += see(x, changes) != SIGHTING_PLAIN;
    return digests;
}

static void what_always_changes_is_left_alone(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key key;
    (void)state;
    digests_of(&x, 1000, true);
    assert_false(sightings_expect(&x, &key));
    assert_in_range(digests_of(&x, 650, true), 10, 30); /* two of 65 */
}

static void what_changes_now_and_then_is_looked_for(void **state)
{
    const struct accel_span x = matrix_at(4096);
    int looked = 0;
    struct gpu_key key;
    (void)state;
    see(&x, false);
    see(&x, false);
    for (int i = 0; i < 300; i++)
        looked += see(&x, i % 3 == 0) == SIGHTING_LOOK;
    assert_int_equal(looked, 300);
    assert_int_equal(see(&x, true), SIGHTING_LOOK);
    assert_false(sightings_expect(&x, &key)); /* though it was kept at once */
    see(&x, false);
    see(&x, false);
    assert_true(sightings_expect(&x, &key));
}

static void what_stays_is_found_again(void **state)
{
    const struct accel_span x = matrix_at(4096);
    (void)state;
    digests_of(&x, 1000, true);
    digests_of(&x, 100, false);
    assert_int_equal(digests_of(&x, 100, false), 100);
}

static void the_latest_have_room(void **state)
{
    (void)state;
    for (uintptr_t i = 1; i <= 10000; i++) {
        const struct accel_span x = matrix_at(i << 21);
        see(&x, false);
    }
    int known = 0;
    for (uintptr_t i = 10000 - 63; i <= 10000; i++) {
        const struct accel_span x = matrix_at(i << 21);
        known += see(&x, false) == SIGHTING_KEEP;
    }
    assert_in_range(known, 48, 64);
}

static void a_fork_has_seen_nothing(void **state)
{
    const struct accel_span x = matrix_at(4096);
    (void)state;
    see(&x, false);
    forks_child();
    assert_int_equal(see(&x, false), SIGHTING_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keeps_at_the_second_and_looks_at_the_third, forget),
        cmocka_unit_test_setup(another_shape_is_another_operand, forget),
        cmocka_unit_test_setup(keeps_until_it_is_kept, forget),
        cmocka_unit_test_setup(what_always_changes_is_left_alone, forget),
        cmocka_unit_test_setup(what_changes_now_and_then_is_looked_for, forget),
        cmocka_unit_test_setup(what_stays_is_found_again, forget),
        cmocka_unit_test_setup(the_latest_have_room, forget),
        cmocka_unit_test_setup(a_fork_has_seen_nothing, forget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
