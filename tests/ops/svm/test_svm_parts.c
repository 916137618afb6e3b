/*
 * What training is made of, beside plain versions: sigmoids, folds, scikit-learn's shuffle, which
 * parameters are valid, what a call costs and says, and what decisions mean.
 */
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

#include "ops/svm/fit.h"
#include "ops/svm/libsvm.h"
#include "ops/svm/sklearn.h"
#include "ops/svm/train.h"

static double number(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

/* ---- Sigmoids ---- */

/* Appendix C of Lin, Lin, Weng, "A note on Platt's probabilistic outputs", line by line. */
static const char *plain_sigmoid(int count, const double *dec, const double *label, double *a,
                                 double *b)
{
    double t[200], prior1 = 0, prior0 = 0;
    for (int i = 0; i < count; i++)
        *(label[i] > 0 ? &prior1 : &prior0) += 1;
    for (int i = 0; i < count; i++)
        t[i] = label[i] > 0 ? (prior1 + 1) / (prior1 + 2) : 1 / (prior0 + 2);
    *a = 0;
    *b = log((prior0 + 1) / (prior1 + 1));
    double value = 0;
    for (int i = 0; i < count; i++) {
        const double f = dec[i] * *a + *b;
        value += f >= 0 ? t[i] * f + log(1 + exp(-f)) : (t[i] - 1) * f + log(1 + exp(f));
    }
    for (int it = 0; it < 100; it++) {
        double h11 = 1e-12, h22 = 1e-12, h21 = 0, g1 = 0, g2 = 0;
        for (int i = 0; i < count; i++) {
            const double f = dec[i] * *a + *b;
            const double p = f >= 0 ? exp(-f) / (1 + exp(-f)) : 1 / (1 + exp(f));
            const double q = f >= 0 ? 1 / (1 + exp(-f)) : exp(f) / (1 + exp(f));
            h11 += dec[i] * dec[i] * p * q;
            h22 += p * q;
            h21 += dec[i] * p * q;
            g1 += dec[i] * (t[i] - p);
            g2 += t[i] - p;
        }
        if (fabs(g1) < 1e-5 && fabs(g2) < 1e-5)
            return "";
        const double det = h11 * h22 - h21 * h21;
        const double da = -(h22 * g1 - h21 * g2) / det, db = -(-h21 * g1 + h11 * g2) / det;
        const double gd = g1 * da + g2 * db;
        double step = 1;
        for (; step >= 1e-10; step /= 2) {
            const double new_a = *a + step * da, new_b = *b + step * db;
            double there = 0;
            for (int i = 0; i < count; i++) {
                const double f = dec[i] * new_a + new_b;
                there += f >= 0 ? t[i] * f + log(1 + exp(-f)) : (t[i] - 1) * f + log(1 + exp(f));
            }
            if (there < value + 0.0001 * step * gd) {
                *a = new_a;
                *b = new_b;
                value = there;
                break;
            }
        }
        if (step < 1e-10)
            return "Line search fails in two-class probability estimates\n";
    }
    return "Reaching maximal iterations in two-class probability estimates\n";
}

static void assert_same_sigmoid(int count, const double *decisions, const double *labels)
{
    double a, b, plain_a, plain_b;
    const char *said = libsvm_sigmoid(count, decisions, labels, &a, &b);
    assert_string_equal(said, plain_sigmoid(count, decisions, labels, &plain_a, &plain_b));
    assert_true(fabs(a - plain_a) <= 1e-6 * (1 + fabs(plain_a)));
    assert_true(fabs(b - plain_b) <= 1e-6 * (1 + fabs(plain_b)));
}

static void a_sigmoid_is_platts(void **state)
{
    double decisions[200], labels[200];
    (void)state;
    srand(1);
    for (int n = 0; n < 300; n++) {
        const int count = 1 + rand() % 200;
        const double size = pow(10, number(-2, 2)), shift = number(-2, 2), noise = number(0, 3);
        for (int i = 0; i < count; i++) {
            labels[i] = rand() % 3 ? 1 : -1;
            decisions[i] = size * (labels[i] + shift + noise * number(-1, 1));
        }
        assert_same_sigmoid(count, decisions, labels);
    }
    /* One class alone, and values that say nothing */
    for (int i = 0; i < 9; i++) {
        labels[i] = 1;
        decisions[i] = 0;
    }
    assert_same_sigmoid(9, decisions, labels);
    labels[0] = -1;
    assert_same_sigmoid(9, decisions, labels);
}

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

/* ---- Parameters ---- */

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

/* ---- Vectors ---- */

static struct libsvm_node nodes[3][6];
static struct libsvm_node *x[3] = {nodes[0], nodes[1], nodes[2]};

static bool is_measured(bool precomputed, struct libsvm_size *size)
{
    const struct libsvm_problem problem = {3, target, x};
    return libsvm_measure(&problem, precomputed, size);
}

static void begin_vectors(int base)
{
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            nodes[i][j] = (struct libsvm_node){base + j * (i + 1), i + 10 * j};
        nodes[i][3].index = -1;
    }
}

static void vectors_are_measured(void **state)
{
    struct libsvm_size size;
    (void)state;
    for (int base = 0; base < 3; base++) {
        begin_vectors(base);
        assert_true(is_measured(false, &size));
        assert_int_equal(size.base, base > 0);
        assert_int_equal(size.features, base + 6 + (base == 0));
        assert_int_equal(size.stored, 9);
    }
#define WRONG(change)                                                                              \
    begin_vectors(1);                                                                              \
    assert_true(is_measured(false, &size));                                                        \
    change;                                                                                        \
    assert_false(is_measured(false, &size))
    WRONG(nodes[1][1].index = nodes[1][0].index);
    WRONG(nodes[1][2].index = INT_MAX);
    WRONG(nodes[1][2].value = NAN);
    WRONG(nodes[1][2].value = INFINITY);
    WRONG(nodes[1][0].index = -2);
    WRONG(x[2] = NULL);
    x[2] = nodes[2];
    for (int i = 0; i < 3; i++)
        nodes[i][0].index = -1;
    assert_false(is_measured(false, &size));
}

/* A vector's first node tells its place in all others. */
static void given_kernels_are_measured(void **state)
{
    static const double wrong[] = {0, 0.5, -1, 4, 1e10, NAN};
    struct libsvm_size size;
    struct svm_matrix m;
    const struct libsvm_problem problem = {3, target, x};
    (void)state;
    for (int n = -1; n < 6; n++) {
        for (int i = 0; i < 3; i++) {
            nodes[i][0] = (struct libsvm_node){0, 3 - i};
            for (int j = 1; j <= 3; j++)
                nodes[i][j] = (struct libsvm_node){j, 10 * i + j};
            nodes[i][4].index = -1;
        }
        if (n >= 0)
            nodes[1][0].value = wrong[n];
        assert_int_equal(is_measured(true, &size), n < 0);
        if (n >= 0)
            continue;
        assert_true(size.features == 3 && size.stored == 9);
        assert_true(libsvm_vectors(&problem, true, &size, &m));
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                assert_true(m.dense[3 * i + j] == 10 * i + 3 - j);
        svm_matrix_free(&m);
    }
    nodes[1][0].value = 2;
    nodes[1][0].index = 1;
    nodes[1][1].index = 2;
    nodes[1][2].index = 3;
    nodes[1][3].index = 4;
    assert_false(is_measured(true, &size));
    nodes[1][0].index = -1; /* empty */
    assert_false(is_measured(true, &size));
    x[1] = NULL;
    assert_false(is_measured(true, &size));
    x[1] = nodes[1];
}

static void vectors_become_matrices(void **state)
{
    const struct libsvm_problem problem = {3, target, x};
    struct libsvm_size size;
    struct svm_matrix m;
    (void)state;
    for (int base = 0; base < 2; base++)
        for (int wide = 0; wide < 2; wide++) {
            begin_vectors(base);
            nodes[2][2].index = wide ? 25 + base : nodes[2][2].index;
            assert_true(is_measured(false, &size));
            assert_int_equal(libsvm_is_dense(3, &size), !wide);
            assert_true(libsvm_vectors(&problem, false, &size, &m));
            assert_int_equal(!m.dense, wide);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    const int column = nodes[i][j].index - base, at = 3 * i + j;
                    if (wide)
                        assert_true(m.start[i] == 3 * i && m.column[at] == column &&
                                    m.value[at] == nodes[i][j].value);
                    else
                        assert_true(m.dense[i * m.features + column] == nodes[i][j].value);
                }
            assert_true(!wide || m.start[3] == 9);
            svm_matrix_free(&m);
        }
    /* Eight times as large as its elements is dense still */
    size = (struct libsvm_size){.features = 80, .stored = 100};
    assert_true(libsvm_is_dense(10, &size));
    size.features = 81;
    assert_false(libsvm_is_dense(10, &size));
}

static void classes_have_the_librarys_order(void **state)
{
    static const double y[] = {-1, 1, 1, -1, 1, -1, -1}, z[] = {7, 3, 5, 3, 7, 5, 5};
    static const int rows_of_y[] = {0, 3, 5, 6, 1, 2, 4}, swapped[] = {1, 2, 4, 0, 3, 5, 6};
    static const int rows_of_z[] = {0, 4, 1, 3, 2, 5, 6}, sorted[] = {1, 3, 2, 5, 6, 0, 4};
    const struct {
        struct libsvm library;
        const double *y;
        int label[3];
        const int *row;
    } cases[] = {{{.swaps = false}, y, {-1, 1}, rows_of_y},
                 {{.swaps = true}, y, {1, -1}, swapped},
                 {{.swaps = true}, z, {7, 3, 5}, rows_of_z},
                 {{.sorts = true}, z, {3, 5, 7}, sorted},
                 {{.sorts = true}, y, {-1, 1}, rows_of_y}};
    (void)state;
    for (int n = 0; n < 5; n++) {
        const struct libsvm_rows rows = {7, NULL, cases[n].y};
        struct svm_classes classes;
        assert_true(libsvm_group(&cases[n].library, &rows, true, &classes));
        assert_int_equal(classes.count, cases[n].y == y ? 2 : 3);
        int at = 0;
        for (int c = 0; c < classes.count; c++) {
            assert_int_equal(classes.label[c], cases[n].label[c]);
            assert_int_equal(classes.start[c], at);
            for (int k = 0; k < classes.number[c]; k++, at++) {
                assert_int_equal(classes.row[at], cases[n].row[at]);
                assert_true(cases[n].y[classes.row[at]] == classes.label[c]);
            }
        }
        assert_int_equal(at, 7);
        svm_classes_free(&classes);
        assert_true(libsvm_group(&cases[n].library, &rows, false, &classes));
        assert_true(classes.count == 1 && classes.number[0] == 7 && !classes.label);
        svm_classes_free(&classes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sigmoid_is_platts),
                                       cmocka_unit_test(scikit_learn_shuffles_by_mt19937),
                                       cmocka_unit_test(folds_of_all_are_libsvms),
                                       cmocka_unit_test(classes_are_folded_apart),
                                       cmocka_unit_test(a_folds_job_is_of_all_others),
                                       cmocka_unit_test(parameters_are_checked_as_libsvm_does),
                                       cmocka_unit_test(numbers_that_are_none_are_libsvms),
                                       cmocka_unit_test(nu_must_be_feasible),
                                       cmocka_unit_test(most_votes_decide),
                                       cmocka_unit_test(pairs_follow_each_other),
                                       cmocka_unit_test(the_work_is_that_of_all_pairs_and_folds),
                                       cmocka_unit_test(the_log_has_a_calls_fields),
                                       cmocka_unit_test(vectors_are_measured),
                                       cmocka_unit_test(given_kernels_are_measured),
                                       cmocka_unit_test(vectors_become_matrices),
                                       cmocka_unit_test(classes_have_the_librarys_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
