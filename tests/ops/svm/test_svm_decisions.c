/* What decisions mean, what a call costs, and what the log says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/svm/sklearn.h"
#include "ops/svm/train.h"

static double number(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

/* ---- Decisions ---- */

static void most_votes_decide(void **state)
{
    static const int label[] = {30, 10, 20, 7};
    int64_t votes[4];
    (void)state;
    srand(4);
    for (int n = 0; n < 500; n++) {
        const int classes = 2 + n % 3;
        double value[6];
        int plain[4] = {0}, most = 0, k = 0;
        for (int i = 0; i < classes; i++)
            for (int j = i + 1; j < classes; j++, k++) {
                value[k] = rand() % 5 == 0 ? 0 : number(-1, 1);
                plain[value[k] > 0 ? i : j]++;
            }
        for (int i = 1; i < classes; i++)
            most = plain[i] > plain[most] ? i : most;
        assert_true(svm_answer(n % 2 ? SVM_C_SVC : SVM_NU_SVC, label, classes, value, votes) ==
                    label[most]);
    }
    for (int i = -1; i <= 1; i++) {
        const double value = i / 4.;
        assert_true(svm_answer(SVM_ONE_CLASS, NULL, 2, &value, NULL) == (i > 0 ? 1 : -1));
        assert_true(svm_answer(SVM_EPSILON_SVR, NULL, 2, &value, NULL) == value);
        assert_true(svm_answer(SVM_NU_SVR, NULL, 2, &value, NULL) == value);
    }
    assert_true(svm_may_decide(1 << 13, 1 << 14));
    assert_false(svm_may_decide(1 << 13, (1 << 14) + 1));
}

/* Of one class there is one pair, the class with itself. */
static void pairs_follow_each_other(void **state)
{
    (void)state;
    for (int classes = 2; classes < 6; classes++) {
        int i = 0, j = 1;
        for (int a = 0; a < classes; a++)
            for (int b = a + 1; b < classes; b++, svm_next_pair(classes, &i, &j))
                assert_true(i == a && j == b);
    }
}

/* ---- What a call costs and says ---- */

/* Of n rows with f features, of which a pair of classes has its share. */
static void the_work_is_that_of_all_pairs_and_folds(void **state)
{
    (void)state;
    for (int folds = 0; folds <= 4; folds += 2)
        for (int classes = 1; classes <= 5; classes++)
            for (int cap = 0; cap < 2000; cap += 11) {
                const double rows = 1000, features = 40, length = 10;
                struct accel_call call = accel_call_of(&accel_routines[0]);
                const int64_t size[] = {1000, 40, classes, 10000};
                svm_typical(&call, size);
                assert_int_equal(svm_traits_kernel(&call), SVM_RBF);
                assert_memory_equal(svm_sizes(&call), size, sizeof size);
                assert_int_equal(call.span[ACCEL_a].rows, 10000);
                assert_true(call.span[ACCEL_y].ptr == &call.own.integer[SVM_RESULT]);
                call.own.integer[SVM_TRAITS] += (int64_t)folds << 32;
                call.own.integer[SVM_CAP] = cap;
                const double own =
                    (folds ? (folds - 1.) / folds : 1) * (classes > 1 ? 2 * rows / classes : rows);
                const double problems =
                    (folds ? folds : 1) * (classes > 1 ? classes * (classes - 1) / 2. : 1);
                const double steps = cap && cap - 1 < own ? cap - 1 : own;
                const double columns = fmin(0.1 * own, 2 * steps);
                const struct accel_effort cpu = svm_effort(&call, false);
                const struct accel_effort gpu = svm_effort(&call, true);
                assert_float_equal(svm_flops(&call), 0.3 * problems * own * own * 2 * length, 1e-3);
                assert_float_equal(cpu.operations, problems * own * columns * 2 * length, 1e-3);
                assert_float_equal(cpu.steps, problems * own * steps, 1e-3);
                assert_float_equal(gpu.operations, rows * rows * 2 * features, 1e-3);
                assert_float_equal(gpu.steps, 2 * steps * (1 + own / 50000) * (1 + problems / 100),
                                   1e-6);
            }
    /* A very sparse matrix stays sparse on the device; a kernel that is given has one operation a
     * value */
    struct accel_call call = accel_call_of(&accel_routines[0]);
    svm_typical(&call, (const int64_t[]){1000, 321, 1, 10000});
    assert_true(svm_effort(&call, true).operations == 1e6 * 2 * 160);
    svm_typical(&call, (const int64_t[]){1000, 320, 1, 10000});
    assert_true(svm_effort(&call, true).operations == 1e6 * 2 * 320);
    call.own.integer[SVM_TRAITS] = svm_traits(0, SVM_C_SVC, SVM_PRECOMPUTED);
    assert_true(svm_effort(&call, true).operations == 1e6);
    assert_float_equal(svm_effort(&call, false).operations, 1e5, 1e-6);
    assert_float_equal(svm_flops(&call), 0.3 * 1e6, 1e-6);
    /* BLAS multiplies scikit-learn's vectors that are whole */
    svm_typical(&call, (const int64_t[]){1000, 10, 1, 10000});
    const double whole = svm_effort(&call, false).operations;
    call.own.integer[SVM_TRAITS] = svm_traits(SVM_LAYOUTS, SVM_C_SVC, SVM_RBF);
    assert_float_equal(svm_effort(&call, false).operations, 0.3 * whole, 1e-3);
    call.own.integer[SVM_FEATURES] = 11;
    assert_float_equal(svm_effort(&call, false).operations, whole, 1e-3);
    assert_int_equal(svm_count_at(1), 0);
}

static char described[256];

static void add_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    const size_t used = strlen(described);
    (void)fields;
    snprintf(described + used, sizeof described - used, " %s=%lld", name, (long long)value);
}

static void add_string(const struct accel_fields *fields, const char *name, const char *value)
{
    const size_t used = strlen(described);
    (void)fields;
    snprintf(described + used, sizeof described - used, " %s=%s", name, value);
}

static void the_log_has_a_calls_fields(void **state)
{
    static const char *const types[] = {"", " type=nu_svc", " type=one_class", " type=epsilon_svr",
                                        " type=nu_svr"};
    static const char *const kernels[] = {"linear", "poly", "rbf", "sigmoid", "precomputed"};
    const struct accel_fields fields = {add_integer, add_string};
    (void)state;
    for (int type = 0; type < 5; type++)
        for (int kernel = 0; kernel < 5; kernel++)
            for (int folds = 0; folds < 10; folds += 5) {
                char expected[256];
                struct accel_call call = accel_call_of(&accel_routines[0]);
                svm_typical(&call, (const int64_t[]){70, 9, type ? 1 : 3, 500});
                call.own.integer[SVM_TRAITS] = svm_traits(7, type, kernel) + ((int64_t)folds << 32);
                snprintf(expected, sizeof expected, "%s l=70 features=9 kernel=%s%s%s", types[type],
                         kernels[kernel], type ? "" : " classes=3", folds ? " folds=5" : "");
                described[0] = 0;
                svm_describe(&call, &fields);
                assert_string_equal(described, expected);
                assert_int_equal(svm_traits_layout(&call), 7);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(most_votes_decide),
                                       cmocka_unit_test(pairs_follow_each_other),
                                       cmocka_unit_test(the_work_is_that_of_all_pairs_and_folds),
                                       cmocka_unit_test(the_log_has_a_calls_fields)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
