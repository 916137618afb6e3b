/*
 * What gpu_measure_copies() copies, and says of it: on the test GPU, whose copies take the time that its settings say, up half as long as down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
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

/* Each way alone, as much goes up as comes down; both ways at once, as much of each as takes the same time. What they reach together depends on what else
 * the machine does, but no rate is less than a way's own, or more than both. */
static void rates_of_copies(void **state)
{
    enum { TIMES = 4 * 4 /* attempts and rounds */, COLUMN = 2048 * 8, ALL = 8192 * COLUMN };
    struct gpu_copy_rates rates = {0, 0, 0};
    assert_true(gpu_measure_copies(*state, &rates));
    printf("%.3f up, %.3f down, %.3f both ways\n", rates.up_gbps, rates.down_gbps, rates.both_gbps);
    assert_true(rates.up_gbps > 0 && rates.down_gbps > 0);
    assert_true(rates.both_gbps >= rates.up_gbps && rates.both_gbps >= rates.down_gbps &&
                rates.both_gbps <= rates.up_gbps + rates.down_gbps);
    if (is_real_gpu())
        return; /* there is no trace */
    const double more = bytes_of("cuMemcpyHtoDAsync") - bytes_of("cuMemcpyDtoHAsync");
    const double share = 0.5 + more / TIMES / ALL / 2;
    assert_true(fabs(share - rates.up_gbps / (rates.up_gbps + rates.down_gbps)) < 1e-3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_of_copies)};
    (void)argc;
    if (setenv("TESTGPU_UP_GBPS", "0.8", 1) != 0 || setenv("TESTGPU_DOWN_GBPS", "0.4", 1) != 0)
        return 1;
    trace = traced_gpu(argv);
    const int failed = cmocka_run_group_tests(tests, start, stop_device);
    unlink(trace);
    return failed;
}
