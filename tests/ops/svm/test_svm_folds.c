/* Folds of a cross-validation, and the shuffles of libsvm and scikit-learn that make them, beside
 * plain versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>

#include "ops/svm/sklearn.h"

/* ---- Shuffles ---- */

enum { DRAWN = 3000 };

/* Random numbers of std::mt19937, all at once: of x[i], x[i + 1] and x[i + 397]. */
static void twist(uint32_t seed, uint32_t *out)
{
    static uint32_t x[DRAWN + 624];
    x[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        x[i] = 1812433253u * (x[i - 1] ^ (x[i - 1] >> 30)) + i;
    for (int i = 0; i < DRAWN; i++) {
        const uint32_t y = (x[i] & 0x80000000u) + (x[i + 1] & 0x7fffffffu);
        x[i + 624] = x[i + 397] ^ (y >> 1) ^ (y % 2 ? 0x9908b0dfu : 0);
        uint32_t z = x[i + 624];
        z ^= z >> 11;
        z ^= (z << 7) & 0x9d2c5680u;
        z ^= (z << 15) & 0xefc60000u;
        out[i] = z ^ (z >> 18);
    }
}

static void scikit_learn_shuffles_by_mt19937(void **state)
{
    static const int counts[] = {0, 1, 2, 3, 10, 622, 623, 624, 625, 1300, 2500};
    static uint32_t drawn[DRAWN];
    (void)state;
    twist(5489, drawn);
    assert_true(drawn[0] == 3499211612u); /* as the C++ standard has them */
    for (unsigned seed = 0; seed < 3; seed++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            static int ours[DRAWN], plain[DRAWN];
            const int count = counts[n];
            int next = 0;
            twist(seed * 77, drawn);
            for (int i = 0; i < count; i++)
                ours[i] = plain[i] = 3 * i;
            for (int i = 0; i < count; i++) {
                const uint64_t range = (uint64_t)(count - i), least = (UINT64_C(1) << 32) % range;
                uint64_t product;
                do
                    product = drawn[next++] * range;
                while ((product & UINT32_MAX) < least);
                const int j = i + (int)(product >> 32), kept = plain[i];
                plain[i] = plain[j];
                plain[j] = kept;
            }
            sklearn_shuffle(ours, count, (int)seed * 77);
            assert_memory_equal(ours, plain, (size_t)count * sizeof *ours);
        }
}

/* ---- Folds ---- */

enum { ROWS = 100 };

static const struct libsvm by_rand = {.shuffle = accel_shuffle_by_rand};
static double target[ROWS];

static void plain_shuffle(int *place, int count)
{
    for (int i = 0; i < count; i++) {
        const int j = i + rand() % (count - i), kept = place[i];
        place[i] = place[j];
        place[j] = kept;
    }
}

static void folds_of_all_are_libsvms(void **state)
{
    (void)state;
    for (int rows = 1; rows <= ROWS; rows += 9)
        for (int count = 2; count <= 12; count++) {
            const struct libsvm_source source = {.library = &by_rand, .l = rows, .y = target};
            struct libsvm_folds folds;
            int plain[ROWS];
            for (int i = 0; i < rows; i++)
                plain[i] = i;
            srand((unsigned)rows);
            plain_shuffle(plain, rows);
            srand((unsigned)rows);
            assert_true(libsvm_fold_all(&source, rows, count, &folds));
            assert_int_equal(folds.count, count);
            for (int i = 0; i <= count; i++)
                assert_int_equal(folds.start[i], i * rows / count);
            assert_memory_equal(folds.place, plain, (size_t)rows * sizeof *plain);
            libsvm_folds_free(&folds);
            assert_true(!folds.place && !folds.start && folds.count == 0);
        }
    struct libsvm_folds none;
    const struct libsvm_source source = {.library = &by_rand, .l = ROWS, .y = target};
    assert_false(libsvm_fold_all(&source, ROWS, INT32_MAX / ROWS + 1, &none));
}

static void classes_are_folded_apart(void **state)
{
    (void)state;
    for (int count = 2; count <= 11; count += 3)
        for (int classes = 1; classes <= 4; classes++) {
            const struct libsvm_source source = {.library = &by_rand, .l = ROWS, .y = target};
            int start[4], numbers[4], row[ROWS], plain[ROWS], at = 0, first = 0;
            for (int c = 0; c < classes; c++) {
                start[c] = first;
                numbers[c] = c == classes - 1 ? ROWS - first : 7 * c + 3;
                first += numbers[c];
            }
            for (int i = 0; i < ROWS; i++)
                row[i] = plain[i] = (i * 37) % ROWS;
            const struct svm_classes all = {
                .count = classes, .start = start, .number = numbers, .row = row};
            struct libsvm_folds folds;
            srand(3);
            for (int c = 0; c < classes; c++)
                plain_shuffle(plain + start[c], numbers[c]);
            srand(3);
            assert_true(libsvm_fold_classes(&source, &all, count, &folds));
            for (int fold = 0; fold < count; fold++) {
                assert_int_equal(folds.start[fold], at);
                for (int c = 0; c < classes; c++)
                    for (int k = fold * numbers[c] / count; k < (fold + 1) * numbers[c] / count;
                         k++)
                        assert_int_equal(folds.place[at++], plain[start[c] + k]);
            }
            assert_int_equal(folds.start[count], at);
            assert_int_equal(at, ROWS);
            libsvm_folds_free(&folds);
            assert_false(libsvm_fold_classes(&source, &all, INT32_MAX / ROWS + 1, &folds));
        }
}

/* Rows and targets of the training without the fold. */
static void a_folds_job_is_of_all_others(void **state)
{
    const struct libsvm_parameter parameter = {.svm_type = SVM_EPSILON_SVR,
                                               .kernel_type = SVM_RBF,
                                               .gamma = 0.5,
                                               .C = 2,
                                               .eps = 0.125,
                                               .p = 0.25};
    const struct libsvm_source source = {
        .library = &by_rand, .l = ROWS, .y = target, .max_iterations = 9};
    const struct libsvm_rows rows = {ROWS, NULL, target};
    struct libsvm_folds folds;
    (void)state;
    assert_true(libsvm_fold_all(&source, ROWS, 7, &folds));
    for (int fold = 0; fold < 7; fold++) {
        struct svm_job job;
        assert_true(libsvm_fold_job(&source, &parameter, &folds, fold, &rows, &job));
        const int first = folds.start[fold], after = folds.start[fold + 1];
        assert_int_equal(job.classes.count, 1);
        assert_int_equal(job.classes.number[0], ROWS - (after - first));
        for (int i = 0; i < job.classes.number[0]; i++)
            assert_int_equal(job.classes.row[i], folds.place[i < first ? i : i + after - first]);
        assert_true(job.training.c == 2 && job.training.eps == 0.125 && job.training.p == 0.25 &&
                    job.training.kernel.gamma == 0.5 && job.training.max_iterations == 9);
        svm_job_free(&job);
        assert_null(job.functions);
    }
    libsvm_folds_free(&folds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scikit_learn_shuffles_by_mt19937),
                                       cmocka_unit_test(folds_of_all_are_libsvms),
                                       cmocka_unit_test(classes_are_folded_apart),
                                       cmocka_unit_test(a_folds_job_is_of_all_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
