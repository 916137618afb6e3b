/* The folds of a cross-validation, and rand()'s state (ops/folds.h). */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/folds.h"

/* libsvm's and liblinear's own loop. */
static void a_shuffle_is_the_libraries(void **state)
{
    (void)state;
    for (int count = 0; count <= 40; count++) {
        int ours[40], theirs[40];
        for (int i = 0; i < count; i++)
            ours[i] = theirs[i] = i;
        srand((unsigned)count);
        for (int i = 0; i < count; i++) {
            const int j = i + rand() % (count - i), kept = theirs[i];
            theirs[i] = theirs[j];
            theirs[j] = kept;
        }
        const int next = rand();
        srand((unsigned)count);
        accel_shuffle_by_rand(ours, count, 7);
        assert_memory_equal(ours, theirs, (size_t)count * sizeof *ours);
        assert_int_equal(rand(), next);
    }
}

/* i * l / nr_fold, and beyond the int of the libraries. */
static void places_of_folds(void **state)
{
    (void)state;
    for (int rows = 0; rows < 30; rows++)
        for (int folds = 1; folds <= 6; folds++)
            for (int fold = 0; fold <= folds; fold++)
                assert_int_equal(accel_fold_start(fold, rows, folds), fold * rows / folds);
    assert_int_equal(accel_fold_start(3, INT32_MAX, 4), 1610612735);
    assert_int_equal(accel_fold_start(4, INT32_MAX, 4), INT32_MAX);
}

/* With each size of state that initstate(3) knows, after some numbers: the same numbers come again,
 * and what was drawn between keeping and putting back has no effect on them. */
static void numbers_come_again(void **state)
{
    static const size_t sizes[] = {8, 32, 64, 128, 256};
    static _Alignas(8) char memory[5][256];
    (void)state;
    for (int i = 0; i < 5; i++)
        for (int drawn = 0; drawn < 70; drawn += 23) {
            struct accel_rand kept;
            int next[100];
            char *const before = initstate((unsigned)(i + 5), memory[i], sizes[i]);
            for (int k = 0; k < drawn; k++)
                rand();
            accel_rand_keep(&kept);
            for (int k = 0; k < 100; k++)
                next[k] = rand();
            accel_rand_put_back(&kept);
            for (int k = 0; k < 100; k++)
                assert_int_equal(rand(), next[k]);
            /* Keeping draws none. */
            srand(9);
            const int first = rand();
            srand(9);
            accel_rand_keep(&kept);
            assert_int_equal(rand(), first);
            assert_ptr_equal(setstate(before), memory[i]); /* it is still the program's */
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_shuffle_is_the_libraries),
                                       cmocka_unit_test(places_of_folds),
                                       cmocka_unit_test(numbers_come_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
