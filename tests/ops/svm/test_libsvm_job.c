/* ops/svm: what is libsvm's, and scikit-learn's, because of its size; lines of large numbers. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/svm/libsvm.h"
#include "ops/svm/sklearn.h"

/* So many classes have 2^15 functions by arithmetic of 32 bits. */
enum { ROWS = 65537 };

static struct libsvm_node node[2] = {{1, 1}, {-1, 0}}, *vector[ROWS];
static double target[ROWS], weight[ROWS], value = 1;
static const struct libsvm_model_layout layout;
static char said[2000];

static void note(const char *text)
{
    snprintf(said, sizeof said, "%s", text);
}
static libsvm_print *volatile print = note;
static const struct libsvm library = {
    .model = &layout, .print = &print, .shuffle = accel_shuffle_by_rand};

/* Rows of so many classes, one after the other. */
static struct libsvm_problem rows_of(int rows, int classes)
{
    for (int i = 0; i < rows; i++) {
        vector[i] = node;
        target[i] = i % classes;
    }
    return (struct libsvm_problem){rows, target, vector};
}

static bool is_taken(int rows, int classes, int probability)
{
    const struct libsvm_parameter parameter = {
        .cache_size = 1, .eps = 1e-3, .C = 1, .probability = probability};
    const struct libsvm_problem problem = rows_of(rows, classes);
    struct libsvm_size size;
    struct svm_job job;
    const bool taken = libsvm_takes(&library, &problem, &parameter, &size, &job);
    if (taken) {
        assert_int_equal(svm_job_functions(&job), classes * (classes - 1) / 2);
        svm_job_free(&job);
    }
    return taken;
}

static void as_many_functions_as_an_int_counts(void **state)
{
    (void)state;
    assert_true(is_taken(ROWS, 1000, 0));
    assert_false(is_taken(ROWS, ROWS, 0));
}

static bool is_read(int rows, int classes)
{
    static struct sklearn_node dense[ROWS];
    static const struct sklearn dense_one = {.libsvm = {.sorts = true}};
    const struct sklearn_parameter parameter = {.libsvm = {.C = 1}};
    rows_of(rows, classes);
    for (int i = 0; i < rows; i++) {
        dense[i] = (struct sklearn_node){.features = 1, .row = i, .values = &value};
        weight[i] = 1;
    }
    const struct sklearn_problem problem = {rows, target, {dense}, weight};
    struct sklearn_fit fit = {.library = &dense_one, .problem = &problem, .parameter = &parameter};
    struct svm_job job = {.functions = NULL};
    const bool read = sklearn_read(&fit, false, &job);
    svm_job_free(&job);
    sklearn_release(&fit);
    return read;
}

static void the_same_of_scikit_learn(void **state)
{
    (void)state;
    assert_true(is_read(ROWS, 1000));
    assert_false(is_read(ROWS, ROWS));
}

/* The decisions of all folds' functions are in memory at once. */
static void as_many_decisions_as_memory_holds(void **state)
{
    (void)state;
    assert_true(is_taken(600, 200, 1));
    assert_true(is_taken(600, 300, 0));
    assert_false(is_taken(600, 300, 1));
}

/* libsvm makes as many folds as rows, if there are fewer than 5. */
static void no_regression_has_empty_folds(void **state)
{
    const struct libsvm_parameter parameter = {
        .svm_type = SVM_EPSILON_SVR, .cache_size = 1, .eps = 1e-3, .C = 1};
    (void)state;
    for (int rows = 4; rows <= 5; rows++) {
        const struct libsvm_problem problem = rows_of(rows, rows);
        const struct libsvm_source source = libsvm_source_of(&library, &problem);
        struct svm_job jobs[1 + LIBSVM_FOLDS] = {{.functions = NULL}};
        struct libsvm_group *group = calloc(1, sizeof *group);
        assert_int_equal(libsvm_make_groups(&source, &parameter, jobs + 1, group), rows == 5);
        libsvm_groups_free(group, 1);
        for (int i = 0; i <= LIBSVM_FOLDS; i++)
            svm_job_free(&jobs[i]);
    }
}

/* libsvm's solve_nu_svr(): rounded in another order, a sum takes another way to the solution. */
static void nu_regression_starts_where_libsvm_does(void **state)
{
    (void)state;
    for (int k = 0; k < 200; k++) {
        const int rows = 20 + k;
        struct svm_training training = {
            .type = SVM_NU_SVR, .target = target, .c = 0.956864 + k / 7.0, .nu = 0.246406};
        int first = 0, number = rows, row[220];
        const struct svm_classes all = {.count = 1, .start = &first, .number = &number, .row = row};
        struct smo_problem q;
        for (int i = 0; i < rows; i++)
            row[i] = i;
        assert_true(svm_problem_of(&q, &training, &all, 0, 0));
        double left = training.c * training.nu * rows / 2;
        for (int i = 0; i < rows; i++) {
            const double alpha = training.c < left ? training.c : left;
            assert_true(q.alpha[i] == alpha && q.alpha[i + rows] == alpha);
            left -= alpha;
        }
        free(q.alpha);
    }
}

static void lines_are_whole(void **state)
{
    (void)state;
    libsvm_say(&library, "obj = %f, rho = %f\n", -DBL_MAX, -DBL_MAX);
    assert_true(strlen(said) > 600 && said[strlen(said) - 1] == '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_many_functions_as_an_int_counts),
                                       cmocka_unit_test(the_same_of_scikit_learn),
                                       cmocka_unit_test(as_many_decisions_as_memory_holds),
                                       cmocka_unit_test(no_regression_has_empty_folds),
                                       cmocka_unit_test(nu_regression_starts_where_libsvm_does),
                                       cmocka_unit_test(lines_are_whole)};
    return cmocka_run_group_tests_name("ops/svm", tests, NULL, NULL);
}
