/*
 * What gpu_measure_copies() copies, and says of it, of long columns and short ones: on the test GPU, whose copies take the time that its settings say, up half as long as down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/devices.h"

static const char *trace; /* of the test GPU */

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.8});
    return *state ? 0 : -1;
}

/* Returns the bytes of all copies whose calls have this name. */
static double bytes_of(const char *name)
{
    char line[512];
    double sum = 0;
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *bytes = strstr(line, name) ? strstr(line, "bytes=") : NULL;
        sum += bytes ? atof(bytes + 6) : 0;
    }
    fclose(file);
    return sum;
}

/* As much goes up as comes down. What the copies take depends on what else the machine does, but they are no faster than the test GPU's. */
static void rates_of_copies(void **state)
{
    struct gpu_copy_rates rates = {0};
    assert_true(gpu_measure_copies(*state, &rates));
    printf("%.3f up, %.3f down\n", rates.up_gbps, rates.down_gbps);
    assert_true(rates.up_gbps > 0 && rates.down_gbps > 0);
    assert_true(rates.short_up.bytes >= 1 && rates.short_down.bytes >= 1);
    assert_true(rates.short_up.ms >= 0 && rates.short_down.ms >= 0);
    if (is_real_gpu())
        return; /* there is no trace */
    assert_true(rates.up_gbps > 0.6 && rates.up_gbps < 2.02);
    assert_true(rates.down_gbps > 0.3 && rates.down_gbps < 1.01);
    const double up = bytes_of("cuMemcpyHtoDAsync"), down = bytes_of("cuMemcpyDtoHAsync");
    assert_true(up >= 16 * 0.134e9 + 16 * 0.063e9 && up == down);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_of_copies)};
    (void)argc;
    if (setenv("TESTGPU_UP_GBPS", "2", 1) != 0 || setenv("TESTGPU_DOWN_GBPS", "1", 1) != 0)
        return 1;
    trace = traced_gpu(argv);
    const int failed = cmocka_run_group_tests(tests, start, stop_device);
    unlink(trace);
    return failed;
}
