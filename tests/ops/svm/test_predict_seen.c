/* Hints of which models are on the device, and what they were worth (ops/svm/predict_seen.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/svm/predict.h"

enum { VECTORS = 100, FEATURES = 5, MORE = 200 };

static struct libsvm_node nodes[FEATURES + 1];
static const struct libsvm_node *rows[MORE][VECTORS];

/* The number tells models apart by the address of their last vector. */
static struct svm_view view_of(int number)
{
    static struct libsvm_node lasts[MORE];
    for (int k = 0; k < FEATURES; k++)
        nodes[k] = (struct libsvm_node){3 * k + 1, 1};
    nodes[FEATURES].index = -1;
    for (int i = 0; i < VECTORS; i++)
        rows[number][i] = nodes;
    lasts[number].index = -1;
    rows[number][VECTORS - 1] = &lasts[number];
    return (struct svm_view){.vectors = VECTORS, .nodes = rows[number]};
}

static void calls_are_counted(void **state)
{
    const struct svm_view view = view_of(0);
    (void)state;
    for (int i = 1; i <= 5; i++) {
        const struct svm_admission s = svm_admission_look(&view);
        assert_int_equal(s.seen, i);
        assert_int_equal(s.features, 3 * FEATURES - 2);
        assert_int_equal(s.stored, FEATURES * VECTORS);
        assert_false(s.cached || s.refused);
    }
    svm_admission_put(&view, false);
    svm_admission_put(&view, false); /* by a thread that began at the same time */
    const struct svm_admission s = svm_admission_look(&view);
    assert_true(s.cached && s.misses == 0);
    svm_admission_refused(&view);
    assert_true(svm_admission_look(&view).refused);
}

/* One that is put there again and again is seen more often before the next time. */
static void what_changes_is_put_less_often(void **state)
{
    const struct svm_view view = view_of(1);
    (void)state;
    svm_admission_look(&view);
    svm_admission_put(&view, false);
    for (int misses = 1; misses <= 3; misses++) {
        assert_true(svm_admission_look(&view).cached);
        svm_admission_put(&view, true); /* it was not as it had been */
        const struct svm_admission s = svm_admission_look(&view);
        assert_false(s.cached);
        assert_int_equal(s.misses, misses);
        assert_int_equal(s.seen, 1);
        svm_admission_put(&view, false);
    }
    for (int i = 0; i < 8; i++) { /* that was worth it */
        svm_admission_look(&view);
        svm_admission_found(&view);
    }
    svm_admission_put(&view, true);
    const struct svm_admission s = svm_admission_look(&view);
    assert_int_equal(s.misses, 0);
    assert_true(s.cached);
}

static void the_oldest_is_forgotten(void **state)
{
    (void)state;
    for (int number = 2; number < MORE; number++) {
        const struct svm_view view = view_of(number), first = view_of(2);
        assert_int_equal(svm_admission_look(&view).seen, 1);
        svm_admission_look(&first);
    }
    const struct svm_view first = view_of(2), second = view_of(3);
    assert_true(svm_admission_look(&first).seen > 100);
    assert_int_equal(svm_admission_look(&second).seen, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(what_changes_is_put_less_often),
        cmocka_unit_test(the_oldest_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
