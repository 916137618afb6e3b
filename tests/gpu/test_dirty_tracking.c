/*
 * A matrix whose pages are watched: a write to any of its elements is noticed, at its edges by
 * their contents; what lies beside it in the same pages may be written to. A digest validates
 * nothing if an edge was written to while it was taken.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/cache/dirty_tracking.h"
#include "tests/lib/watches.h"
#include "tests/lib/sanitized.h"

/* Columns are shorter than a page and have gaps between them; neither end is at a page's edge. */
enum { ROWS = 100, COLS = 200, LD = 130, OFFSET = 37, BYTES = 1 << 18 };
static double *memory;
static struct accel_span x;

/* How often libaccel has looked at all open files. */
static atomic_int looks;

int open(const char *path, int flags, ...)
{
    looks += strcmp(path, "/proc/self/fd") == 0;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static double *element(int row, int col)
{
    return (double *)x.ptr + col * LD + row;
}

static int begin(void **state)
{
    (void)state;
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    for (size_t i = 0; i < BYTES / sizeof *memory; i++)
        memory[i] = (double)i;
    x = (struct accel_span){
        .ptr = memory + OFFSET, .rows = ROWS, .cols = COLS, .ld = LD, .dtype = ACCEL_FLOAT64};
    return need_watch(dirty_tracking_begin(&x));
}

static int end(void **state)
{
    (void)state;
    return munmap(memory, BYTES);
}

/* Begins to watch it, and validates the watch. */
static uint64_t validate(struct gpu_edges *edges)
{
    struct dirty_tracking_validation validation;
    const uint64_t watch = dirty_tracking_begin(&x);
    dirty_tracking_validate(&x, &validation);
    assert_true(dirty_tracking_is_validated(&validation));
    *edges = validation.edges;
    assert_true(dirty_tracking_is_unchanged(&x, watch, edges));
    return watch;
}

/* Which takes long where many are open: once to begin, and once to validate. */
static void few_looks_at_open_files(void **state)
{
    struct gpu_edges edges;
    (void)state;
    atomic_store(&looks, 0);
    const uint64_t watch = validate(&edges);
    assert_int_equal(looks, 2);
    assert_true(dirty_tracking_is_unchanged(&x, watch, &edges));
    assert_int_equal(looks, 2);
    write_watch_leave(watch);
}

/* Where something is open that may hold pages, there is one look, before any page is protected,
 * from the second try on. */
static void no_protecting_in_vain(void **state)
{
    const int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
    (void)state;
    assert_true(faults >= 0);
    for (int i = 0; i < 2; i++) {
        atomic_store(&looks, 0);
        assert_true(dirty_tracking_begin(&x) == 0);
        assert_int_equal(looks, 1);
    }
    close(faults);
    const uint64_t watch = dirty_tracking_begin(&x);
    assert_true(watch);
    write_watch_leave(watch);
    atomic_store(&looks, 0);
    write_watch_leave(dirty_tracking_begin(&x));
    assert_int_equal(looks, 1);
}

static void each_element_counts(void **state)
{
    struct gpu_edges edges;
    (void)state;
    for (int i = 0; i < COLS; i++) {
        const uint64_t watch = validate(&edges);
        volatile double *one = element(i == COLS - 1 ? ROWS - 1 : i * 7 % ROWS, i);
        *one += 1;
        assert_false(dirty_tracking_is_unchanged(&x, watch, &edges));
        write_watch_leave(watch);
    }
}

static void edges_are_known_by_their_contents(void **state)
{
    struct gpu_edges edges;
    (void)state;
    const uint64_t watch = validate(&edges);
    for (int i = 0; i < 2; i++) {
        volatile double *one = i ? element(ROWS - 1, COLS - 1) : element(0, 0);
        *one += 1;
        assert_false(dirty_tracking_is_unchanged(&x, watch, &edges));
        *one -= 1;
        assert_true(dirty_tracking_is_unchanged(&x, watch, &edges));
    }
    write_watch_leave(watch);
}

static void neighbours_may_write(void **state)
{
    struct gpu_edges edges;
    (void)state;
    const uint64_t watch = validate(&edges);
    memset(memory, 7, OFFSET * sizeof *memory);
    double *const behind = element(ROWS, COLS - 1);
    memset(behind, 7, (size_t)((char *)memory + BYTES - (char *)behind));
    *(volatile double *)element(ROWS, 0) = 7; /* between two columns, in the first page */
    assert_true(dirty_tracking_is_unchanged(&x, watch, &edges));
    *(volatile double *)element(ROWS, COLS / 2) = 7; /* in a page of its own */
    assert_false(dirty_tracking_is_unchanged(&x, watch, &edges));
    write_watch_leave(watch);
}

static void an_edge_that_is_written_to_meanwhile_validates_nothing(void **state)
{
    (void)state;
    const uint64_t watch = dirty_tracking_begin(&x);
    for (int i = 0; i < 2; i++) {
        struct dirty_tracking_validation validation;
        volatile double *one = i ? element(ROWS - 1, COLS - 1) : element(0, 0);
        dirty_tracking_validate(&x, &validation);
        *one += 1;
        *one -= 1;
        assert_false(dirty_tracking_is_validated(&validation));
    }
    write_watch_leave(watch);
}

/* One end is where a page ends: the other is an edge. */
static void one_edge_counts(void **state)
{
    const int64_t page = 512;
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct dirty_tracking_validation validation;
        x.ptr = memory + (first ? page / 2 : page);
        x.rows = x.ld = 4 * page + (first ? page / 2 : page / 4);
        x.cols = 1;
        dirty_tracking_validate(&x, &validation);
        assert_true(dirty_tracking_is_validated(&validation));
        dirty_tracking_validate(&x, &validation);
        volatile double *one = (double *)x.ptr + (first ? 0 : x.rows - 1);
        *one += 1;
        *one -= 1;
        assert_false(dirty_tracking_is_validated(&validation));
    }
}

/* Of a part, its own elements count, also those at an edge of the whole. */
static void a_part_is_known_by_its_own_pages(void **state)
{
    struct gpu_edges edges;
    struct accel_span middle = x, first = x;
    (void)state;
    middle.ptr = element(5, 50);
    middle.rows = 90;
    middle.cols = 100;
    first.cols = 10;
    const uint64_t watch = validate(&edges);
    *(volatile double *)element(0, 0) += 1;
    assert_true(dirty_tracking_part_is_unchanged(&x, &middle, watch, &edges));
    assert_false(dirty_tracking_part_is_unchanged(&x, &first, watch, &edges));
    *(volatile double *)element(0, 0) -= 1;
    assert_true(dirty_tracking_part_is_unchanged(&x, &first, watch, &edges));
    *(volatile double *)element(50, 149) += 1;
    assert_true(dirty_tracking_part_is_unchanged(&x, &first, watch, &edges));
    assert_false(dirty_tracking_part_is_unchanged(&x, &middle, watch, &edges));
    write_watch_leave(watch);
}

/* realloc() has given the end back: of what is left, the pages are there, and nothing else is
 * read. */
static void memory_behind_a_part_may_be_gone(void **state)
{
    struct gpu_edges edges;
    struct accel_span first = x;
    const size_t rest = BYTES / 2;
    char *end = (char *)memory + rest;
    (void)state;
    first.cols = 10;
    const uint64_t watch = validate(&edges);
    assert_true((char *)element(0, 10) < end && (char *)element(0, COLS - 1) > end);
    assert_int_equal(munmap(end, BYTES - rest), 0);
    assert_true(dirty_tracking_part_is_unchanged(&x, &first, watch, &edges));
    *(volatile double *)element(0, 0) += 1;
    assert_false(dirty_tracking_part_is_unchanged(&x, &first, watch, &edges));
    write_watch_leave(watch);
    assert_true(mmap(end, BYTES - rest, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == end);
}

/* Whether it succeeds or not: so there can be any number of validations, one after the other. */
static void a_validation_ends_its_own_watch(void **state)
{
    const uint64_t watch = dirty_tracking_begin(&x);
    (void)state;
    for (int i = 0; i < 2 * WRITTEN_WATCHES; i++) {
        struct dirty_tracking_validation validation;
        volatile double *one = element(0, 0);
        dirty_tracking_validate(&x, &validation);
        if (i % 2)
            *one += 1;
        assert_int_equal(dirty_tracking_is_validated(&validation), i % 2 == 0);
    }
    write_watch_leave(watch);
}

/* Its pages are whole: there are no edges. */
static void whole_pages(void **state)
{
    struct gpu_edges edges;
    (void)state;
    x = (struct accel_span){
        .ptr = memory, .rows = 512, .cols = 8, .ld = 512, .dtype = ACCEL_FLOAT64};
    const uint64_t watch = validate(&edges);
    memory[512 * 8] = 1;
    assert_true(dirty_tracking_is_unchanged(&x, watch, &edges));
    memory[512 * 8 - 1] = 1;
    assert_false(dirty_tracking_is_unchanged(&x, watch, &edges));
    write_watch_leave(watch);
}

static void less_than_a_page_is_not_watched(void **state)
{
    (void)state;
    x.rows = x.ld = 10;
    x.cols = 10;
    assert_true(dirty_tracking_begin(&x) == 0);
}

/* What malloc(3) has not given out lies behind the matrix, in its last page: libaccel does not
 * write there while it validates. */
static void at_the_end_of_the_heap(void **state)
{
    enum { SMALL = 256, SMALL_BYTES = 1 << 16 };
    static void *small[SMALL];
    struct gpu_edges edges;
    (void)state;
    SKIP_UNDER_ASAN("the heap");
    assert_true(mallopt(M_MMAP_THRESHOLD, 1 << 30));
    for (int i = 0; i < SMALL; i++) /* what is free elsewhere */
        small[i] = malloc(SMALL_BYTES >> i % 3);
    double *last = malloc(BYTES);
    assert_non_null(last);
    for (size_t i = 0; i < BYTES / sizeof *last; i++)
        last[i] = (double)i;
    x.ptr = last;
    x.rows = x.ld = BYTES / sizeof *last;
    x.cols = 1;
    write_watch_leave(validate(&edges));
    free(last);
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(few_looks_at_open_files, begin, end),
        cmocka_unit_test_setup_teardown(no_protecting_in_vain, begin, end),
        cmocka_unit_test_setup_teardown(each_element_counts, begin, end),
        cmocka_unit_test_setup_teardown(edges_are_known_by_their_contents, begin, end),
        cmocka_unit_test_setup_teardown(neighbours_may_write, begin, end),
        cmocka_unit_test_setup_teardown(an_edge_that_is_written_to_meanwhile_validates_nothing,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_validation_ends_its_own_watch, begin, end),
        cmocka_unit_test_setup_teardown(one_edge_counts, begin, end),
        cmocka_unit_test_setup_teardown(a_part_is_known_by_its_own_pages, begin, end),
        cmocka_unit_test_setup_teardown(memory_behind_a_part_may_be_gone, begin, end),
        cmocka_unit_test_setup_teardown(at_the_end_of_the_heap, begin, end),
        cmocka_unit_test_setup_teardown(whole_pages, begin, end),
        cmocka_unit_test_setup_teardown(less_than_a_page_is_not_watched, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
