/* What parts of a call can lend each other, compared with a plain version that knows the rows and
 * columns of each; and who has a part of a factorisation. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/cost/factorisation.h"
#include "dispatch/cost/lending.h"
#include "dispatch/cost/part_ms.h"
#include "dispatch/cost/triangle.h"
#include "ops/op.h"
#include "tests/lib/split_cases.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B };

static void set_rates(struct split_part *part, int parts)
{
    for (int i = 0; i < parts; i++) {
        part[i].device = i;
        part[i].rates = schedule_nominal;
        part[i].rates.up = part[i].rates.down = 5 + rand() % 20;
        part[i].rates.peer = (rand() % 5 ? 2 : 1.2) * part[i].rates.up;
        if (rand() % 9 == 0)
            part[i].rates.peer = 0;
        part[i].lent[A] = part[i].lent[B] = 7; /* it is set anew */
        part[i].by.rows = 7;
    }
}

static bool is_fast(const struct split_part *part)
{
    return part->rates.peer > 1.25 * part->rates.up;
}

/* Lines [from, from + count) of a part, of which others bring up their share if they have the same
 * ones. */
struct range {
    int64_t from, count;
};

static double share(const struct split_part *part, struct range (*lines)[2], int parts, int own,
                    struct range of)
{
    double up = 0;
    for (int i = 0; i < parts; i++)
        for (int n = 0; n < 2; n++)
            if (lines[i][n].count == of.count && lines[i][n].from == of.from) {
                if (!is_fast(&part[i]))
                    return 0;
                up += part[i].rates.up;
            }
    return 1 - part[own].rates.up / up;
}

static double lent_of(const struct split_part *part, struct range (*lines)[2], int parts, int own)
{
    double all = 0, lent = 0;
    int fast = 0;
    for (int i = 0; i < parts; i++)
        fast += is_fast(&part[i]);
    for (int n = 0; n < 2; n++) {
        all += (double)lines[own][n].count;
        if (lines[own][n].count > 0 && fast > 1)
            lent += (double)lines[own][n].count * share(part, lines, parts, own, lines[own][n]);
    }
    return all > 0 ? lent / all : 0;
}

/* A product in a grid: parts of the same rows have the same lines of A, and those of the same
 * columns of B. */
static void products_in_grids(void **state)
{
    int lent = 0, none = 0;
    (void)state;
    srand(21);
    for (int n = 0; n < 1000; n++) {
        const int down = 1 + rand() % 4, across = 1 + rand() % 4, parts = down * across;
        const unsigned never = rand() % 3 ? 0 : 1u << rand() % 2;
        struct split_part part[SPLIT_MOST] = {{.device = 0}};
        struct range rows[SPLIT_MOST][2] = {0}, cols[SPLIT_MOST][2] = {0};
        struct accel_call call;
        assert_true(split_call_of(&call, n % 2 ? "dgemm" : "zgemm", 80, 60, 50));
        if (rand() % 2)
            call.blas.scalar[ACCEL_beta].re = 1;
        for (int i = 0; i < parts; i++) {
            rows[i][0] = (struct range){80 / down * (i % down), 80 / down};
            cols[i][0] = (struct range){60 / across * (i / down), 60 / across};
            if (rand() % 10 == 0) /* nothing is left for it */
                rows[i][0] = cols[i][0] = (struct range){0, 0};
            part[i].region = (struct accel_region){rows[i][0].from, cols[i][0].from,
                                                   rows[i][0].count, cols[i][0].count, 0};
        }
        set_rates(part, parts);
        const bool any = lending_find(part, parts, &call, never);
        bool expected = false;
        for (int i = 0; i < parts; i++) {
            const double a = never & 1u << A ? 0 : lent_of(part, rows, parts, i);
            const double b = never & 1u << B ? 0 : lent_of(part, cols, parts, i);
            assert_true(fabs(part[i].lent[A] - a) < 1e-12 && fabs(part[i].lent[B] - b) < 1e-12);
            for (int x = 0; x < SCHEDULE_OPERANDS; x++)
                assert_true(x == A || x == B || part[i].lent[x] == 0);
            assert_true(part[i].by.rows == 0);
            expected = expected || a > 0 || b > 0;
        }
        assert_int_equal(any, expected);
        lent += any;
        none += !any;
    }
    assert_true(lent > 300 && none > 100);
}

/* A triangle's grid: a part has the lines of two groups, or of one. */
static void triangles_in_grids(void **state)
{
    int lent = 0;
    (void)state;
    srand(22);
    for (int n = 0; n < 1000; n++) {
        const int parts = 3 + rand() % 14, groups = triangle_groups(parts);
        int64_t edge[TRIANGLE_GROUPS + 1] = {0};
        struct accel_region region[SPLIT_MOST];
        struct split_part part[SPLIT_MOST] = {{.device = 0}};
        struct range lines[SPLIT_MOST][2] = {0};
        struct accel_call call;
        if (groups == 0)
            continue;
        for (int i = 0; i < groups; i++)
            edge[i + 1] = edge[i] + 1 + rand() % 9;
        triangle_lay_out(region, parts, edge);
        assert_true(split_call_of(&call, "dsyrk", edge[groups], edge[groups], 30));
        for (int i = 0; i < parts; i++) {
            part[i].region = region[i];
            lines[i][0] = (struct range){region[i].col, region[i].cols};
            lines[i][1] = (struct range){region[i].row, region[i].rows};
            if (split_is_empty(&part[i]))
                lines[i][0] = lines[i][1] = (struct range){0, 0};
        }
        set_rates(part, parts);
        lent += lending_find(part, parts, &call, 0);
        for (int i = 0; i < parts; i++)
            if (!split_is_empty(&part[i]))
                assert_true(fabs(part[i].lent[A] - lent_of(part, lines, parts, i)) < 1e-12);
    }
    assert_true(lent > 300);
}

/* Nothing is lent by one alone, and none of a batch. */
static void nobody_lends(void **state)
{
    struct split_part part[2] = {{.region = {0, 0, 40, 60, 0}}, {.region = {40, 0, 40, 60, 0}}};
    struct accel_call call;
    (void)state;
    assert_true(split_call_of(&call, "dgemm", 80, 60, 50));
    for (int i = 0; i < 2; i++) {
        part[i].rates = schedule_nominal;
        part[i].rates.up = 8;
        part[i].rates.peer = 10.5;
    }
    assert_true(lending_find(part, 2, &call, 0));
    assert_true(part[0].lent[B] == 0.5 && part[1].lent[B] == 0.5 && part[0].lent[A] == 0);
    assert_true(split_lends(&part[0]));
    assert_false(lending_find(part, 2, &call, 1u << B));
    for (int i = 0; i < 2; i++) /* one element */
        part[i].region = (struct accel_region){i, 0, 1, 1, 0};
    assert_true(split_call_of(&call, "dgemm", 2, 1, 1));
    assert_true(lending_find(part, 2, &call, 0) && part[0].lent[B] == 0.5);
    part[1].rates.peer = 10; /* not more than a quarter faster */
    assert_false(lending_find(part, 2, &call, 0));
    part[1].rates.peer = 10.5;
    assert_true(lending_find(part, 2, &call, 0));
    assert_true(split_call_of(&call, "dgemm_batch_strided", 80, 60, 50));
    call.span[ACCEL_a].stride = 0; /* all products read it */
    for (int i = 0; i < 2; i++) {
        part[i].region = accel_cut_whole(&call);
        part[i].region.cols /= 2;
        part[i].region.col = i * part[i].region.cols;
    }
    assert_false(lending_find(part, 2, &call, 0));
}

/* Loans shorten a part where its link is what it waits for; where there is no room for each tile,
 * the operands are told. */
static void times_of_parts(void **state)
{
    struct split_part part = {.region = {0, 0, 4096, 8192, 0}}, own;
    struct schedule_params common = {0}, params = {0};
    const struct split_device device = split_device_of(5e4, 10);
    struct accel_call call;
    (void)state;
    assert_true(split_call_of(&call, "dgemm", 8192, 8192, 8192));
    part.rates = device.rates;
    part.rates.peer = 1e3;
    own = part;
    const struct accel_call half = accel_cut_part(&call, &part.region);
    assert_int_equal(lending_ms(&own, &half, device.memory_bytes, &common), 0);
    assert_true(common.rows == 0 && own.by.rows == 0); /* it has lent nothing */
    assert_true(own.ms == part_ms(&half, &device, &part.rates, &params));
    part.lent[B] = 0.5;
    assert_int_equal(lending_ms(&part, &half, device.memory_bytes, &common), 0);
    assert_true(common.rows > 0 && part.by.rows > 0);
    assert_true(part.ms < 0.9 * own.ms && part.ms > 0.4 * own.ms);
    const struct schedule_params before = common;
    assert_int_equal(lending_ms(&part, &half, device.memory_bytes, &common), 0);
    assert_memory_equal(&common, &before, sizeof common);
    assert_int_equal(lending_ms(&part, &half, INT64_C(128) << 20, &common), 1u << B);
    struct split_part tiny = part;
    assert_int_equal(lending_ms(&tiny, &half, 1000, &(struct schedule_params){0}), 1u << B);
}

/* ---- Factorisations ---- */

/* Each part has a panel at least, all panels are some part's, and the first part is that of the
 * device that would be the fastest alone. */
static void each_part_has_a_panel(void **state)
{
    static const char *const names[] = {"dgetrf", "dpotrf", "dgesv", "dposv"};
    int divided = 0, left_out = 0;
    (void)state;
    srand(23);
    for (int n = 0; n < 120; n++) {
        struct split_device device[5];
        struct accel_call call;
        struct split split;
        struct panels_shared shared;
        const int count = 2 + rand() % 4;
        const int64_t order = 100 + rand() % 3000;
        assert_true(split_call_of(&call, names[n % 4], order, order, order));
        const bool solves = n % 4 >= 2 && n % 8 < 6;
        if (n % 4 >= 2)
            call.blas.size[ACCEL_nrhs] = call.span[ACCEL_b].cols = solves;
        for (int i = 0; i < count; i++) {
            device[i] = split_device_of(rand() % 4 ? 0.1 * (1 + rand() % 9) : 0.001, 25);
            device[i].memory_bytes =
                (order * order * 8) * (1 + rand() % 4) / 2 + (INT64_C(64) << 20);
        }
        assert_true(factorisation_is_shared(&call));
        factorisation_make(&split, &shared, &call, device, count, SPLIT_NO_LIMIT);
        if (split.count == 1)
            continue;
        bool has_panel[5] = {false};
        assert_true(shared.devices == split.count && split.count <= count);
        for (int j = 0; j < shared.count; j++) {
            assert_true(shared.owner[j] < split.count);
            has_panel[shared.owner[j]] = true;
        }
        for (int i = 0; i < split.count; i++) {
            assert_true(has_panel[i] && split.part[i].device < count);
            for (int k = 0; k < i; k++)
                assert_true(split.part[i].device != split.part[k].device);
            assert_true(device[split.part[i].device].rates.compute <=
                        device[split.part[0].device].rates.compute);
        }
        assert_true(split.ms < split.whole_ms && split.part[0].ms <= split.ms);
        assert_true((split.ms > split.part[0].ms) == solves); /* what follows counts */
        divided++;
        left_out += split.count < count;
    }
    assert_true(divided > 40 && left_out > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_grids),     cmocka_unit_test(triangles_in_grids),
        cmocka_unit_test(nobody_lends),          cmocka_unit_test(times_of_parts),
        cmocka_unit_test(each_part_has_a_panel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
