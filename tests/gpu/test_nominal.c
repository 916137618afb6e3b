/* A device's rates from its attributes, held against the makers' data sheets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "gpu/plan/nominal.h"

static const struct {
    const char *name;
    struct nominal_attributes attributes;
    double single, twice; /* 10^12 operations a second */
    double gbps;
} cards[] = {
    {"Xavier", {7, 2, 8, 1377000, 2133000, 256, 2, true, false}, 1.41, 0.705, 137},
    {"GTX 980", {5, 2, 16, 1216000, 3505000, 256, 32, false, false}, 4.98, 0.156, 224},
    {"P100 SXM2", {6, 0, 56, 1480000, 715000, 4096, 2, false, false}, 10.6, 5.3, 732},
    {"GTX 1080", {6, 1, 20, 1733000, 5005000, 256, 32, false, false}, 8.87, 0.277, 320},
    {"V100 SXM2", {7, 0, 80, 1530000, 877000, 4096, 2, false, false}, 15.7, 7.8, 900},
    {"T4", {7, 5, 40, 1590000, 5001000, 256, 32, false, false}, 8.1, 0.254, 320},
    {"A100 SXM4 40GB", {8, 0, 108, 1410000, 1215000, 5120, 2, false, false}, 19.5, 19.5, 1555},
    {"A100 80GB MIG 1g.10gb", {8, 0, 14, 1410000, 1593000, 640, 2, false, false}, 2.53, 2.53, 255},
    {"A40 vGPU", {8, 6, 84, 1740000, 7251000, 384, 64, false, false}, 37.4, 0.584, 696},
    {"RTX 3090", {8, 6, 82, 1695000, 9751000, 384, 64, false, false}, 35.6, 0.556, 936},
    {"RTX A6000", {8, 6, 84, 1800000, 8001000, 384, 64, false, false}, 38.7, 0.605, 768},
    {"Orin", {8, 7, 16, 1300000, 3200000, 256, 64, true, false}, 5.32, 0.0832, 204.8},
    {"A10", {8, 6, 72, 1695000, 6251000, 384, 64, false, false}, 31.2, 0.487, 600},
    {"L4", {8, 9, 58, 2040000, 6251000, 192, 64, false, false}, 30.3, 0.473, 300},
    {"L40S", {8, 9, 142, 2520000, 9001000, 384, 64, false, false}, 91.6, 1.43, 864},
    {"RTX 4090", {8, 9, 128, 2520000, 10501000, 384, 64, false, false}, 82.6, 1.29, 1008},
    {"H100 SXM5", {9, 0, 132, 1980000, 2619000, 5120, 2, false, false}, 67, 67, 3350},
    {"H200", {9, 0, 132, 1980000, 3201000, 6144, 2, false, false}, 67, 67, 4900},
    {"H200 MIG 1g.18gb", {9, 0, 16, 1980000, 3201000, 768, 2, false, false}, 8.1, 8.1, 614},
    {"H20", {9, 0, 78, 1980000, 2619000, 6144, 64, false, false}, 39.5, 0.618, 4022},
    {"B200", {10, 0, 148, 1965000, 3996000, 7680, 2, false, false}, 74.4, 37.2, 7672},
    {"B300", {10, 3, 160, 1920000, 3996000, 8192, 64, false, false}, 78.6, 1.23, 8184},
    {"Thor", {11, 0, 20, 1575000, 4266000, 256, 64, true, false}, 8.06, 0.126, 273},
    {"RTX PRO 6000", {12, 0, 188, 2600000, 14001000, 512, 64, false, false}, 125, 1.95, 1792},
    {"GB10", {12, 1, 48, 2525000, 4266000, 256, 64, true, false}, 31, 0.484, 273},
    {"RTX 5090", {12, 0, 170, 2407000, 14001000, 512, 64, false, false}, 104.8, 1.64, 1792},
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
    struct nominal_attributes future = {99, 0, 100, 2000000, 4000000, 8192, 2, false, false};
    rates = nominal_rates(&future);
    assert_true(rates.gflops[1] == rates.gflops[0] / 2);
    future.single_to_double = 0;
    rates = nominal_rates(&future);
    assert_true(rates.gflops[1] == rates.gflops[0] / 64);
    /* Only 0 is missing. */
    const struct nominal_attributes least = {9, 0, 1, 1, 1, 8, 0, false, false};
    rates = nominal_rates(&least);
    assert_true(rates.gflops[0] == 2e-6 * 128 && rates.gflops[1] == 2e-6 * 128);
    assert_true(rates.memory_gbps == 2e-6);
}

/* An integrated GPU's memory is the host's: there is no bus, but the copies share its rate. */
static void copies_in_one_memory(void **state)
{
    (void)state;
    struct nominal_attributes spark = {12, 1, 48, 2525000, 4266000, 256, 64, true, false};
    assert_true(nominal_rates(&spark).copy_gbps == 15);
    spark.integrated = false;
    assert_true(nominal_rates(&spark).copy_gbps == 10);
    /* 25.6 GB/s */
    const struct nominal_attributes nano = {5, 3, 1, 921600, 1600000, 64, 32, true, false};
    assert_true(nominal_rates(&nano).copy_gbps > 6.3 && nominal_rates(&nano).copy_gbps < 6.5);
}

/* Kernels read the host's memory in place where the host's page tables are the device's: by
 * NVLink-C2C, or in one memory. */
static void reads_of_host_memory(void **state)
{
    (void)state;
    struct nominal_attributes grace = {9, 0, 132, 1980000, 2619000, 6144, 2, false, true};
    assert_true(nominal_rates(&grace).place_gbps == NOMINAL_C2C_GBPS);
    grace.integrated = true;
    assert_true(nominal_rates(&grace).place_gbps == nominal_rates(&grace).memory_gbps);
    grace.host_page_tables = false;
    assert_true(nominal_rates(&grace).place_gbps == 0);
}

/* To three digits behind the point. */
static void is_rounded(double value, double expected)
{
    assert_true(value > expected - 0.00051 && value < expected + 0.00051);
}

/* Only where the other precision's units are faster. The emulation on RTX PRO 6000 was measured:
 * 13.2 times (arXiv 2511.13778). */
static void gains_of_precisions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double emulated, tf32, bf16x9;
    } known[] = {{"RTX PRO 6000", 14.222, 1, 1}, {"RTX 3090", 14.222, 1, 1},
                 {"RTX 4090", 14.222, 1, 1},     {"B200", 3.556, 16, 3.556},
                 {"B300", 1, 16, 3.556},         {"T4", 1, 1, 1}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
            if (strcmp(known[k].name, cards[i].name) != 0)
                continue;
            const struct nominal_rates rates = nominal_rates(&cards[i].attributes);
            print_message("# %s\n", known[k].name);
            assert_true(rates.gain[GPU_NATIVE] == 1);
            is_rounded(rates.gain[GPU_EMULATED], known[k].emulated);
            is_rounded(rates.gain[GPU_TF32], known[k].tf32);
            is_rounded(rates.gain[GPU_BF16X9], known[k].bf16x9);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_the_data_sheets), cmocka_unit_test(what_is_missing_is_slow),
        cmocka_unit_test(copies_in_one_memory),      cmocka_unit_test(reads_of_host_memory),
        cmocka_unit_test(gains_of_precisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
