/* A device's rates from its attributes, held against the makers' data sheets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/nominal.h"

static const struct {
    const char *name;
    struct nominal_attributes attributes;
    double single, twice; /* 10^12 operations a second */
    double gbps;
} cards[] = {
    {"V100 SXM2", {7, 0, 80, 1530000, 877000, 4096, 2}, 15.7, 7.8, 900},
    {"T4", {7, 5, 40, 1590000, 5001000, 256, 32}, 8.1, 0.254, 320},
    {"A100 SXM4 40GB", {8, 0, 108, 1410000, 1215000, 5120, 2}, 19.5, 19.5, 1555},
    {"A100 80GB MIG 1g.10gb", {8, 0, 14, 1410000, 1593000, 640, 2}, 2.53, 2.53, 255},
    {"A10", {8, 6, 72, 1695000, 6251000, 384, 64}, 31.2, 0.487, 600},
    {"L4", {8, 9, 58, 2040000, 6251000, 192, 64}, 30.3, 0.473, 300},
    {"RTX 4090", {8, 9, 128, 2520000, 10501000, 384, 64}, 82.6, 1.29, 1008},
    {"H100 SXM5", {9, 0, 132, 1980000, 2619000, 5120, 2}, 67, 67, 3350},
    {"H200", {9, 0, 132, 1980000, 3201000, 6144, 2}, 67, 67, 4900},
    {"H200 MIG 1g.18gb", {9, 0, 16, 1980000, 3201000, 768, 2}, 8.1, 8.1, 614},
    {"H20", {9, 0, 78, 1980000, 2619000, 6144, 64}, 39.5, 0.618, 4022},
    {"B200", {10, 0, 148, 1965000, 3996000, 7680, 2}, 74.4, 37.2, 7672},
    {"B300", {10, 3, 160, 1920000, 3996000, 8192, 64}, 78.6, 1.23, 8184},
    {"RTX 5090", {12, 0, 170, 2407000, 14001000, 512, 64}, 104.8, 1.64, 1792},
};

static void is_near(double value, double expected)
{
    assert_true(value > 0.97 * expected && value < 1.03 * expected);
}

static void rates_are_the_data_sheets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        struct nominal_attributes attributes = cards[i].attributes;
        const struct nominal_rates rates = nominal_rates(&attributes);
        print_message("# %s: %.0f %.0f %.0f\n", cards[i].name, rates.gflops[0], rates.gflops[1],
                      rates.memory_gbps);
        is_near(rates.gflops[0], 1e3 * cards[i].single);
        is_near(rates.gflops[1], 1e3 * cards[i].twice);
        is_near(rates.memory_gbps, cards[i].gbps);
        if (attributes.major == 9 && attributes.single_to_double == 64)
            continue;
        /* A driver that has no such attribute. */
        attributes.single_to_double = 0;
        const struct nominal_rates without = nominal_rates(&attributes);
        assert_true(without.gflops[1] == rates.gflops[1]);
    }
}

static void what_is_missing_is_slow(void **state)
{
    (void)state;
    struct nominal_attributes none = {0};
    struct nominal_rates rates = nominal_rates(&none);
    assert_true(rates.gflops[0] > 1e3 && rates.gflops[0] < 1e4);
    assert_true(rates.gflops[1] > 1 && rates.gflops[1] < 1e3);
    assert_true(rates.memory_gbps > 10 && rates.memory_gbps < 300);
    /* A capability of the future: by the ratio that the driver tells. */
    struct nominal_attributes future = {99, 0, 100, 2000000, 4000000, 8192, 2};
    rates = nominal_rates(&future);
    assert_true(rates.gflops[1] == rates.gflops[0] / 2);
    future.single_to_double = 0;
    rates = nominal_rates(&future);
    assert_true(rates.gflops[1] == rates.gflops[0] / 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_the_data_sheets),
        cmocka_unit_test(what_is_missing_is_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
