/*
 * What a client takes of a server's words on how busy its devices are, and which calls are large.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/remote/wire.h"
#include "ops/names.h"
#include "ops/typical.h"

static struct gpu_load read_load(uint32_t wait_us, uint32_t beside, uint32_t slower_percent)
{
    struct wire_load told = {.slower_percent = slower_percent};
    told.call[1].wait_us = wait_us;
    told.call[1].beside = beside;
    return wire_load_of(&told, true);
}

static void assert_load(struct gpu_load load, double wait_ms, double slower)
{
    if (!(load.wait_ms > 0.999 * wait_ms - 1e-9 && load.wait_ms < 1.001 * wait_ms + 1e-9 &&
          load.slower > 0.999 * slower && load.slower < 1.001 * slower))
        fail_msg("%g, %g, and not %g, %g", load.wait_ms, load.slower, wait_ms, slower);
}

static void as_it_is_told(void **state)
{
    (void)state;
    assert_load(read_load(0, 0, 0), 0, 1); /* nothing has been told yet */
    assert_load(read_load(2500, 5, 250), 2.5, 2.5);
    /* Those that have slowed it down have gone. */
    assert_load(read_load(0, 1, 600), 0, 2);
    assert_load(read_load(0, 0, 600), 0, 1);
}

static void for_small_ones_and_for_large_ones(void **state)
{
    struct wire_load told = {.slower_percent = 800};
    (void)state;
    told.call[0].wait_us = 1000;
    told.call[1].beside = 4;
    assert_load(wire_load_of(&told, false), 1, 1);
    assert_load(wire_load_of(&told, true), 0, 5);
}

static void a_server_that_lies_is_bounded(void **state)
{
    (void)state;
    assert_load(read_load(UINT32_MAX, UINT32_MAX, UINT32_MAX), 60000, 8);
    assert_load(read_load(UINT32_MAX, 0, UINT32_MAX), 60000, 1);
    assert_load(read_load(0, UINT32_MAX, 0), 0, 1);
}

static struct accel_call product(const char *symbol, int64_t n, int64_t batch)
{
    struct accel_call call;
    shape_typical(&call, accel_name_routine((uint32_t)accel_name_find(symbol)),
                  (int64_t[ACCEL_DIMENSIONS]){n, n, n, n});
    call.batch = batch;
    for (int i = 0; i < ACCEL_SPANS && batch > 1; i++)
        call.span[i].stride = n * n;
    return call;
}

static void from_so_many_bytes_on_a_call_is_large(void **state)
{
    const struct accel_call small = product("dgemm_", 209, 1), large = product("dgemm_", 210, 1),
                            few = product("dgemm_batch_strided_", 20, 109),
                            many = product("dgemm_batch_strided_", 20, 110);
    (void)state;
    assert_false(wire_is_large(&small)); /* 3 * 8 * 209 * 209 = 1048344 */
    assert_true(wire_is_large(&large));
    assert_false(wire_is_large(&few));
    assert_true(wire_is_large(&many));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_is_told),
        cmocka_unit_test(for_small_ones_and_for_large_ones),
        cmocka_unit_test(a_server_that_lies_is_bounded),
        cmocka_unit_test(from_so_many_bytes_on_a_call_is_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
