/*
 * Which operands are kept, and which are looked for: the second sighting keeps, the third looks;
 * what changes often is left alone for longer and longer; the table has room for what is seen
 * often; a fork's child has seen nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/thread/forks.h"
#include "gpu/cache/admission.h"

/* ---- Watches that end: the linker sends calls here ---- */

static uint64_t ended; /* the last watch; 0: none since it was asked for */
static int ends;

void __wrap_write_watch_leave(uint64_t watch);
void __wrap_write_watch_leave(uint64_t watch)
{
    ended = watch ? watch : ended;
    ends += watch != 0;
}

/* Returns whether this watch alone has ended since the last question; 0: whether none has. */
static bool has_ended(uint64_t watch)
{
    const bool alone = ended == watch && ends == (watch != 0);
    ended = 0;
    ends = 0;
    return alone;
}

/* ---- Operands ---- */

static struct accel_span matrix_at(uintptr_t address)
{
    return (struct accel_span){
        .ptr = (void *)address, .rows = 100, .cols = 200, .ld = 101, .dtype = ACCEL_FLOAT64};
}

static int forget(void **state)
{
    (void)state;
    admission_reset();
    has_ended(0);
    return 0;
}

/* Sees it as a call does; `changed`: with other contents than before. */
static enum admission see(const struct accel_span *x, bool changed)
{
    const struct gpu_key key = {{1, 2}};
    const enum admission how = admission_see(x);
    const enum admission then = how == ADMIT_LOOKUP ? admission_looked(x, !changed) : how;
    if (then == ADMIT_INSERT)
        admission_cached(x, &key);
    return how;
}

static void keeps_at_the_second_and_looks_at_the_third(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key key = {{0, 0}};
    (void)state;
    assert_int_equal(see(&x, false), ADMIT_NONE);
    assert_false(admission_expect(&x, &key));
    assert_int_equal(see(&x, false), ADMIT_INSERT);
    assert_true(admission_expect(&x, &key));
    assert_true(key.word[0] == 1 && key.word[1] == 2);
    for (int i = 0; i < 100; i++)
        assert_int_equal(see(&x, false), ADMIT_LOOKUP);
}

static void another_shape_is_another_operand(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct accel_span other[] = {x, x, x, x, x, x};
    (void)state;
    see(&x, false);
    other[0].ptr = (void *)(uintptr_t)8192;
    other[1].rows--;
    other[2].cols--;
    other[3].ld++;
    other[4].dtype = ACCEL_COMPLEX64;
    other[5].triangle = 'L';
    for (int i = 0; i < 6; i++)
        assert_int_equal(see(&other[i], false), ADMIT_NONE);
    assert_int_equal(see(&x, false), ADMIT_INSERT);
}

/* One that was not kept after all, because the call failed. */
static void keeps_until_it_is_kept(void **state)
{
    const struct accel_span x = matrix_at(4096);
    (void)state;
    assert_int_equal(admission_see(&x), ADMIT_NONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(admission_see(&x), ADMIT_INSERT);
}

static int digests_of(const struct accel_span *x, int calls, bool changes)
{
    int digests = 0;
    for (int i = 0; i < calls; i++)
        digests += see(x, changes) != ADMIT_NONE;
    return digests;
}

static void what_always_changes_is_left_alone(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key key;
    (void)state;
    digests_of(&x, 1000, true);
    assert_false(admission_expect(&x, &key));
    assert_int_equal(digests_of(&x, 6500, true), 200); /* two of 65 */
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
        looked += see(&x, i % 3 == 0) == ADMIT_LOOKUP;
    assert_int_equal(looked, 300);
    assert_int_equal(see(&x, true), ADMIT_LOOKUP);
    assert_false(admission_expect(&x, &key)); /* though it was kept at once */
    see(&x, false);
    see(&x, false);
    assert_true(admission_expect(&x, &key));
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
        known += see(&x, false) == ADMIT_INSERT;
    }
    assert_in_range(known, 48, 64);
}

/* ---- Results ---- */

static bool write_result(const struct accel_span *x, uint64_t number)
{
    const struct gpu_key key = {{number, 3}};
    struct gpu_key old;
    admission_write(x, &old);
    const bool digests = admission_want_results();
    if (digests)
        admission_cached_result(x, &key, (struct gpu_tiles){0, 0});
    return digests;
}

static void a_result_is_looked_for_at_once(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key old = {{0, 0}};
    (void)state;
    for (uint64_t i = 1; i < 100; i++) {
        assert_true(write_result(&x, i));
        assert_int_equal(see(&x, i % 4 == 3), ADMIT_LOOKUP);
    }
    write_result(&x, 7);
    assert_true(admission_write(&x, &old));
    assert_true(old.word[0] == 7);
    assert_int_equal(see(&x, false), ADMIT_INSERT); /* not the old one */
}

/* Of what is not known, or has only been seen. */
static void what_was_not_kept_is_not_forgotten(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key old;
    (void)state;
    assert_false(admission_write(&x, &old));
    assert_int_equal(see(&x, false), ADMIT_NONE);
    assert_false(admission_write(&x, &old));
    assert_int_equal(see(&x, false), ADMIT_INSERT);
    assert_true(admission_write(&x, &old));
    assert_false(admission_write(&x, &old));
    assert_true(has_ended(0));
}

/* Who reads it is to digest it as it was digested on its way down. */
static void a_result_has_its_tiles(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct accel_span triangle = x;
    const struct gpu_key key = {{5, 6}};
    struct gpu_key kept = {{0, 0}};
    (void)state;
    triangle.triangle = 'U';
    assert_false(admission_expect_result(&x, &kept));
    admission_cached_result(&x, &key, (struct gpu_tiles){64, 32});
    admission_cached_result(&triangle, &kept, (struct gpu_tiles){16, 16});
    assert_true(admission_tiles(&x).rows == 64 && admission_tiles(&x).cols == 32);
    assert_true(admission_tiles(&triangle).rows == 16);
    assert_true(admission_expect_result(&x, &kept) && kept.word[0] == 5);
    assert_int_equal(see(&x, true), ADMIT_LOOKUP); /* it is brought again, as one chunk */
    assert_true(admission_tiles(&x).rows == 0);
    assert_false(admission_expect_result(&x, &kept));
    admission_write(&triangle, &kept);
    assert_false(admission_expect_result(&triangle, &kept));
    assert_true(admission_tiles(&triangle).rows == 0);
}

static void results_that_nobody_reads_are_not_kept(void **state)
{
    int digested = 0;
    (void)state;
    for (uintptr_t i = 1; i <= 656; i++) {
        const struct accel_span x = matrix_at(i << 21);
        digested += write_result(&x, i);
    }
    assert_int_equal(digested, 26); /* 16, and one of 64 of the others */
    const struct accel_span last = matrix_at((uintptr_t)656 << 21);
    write_result(&last, 1);
    while (!write_result(&last, 2))
        continue;
    assert_int_equal(see(&last, false), ADMIT_LOOKUP);
    assert_true(write_result(&last, 3)); /* one that was read makes up for eight */
}

/* What is found again and again is no result, or is counted once: it makes up for nothing. */
static void what_is_read_again_is_no_news(void **state)
{
    const struct accel_span input = matrix_at(4096), result = matrix_at(8192);
    (void)state;
    see(&input, false);
    see(&input, false);
    assert_true(write_result(&result, 1));
    assert_int_equal(see(&result, false), ADMIT_LOOKUP);
    for (uintptr_t i = 1; i <= 16; i++) {
        const struct accel_span x = matrix_at(i << 21);
        assert_true(write_result(&x, i));
    }
    assert_int_equal(see(&input, false), ADMIT_LOOKUP);
    assert_int_equal(see(&result, false), ADMIT_LOOKUP);
    assert_false(admission_want_results());
}

/* One that is written and read in turn, but whose result is not kept, costs digests on its way
 * up. */
static void what_calls_overwrite_is_left_alone(void **state)
{
    const struct accel_span x = matrix_at(4096);
    struct gpu_key old;
    int kept = 0;
    (void)state;
    for (int i = 0; i < 650; i++) {
        admission_write(&x, &old);
        kept += see(&x, false) == ADMIT_INSERT;
    }
    assert_in_range(kept, 10, 40);
}

/* ---- Watches: of memory that is not there, so that the kernel has none of them ---- */

static struct admission_watch validated_watch(uint64_t number)
{
    return (struct admission_watch){
        .watch = number, .validated = true, .key = {{number, 2}}, .edges = {.first = {{3, 4}}}};
}

static void a_watch_is_given_up_where_writes_are_not_rare(void **state)
{
    const struct accel_span x = matrix_at(4096);
    bool may;
    (void)state;
    see(&x, false);
    assert_true(admission_watch(&x, &may).watch == 0 && may);
    for (uint64_t round = 1; round < 4; round++) { /* a write behind enough reuses */
        const struct admission_watch w = validated_watch(round);
        assert_false(admission_any_validated());
        admission_watched(&x, &w);
        assert_true(admission_any_validated());
        for (int i = 0; i < 11; i++)
            admission_unchanged(&x, round);
        admission_written(&x, round + 1); /* another one */
        assert_true(admission_watch(&x, &may).watch == round && has_ended(0));
        admission_written(&x, round);
        assert_true(has_ended(round));
        assert_true(admission_watch(&x, &may).watch == 0 && may);
    }
    const struct admission_watch w = validated_watch(9);
    admission_watched(&x, &w);
    for (int i = 0; i < 10; i++)
        admission_unchanged(&x, 9);
    admission_written(&x, 9);
    assert_true(admission_watch(&x, &may).watch == 0 && !may);
    assert_false(admission_any_validated());
}

static void a_watch_ends_with_its_contents_or_its_operand(void **state)
{
    const struct accel_span x = matrix_at(4096), y = matrix_at(8192);
    struct admission_watch w = validated_watch(1), other = validated_watch(2);
    bool may;
    (void)state;
    admission_watched(&x, &w); /* of an operand that is not known */
    assert_true(!admission_any_validated() && has_ended(1));
    see(&x, false);
    see(&y, false);
    admission_watched(&x, &w);
    admission_watched(&y, &other);
    assert_true(has_ended(0));
    admission_watched(&x, &other); /* it has one */
    assert_true(admission_watch(&x, &may).watch == 1 && has_ended(2));
    admission_evicted(&w.key);
    assert_true(admission_watch(&x, &may).watch == 0 && may && has_ended(1));
    const struct admission_watch begun = {.watch = 5}; /* and not validated yet */
    const struct gpu_key kept = {{7, 7}};
    admission_cached(&x, &kept);
    admission_watched(&x, &begun);
    admission_evicted(&w.key);
    assert_true(admission_watch(&x, &may).watch == 5);
    admission_evicted(&kept);
    assert_true(admission_watch(&x, &may).watch == 0 && has_ended(5));
    assert_true(admission_watch(&y, &may).watch == 2 && admission_watch(&y, &may).validated);
    for (uintptr_t i = 1; i <= 10000; i++) {
        const struct accel_span more = matrix_at(i << 21);
        see(&more, false);
    }
    assert_true(!admission_any_validated() && has_ended(2));
}

static void a_watch_ends_when_a_call_writes(void **state)
{
    const struct accel_span x = matrix_at(4096);
    const struct admission_watch w = validated_watch(3);
    struct gpu_key old;
    bool may;
    (void)state;
    see(&x, false);
    admission_watched(&x, &w);
    admission_write(&x, &old);
    assert_true(has_ended(3));
    assert_true(admission_watch(&x, &may).watch == 0 && !admission_any_validated());
}

/* What a validated watch tells does not depend on how often it has changed before. */
static void a_validated_watch_ends_a_back_off(void **state)
{
    const struct accel_span x = matrix_at(4096);
    const struct admission_watch w = validated_watch(1);
    struct gpu_key key;
    (void)state;
    digests_of(&x, 100, true);
    admission_cached(&x, &w.key);
    assert_false(admission_expect(&x, &key));
    admission_watched(&x, &w);
    assert_true(admission_expect(&x, &key) && gpu_key_is(&key, &w.key));
    for (int i = 0; i < 10; i++)
        assert_int_equal(admission_see(&x), ADMIT_LOOKUP);
    admission_written(&x, 1);
    assert_false(admission_expect(&x, &key));
}

static void parts_of_what_is_watched_are_found(void **state)
{
    const struct accel_span x = matrix_at(1 << 20);
    const struct admission_watch w = validated_watch(1);
    struct accel_span larger, part = x;
    int64_t row = 0, col = 0;
    (void)state;
    see(&x, false);
    part.ptr = (char *)x.ptr + (3 + 5 * x.ld) * 8;
    part.rows = x.rows - 3;
    part.cols = x.cols - 5;
    assert_true(admission_around(&part, &larger, &row, &col).watch == 0);
    admission_watched(&x, &w);
    assert_true(admission_around(&part, &larger, &row, &col).watch == 1);
    assert_true(row == 3 && col == 5 && larger.ptr == x.ptr && larger.rows == x.rows &&
                larger.cols == x.cols);
    assert_true(admission_around(&x, &larger, &row, &col).watch == 0); /* all of it is no part */
    struct accel_span other[] = {part, part, part, part, part, part};
    other[0].rows++;
    other[1].cols++;
    other[2].ld++;
    other[3].dtype = ACCEL_FLOAT32;
    other[4].ptr = (char *)part.ptr + 4;
    other[5].ptr = (char *)x.ptr - 8;
    for (int i = 0; i < 6; i++)
        assert_true(admission_around(&other[i], &larger, &row, &col).watch == 0);
}

static void a_fork_has_seen_nothing(void **state)
{
    const struct accel_span x = matrix_at(4096);
    (void)state;
    const struct admission_watch w = validated_watch(1);
    see(&x, false);
    admission_watched(&x, &w);
    forks_child();
    assert_false(admission_any_validated());
    assert_int_equal(see(&x, false), ADMIT_NONE);
}

static void memory_that_goes_is_forgotten(void **state)
{
    const struct accel_span x = matrix_at(1 << 20), before = matrix_at((1 << 20) - 4096),
                            behind = matrix_at((1 << 20) + 4096);
    const struct accel_span *const all[] = {&before, &x, &behind};
    const struct admission_watch watch = {.watch = 5, .validated = true, .key = {{1, 2}}};
    struct gpu_key key;
    (void)state;
    for (int i = 0; i < 6; i++)
        see(all[i % 3], false);
    admission_watched(&x, &watch);
    admission_forget((const void *)(uintptr_t)(1 << 20), 4096);
    assert_true(has_ended(5));
    assert_false(admission_any_validated());
    assert_false(admission_expect(&x, &key));
    assert_int_equal(see(&x, false), ADMIT_NONE);
    assert_int_equal(see(&x, false), ADMIT_INSERT);
    assert_true(admission_expect(&before, &key) && admission_expect(&behind, &key));
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
        cmocka_unit_test_setup(a_result_is_looked_for_at_once, forget),
        cmocka_unit_test_setup(what_was_not_kept_is_not_forgotten, forget),
        cmocka_unit_test_setup(a_result_has_its_tiles, forget),
        cmocka_unit_test_setup(results_that_nobody_reads_are_not_kept, forget),
        cmocka_unit_test_setup(what_is_read_again_is_no_news, forget),
        cmocka_unit_test_setup(what_calls_overwrite_is_left_alone, forget),
        cmocka_unit_test_setup(a_watch_is_given_up_where_writes_are_not_rare, forget),
        cmocka_unit_test_setup(a_watch_ends_with_its_contents_or_its_operand, forget),
        cmocka_unit_test_setup(a_watch_ends_when_a_call_writes, forget),
        cmocka_unit_test_setup(a_validated_watch_ends_a_back_off, forget),
        cmocka_unit_test_setup(parts_of_what_is_watched_are_found, forget),
        cmocka_unit_test_setup(memory_that_goes_is_forgotten, forget),
        cmocka_unit_test_setup(a_fork_has_seen_nothing, forget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
