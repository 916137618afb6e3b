/* Divisions of small calls over few devices, whose best one can be found by trying all. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/cost/part_ms.h"
#include "dispatch/cost/split.h"
#include "dispatch/cost/triangle.h"
#include "ops/op.h"
#include "tests/lib/split_cases.h"

/* What it takes to hand out a part. */
#define HAND_MS 0.05

static double ms_of(const struct accel_call *call, struct accel_region region,
                    const struct split_device *device)
{
    const struct split_part part = {.region = region};
    struct schedule_params params = {0};
    if (split_is_empty(&part))
        return 0;
    const struct accel_call one = accel_cut_part(call, &region);
    return part_ms(&one, device, &device->rates, &params);
}

/* Returns the best time of two devices, the first of which has the first columns or rows, or the
 * last ones. */
static double best_of_two(const struct accel_call *call, const struct split_device *device)
{
    const struct accel_region whole = accel_cut_whole(call);
    const unsigned cuts = accel_cuts_of(call);
    double best = DBL_MAX;
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        const int64_t all = by_rows ? whole.rows : whole.cols;
        if (!(cuts & (by_rows ? ACCEL_CUT_ROWS : ACCEL_CUT_COLS)))
            continue;
        for (int64_t at = 1; at < all; at++)
            for (int first = 0; first < 2; first++) {
                struct accel_region one = whole, two = whole;
                if (by_rows) {
                    one.rows = two.row = at;
                    two.rows = all - at;
                } else {
                    one.cols = two.col = at;
                    two.cols = all - at;
                }
                const double ms =
                    fmax(ms_of(call, one, &device[first]), ms_of(call, two, &device[!first]));
                best = fmin(best, ms);
            }
    }
    return best + HAND_MS;
}

/* Wherever two devices gain more than a twentieth, they do, and what is found takes no longer than
 * the best by a fiftieth; elsewhere the call stays whole. */
static void two_devices(void **state)
{
    static const char *const names[] = {"dgemm", "dsymm", "dtrmm", "dtrsm", "zgemm"};
    int divided = 0, whole = 0;
    double sum = 0;
    (void)state;
    srand(1);
    for (int n = 0; n < 400; n++) {
        struct split_device device[2];
        struct accel_call call;
        struct split split;
        for (int i = 0; i < 2; i++)
            device[i] = split_device_of(1e-5 * (3 + rand() % 5), 25);
        assert_true(split_call_of(&call, names[n % 5], 15 + rand() % 30, 15 + rand() % 30,
                                  15 + rand() % 30));
        const struct accel_region all = accel_cut_whole(&call);
        const double alone = fmin(ms_of(&call, all, &device[0]), ms_of(&call, all, &device[1]));
        const double best = best_of_two(&call, device);
        split_make(&split, &call, device, 2, SPLIT_NO_LIMIT);
        if (best < 0.94 * alone) {
            if (split.count != 2 || split.ms > 1.02 * best || split.ms < best * (1 - 1e-9))
                fail_msg("%s: %g ms by %d parts, the best is %g", names[n % 5], split.ms,
                         split.count, best);
            assert_true(fabs(split.whole_ms / alone - 1) < 0.001);
            sum += split.ms / best;
            divided++;
        } else if (best > 0.96 * alone) {
            assert_int_equal(split.count, 1);
            whole++;
        }
    }
    assert_true(divided > 150 && whole > 100);
    assert_true(sum / divided < 1.001); /* nearly everywhere it is the best one */
}

/* ---- Small functions ---- */

/* What other devices bring up does not come up over this one's link. */
static void floors_with_loans(void **state)
{
    const struct split_device device = split_device_of(1e9, 10);
    struct schedule_rates rates = device.rates;
    const double none[SCHEDULE_OPERANDS] = {0}, lent[SCHEDULE_OPERANDS] = {0.5, 0.5};
    struct accel_call call;
    (void)state;
    rates.peer = 1e9;
    assert_true(split_call_of(&call, "dgemm", 4096, 4096, 4096));
    const double floor_ms = part_floor_ms(&call, &rates, NULL);
    assert_true(part_floor_ms(&call, &rates, none) == floor_ms);
    assert_true(part_floor_ms(&call, &rates, lent) < 0.55 * floor_ms);
    assert_true(split_call_of(&call, "dgemv", 4096, 4096, 0));
    assert_true(part_floor_ms(&call, &rates, NULL) == 0);
}

static void rates_of_threads(void **state)
{
    (void)state;
    /* 45 GB/s by eight threads were measured */
    assert_true(fabs(split_host_gbps(8) - 45) < 1);
    assert_true(split_host_gbps(1) == split_host_gbps(8) / 8);
}

/* Three groups have three parts, or five with two that have triangles alone; and so on. */
static void grids_by_parts(void **state)
{
    static const int groups[] = {0, 0, 0, 3, 3, 3, 4, 4, 4, 0, 5, 5, 5, 5, 0, 6, 6};
    (void)state;
    for (int parts = 0; parts <= SPLIT_MOST; parts++)
        assert_int_equal(triangle_groups(parts), groups[parts]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_devices),
        cmocka_unit_test(floors_with_loans),
        cmocka_unit_test(rates_of_threads),
        cmocka_unit_test(grids_by_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
