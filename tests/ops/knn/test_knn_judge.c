/*
 * The judge of nearest neighbours: each query of a call is scanned once by distances of the CPU,
 * and what was found must be that. See ops/knn/knn.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/knn/knn.h"

enum { TRAIN = 5, QUERIES = 3, FEATURES = 2 };

static const double train[TRAIN * FEATURES] = {0, 0, 1, 0, 0, 2, 3, 3, -1, 4};
static const double test[QUERIES * FEATURES] = {0.25, 0, 2.5, 3, -1, 3};

static int64_t asked[QUERIES + 1];
static int questions;
static enum gpu_status answer;

/* The nearest point alone, by the distances that it is given. */
static struct knn_nearest *nearest(const struct accel_call *call, int64_t query,
                                   const double *distance, enum gpu_status *status)
{
    struct knn_nearest *found = calloc(1, sizeof *found + sizeof found->neighbour[0]);
    int64_t best = 0;
    (void)call;
    assert_in_range(query, 0, QUERIES - 1);
    assert_in_range(questions, 0, QUERIES - 1);
    asked[questions++] = query;
    for (int64_t i = 1; i < TRAIN; i++)
        best = distance[i] < distance[best] ? i : best;
    found->count = 1;
    found->neighbour[0].distance = distance[best];
    found->neighbour[0].point = best;
    *status = answer;
    return found;
}

/* What a run would leave: for each query the point, and its distance by hand. */
static struct knn_nearest *found[QUERIES + 1];

static struct accel_call make_call(void)
{
    static const int64_t point[QUERIES] = {0, 3, 4};
    static const double distance[QUERIES] = {0.0625, 0.25, 1};
    const struct point_set of_train = {train, TRAIN, false}, of_test = {test, QUERIES, false};
    struct accel_call call = {.own.integer = {0}};
    assert_true(knn_parse(&call, &of_train, &of_test, FEATURES, 1));
    for (int i = 0; i < QUERIES; i++) {
        found[i] = calloc(1, sizeof *found[i] + sizeof found[i]->neighbour[0]);
        found[i]->count = 1;
        found[i]->neighbour[0].distance = distance[i];
        found[i]->neighbour[0].point = point[i];
    }
    call.own.pointer[KNN_RESULT] = found;
    questions = 0;
    answer = GPU_OK;
    return call;
}

static void drop(void)
{
    for (int i = 0; i < QUERIES; i++)
        free(found[i]);
}

static void right_results_are_right(void **state)
{
    const struct accel_call call = make_call();
    (void)state;
    assert_true(knn_judge(&call, nearest) == 0);
    assert_int_equal(questions, QUERIES);
    for (int i = 0; i < QUERIES; i++)
        assert_int_equal(asked[i], i);
    drop();
}

/* Whatever is wrong, of whichever query: no further one is scanned. */
static void one_wrong_query_is_seen(void **state)
{
    (void)state;
    for (int query = 0; query < QUERIES; query++)
        for (int what = 0; what < 4; what++) {
            const struct accel_call call = make_call();
            struct knn_nearest *wrong = found[query];
            wrong->count -= what == 0;
            wrong->nearer += what == 1;
            wrong->neighbour[0].point += what == 2;
            wrong->neighbour[0].distance += what == 3;
            assert_true(knn_judge(&call, nearest) > 1e300);
            assert_int_equal(questions, query + 1);
            drop();
        }
}

/* The scan itself may fail: for want of memory nothing is known, else the result is wrong. */
static void a_scan_that_fails_ends_it(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct accel_call call = make_call();
        answer = i == 0 ? GPU_NO_MEMORY : GPU_UNSUPPORTED;
        const double judged = knn_judge(&call, nearest);
        assert_true(i == 0 ? judged < 0 : judged > 1e300);
        assert_int_equal(questions, 1);
        drop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_results_are_right),
        cmocka_unit_test(one_wrong_query_is_seen),
        cmocka_unit_test(a_scan_that_fails_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
