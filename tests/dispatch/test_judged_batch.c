/* verify_judge() of a batch (dispatch/verify.h): each product is judged, also beside one that
 * cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "dispatch/verify.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

enum { N = 8, COUNT = 4 };

static double x[3][COUNT][N * N];

/* Products of ones in memory that the host can read. */
static struct accel_call batch(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    struct accel_call call;
    shape_typical(&call, routine("dgemm_batch_strided"), size);
    call.batch = COUNT;
    call.blas.scalar[ACCEL_beta].re = 0;
    for (int i = ACCEL_a; i <= ACCEL_c; i++) {
        call.span[i].ptr = x[i];
        for (int k = 0; k < COUNT * N * N; k++)
            x[i][k / (N * N)][k % (N * N)] = i == ACCEL_c ? N : 1;
    }
    return call;
}

static void one_cannot_be_judged_and_another_is_wrong(void **state)
{
    const struct verification verification = {.on = true};
    (void)state;
    for (int unknown = -1; unknown < COUNT; unknown++)
        for (int wrong = -1; wrong < COUNT; wrong++) {
            const struct accel_call call = batch();
            if (unknown >= 0)
                x[ACCEL_a][unknown][5] = NAN;
            if (wrong >= 0)
                x[ACCEL_c][wrong][9] += 1;
            const double ratio = verify_judge(&verification, &call);
            if (wrong >= 0) /* also beside a NaN that does not reach it */
                assert_true(ratio > 1);
            else if (unknown >= 0)
                assert_true(ratio < 0);
            else
                assert_true(ratio >= 0 && ratio <= 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_cannot_be_judged_and_another_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
