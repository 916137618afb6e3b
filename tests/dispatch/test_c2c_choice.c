/* Operands that kernels read in host memory: the bytes and the time of a choice, against a plain
 * computation. */
#include "tests/lib/decide_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/c2c.h"

static struct accel_call products(const char *name, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    struct accel_call call = product(name, m, n, k);
    call.batch = batch;
    for (int i = 0; i < 3; i++) {
        call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40);
        call.span[i].stride = call.span[i].ld * call.span[i].cols;
    }
    return call;
}

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-12 * fabs(y);
}

static void batches(void **state)
{
    static const char *const names[] = {"sgemm_batch_strided", "dgemm_batch_strided",
                                        "zgemm_batch_strided"};
    (void)state;
    for (int type = 0; type < 3; type++)
        for (int64_t batch = 1; batch < 6; batch++)
            for (int shared = 0; shared < 4; shared++) {
                struct accel_call call = products(names[type], 300, 700, 500, batch);
                struct accel_machine m = machine(DEVICE_READY);
                const double size = (double)accel_dtype_size(call.routine->dtype);
                m.place_gbps = 100;
                m.up_gbps = 10;
                for (int i = 0; i < 2; i++)
                    if (shared & 1 << i)
                        call.span[i].stride = 0;
                /* A is read for each 128 columns of the result, B for each 128 rows. */
                const double bytes_a = 300 * 500 * size, bytes_b = 500 * 700 * size,
                             copies_a = shared & 1 ? 1 : (double)batch,
                             copies_b = shared & 2 ? 1 : (double)batch,
                             ms_a = bytes_a * (double)batch * (700.0 / 128) / 100e6,
                             ms_b = bytes_b * (double)batch * (300.0 / 128) / 100e6;
                const bool a = ms_a < bytes_a * copies_a / 10e6,
                           b = ms_b < bytes_b * copies_b / 10e6;
                struct c2c_choice c = c2c_choose(&call, &m, ACCEL_C2C_AUTO);
                assert_int_equal(c.placed, (a ? 1u << ACCEL_a : 0) | (b ? 1u << ACCEL_b : 0));
                assert_true(
                    near(c.bytes, (a ? bytes_a * copies_a : 0) + (b ? bytes_b * copies_b : 0)));
                assert_true(near(c.ms, (a ? ms_a : 0) + (b ? ms_b : 0)));
                c = c2c_choose(&call, &m, ACCEL_C2C_PLACE);
                assert_int_equal(c.placed, 1u << ACCEL_a | 1u << ACCEL_b);
                assert_true(near(c.bytes, bytes_a * copies_a + bytes_b * copies_b));
                assert_true(near(c.ms, ms_a + ms_b));
                /* What moves there is read once at the host's rate. */
                c = c2c_choose(&call, &m, ACCEL_C2C_MIGRATE);
                assert_true(near(c.ms, (bytes_a + bytes_b) * (double)batch / 100e6));
                m.one_memory = true;
                c = c2c_choose(&call, &m, ACCEL_C2C_AUTO);
                assert_int_equal(c.placed, 1u << ACCEL_a | 1u << ACCEL_b);
                assert_true(c.ms == 0);
            }
}

/* Few uses of each element are one reading. */
static void few_uses(void **state)
{
    struct accel_call call = products("dgemm", 300, 5, 500, 1);
    struct accel_machine m = machine(DEVICE_READY);
    (void)state;
    m.place_gbps = 100;
    const struct c2c_choice c = c2c_choose(&call, &m, ACCEL_C2C_PLACE);
    assert_true(near(c.ms, (8.0 * 300 * 500 + 8.0 * 500 * 5 * 300 / 128) / 100e6));
}

static unsigned placed(const struct accel_call *call, const struct accel_machine *m,
                       enum accel_c2c policy)
{
    return c2c_choose(call, m, policy).placed;
}

static void what_may_be_placed(void **state)
{
    enum { A = 1 << ACCEL_a, B = 1 << ACCEL_b };
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = products("dgemm", 300, 200, 100, 1);
    (void)state;
    m.place_gbps = 100;
    m.up_gbps = 10;
    assert_int_equal(placed(&call, &m, ACCEL_C2C_PLACE), A | B);
    assert_int_equal(placed(&call, &m, ACCEL_C2C_COPY), 0);
    m.caches = true; /* cached copies pay again */
    assert_int_equal(placed(&call, &m, ACCEL_C2C_AUTO), 0);
    assert_int_equal(placed(&call, &m, ACCEL_C2C_PLACE), A | B);
    m.caches = false;
    m.cached.operands = A;
    assert_int_equal(placed(&call, &m, ACCEL_C2C_AUTO), B);
    assert_int_equal(placed(&call, &m, ACCEL_C2C_PLACE), A | B);
    m.cached.operands = 0;
    m.place_gbps = 0;
    assert_int_equal(placed(&call, &m, ACCEL_C2C_PLACE), 0);
    m.place_gbps = 100;
#define WITHOUT_A(change)                                                                          \
    do {                                                                                           \
        struct accel_call before = call;                                                           \
        change;                                                                                    \
        assert_int_equal(placed(&call, &m, ACCEL_C2C_PLACE), B);                                   \
        call = before;                                                                             \
    } while (0)
    WITHOUT_A(call.span[ACCEL_a].place = ACCEL_DEVICE);
    WITHOUT_A(call.span[ACCEL_a].place = ACCEL_MANAGED);
    WITHOUT_A(call.span[ACCEL_a].access = ACCEL_READWRITE);
    WITHOUT_A(call.span[ACCEL_a].ptr = (void *)((uintptr_t)call.span[ACCEL_a].ptr + 4));
    WITHOUT_A(call.span[ACCEL_a].ld = (int64_t)INT32_MAX + 1);
    WITHOUT_A(call.span[ACCEL_a].ptr = NULL);
    call.span[ACCEL_a].ld = INT32_MAX;
    assert_int_equal(placed(&call, &m, ACCEL_C2C_PLACE), A | B);
}

static void alignment(void **state)
{
    char *const base = (char *)((uintptr_t)1 << 40);
    void *pointers[] = {base, base + 8, base + 12};
    struct accel_span x = {.ptr = base, .dtype = ACCEL_FLOAT64};
    (void)state;
    assert_true(c2c_is_aligned(&x, 9));
    x.ptr = base + 4;
    assert_false(c2c_is_aligned(&x, 9));
    x.dtype = ACCEL_FLOAT32;
    assert_true(c2c_is_aligned(&x, 9));
    x.dtype = ACCEL_FLOAT64;
    x.array = pointers;
    assert_true(c2c_is_aligned(&x, 2));
    assert_false(c2c_is_aligned(&x, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches),
        cmocka_unit_test(few_uses),
        cmocka_unit_test(what_may_be_placed),
        cmocka_unit_test(alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
