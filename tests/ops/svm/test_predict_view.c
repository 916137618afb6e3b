/* What a prediction reads of a model (ops/svm/predict_view.c): which models and vectors are the
 * library's own, the support vectors of each function, and a vector as the device gets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <string.h>

#include "ops/svm/predict.h"

enum { CLASSES = 3, VECTORS = 6, FEATURES = 4 };

static double coefficients[CLASSES - 1][VECTORS], *coefficient[CLASSES - 1], rho[CLASSES];
static int label[CLASSES], counts[CLASSES];
static double value[VECTORS + 1][FEATURES];
static struct sklearn_node dense[VECTORS + 1]; /* the last one is the vector to predict */
static struct libsvm_node node[VECTORS + 1][FEATURES + 1];
static struct libsvm_node *row[VECTORS + 1];
static struct sklearn_model model;

static int begin(void **state)
{
    (void)state;
    for (int c = 0; c < CLASSES; c++) {
        label[c] = c;
        counts[c] = c + 1;
    }
    for (int c = 0; c < CLASSES - 1; c++)
        coefficient[c] = coefficients[c];
    for (int i = 0; i <= VECTORS; i++) {
        for (int k = 0; k < FEATURES; k++) {
            value[i][k] = 10 * i + k + 1;
            node[i][k] = (struct libsvm_node){k + 1, value[i][k]};
        }
        node[i][FEATURES] = (struct libsvm_node){-1, 0};
        dense[i] = (struct sklearn_node){FEATURES, i, value[i]};
        row[i] = node[i];
    }
    model = (struct sklearn_model){.parameter.libsvm = {.kernel_type = SVM_RBF, .gamma = 0.5},
                                   .classes = CLASSES,
                                   .support = VECTORS,
                                   .coefficient = coefficient,
                                   .rho = rho,
                                   .label = label,
                                   .support_of = counts};
    return 0;
}

static bool is_viewed(bool csr, struct svm_view *view)
{
    model.vectors = csr ? (void *)row : dense;
    return csr ? svm_view_of(view, SVM_VIEW_SKLEARN_CSR, &model, row[VECTORS])
               : svm_view_of(view, SVM_VIEW_SKLEARN, &model, &dense[VECTORS]);
}

/* Each changes one thing of a model and a vector that are taken. */
#define CHANGED(csr, change, taken)                                                                \
    do {                                                                                           \
        struct svm_view view;                                                                      \
        begin(NULL);                                                                               \
        assert_true(is_viewed(csr, &view));                                                        \
        change;                                                                                    \
        if (is_viewed(csr, &view) != (taken))                                                      \
            fail_msg("%s: %s", #change, (taken) ? "refused" : "taken");                            \
    } while (0)
#define BOTH(change, taken)                                                                        \
    do {                                                                                           \
        CHANGED(false, change, taken);                                                             \
        CHANGED(true, change, taken);                                                              \
    } while (0)

static void models_are_sound(void **state)
{
    struct libsvm_parameter *const p = &model.parameter.libsvm;
    (void)state;
    BOTH(model.support = 0, false);
    BOTH(model.coefficient = NULL, false);
    BOTH(coefficient[0] = NULL, false);
    BOTH(coefficient[1] = NULL, false);
    BOTH(model.rho = NULL, false);
    BOTH(model.label = NULL, false);
    BOTH(model.support_of = NULL, false);
    BOTH(counts[0] = -1, false);
    BOTH(counts[0] = 0, true);
    BOTH(counts[2] = 4, false); /* more than there are */
    BOTH(model.classes = 1, false);
    BOTH(model.classes = 2, true);
    BOTH(p->svm_type = SVM_NU_SVC, true);
    BOTH(p->svm_type = SVM_C_SVC - 1, false);
    BOTH(p->svm_type = SVM_NU_SVR + 1, false);
    /* What has no classes has no labels */
    BOTH(model.label = NULL; model.support_of = NULL; p->svm_type = SVM_EPSILON_SVR, true);
    BOTH(model.label = NULL; model.support_of = NULL; p->svm_type = SVM_ONE_CLASS, true);
    BOTH(p->gamma = INFINITY, false);
    BOTH(p->coef0 = NAN, true);
    BOTH(p->gamma = NAN; p->coef0 = NAN; p->kernel_type = SVM_LINEAR, true);
    for (int kernel = SVM_LINEAR; kernel <= SVM_SIGMOID; kernel++)
        BOTH(p->kernel_type = kernel, true);
    BOTH(p->kernel_type = SVM_PRECOMPUTED, false);
    for (int kernel = SVM_POLY; kernel <= SVM_SIGMOID; kernel += SVM_SIGMOID - SVM_POLY) {
        BOTH(p->kernel_type = kernel; p->gamma = NAN, false);
        BOTH(p->kernel_type = kernel; p->coef0 = -INFINITY, false);
    }
}

static void vectors_are_sound(void **state)
{
    struct libsvm_node *const x = node[VECTORS];
    struct sklearn_node *const d = &dense[VECTORS];
    (void)state;
    CHANGED(true, x[1].index = x[0].index, false);
    CHANGED(true, x[1].index = 0, false);
    CHANGED(true, x[0].index = 0, true);
    CHANGED(true, x[0].index = -2, false);
    CHANGED(true, x[FEATURES - 1].index = INT_MAX, true); /* of no support vector */
    CHANGED(true, x[0].index = -1, true);                 /* empty */
    CHANGED(true, x[FEATURES - 1].value = NAN, false);
    CHANGED(true, x[0].value = INFINITY, false);
    CHANGED(true, x[1].index = -1; x[2].value = NAN, true); /* behind its end */
    CHANGED(false, d->features--, false);
    CHANGED(false, d->features = dense[0].features = 0, false);
    CHANGED(false, d->values = NULL, false);
    CHANGED(false, value[VECTORS][FEATURES - 1] = NAN, false);
    CHANGED(false, value[VECTORS][0] = -INFINITY, false);
    for (int csr = 0; csr < 2; csr++) {
        struct svm_view view;
        begin(NULL);
        assert_true(is_viewed(csr, &view));
        assert_false(svm_view_of(&view, SVM_VIEW_SKLEARN + csr, NULL, view.x));
        assert_false(svm_view_of(&view, SVM_VIEW_SKLEARN + csr, &model, NULL));
        model.vectors = NULL;
        assert_false(svm_view_of(&view, SVM_VIEW_SKLEARN + csr, &model, view.x));
    }
}

/* Of classes i < j, the vectors of class i have coefficients in row j - 1, those of j in row i. */
static void functions_have_their_vectors(void **state)
{
    const int64_t first[CLASSES] = {0, 1, 3};
    struct svm_view view;
    struct svm_range range[2];
    (void)state;
    assert_true(is_viewed(false, &view));
    assert_int_equal(svm_view_functions(&view), CLASSES * (CLASSES - 1) / 2);
    for (int i = 0; i < CLASSES; i++)
        for (int j = i + 1; j < CLASSES; j++) {
            svm_view_ranges(&view, first, i, j, range);
            for (int side = 0; side < 2; side++) {
                const int class = side ? j : i;
                assert_int_equal(range[side].first, first[class]);
                assert_int_equal(range[side].count, counts[class]);
                assert_ptr_equal(range[side].coefficient,
                                 &coefficients[side ? i : j - 1][first[class]]);
            }
        }
    model.parameter.libsvm.svm_type = SVM_NU_SVR;
    model.classes = 2;
    assert_true(is_viewed(false, &view));
    assert_int_equal(svm_view_functions(&view), 1);
    svm_view_ranges(&view, NULL, 0, 0, range);
    assert_ptr_equal(range[0].coefficient, coefficients[0]);
    assert_true(range[0].first == 0 && range[0].count == VECTORS && range[1].count == 0);
}

/* Elements of features that no support vector has, and all of sparse vectors, count as squares. */
static void a_vector_is_spread(void **state)
{
    struct svm_view view;
    struct libsvm_size size;
    struct svm_matrix m;
    double v[64];
    (void)state;
    assert_true(is_viewed(false, &view));
    assert_int_equal(svm_view_vectors(&view, &size, &m), GPU_OK);
    assert_true(size.features == FEATURES && size.stored == FEATURES * VECTORS && size.base == 0);
    assert_memory_equal(m.dense, value, VECTORS * sizeof value[0]);
    svm_matrix_free(&m);
    assert_true(svm_view_vector(&view, &size, v) == 0);
    assert_memory_equal(v, value[VECTORS], sizeof value[VECTORS]);
    value[VECTORS - 1][FEATURES - 1] = NAN;
    assert_int_equal(svm_view_vectors(&view, &size, &m), GPU_UNSUPPORTED);
    for (int wide = 0; wide < 2; wide++) {
        begin(NULL);
        node[VECTORS][FEATURES - 1].index = 70;
        if (wide)
            node[0][FEATURES - 1].index = 60;
        assert_true(is_viewed(true, &view));
        assert_int_equal(svm_view_vectors(&view, &size, &m), GPU_OK);
        svm_matrix_free(&m);
        assert_int_equal(size.features, wide ? 60 : FEATURES);
        assert_int_equal(svm_view_is_sparse(&view, &size), wide);
        double rest = 0;
        for (int k = wide ? 0 : FEATURES - 1; k < FEATURES; k++)
            rest += node[VECTORS][k].value * node[VECTORS][k].value;
        assert_true(svm_view_vector(&view, &size, v) == rest);
        for (int k = 0; k < size.features; k++)
            assert_true(v[k] == (k < FEATURES - 1 ? node[VECTORS][k].value : 0));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {TEST(models_are_sound), TEST(vectors_are_sound),
                                       TEST(functions_have_their_vectors),
                                       TEST(a_vector_is_spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
