/*
 * Prefetch: a matrix goes to the device once the calls on the CPU have missed as much time as its
 * upload costs, if nobody has written to the matrix since its watch began. After a write, calls
 * must miss eight times as much. The upload validates the matrix's watch, unless somebody writes to
 * an edge of the matrix during the upload.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "gpu/cache/prefetch.h"
#include "gpu/cache/admission.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"
#include "tests/lib/watches.h"

/* Neither end is at a page's edge. */
enum { N = 512, OFFSET = 37, BYTES = N * N * 8 + 16384 };
static double *memory;
static struct accel_call call;

static struct accel_call by_vector(const char *name, double *matrix, int64_t n)
{
    struct accel_call made;
    shape_of_order(&made, routine(name), n);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (made.span[i].rows > 0)
            made.span[i].ptr = i == ACCEL_a ? (void *)matrix : (void *)memory;
    return made;
}

static int begin(void **state)
{
    (void)state;
    admission_reset();
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    memset(memory, 1, BYTES);
    call = by_vector("dgemv", memory + OFFSET, N);
    return need_watch(dirty_tracking_begin(&call.span[ACCEL_a]));
}

static int end(void **state)
{
    (void)state;
    return munmap(memory, BYTES);
}

/* Returns how many calls run on the CPU until one is to bring it; `most` if none is. */
static int calls_until(double gain_ms, double upload_ms, int most)
{
    int calls = 0;
    while (calls < most && !gpu_is_worth_prefetching(&call, gain_ms, upload_ms))
        calls++;
    return calls;
}

static bool is_watched(void)
{
    bool may;
    return admission_watch(&call.span[ACCEL_a], &may).watch != 0;
}

static void write_to_it(void)
{
    ((volatile double *)call.span[ACCEL_a].ptr)[N * N / 2] += 1;
}

static void the_third_call_where_one_misses_enough(void **state)
{
    (void)state;
    assert_false(gpu_is_worth_prefetching(&call, 10, 5));
    assert_false(is_watched());
    assert_false(gpu_is_worth_prefetching(&call, 10, 5));
    assert_true(is_watched());
    assert_true(gpu_is_worth_prefetching(&call, 10, 5));
    assert_true(gpu_is_worth_prefetching(&call, 10, 5)); /* it was not brought */
    admission_prefetch(&call.span[ACCEL_a]);
    assert_false(gpu_is_worth_prefetching(&call, 4, 5));
}

static void what_was_missed_adds_up(void **state)
{
    (void)state;
    /* The first, the watch's, and four that miss 4 ms; the next one has missed 5 */
    assert_int_equal(calls_until(1, 4.5, 100), 6);
    admission_prefetch(&call.span[ACCEL_a]);
    assert_int_equal(calls_until(1, 4.5, 100), 4);
}

/* 0.1 ms, and 2 MB at 25 GB/s. */
static void a_watch_must_be_worth_its_cost(void **state)
{
    (void)state;
    for (int i = 0; i < 19; i++) {
        assert_false(gpu_is_worth_prefetching(&call, 0.01, 0.05));
        assert_false(is_watched());
    }
    assert_false(gpu_is_worth_prefetching(&call, 0.01, 0.05));
    assert_true(is_watched());
}

static void what_changes_is_tried_more_and_more_rarely(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        int before = 0;
        while (!is_watched()) {
            assert_false(gpu_is_worth_prefetching(&call, 0.1, 1));
            before++;
        }
        write_to_it();
        for (int k = 0; k < 11; k++)
            assert_false(gpu_is_worth_prefetching(&call, 0.1, 1));
        if (i == 0)
            assert_in_range(before, 2, 4);
        if (i == 1)
            assert_in_range(before, 12, 24);
        if (i == 2)
            assert_in_range(before, 100, 180);
    }
}

static void what_has_stayed_for_long_is_tried_again_soon(void **state)
{
    bool may;
    (void)state;
    calls_until(10, 5, 100);
    const struct accel_span *a = &call.span[ACCEL_a];
    for (int i = 0; i < 12; i++)
        admission_unchanged(a, admission_watch(a, &may).watch);
    admission_prefetch(a);
    write_to_it();
    /* One that sees it, and one that begins a watch */
    assert_int_equal(calls_until(10, 5, 100), 2);
}

static void the_largest_input_of_what_may_stay(void **state)
{
    struct accel_call product;
    (void)state;
    assert_int_equal(gpu_operand_to_prefetch(&call), ACCEL_a);
    const struct accel_call update = by_vector("dger", memory, N),
                            small = by_vector("dgemv", memory, 300);
    assert_int_equal(gpu_operand_to_prefetch(&update), -1);
    assert_int_equal(gpu_operand_to_prefetch(&small), -1);
    assert_false(gpu_is_worth_prefetching(&small, 10, 5));
    struct accel_call other = call;
    other.span[ACCEL_a].place = ACCEL_MANAGED;
    assert_int_equal(gpu_operand_to_prefetch(&other), -1);
    other = call;
    other.blas.scalar[ACCEL_alpha].re = 0;
    assert_int_equal(gpu_operand_to_prefetch(&other), -1);
    product = by_vector("dgemm", memory, N);
    product.span[ACCEL_b].cols = 2 * N;
    assert_int_equal(gpu_operand_to_prefetch(&product), ACCEL_b);
    product.batch = 2;
    assert_int_equal(gpu_operand_to_prefetch(&product), -1);
}

static void what_goes_up_is_tied_to_the_watch(void **state)
{
    const struct accel_span *a = &call.span[ACCEL_a];
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct cached_operand r = {.part = *a, .watch = i == 2 ? 0 : dirty_tracking_begin(a)};
        struct prefetch prefetch = prefetch_begin(&r);
        if (i == 1)
            *(volatile double *)a->ptr += 1;
        prefetch_end(&prefetch, &r);
        assert_true(r.validated == (i == 0));
        if (i == 0)
            assert_true(dirty_tracking_is_unchanged(a, r.watch, &r.edges));
        write_to_it();
        if (i == 0)
            assert_false(dirty_tracking_is_unchanged(a, r.watch, &r.edges));
        write_watch_leave(r.watch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_third_call_where_one_misses_enough, begin, end),
        cmocka_unit_test_setup_teardown(what_was_missed_adds_up, begin, end),
        cmocka_unit_test_setup_teardown(a_watch_must_be_worth_its_cost, begin, end),
        cmocka_unit_test_setup_teardown(what_changes_is_tried_more_and_more_rarely, begin, end),
        cmocka_unit_test_setup_teardown(what_has_stayed_for_long_is_tried_again_soon, begin, end),
        cmocka_unit_test_setup_teardown(the_largest_input_of_what_may_stay, begin, end),
        cmocka_unit_test_setup_teardown(what_goes_up_is_tied_to_the_watch, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
