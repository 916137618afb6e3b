/*
 * svm_train() and svm_cross_validation() on the test GPU, beside libsvm's own in the same process:
 * models, lines, the numbers that rand() gives next, failures of memory, and what is left behind.
 * scikit-learn's copy beside libsvm's model. Folds, shuffles and sigmoids beside plain ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/device/own.h"
#include "ops/svm/fit.h"
#include "ops/svm/judge.h"
#include "ops/svm/libsvm.h"
#include "ops/svm/sklearn.h"
#include "ops/svm/train.h"
#include "tests/lib/device_work.h"
#include "tests/lib/watched_memory.h"

/* ---- The libraries ---- */

static void *handle;
static struct libsvm_model *(*own_train)(const struct libsvm_problem *,
                                         const struct libsvm_parameter *);
static void (*own_cross)(const struct libsvm_problem *, const struct libsvm_parameter *, int,
                         double *);
static double (*own_values)(const struct libsvm_model *, const struct libsvm_node *, double *);
static void (*destroy)(struct libsvm_model **);
static void (*print_by)(void (*)(const char *));

static void *symbol(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    return dlsym(handle, name);
}

static const char *no_path(const struct accel_provider *provider)
{
    (void)provider;
    return "";
}

static bool refers(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    return strcmp(name, "rand") == 0;
}

static char packages[] = "/tmp/test_svm.XXXXXX", object[sizeof packages + 64];
static char dense_train, csr_train; /* never called */
static int seeded;

static void set_seed(unsigned seed)
{
    seeded = (int)seed;
}

static void *sklearn_symbol(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    if (strcmp(name, "libsvm_version") == 0 || strcmp(name, "R_init_e1071") == 0)
        return NULL;
    if (strcmp(name, "set_seed") == 0)
        return (void *)(uintptr_t)set_seed;
    if (strcmp(name, "svm_csr_train") == 0)
        return &csr_train;
    return strncmp(name, "_Z", 2) == 0 ? &dense_train : dlsym(handle, name);
}

static const char *sklearn_path(const struct accel_provider *provider)
{
    (void)provider;
    return object;
}

static struct accel_provider provider = {NULL, symbol, no_path, refers};
static struct accel_provider of_dense = {&dense_train, sklearn_symbol, sklearn_path, refers};
static struct accel_provider of_csr = {&csr_train, sklearn_symbol, sklearn_path, refers};
static int layout, dense_layout, csr_layout;

static int start_libraries(void **state)
{
    char metadata[sizeof object];
    setenv("TESTGPU_DELAY_US", "0", 0);
    handle = dlopen("libsvm.so.3", RTLD_NOW);
    if (!handle || !mkdtemp(packages))
        return -1;
    *(void **)&own_train = provider.function = dlsym(handle, "svm_train");
    *(void **)&own_cross = dlsym(handle, "svm_cross_validation");
    *(void **)&own_values = dlsym(handle, "svm_predict_values");
    *(void **)&destroy = dlsym(handle, "svm_free_and_destroy_model");
    *(void **)&print_by = dlsym(handle, "svm_set_print_string_function");
    snprintf(object, sizeof object, "%s/sklearn/svm/_libsvm.so", packages);
    snprintf(metadata, sizeof metadata, "%s/scikit_learn-1.5.0.dist-info", packages);
    mkdir(metadata, 0700);
    layout = op_svm_train.foreign->accepts(&provider);
    dense_layout = op_svm_train.foreign->accepts(&of_dense);
    csr_layout = op_svm_train.foreign->accepts(&of_csr);
    rmdir(metadata);
    rmdir(packages);
    return layout > 0 && dense_layout > layout && csr_layout > dense_layout ? start_work(state)
                                                                            : -1;
}

/* ---- Lines ---- */

enum { TEXT = 1 << 16 };
static char text[TEXT];
static size_t length;

/* What depends on the solver's steps is left out: dots, stars, and advice to shrink less. */
static void note(const char *line)
{
    if (strcmp(line, ".") != 0 && strcmp(line, "*") != 0 &&
        !strstr(line, "using -h 0 may be faster"))
        length += (size_t)snprintf(text + length, TEXT - length, "%s", line);
    assert_true(length < TEXT - 2048);
}

static void listen(void)
{
    length = 0;
    text[0] = 0;
    print_by(note);
}

/* Words are equal, and numbers are equal within eps. Counts of iterations and of support vectors
 * may differ, since a problem may have several solutions. */
static void assert_same_lines(const char *a, const char *b, const char *what)
{
    bool any = false;
    while (*a && *b) {
        char *after[2];
        const double x = strtod(a, &after[0]), y = strtod(b, &after[1]);
        const bool numbers = after[0] > a && after[1] > b;
        if (numbers ? !any && fabs(x - y) > 2e-3 * fmax(1, fabs(y)) : *a != *b)
            fail_msg("%s: %.60s\n---\n%.60s", what, a, b);
        if (!numbers)
            any =
                *a != '\n' && (any || strncmp(a, "iter = ", 7) == 0 || strncmp(a, "SV = ", 5) == 0);
        a = numbers ? after[0] : a + 1;
        b = numbers ? after[1] : b + 1;
    }
    if (*a || *b)
        fail_msg("%s: one ends first: %s---%s", what, a, b);
}

/* ---- Problems ---- */

enum { ROWS = 40, FEATURES = 6, KINDS = 12, CLASSES = 4 };

static struct libsvm_node nodes[ROWS][ROWS + 2];
static struct libsvm_node *x[ROWS];
static struct sklearn_node dense[ROWS];
static double values[ROWS][FEATURES], target[ROWS], weight[ROWS], class_weight[CLASSES];
static int weight_label[CLASSES];
static const struct libsvm_node *csr[ROWS];

static double number(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

struct one {
    struct libsvm_problem problem;
    struct libsvm_parameter parameter;
    int classes; /* 1: none */
};

/* Of each type and kernel; in some of the problems elements are missing. The first rows have a
 * class each. */
static struct one make_problem(unsigned seed)
{
    static const int labels[][CLASSES] = {{-1, 1, 3, 8}, {5, 2, -7, 9}, {1, 2, 3, 4}};
    srand(seed);
    const int type = (int)(seed % 5), kernel = (int)(seed / 5 % 5),
              rows = 24 + rand() % (ROWS - 24);
    const bool classifies = type == SVM_C_SVC || type == SVM_NU_SVC;
    struct one made = {.problem = {rows, target, x},
                       .parameter = {.svm_type = type,
                                     .kernel_type = kernel,
                                     .degree = 2,
                                     .gamma = number(0.05, 0.5),
                                     .coef0 = kernel == SVM_SIGMOID ? -0.5 : 1,
                                     .cache_size = 1,
                                     .eps = kernel == SVM_RBF ? 1e-6 : 1e-3,
                                     .C = number(0.2, 2),
                                     .weight_label = weight_label,
                                     .weight = class_weight,
                                     .nu = number(0.1, 0.3),
                                     .p = number(0, 0.2),
                                     .shrinking = (int)(seed / 2 % 2)},
                       .classes = classifies ? 2 + rand() % (CLASSES - 1) : 1};
    for (int i = 0; i < rows; i++) {
        const int of = i % made.classes;
        int at = 0;
        x[i] = nodes[i];
        for (int j = 0; j < FEATURES; j++) {
            values[i][j] =
                seed % 3 == 1 && number(0, 1) < 0.8 && j > 0 ? 0 : number(-1, 1) + (j == of);
            if (values[i][j] != 0)
                nodes[i][at++] = (struct libsvm_node){j + 1, values[i][j]};
        }
        nodes[i][at] = (struct libsvm_node){-1, 0};
        target[i] = classifies ? labels[seed % 3][of] : values[i][0] + number(-0.5, 0.5);
        weight[i] = 1;
    }
    if (kernel == SVM_PRECOMPUTED) {
        for (int i = 0; i < rows; i++) {
            nodes[i][0] = (struct libsvm_node){0, i + 1};
            for (int j = 0; j < rows; j++) {
                double product = 0;
                for (int k = 0; k < FEATURES; k++)
                    product += values[i][k] * values[j][k];
                nodes[i][j + 1] = (struct libsvm_node){j + 1, product};
            }
            nodes[i][rows + 1] = (struct libsvm_node){-1, 0};
        }
    }
    for (int k = 0; k < made.classes; k++) {
        weight_label[k] = labels[seed % 3][k];
        class_weight[k] = number(0.5, 2);
    }
    made.parameter.nr_weight = type == SVM_C_SVC && seed % 4 < 2 ? made.classes : 0;
    return made;
}

/* ---- Calls ---- */

static uint64_t words[6];
static const double reals[8][2];

static bool is_read(const struct accel_op *op, const void *problem, const void *parameter, int of)
{
    const struct accel_passed passed = {
        .gpr = words, .fpr = reals, .abi = ACCEL_ABI_OWN, .layout = of};
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i]) == op)
            call = accel_call_of(&accel_routines[i]);
    words[0] = (uintptr_t)problem;
    words[1] = (uintptr_t)parameter;
    return op->foreign->parse(&call, &passed);
}

static enum gpu_status run_call(void)
{
    const enum gpu_status status = call.op->gpu->run(&work);
    gpu_work_give_back(&work);
    return status;
}

static const int *pointer(const struct libsvm_model *model, size_t offset)
{
    return libsvm_pointer_at(model, offset);
}

enum { INDICES = 152, LABEL = 160, COUNTS = 168, FREE_SV = 176 }; /* of libsvm 3.24's model */

static void assert_is_whole(const struct libsvm_model *model, const struct one *one,
                            const char *what)
{
    const int *index = pointer(model, INDICES), *label = pointer(model, LABEL);
    const int *counts = pointer(model, COUNTS);
    int sum = 0, at = 0;
    for (int k = 0; counts && k < model->nr_class; k++) {
        for (int i = 0; i < counts[k]; i++, at++)
            if (target[index[at] - 1] != label[k] || (i > 0 && index[at] <= index[at - 1]))
                fail_msg("%s: vector %d", what, at);
        sum += counts[k];
    }
    assert_true(!counts == !label && !counts == (one->classes == 1));
    assert_true(!counts || sum == model->l);
    for (int i = 0; i < model->l; i++)
        assert_true(model->SV[i] == x[index[i] - 1]);
    assert_memory_equal(&model->param, &one->parameter, sizeof one->parameter);
    int free_sv;
    memcpy(&free_sv, (const char *)model + FREE_SV, sizeof free_sv);
    assert_int_equal(free_sv, 0);
}

/* Models that decide alike on all rows. */
static void assert_same_models(const struct libsvm_model *a, const struct libsvm_model *b,
                               const struct one *one, const char *what)
{
    const int functions = one->classes > 1 ? one->classes * (one->classes - 1) / 2 : 1;
    const double most = one->parameter.kernel_type == SVM_RBF ? 1e-4 : 2e-2;
    assert_int_equal(a->nr_class, b->nr_class);
    for (int k = 0; one->classes > 1 && k < one->classes; k++)
        assert_int_equal(pointer(a, LABEL)[k], pointer(b, LABEL)[k]);
    for (int i = 0; i < one->problem.l; i++) {
        double of[2][CLASSES * CLASSES];
        own_values(a, x[i], of[0]);
        own_values(b, x[i], of[1]);
        for (int k = 0; k < functions; k++)
            if (!(fabs(of[0][k] - of[1][k]) <= most * (1 + fabs(of[1][k]))))
                fail_msg("%s: decision %d of row %d is %g, not %g", what, k, i, of[0][k], of[1][k]);
    }
    assert_true(!a->probA == !b->probA && !a->probB == !b->probB);
    for (int k = 0; a->probA && k < functions; k++)
        assert_true(fabs(a->probA[k] - b->probA[k]) <= 1e-3 * (1 + fabs(b->probA[k])));
    for (int k = 0; a->probB && k < functions; k++)
        assert_true(fabs(a->probB[k] - b->probB[k]) <= 1e-3 * (1 + fabs(b->probB[k])));
}

/* The support vectors of a training with one function are those of its model. */
static void assert_counts_support(const struct libsvm_model *model)
{
    char line[64];
    snprintf(line, sizeof line, "\nnSV = %d, nBSV = ", model->l);
    assert_non_null(strstr(text, line));
}

static void assert_trains_as_libsvm(struct one *one, const char *what)
{
    static char own_lines[TEXT];
    struct accel_result result = {{0}, {{0}}};
    listen();
    srand(7);
    struct libsvm_model *own = own_train(&one->problem, &one->parameter);
    const int own_next = rand();
    memcpy(own_lines, text, sizeof own_lines);
    listen();
    if (!is_read(&op_svm_train, &one->problem, &one->parameter, layout))
        fail_msg("%s: not taken", what);
    srand(7);
    assert_int_equal(run_call(), GPU_OK);
    assert_string_equal(text, ""); /* the device may still fail */
    const double ratio = call.op->foreign->judge(&call);
    if (!(ratio >= 0 && ratio <= 1))
        fail_msg("%s: judged %g", what, ratio);
    call.op->foreign->complete(&call, &result);
    assert_int_equal(rand(), own_next);
    struct libsvm_model *ours = (void *)(uintptr_t)result.gpr[0];
    assert_same_lines(text, own_lines, what);
    if (one->classes <= 2 && !one->parameter.probability)
        assert_counts_support(ours);
    assert_is_whole(ours, one, what);
    assert_same_models(ours, own, one, what);
    destroy(&ours);
    destroy(&own);
}

static void train_is_libsvms(void **state)
{
    static const unsigned seeds[] = {0, 1, 3, 5, 8, 10, 11, 12, 13, 14, 15, 18, 20, 23, 35, 36};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char what[32];
        struct one one = make_problem(seeds[i]);
        snprintf(what, sizeof what, "problem %u", seeds[i]);
        assert_trains_as_libsvm(&one, what);
    }
}

static void probabilities_are_libsvms(void **state)
{
    static const unsigned seeds[] = {0, 10, 11, 3, 14};
    (void)state;
    for (int i = 0; i < 5; i++) {
        char what[32];
        struct one one = make_problem(seeds[i]);
        one.parameter.probability = 1;
        snprintf(what, sizeof what, "probabilities %u", seeds[i]);
        assert_trains_as_libsvm(&one, what);
    }
}

/* Errors beyond five standard deviations do not count. */
static void outliers_have_no_part_in_sigma(void **state)
{
    (void)state;
    for (unsigned seed = 3; seed < 5; seed++) {
        struct one one = make_problem(seed);
        one.parameter.probability = 1;
        one.parameter.eps = 1e-6;
        target[5] += 1000;
        assert_trains_as_libsvm(&one, "an outlier");
    }
}

static double ours_of[ROWS], own_of[ROWS];

static void cross_validation_is_libsvms(void **state)
{
    static char own_lines[TEXT];
    (void)state;
    for (unsigned seed = 0; seed < 5; seed++)
        for (int folds = 2; folds <= 5; folds += 3) {
            char what[64];
            struct one one = make_problem(seed + 10);
            snprintf(what, sizeof what, "problem %u, %d folds", seed + 10, folds);
            listen();
            srand(seed);
            own_cross(&one.problem, &one.parameter, folds, own_of);
            const int own_next = rand();
            memcpy(own_lines, text, sizeof own_lines);
            listen();
            words[2] = (uint64_t)folds;
            words[3] = (uintptr_t)ours_of;
            assert_true(is_read(&op_svm_cross_validation, &one.problem, &one.parameter, layout));
            srand(seed);
            assert_int_equal(run_call(), GPU_OK);
            const double ratio = call.op->foreign->judge(&call);
            assert_true(ratio >= 0 && ratio <= 1);
            call.op->foreign->complete(&call, &(struct accel_result){{0}, {{0}}});
            assert_int_equal(rand(), own_next);
            assert_same_lines(text, own_lines, what);
            for (int i = 0; i < one.problem.l; i++)
                if (!(fabs(ours_of[i] - own_of[i]) <= 1e-4 * (1 + fabs(own_of[i]))))
                    fail_msg("%s: row %d is %g, not %g", what, i, ours_of[i], own_of[i]);
        }
    struct one one = make_problem(10);
    const int rows = one.problem.l;
    const int refused[] = {-1, 0, 1, rows + 1}, taken[] = {2, rows};
    for (int i = 0; i < 4; i++) {
        words[2] = (uint32_t)refused[i];
        assert_false(is_read(&op_svm_cross_validation, &one.problem, &one.parameter, layout));
    }
    for (int i = 0; i < 2; i++) {
        words[2] = (uint32_t)taken[i];
        assert_true(is_read(&op_svm_cross_validation, &one.problem, &one.parameter, layout));
    }
    words[3] = 0;
    assert_false(is_read(&op_svm_cross_validation, &one.problem, &one.parameter, layout));
    words[3] = (uintptr_t)ours_of;
    one.parameter.probability = 1;
    assert_false(is_read(&op_svm_cross_validation, &one.problem, &one.parameter, layout));
}

/* ---- scikit-learn's copy: the model is that of libsvm, whose job is the same ---- */

static void assert_same_arrays(const struct sklearn_model *a, const struct libsvm_model *b,
                               const int *kept, bool is_csr, int functions)
{
    assert_int_equal(a->classes, b->nr_class);
    assert_int_equal(a->support, b->l);
    for (int k = 0; k < functions; k++)
        assert_true(fabs(a->rho[k] - b->rho[k]) <= 1e-4 && a->iterations[k] > 0);
    for (int k = 0; k < a->classes - 1; k++)
        for (int i = 0; i < a->support; i++)
            assert_true(fabs(a->coefficient[k][i] - b->sv_coef[k][i]) <= 1e-4);
    for (int i = 0; i < a->support; i++) {
        const int row = kept[a->index[i]];
        assert_int_equal(a->index[i], pointer(b, INDICES)[i] - 1);
        if (is_csr)
            assert_true(((const struct libsvm_node **)a->vectors)[i] == csr[row]);
        else
            assert_true(((const struct sklearn_node *)a->vectors)[i].values == values[row]);
    }
    assert_true(!a->label == !pointer(b, LABEL) && !a->support_of == !a->label);
    for (int k = 0; a->label && k < a->classes; k++) {
        assert_int_equal(a->label[k], pointer(b, LABEL)[k]);
        assert_int_equal(a->support_of[k], pointer(b, COUNTS)[k]);
    }
}

/* Some rows do not count: libsvm's problem is without them. Labels ascend, so that neither orders
 * them. */
static void scikit_learns_model_is_libsvms(void **state)
{
    static const unsigned seeds[] = {10, 11, 12, 13, 14, 35, 36, 38};
    (void)state;
    for (int n = 0; n < 16; n++) {
        const unsigned seed = seeds[n / 2];
        const bool is_csr = n % 2;
        static double targets[ROWS];
        static struct libsvm_node *kept_x[ROWS];
        struct one one = make_problem(seed);
        int kept[ROWS], rows = 0, status = 4;
        for (int i = 0; i < one.problem.l; i++) {
            if (one.classes > 1)
                target[i] = i % one.classes * 3;
            weight[i] = i % 7 == 6 ? 0 : 1;
            dense[i] = (struct sklearn_node){FEATURES, i, values[i]};
            csr[i] = nodes[i];
            if (weight[i] > 0) {
                targets[rows] = target[i];
                kept_x[rows] = x[i];
                kept[rows++] = i;
            }
        }
        one.parameter.nr_weight = 0;
        const struct libsvm_problem without = {rows, targets, kept_x};
        struct accel_result results[2] = {{{0}, {{0}}}};
        assert_true(is_read(&op_svm_train, &without, &one.parameter, layout));
        assert_int_equal(run_call(), GPU_OK);
        call.op->foreign->complete(&call, &results[0]);
        const struct sklearn_parameter with = {one.parameter, -1, 5};
        struct sklearn_problem problem = {one.problem.l, target, {dense}, weight};
        if (is_csr)
            problem.x.csr = csr;
        words[2] = (uintptr_t)&status;
        seeded = -1;
        assert_true(is_read(&op_svm_train, &problem, &with, is_csr ? csr_layout : dense_layout));
        assert_int_equal(call.own.integer[SVM_ROWS], one.problem.l);
        assert_int_equal(run_call(), GPU_OK);
        const double ratio = call.op->foreign->judge(&call);
        assert_true(ratio >= 0 && ratio <= 1);
        call.op->foreign->complete(&call, &results[1]);
        assert_int_equal(seeded, 5);
        assert_int_equal(status, 4);
        struct libsvm_model *libsvms = (void *)(uintptr_t)results[0].gpr[0];
        struct sklearn_model *ours = (void *)(uintptr_t)results[1].gpr[0];
        assert_same_arrays(ours, libsvms, kept, is_csr,
                           one.classes > 1 ? one.classes * (one.classes - 1) / 2 : 1);
        assert_memory_equal(&ours->parameter, &with, sizeof with);
        assert_true(!ours->prob_a && !ours->prob_b);
        destroy(&libsvms);
        sklearn_free_model(ours);
    }
}

/* A cap ends the training after so many iterations, and scikit-learn is told. */
static void scikit_learns_cap_is_kept(void **state)
{
    (void)state;
    for (int most = 1; most <= 3; most++) {
        struct accel_result result = {{0}, {{0}}};
        struct one one = make_problem(5);
        int status = 4;
        for (int i = 0; i < one.problem.l; i++)
            dense[i] = (struct sklearn_node){FEATURES, i, values[i]};
        const struct sklearn_parameter with = {one.parameter, most, -1};
        const struct sklearn_problem problem = {one.problem.l, target, {dense}, weight};
        words[2] = (uintptr_t)&status;
        seeded = -1;
        listen();
        assert_true(is_read(&op_svm_train, &problem, &with, dense_layout));
        assert_int_equal(call.own.integer[SVM_CAP], most + 1);
        assert_int_equal(run_call(), GPU_OK);
        call.op->foreign->complete(&call, &result);
        struct sklearn_model *ours = (void *)(uintptr_t)result.gpr[0];
        assert_int_equal(status, 5);
        assert_int_equal(seeded, -1);
        assert_int_equal(ours->iterations[0], most);
        assert_non_null(strstr(text, "WARN: libsvm Solver reached max_iter"));
        sklearn_free_model(ours);
    }
}

static void scikit_learns_other_calls_are_its_own(void **state)
{
    struct one one = make_problem(5);
    int status = 0;
    (void)state;
    mallopt(M_PERTURB, 0x55); /* a row that has not been kept is none */
    for (int i = 0; i < one.problem.l; i++)
        dense[i] = (struct sklearn_node){FEATURES, i, values[i]};
    struct sklearn_problem problem = {one.problem.l, target, {dense}, weight};
    struct sklearn_parameter with = {one.parameter, -1, -1};
    words[2] = (uintptr_t)&status;
#define READ is_read(&op_svm_train, &problem, &with, dense_layout)
#define OTHERWISE(place, value)                                                                    \
    do {                                                                                           \
        const __typeof__(place) before_ = (place);                                                 \
        assert_true(READ);                                                                         \
        (place) = (value);                                                                         \
        if (READ)                                                                                  \
            fail_msg("taken: " #place " = " #value);                                               \
        (place) = before_;                                                                         \
    } while (0)
    words[2] = 0;
    assert_false(READ);
    words[2] = (uintptr_t)&status;
    OTHERWISE(problem.rows, 1);
    OTHERWISE(problem.target, NULL);
    OTHERWISE(problem.weight, NULL);
    OTHERWISE(problem.x.dense, NULL);
    OTHERWISE(with.max_iterations, -2);
    OTHERWISE(with.libsvm.probability, 1); /* without a seed */
    OTHERWISE(with.libsvm.C, 0);
    OTHERWISE(weight[3], INFINITY);
    OTHERWISE(weight[0], INFINITY);
    OTHERWISE(target[problem.rows - 1], NAN);
    OTHERWISE(target[problem.rows - 1], 3e9);
    OTHERWISE(dense[problem.rows - 1].features, FEATURES - 1);
    OTHERWISE(dense[problem.rows - 1].values, NULL);
    with.seed = 0;
    with.libsvm.probability = 1;
    assert_true(READ);
    with.libsvm.svm_type = SVM_ONE_CLASS;
    assert_false(READ);
    /* Sparse rows ascend */
    with = (struct sklearn_parameter){one.parameter, -1, -1};
    for (int i = 0; i < one.problem.l; i++)
        csr[i] = nodes[i];
    problem.x.csr = csr;
#undef READ
#define READ is_read(&op_svm_train, &problem, &with, csr_layout)
    OTHERWISE(csr[1], NULL);
    OTHERWISE(nodes[1][1].index, nodes[1][0].index);
    OTHERWISE(with.libsvm.kernel_type, SVM_PRECOMPUTED);
    mallopt(M_PERTURB, 0);
}

/* ---- Memory ---- */

/* Runs a call with each request for memory failing in turn; nothing may be left, and nothing
 * drawn. */
static void assert_memory_may_be_short(const struct accel_op *op, const void *problem,
                                       const void *parameter, int of, bool draws)
{
    int shortages = 0, after = 0;
    for (int place = 1;; place++) {
        struct failure before;
        failure_begin(&before);
        srand(1);
        watch(place);
        const bool read = is_read(op, problem, parameter, of);
        const enum gpu_status status = read ? run_call() : GPU_NO_MEMORY;
        const bool done = status == GPU_OK && requests < place;
        if (status == GPU_OK)
            call.op->gpu->discard(&call);
        stop_watching();
        failure_end(&before);
        const int next = rand();
        srand(1);
        if (draws)
            assert_int_equal(next, rand());
        assert_true(place < 2000);
        if (live != 0)
            fail_msg("%d blocks are left after request %d of memory has failed", live, place);
        if (done)
            break;
        shortages += status != GPU_OK;
        after += status == GPU_OK;
    }
    if (shortages < 5 || after >= 5)
        fail_msg("%d shortages, %d calls done in spite of one", shortages, after);
}

static void memory_may_be_short(void **state)
{
    int status = 0;
    (void)state;
    for (unsigned seed = 10; seed < 14; seed += 3) {
        struct one one = make_problem(seed);
        one.parameter.eps = 1e-2;
        one.parameter.nr_weight = 0;
        listen();
        assert_true(is_read(&op_svm_train, &one.problem, &one.parameter, layout));
        assert_memory_may_be_short(&op_svm_train, &one.problem, &one.parameter, layout, true);
        words[2] = 2;
        words[3] = (uintptr_t)ours_of;
        assert_memory_may_be_short(&op_svm_cross_validation, &one.problem, &one.parameter, layout,
                                   true);
        one.parameter.probability = 1;
        assert_memory_may_be_short(&op_svm_train, &one.problem, &one.parameter, layout, true);
        one.parameter.probability = 0;
        if (seed > 10)
            continue;
        for (int i = 0; i < one.problem.l; i++) {
            dense[i] = (struct sklearn_node){FEATURES, i, values[i]};
            csr[i] = nodes[i];
        }
        struct sklearn_parameter with = {one.parameter, -1, 1};
        struct sklearn_problem problem = {one.problem.l, target, {dense}, weight};
        words[2] = (uintptr_t)&status;
        assert_memory_may_be_short(&op_svm_train, &problem, &with, dense_layout, false);
        problem.x.csr = csr;
        assert_memory_may_be_short(&op_svm_train, &problem, &with, csr_layout, false);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {TEST(train_is_libsvms),
                                       TEST(probabilities_are_libsvms),
                                       TEST(outliers_have_no_part_in_sigma),
                                       TEST(cross_validation_is_libsvms),
                                       TEST(scikit_learns_model_is_libsvms),
                                       TEST(scikit_learns_cap_is_kept),
                                       TEST(scikit_learns_other_calls_are_its_own),
                                       TEST(memory_may_be_short)};
    return cmocka_run_group_tests(tests, start_libraries, stop_device);
}
