/* Which parameters of libsvm are valid, and that nu must be feasible, beside plain versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "ops/svm/sklearn.h"

static const struct libsvm by_rand = {.shuffle = accel_shuffle_by_rand};

/* libsvm's svm_check_parameter(), without what depends on classes. */
static bool plain_check(const struct libsvm_parameter *p)
{
    const int s = p->svm_type, t = p->kernel_type;
    if (s < 0 || s > 4 || t < 0 || t > 4)
        return false;
    if ((t == SVM_POLY || t == SVM_RBF || t == SVM_SIGMOID) && p->gamma < 0)
        return false;
    if (t == SVM_POLY && p->degree < 0)
        return false;
    if (p->cache_size <= 0 || p->eps <= 0)
        return false;
    if ((s == SVM_C_SVC || s == SVM_EPSILON_SVR || s == SVM_NU_SVR) && p->C <= 0)
        return false;
    if ((s == SVM_NU_SVC || s == SVM_ONE_CLASS || s == SVM_NU_SVR) && (p->nu <= 0 || p->nu > 1))
        return false;
    if (s == SVM_EPSILON_SVR && p->p < 0)
        return false;
    return (p->shrinking == 0 || p->shrinking == 1) && (p->probability == 0 || p->probability == 1);
}

static void parameters_are_checked_as_libsvm_does(void **state)
{
    static const double some[] = {-1, -0.5, 0, 0.25, 1, 1.5};
    int valid = 0;
    (void)state;
    srand(2);
    for (int n = 0; n < 200000; n++) {
        struct libsvm_parameter p = {.svm_type = rand() % 5,
                                     .kernel_type = rand() % 5,
                                     .degree = 1,
                                     .gamma = 0.25,
                                     .cache_size = 1,
                                     .eps = 0.5,
                                     .C = 0.25,
                                     .nu = 0.5,
                                     .p = 0.25};
        for (int changes = rand() % 3; changes > 0; changes--) {
            const double to = some[rand() % 6];
            switch (rand() % 11) {
            case 0:
                p.svm_type = rand() % 7 - 1;
                break;
            case 1:
                p.kernel_type = rand() % 7 - 1;
                break;
            case 2:
                p.degree = rand() % 3 - 1;
                break;
            case 3:
                p.gamma = to;
                break;
            case 4:
                p.cache_size = to;
                break;
            case 5:
                p.eps = to;
                break;
            case 6:
                p.C = to;
                break;
            case 7:
                p.nu = to;
                break;
            case 8:
                p.p = to;
                break;
            case 9:
                p.shrinking = rand() % 4 - 1;
                break;
            default:
                p.probability = rand() % 4 - 1;
                break;
            }
        }
        if (libsvm_is_valid(&p) != plain_check(&p))
            fail_msg("type %d kernel %d degree %d gamma %g cache %g eps %g C %g nu %g p %g %d %d",
                     p.svm_type, p.kernel_type, p.degree, p.gamma, p.cache_size, p.eps, p.C, p.nu,
                     p.p, p.shrinking, p.probability);
        valid += libsvm_is_valid(&p);
    }
    assert_true(valid > 50000);
}

static void numbers_that_are_none_are_libsvms(void **state)
{
    static const double none[] = {NAN, INFINITY, -INFINITY};
    const struct libsvm_parameter right = {.svm_type = SVM_EPSILON_SVR,
                                           .kernel_type = SVM_POLY,
                                           .degree = 2,
                                           .gamma = 1,
                                           .cache_size = 1,
                                           .eps = 1,
                                           .C = 1,
                                           .nu = 0.5};
    (void)state;
    assert_true(libsvm_is_valid(&right));
    for (int i = 0; i < 3; i++) {
        struct libsvm_parameter p = right;
        p.gamma = none[i];
        assert_false(libsvm_is_valid(&p));
        p.kernel_type = SVM_LINEAR;
        assert_true(libsvm_is_valid(&p));
        p = right;
        p.coef0 = none[i];
        assert_false(libsvm_is_valid(&p));
        p.kernel_type = SVM_RBF;
        assert_true(libsvm_is_valid(&p));
        p = right;
        p.eps = none[i];
        assert_false(libsvm_is_valid(&p));
        p = right;
        p.C = none[i];
        assert_false(libsvm_is_valid(&p));
        p = right;
        p.p = none[i];
        assert_false(libsvm_is_valid(&p));
        p = right;
        p.svm_type = SVM_NU_SVC;
        p.nu = none[i];
        assert_false(libsvm_is_valid(&p));
    }
    struct libsvm_source source = {.library = &by_rand, .l = 3, .y = (double[]){1, 2, -3}};
    assert_true(libsvm_has_targets(&source, SVM_C_SVC));
    static const double last[][2] = {
        {INT_MAX, 0}, {INT_MIN, 0}, {1e300, 0}, {INT_MAX - 1., 1}, {INT_MIN + 1., 1}};
    for (int i = 0; i < 5; i++) {
        source.y = (double[]){1, 2, last[i][0]};
        assert_int_equal(libsvm_has_targets(&source, SVM_NU_SVC), (int)last[i][1]);
        assert_true(libsvm_has_targets(&source, SVM_NU_SVR));
    }
    source.y = (double[]){1, 2, NAN};
    assert_false(libsvm_has_targets(&source, SVM_ONE_CLASS));
}

/* Any two classes must have enough vectors for nu, or weigh enough. */
static void nu_must_be_feasible(void **state)
{
    struct libsvm_parameter p = {.svm_type = SVM_NU_SVC, .C = 1, .eps = 1};
    double y[10] = {1, 1, 1, 2, 2, 2, 2, 2, 2, 2}, weight[10];
    const struct libsvm_rows rows = {10, NULL, y};
    (void)state;
    for (int i = 0; i < 10; i++)
        weight[i] = i < 3 ? 4 : 2;
    for (int weighs = 0; weighs < 2; weighs++)
        for (int k = 1; k <= 100; k++) {
            const struct libsvm_source source = {
                .library = &by_rand, .l = 10, .y = y, .weight = weighs ? weight : NULL};
            const double first = weighs ? 12 : 3, second = weighs ? 14 : 7;
            struct svm_job job;
            p.nu = k / 100.;
            const bool made = libsvm_job_make(&source, &p, &rows, &job);
            assert_int_equal(made, p.nu * (first + second) / 2 <= first);
            if (made)
                svm_job_free(&job);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameters_are_checked_as_libsvm_does),
                                       cmocka_unit_test(numbers_that_are_none_are_libsvms),
                                       cmocka_unit_test(nu_must_be_feasible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
