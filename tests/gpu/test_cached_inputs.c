/*
 * Operands of Level 3 that stay on the device: the third call finds them there, if they have not
 * changed; a result is found at once; what is said of them before a call. Results are those of
 * plain loops, to the last bit.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/thread/copy_pool.h"
#include "tests/lib/level3.h"

/* Each test has a shape of its own: what has been seen at an address is not forgotten. A has
 * more than a megabyte, B and C less. */
enum { ROWS = 400, THIN = 20 };

static void keep_all(struct level3 *l)
{
    l->host.caches = l->host.digests = true;
}

static int64_t bytes_of(const struct level3 *l, int operand)
{
    return accel_bytes(&l->call.span[operand]);
}

/* Before anything is measured: no more than the processors could. */
static void a_rate_is_nominal_at_first(void **state)
{
    (void)state;
    assert_true(gpu_digest_gbps() > 0 && gpu_digest_gbps() <= 12.0 * (1 + copy_pool_size()));
    assert_true(gpu_scan_gbps() > gpu_digest_gbps());
}

static void a_factor_is_found_if_it_has_not_changed(void **state)
{
    struct level3 l;
    (void)state;
    level3_make(&l, "dgemm_", ROWS, THIN, ROWS + 4);
    level3_fill(&l);
    keep_all(&l);
    const int64_t a = bytes_of(&l, ACCEL_a),
                  all = a + bytes_of(&l, ACCEL_b) + bytes_of(&l, ACCEL_c);
    for (int i = 0; i < 8; i++) {
        const bool is_there = i >= 2 && i != 5;
        const struct gpu_cached cached = gpu_cached(&device->common, &l.call);
        if (i < 6) /* what has changed of late is not expected to be there */
            assert_int_equal(cached.operands, i >= 2 ? 1u << ACCEL_a : 0);
        assert_true(cached.digested_bytes == (cached.operands ? a : 0) &&
                    cached.watched_bytes == 0);
        assert_int_equal(cached.beside_bytes, 0);
        if (i == 5)
            set(&l.call.span[ACCEL_a], ROWS - 1, ROWS + 3, 5);
        level3_succeeds(&l);
        assert_int_equal(l.host.cached_bytes, is_there ? a : 0);
        assert_int_equal(l.host.up_bytes, is_there ? all - a : all);
        assert_int_equal(l.host.down_bytes, bytes_of(&l, ACCEL_c));
    }
    l.host.caches = l.host.digests = false;
    level3_succeeds(&l);
    assert_int_equal(l.host.cached_bytes, 0);
    level3_end(&l);
}

/* A and B are the same matrix: it is there once. */
static void a_matrix_times_itself(void **state)
{
    struct level3 l;
    (void)state;
    level3_make(&l, "dgemm_", ROWS - 30, ROWS - 30, ROWS - 30);
    level3_fill(&l);
    keep_all(&l);
    void *const other = l.call.span[ACCEL_b].ptr;
    l.call.span[ACCEL_b].ptr = l.call.span[ACCEL_a].ptr;
    const int64_t a = bytes_of(&l, ACCEL_a);
    assert_true(a > GPU_LEAST_CACHED_BYTES);
    for (int i = 0; i < 4; i++) {
        level3_succeeds(&l);
        if (i >= 2)
            assert_true(l.host.up_bytes == a && l.host.cached_bytes == 2 * a); /* C goes up */
    }
    l.call.span[ACCEL_b].ptr = other;
    level3_end(&l);
}

/* Of a symmetric or triangular matrix, its triangle stays; beside it may change what will. */
static void a_triangle_is_known_by_itself(void **state)
{
    static const char *const names[] = {"dsymm_", "dtrmm_", "dtrsm_"};
    (void)state;
    for (int which = 0; which < 3; which++)
        for (int upper = 0; upper < 2; upper++) {
            struct level3 l;
            level3_make(&l, names[which], ROWS + 8 * which + 4 * upper, THIN, 0);
            l.call.blas.flag[ACCEL_uplo] = upper ? 'U' : 'L';
            level3_fill(&l);
            keep_all(&l);
            const struct accel_span *a = &l.call.span[ACCEL_a];
            for (int i = 0; i < 4; i++) {
                set(a, upper ? 9 : 3, upper ? 3 : 9, i);
                level3_succeeds(&l);
                assert_int_equal(l.host.cached_bytes, i >= 2 ? bytes_of(&l, ACCEL_a) : 0);
            }
            const struct gpu_cached cached = gpu_cached(&device->common, &l.call);
            assert_int_equal(cached.operands, 1u << ACCEL_a);
            assert_int_equal(cached.digested_bytes, bytes_of(&l, ACCEL_a));
            assert_int_equal(cached.beside_bytes, a->rows * (a->rows - 1) / 2 * 8);
            set(a, upper ? 3 : 9, upper ? 9 : 3, get(a, upper ? 3 : 9, upper ? 9 : 3) + 1);
            level3_succeeds(&l);
            assert_int_equal(l.host.cached_bytes, 0);
            level3_end(&l);
        }
}

/* The result of one call is the first factor of the next. */
static void a_result_is_found_at_once(void **state)
{
    static const char *const names[] = {"dgemm_", "dsyrk_", "dtrmm_"};
    (void)state;
    for (int which = 0; which < 3; which++)
        for (int changes = 0; changes < 2; changes++) {
            struct level3 first, next;
            const int64_t order = ROWS + 40 + 8 * which + 4 * changes;
            level3_make(&first, names[which], order, order, 5);
            level3_fill(&first);
            keep_all(&first);
            level3_succeeds(&first);
            const struct accel_span *c =
                &first.call.span[first.call.span[ACCEL_c].ptr ? ACCEL_c : ACCEL_b];
            level3_make(&next, which == 1 ? "dsymm_" : "dgemm_", order, THIN, order);
            level3_fill(&next);
            keep_all(&next);
            struct accel_span *a = &next.call.span[ACCEL_a], own = *a;
            a->ptr = c->ptr;
            a->ld = c->ld;
            if (changes)
                set(a, order - 1, 7, get(a, order - 1, 7) + 1);
            level3_succeeds(&next);
            assert_int_equal(next.host.cached_bytes, changes ? 0 : accel_bytes(a));
            *a = own;
            level3_end(&first);
            level3_end(&next);
        }
}

int main(void)
{
    setenv("TESTGPU_DELAY_US", "10", 0); /* the library, which is not loaded yet, reads it */
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(a_rate_is_nominal_at_first), TEST(a_factor_is_found_if_it_has_not_changed),
        TEST(a_matrix_times_itself),      TEST(a_triangle_is_known_by_itself),
        TEST(a_result_is_found_at_once),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
