/* Which calls are too small for a decision: small.h against its own words. */
#include "tests/lib/decide_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/cost/model.h"
#include "dispatch/small.h"
#include "ops/op.h"

static void gate(void **state)
{
    const struct model_rates cpu = model_cpu_rates(1);
    const int64_t n = (int64_t)small_gate();
    (void)state;
    /* Products of complex matrices of up to twice that order; the GPU computes them at once, and
     * copies four matrices. */
    for (int64_t order = n; order <= 2 * n; order *= 2) {
        const double size = (double)order, bytes = 16 * size * size;
        const double cpu_ms = 8 * size * size * size / cpu.gflops[ACCEL_COMPLEX128] * 1e-6;
        const double gpu_ms = MODEL_LAUNCH_MS + 4 * bytes / MODEL_COPY_GBPS * 1e-6;
        assert_int_equal(cpu_ms >= gpu_ms, order == 2 * n);
    }
    assert_true(small_is_size(0) && small_is_size(n - 1));
    assert_false(small_is_size(n) || small_is_size(-1) || small_is_size(INT64_MIN));
}

static void sizes(void **state)
{
    const int64_t n = (int64_t)small_gate();
    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct accel_call call =
            product("dgemm", n - (i & 1 ? 0 : 1), n - (i & 2 ? 0 : 1), n - (i & 4 ? 0 : 1));
        assert_int_equal(small_is(&call), i == 0);
    }
}

static void trifles(void **state)
{
    const double most = MODEL_LAUNCH_MS / 2 * 1e6;
    int small = 0, large = 0;
    (void)state;
    for (int64_t m = 0; m < 3000; m += m < 40 ? 1 : 97)
        for (int64_t k = 0; k < 12; k++) {
            struct accel_call call = product("dgemm", m, 4, k);
            /* Operations of a product, at least none; and 8 bytes for each element. */
            const double sum = accel_flops(&call) + 8.0 * (double)(m * k + k * 4 + m * 4);
            assert_int_equal(small_is_negligible(&call), sum < most);
            small += sum < most;
            large += sum >= most;
            call.batch = 2;
            assert_false(small_is_negligible(&call));
        }
    assert_true(small > 100 && large > 100);
    struct accel_call call = product("dgemm", 0, 0, 0);
    assert_true(small_is_negligible(&call));
    for (int i = 0; i < 3; i++) {
        call.span[i].rows = -2000; /* wrong arguments are for the decision */
        call.span[i].cols = 2000;
    }
    assert_false(small_is_negligible(&call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gate),
        cmocka_unit_test(sizes),
        cmocka_unit_test(trifles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
