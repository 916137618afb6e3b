/*
 * What gpu_measure_copies() says of a link whose rates are known: on the test GPU, whose copies take the time that its settings say, so slowly that
 * packing does not count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/devices.h"

#define UP_GBPS   0.4
#define DOWN_GBPS 0.2

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.8});
    return *state ? 0 : -1;
}

/* Each way has its own rate, and keeps it beside the other one. */
static void rates_of_copies(void **state)
{
    struct gpu_copy_rates rates = {0, 0, 0};
    assert_true(gpu_measure_copies(*state, &rates));
    printf("%.3f up, %.3f down, %.3f both ways\n", rates.up_gbps, rates.down_gbps, rates.both_gbps);
    if (is_real_gpu()) {
        assert_true(rates.up_gbps > 0 && rates.down_gbps > 0);
    } else {
        assert_true(rates.up_gbps <= UP_GBPS && rates.up_gbps > 0.6 * UP_GBPS);
        assert_true(rates.down_gbps <= DOWN_GBPS && rates.down_gbps > 0.6 * DOWN_GBPS);
        assert_true(rates.both_gbps > 0.85 * (rates.up_gbps + rates.down_gbps));
    }
    assert_true(rates.both_gbps >= rates.up_gbps && rates.both_gbps >= rates.down_gbps &&
                rates.both_gbps <= rates.up_gbps + rates.down_gbps);
}

/* The test GPU reads its settings when it is loaded, which is before main() if a program links with it. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_of_copies)};
    char up[32], down[32];
    (void)argc;
    if (!getenv("TESTGPU_UP_GBPS")) {
        snprintf(up, sizeof up, "%g", UP_GBPS);
        snprintf(down, sizeof down, "%g", DOWN_GBPS);
        setenv("TESTGPU_UP_GBPS", up, 1);
        setenv("TESTGPU_DOWN_GBPS", down, 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    return cmocka_run_group_tests(tests, start, stop_device);
}
