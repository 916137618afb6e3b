/*
 * liblinear's functions on the test GPU, beside the libraries' own in the same process: what they
 * return, their lines, the numbers that rand() gives next, failures of memory and of the device,
 * and what is left behind. scikit-learn's copy beside a plain minimizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/device/own.h"
#include "ops/liblinear/classes.h"
#include "ops/liblinear/fit.h"
#include "ops/liblinear/library.h"
#include "ops/liblinear/loss.h"
#include "ops/liblinear/solve.h"
#include "ops/liblinear/train.h"
#include "ops/liblinear/validate.h"
#include "tests/lib/device_work.h"
#include "tests/lib/watched_memory.h"

/* ---- The libraries ---- */

struct library {
    void *handle;
    struct accel_provider train, cross, find;
    int of_train, of_cross, of_find; /* layouts */
    enum linear_layout layout;
    void *(*own_train)(const struct linear_problem *, const void *);
    void (*own_cross)(const struct linear_problem *, const void *, int, double *);
    void (*own_find)(const struct linear_problem *, const void *, int, double, double, double *,
                     double *, double *);
    void (*destroy)(void **);
    void (*print_by)(void (*)(const char *));
};

static struct library debian, pypi, sklearn;

static void *symbol(const struct accel_provider *provider, const char *name)
{
    const struct library *of[] = {&debian, &pypi};
    for (int i = 0; i < 2; i++)
        if (provider == &of[i]->train || provider == &of[i]->cross || provider == &of[i]->find)
            return dlsym(of[i]->handle, name);
    return NULL;
}

static const char *no_path(const struct accel_provider *provider)
{
    (void)provider;
    return "";
}

static bool refers_to_nothing(const struct accel_provider *provider, const char *name)
{
    (void)provider, (void)name;
    return false;
}

static void open_library(struct library *of, const char *path, enum linear_layout layout)
{
    of->handle = dlopen(path, RTLD_NOW);
    assert_non_null(of->handle);
    void *train = dlsym(of->handle, "train"), *cross = dlsym(of->handle, "cross_validation");
    void *find = dlsym(of->handle, "find_parameters");
    of->layout = layout;
    of->train = (struct accel_provider){train, symbol, no_path, refers_to_nothing};
    of->cross = (struct accel_provider){cross, symbol, no_path, refers_to_nothing};
    of->find = (struct accel_provider){find, symbol, no_path, refers_to_nothing};
    *(void **)&of->own_train = train;
    *(void **)&of->own_cross = cross;
    *(void **)&of->own_find = find;
    *(void **)&of->destroy = dlsym(of->handle, "free_and_destroy_model");
    *(void **)&of->print_by = dlsym(of->handle, "set_print_string_function");
    of->of_train = op_liblinear_train.foreign->accepts(&of->train);
    assert_true(of->of_train > 0);
}

/* ---- scikit-learn's copy: of a library that only the dispatcher sees ---- */

static char packages[] = "/tmp/test_linear.XXXXXX", object[sizeof packages + 64];

static void *sklearn_symbol(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    if (strcmp(name, "liblinear_version") == 0 || strcmp(name, "predict") == 0)
        return NULL;
    return dlsym(debian.handle, strcmp(name, "set_print_string_function") == 0 ? name : "train");
}

static const char *sklearn_path(const struct accel_provider *provider)
{
    (void)provider;
    return object;
}

static void open_sklearn(void)
{
    char metadata[sizeof object];
    assert_non_null(mkdtemp(packages));
    snprintf(object, sizeof object, "%s/sklearn/svm/_liblinear.so", packages);
    snprintf(metadata, sizeof metadata, "%s/scikit_learn-1.5.0.dist-info", packages);
    assert_int_equal(mkdir(metadata, 0700), 0);
    sklearn.layout = LINEAR_SKLEARN;
    sklearn.train = debian.train;
    sklearn.train.symbol = sklearn_symbol;
    sklearn.train.path = sklearn_path;
    sklearn.print_by = debian.print_by;
    sklearn.of_train = op_liblinear_train.foreign->accepts(&sklearn.train);
    rmdir(metadata);
    rmdir(packages);
    assert_true(sklearn.of_train > 0 && sklearn.of_train != debian.of_train);
}

/* ---- Lines ---- */

enum { TEXT = 1 << 16 };
static char text[TEXT];
static size_t length;
static int lines;

static void note(const char *line)
{
    length += (size_t)snprintf(text + length, TEXT - length, "%s", line);
    assert_true(length < TEXT - 512);
    lines++;
}

static void listen_to(const struct library *of)
{
    length = 0;
    lines = 0;
    text[0] = 0;
    of->print_by(note);
}

/* Words are the same; numbers with a point differ by a hundredth at most. */
static void assert_same_lines(const char *a, const char *b, const char *what)
{
    const char *const begins[] = {a, b};
    while (*a && *b) {
        char *after[2];
        const double x = strtod(a, &after[0]), y = strtod(b, &after[1]);
        const bool numbers = after[0] > a && after[1] > b;
        if (numbers && memchr(a, '.', (size_t)(after[0] - a)) ? fabs(x - y) > 0.01 * fabs(y)
            : numbers                                         ? x != y
                                                              : *a != *b)
            fail_msg("%s:\n%s\n---\n%s", what, begins[0], begins[1]);
        a = numbers ? after[0] : a + 1;
        b = numbers ? after[1] : b + 1;
    }
    if (*a || *b)
        fail_msg("%s: one ends first:\n%s\n---\n%s", what, begins[0], begins[1]);
}

/* ---- Problems ---- */

enum { ROWS = 60, COLUMNS = 16, NODES = COLUMNS + 2, WEIGHTS = COLUMNS * 5 };

static struct linear_node nodes[ROWS][NODES];
static struct linear_node *x[ROWS];
static double target[ROWS], weight_of_row[ROWS], class_weight[8], start[WEIGHTS];
static int weight_label[8];

struct one {
    struct linear_problem problem;
    union {
        struct linear_parameter common;
        struct linear_parameter_230 old;
        struct linear_parameter_243 new;
        struct linear_parameter_sklearn sklearn;
    } parameter;
    int elements, classes;
};

static double number(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

static bool chance(double share)
{
    return number(0, 1) < share;
}

static struct one make_problem(unsigned seed, enum linear_layout layout)
{
    static const int solvers[] = {LINEAR_LR, LINEAR_L2_SVC, LINEAR_L2_SVR};
    static const int labels[][4] = {{-1, 1, 7, 3}, {1, -1, 3, 7}, {2, 5, -9, 40}, {9, 2, 4, -1}};
    srand(seed);
    const int solver = solvers[seed % 3], classes = 1 + rand() % 4,
              rows = 20 + rand() % (ROWS - 20);
    const int features = 2 + rand() % (COLUMNS - 2);
    const int *label = labels[rand() % 4];
    const double filled = seed % 4 == 0 ? 1 : seed % 4 == 1 ? 0.8 : 0.15;
    const bool biased = chance(0.5), ordered = seed % 7 != 6;
    struct one made = {.problem = {rows, features + biased, target, x, biased ? 1 : -1, NULL}};
    double direction[4][COLUMNS];
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < COLUMNS; j++)
            direction[k][j] = number(-1, 1);
    for (int i = 0; i < rows; i++) {
        double score[4] = {0};
        int at = 0;
        x[i] = nodes[i];
        for (int j = 0; j < features; j++) {
            if (!chance(filled))
                continue;
            nodes[i][at] = (struct linear_node){j + 1, number(-2, 2)};
            for (int k = 0; k < 4; k++)
                score[k] += direction[k][j] * nodes[i][at].value;
            at++;
        }
        if (!ordered && at > 1) {
            const struct linear_node first = nodes[i][0];
            nodes[i][0] = nodes[i][1];
            nodes[i][1] = first;
        }
        if (biased)
            nodes[i][at++] = (struct linear_node){features + 1, 1};
        made.elements += at;
        nodes[i][at] = (struct linear_node){-1, 0};
        int best = 0;
        for (int k = 1; k < classes; k++)
            best = score[k] + number(-0.5, 0.5) > score[best] ? k : best;
        target[i] = solver == LINEAR_L2_SVR ? score[0] + number(-1, 1) : label[best];
        weight_of_row[i] = chance(0.2) ? 0 : number(0.2, 2);
    }
    struct linear_parameter *p = &made.parameter.common;
    *p = (struct linear_parameter){.solver = solver,
                                   .eps = seed % 5 == 0 ? 0.1 : 0.01,
                                   .c = number(0.1, 4),
                                   .weight_label = weight_label,
                                   .weight = class_weight};
    for (int i = 0; solver != LINEAR_L2_SVR && i < rows; i++) {
        int k = 0;
        while (k < made.classes && weight_label[k] != (int)target[i])
            k++;
        weight_label[k] = (int)target[i];
        class_weight[k] = number(0.3, 2);
        made.classes = k < made.classes ? made.classes : k + 1;
    }
    p->class_weights = seed % 2 ? made.classes : 0;
    for (int j = 0; j < WEIGHTS; j++)
        start[j] = number(-1, 1);
    double *const from = seed % 4 == 3 ? start : NULL;
    const double width = solver == LINEAR_L2_SVR ? number(0, 0.5) : 0.1;
    if (layout == LINEAR_243) {
        made.parameter.new.p = width;
        made.parameter.new.init_sol = from;
        made.parameter.new.regularize_bias = !(biased && seed % 3 != 1);
    } else if (layout == LINEAR_230) {
        made.parameter.old.p = width;
        made.parameter.old.init_sol = from;
    } else {
        made.parameter.sklearn.p = width;
        made.parameter.sklearn.max_iter = 100;
        made.problem.weight = weight_of_row;
    }
    return made;
}

/* ---- Calls ---- */

static uint64_t words[6];
static double reals[8][2];

static struct accel_passed passed_of(struct one *one, int layout)
{
    words[0] = (uintptr_t)&one->problem;
    words[1] = (uintptr_t)&one->parameter;
    return (struct accel_passed){
        .gpr = words, .fpr = reals, .abi = ACCEL_ABI_OWN, .layout = layout};
}

static const struct accel_routine *routine_of(const struct accel_op *op)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i]) == op)
            return &accel_routines[i];
    return NULL;
}

/* Reads a call. */
static bool is_read(const struct accel_op *op, struct one *one, int layout)
{
    const struct accel_passed passed = passed_of(one, layout);
    call = accel_call_of(routine_of(op));
    return op->foreign->parse(&call, &passed);
}

static enum gpu_status run_call(void)
{
    host.original = NULL;
    const enum gpu_status status = call.op->gpu->run(&work);
    gpu_work_give_back(&work);
    return status;
}

static const struct linear_model *model_in(const void *model, enum linear_layout layout)
{
    return layout == LINEAR_230   ? &((const struct linear_model_230 *)model)->model
           : layout == LINEAR_243 ? &((const struct linear_model_243 *)model)->model
                                  : &((const struct linear_model_sklearn *)model)->model;
}

static void assert_same_models(const struct linear_model *a, const struct linear_model *b,
                               int columns, const char *what)
{
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->features, b->features);
    assert_true(a->bias == b->bias && !a->label == !b->label);
    for (int k = 0; a->label && k < a->classes; k++)
        assert_int_equal(a->label[k], b->label[k]);
    const int count = columns * linear_problems_of(a->label ? a->classes : 0);
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fabs(b->w[i]) > most ? fabs(b->w[i]) : most;
    for (int i = 0; i < count; i++)
        if (!(fabs(a->w[i] - b->w[i]) <= 1e-7 * most))
            fail_msg("%s: weight %d is %g, not %g", what, i, a->w[i], b->w[i]);
}

/* ---- train() ---- */

static void assert_trains_as(struct library *of, struct one one, const char *what)
{
    static char own_lines[TEXT];
    struct accel_result result = {{0}, {{0}}};
    listen_to(of);
    void *own = of->own_train(&one.problem, &one.parameter);
    memcpy(own_lines, text, sizeof own_lines);
    listen_to(of);
    assert_true(is_read(&op_liblinear_train, &one, of->of_train));
    assert_int_equal(run_call(), GPU_OK);
    assert_same_lines(text, own_lines, what);
    const double ratio = call.op->foreign->judge(&call);
    if (ratio > 1)
        fail_msg("%s: judged %g", what, ratio);
    call.op->foreign->complete(&call, &result);
    void *ours = (void *)(uintptr_t)result.gpr[0];
    assert_same_models(model_in(ours, of->layout), model_in(own, of->layout), one.problem.columns,
                       what);
    assert_memory_equal(ours, &one.parameter,
                        of->layout == LINEAR_230 ? sizeof one.parameter.old
                                                 : offsetof(struct linear_parameter_243, w_recalc));
    of->destroy(&ours);
    of->destroy(&own);
    of->print_by(NULL);
}

static void train_is_the_librarys(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 24; seed++) {
        struct library *of = seed % 2 ? &pypi : &debian;
        char what[64];
        snprintf(what, sizeof what, "layout %d, problem %u", of->layout, seed / 2);
        assert_trains_as(of, make_problem(seed / 2, of->layout), what);
    }
}

/* The second row costs nothing where the method starts, and more than the first one can gain after
 * any step. */
static void no_step_may_be_good_enough(void **state)
{
    struct library *const libraries[] = {&debian, &pypi};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct one one = {.problem = {2, 1, target, x, -1, NULL},
                          .parameter.common = {.solver = LINEAR_L2_SVR, .eps = 0.01, .c = 1}};
        if (libraries[i]->layout == LINEAR_243) {
            one.parameter.new.p = 0.5;
            one.parameter.new.regularize_bias = 1;
        } else {
            one.parameter.old.p = 0.5;
        }
        for (int row = 0; row < 2; row++) {
            x[row] = nodes[row];
            nodes[row][0] = (struct linear_node){1, row ? 1e8 : 1};
            nodes[row][1] = (struct linear_node){-1, 0};
            target[row] = row ? 0 : 1.5;
        }
        assert_trains_as(libraries[i], one, "no step");
        assert_true(i == 0 || strstr(text, "WARNING: line search fails\n"));
    }
}

/* ---- What a call is ---- */

static void sizes_are_the_problems(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 12; seed++) {
        struct one one = make_problem(seed, LINEAR_230);
        assert_true(is_read(&op_liblinear_train, &one, debian.of_train));
        const int64_t *size = call.op->cost->sizes(&call);
        assert_int_equal(size[0], one.problem.rows);
        assert_int_equal(size[1], one.problem.columns);
        assert_int_equal(size[2], one.elements);
        assert_int_equal(size[3], one.classes ? one.classes : 1);
        assert_int_equal(call.span[ACCEL_a].rows * call.span[ACCEL_a].cols, one.elements);
        assert_true(call.span[ACCEL_y].ptr == &call.own.integer[LINEAR_RESULT]);
        assert_int_equal(call.op->foreign->count_at(debian.of_train), 0);
        /* Two products of all elements for each direction and problem */
        const int problems = one.classes == 2 || !one.classes ? 1 : one.classes;
        const struct accel_effort cpu = call.op->cost->effort(&call, false);
        const struct accel_effort gpu = call.op->cost->effort(&call, true);
        assert_true(call.op->cost->flops(&call) == 40. * problems * 4 * one.elements);
        assert_true(cpu.operations == LINEAR_DIRECTIONS * problems * 4. * one.elements);
        assert_true(gpu.operations == LINEAR_DIRECTIONS_MOST * problems * 4. * one.elements);
        assert_true(cpu.steps == LINEAR_DIRECTIONS * problems * (double)one.problem.rows);
        assert_float_equal(gpu.steps, LINEAR_DIRECTIONS_MOST * problems + 1e-4 * one.elements,
                           1e-9);
    }
}

static char described[512];

static void add_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    const size_t used = strlen(described);
    (void)fields;
    snprintf(described + used, sizeof described - used, " %s=%lld", name, (long long)value);
}

static void the_log_has_a_calls_fields(void **state)
{
    const struct accel_fields fields = {add_integer, NULL};
    char expected[512];
    (void)state;
    for (unsigned seed = 0; seed < 6; seed++) {
        struct one one = make_problem(seed, LINEAR_243);
        one.parameter.new.init_sol = NULL;
        for (int folds = 0; folds <= 3; folds += 3) {
            static double predicted[ROWS];
            words[2] = (uint64_t)folds;
            words[3] = (uintptr_t)predicted;
            assert_true(is_read(folds ? &op_liblinear_cross_validation : &op_liblinear_train, &one,
                                pypi.of_train));
            int used = snprintf(expected, sizeof expected, " solver=%d l=%d features=%d nnz=%d",
                                one.parameter.common.solver, one.problem.rows, one.problem.columns,
                                one.elements);
            if (one.classes > 1)
                used += snprintf(expected + used, sizeof expected - (size_t)used, " classes=%d",
                                 one.classes);
            if (folds)
                snprintf(expected + used, sizeof expected - (size_t)used, " folds=%d", folds);
            described[0] = 0;
            call.op->foreign->describe(&call, &fields);
            assert_string_equal(described, expected);
        }
    }
}

/* Each changes one argument of a call that is taken, to one that is the library's. */
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct one one = make_problem(1, LINEAR_243);                                              \
        struct linear_parameter_243 *p = &one.parameter.new;                                       \
        struct linear_problem *q = &one.problem;                                                   \
        p->regularize_bias = 1;                                                                    \
        assert_true(is_read(&op_liblinear_train, &one, pypi.of_train));                            \
        (void)p, (void)q;                                                                          \
        change;                                                                                    \
        if (is_read(&op_liblinear_train, &one, pypi.of_train))                                     \
            fail_msg("taken: %s", #change);                                                        \
    } while (0)
#define TAKEN(change)                                                                              \
    do {                                                                                           \
        struct one one = make_problem(1, LINEAR_243);                                              \
        struct linear_parameter_243 *p = &one.parameter.new;                                       \
        struct linear_problem *q = &one.problem;                                                   \
        p->regularize_bias = 1;                                                                    \
        (void)p, (void)q;                                                                          \
        change;                                                                                    \
        if (!is_read(&op_liblinear_train, &one, pypi.of_train))                                    \
            fail_msg("not taken: %s", #change);                                                    \
    } while (0)

static void unusual_arguments_are_the_librarys(void **state)
{
    const struct accel_passed none = {.gpr = words, .fpr = reals, .layout = pypi.of_train};
    (void)state;
    for (int solver = 0; solver <= 13; solver++)
        if (solver == LINEAR_LR || solver == LINEAR_L2_SVC || solver == LINEAR_L2_SVR)
            TAKEN(p->common.solver = solver);
        else
            REFUSED(p->common.solver = solver);
    REFUSED(p->common.eps = 0);
    REFUSED(p->common.eps = INFINITY);
    REFUSED(p->common.c = 0);
    REFUSED(p->common.c = NAN);
    REFUSED(p->p = -1);
    REFUSED(p->p = INFINITY);
    TAKEN(p->p = 0);
    REFUSED(p->common.class_weights = -1);
    REFUSED(p->common.weight_label = NULL);
    REFUSED(p->common.weight = NULL);
    TAKEN(p->common.class_weights = 0; p->common.weight = NULL; p->common.weight_label = NULL);
    REFUSED(class_weight[1] = -1);
    REFUSED(class_weight[0] = NAN);
    TAKEN(class_weight[0] = 0);
    REFUSED(weight_label[0] = 12345);
    REFUSED(q->rows = 0);
    REFUSED(q->columns = 0);
    REFUSED(q->columns = 1);
    REFUSED(q->target = NULL);
    REFUSED(q->x = NULL);
    REFUSED(x[q->rows - 1] = NULL);
    REFUSED(nodes[q->rows - 1][0].index = 0);
    REFUSED(nodes[q->rows - 1][0].index = q->columns + 1);
    REFUSED(nodes[0][0].value = INFINITY);
    REFUSED(target[q->rows - 1] = NAN);
    REFUSED(p->common.class_weights = 0; target[0] = 2147483648.);
    TAKEN(p->common.class_weights = 0; target[0] = 2147483647.);
    REFUSED(p->common.class_weights = 0; target[0] = -2147483648.);
    TAKEN(p->common.solver = LINEAR_L2_SVR; p->common.class_weights = 0; target[0] = 1e300);
    REFUSED(p->regularize_bias = 0; q->bias = 0.5);
    REFUSED(p->regularize_bias = 0; q->bias = -1);
    TAKEN(p->regularize_bias = 0; q->bias = 1);
    words[0] = 0;
    words[1] = (uintptr_t)words;
    call = accel_call_of(routine_of(&op_liblinear_train));
    assert_false(call.op->foreign->parse(&call, &none));
    words[0] = words[1];
    words[1] = 0;
    assert_false(call.op->foreign->parse(&call, &none));
}

static void scikit_learns_arguments_too(void **state)
{
    (void)state;
    struct one one = make_problem(4, LINEAR_SKLEARN);
    assert_true(is_read(&op_liblinear_train, &one, sklearn.of_train));
    one.parameter.sklearn.max_iter = 0;
    assert_false(is_read(&op_liblinear_train, &one, sklearn.of_train));
    one.parameter.sklearn.max_iter = 1;
    weight_of_row[one.problem.rows - 1] = INFINITY;
    assert_false(is_read(&op_liblinear_train, &one, sklearn.of_train));
    for (int i = 0; i < one.problem.rows; i++)
        weight_of_row[i] = 0;
    assert_false(is_read(&op_liblinear_train, &one, sklearn.of_train));
    one.problem.weight = NULL;
    assert_false(is_read(&op_liblinear_train, &one, sklearn.of_train));
}

/* ---- cross_validation() and find_parameters() ---- */

static double ours_of[ROWS], own_of[ROWS];

static void assert_validates_as_the_library(unsigned seed, int folds)
{
    static char own_lines[TEXT];
    char what[64];
    struct one one = make_problem(seed, LINEAR_243);
    one.parameter.new.init_sol = NULL;
    one.parameter.common.eps = 0.1;
    snprintf(what, sizeof what, "problem %u, %d folds", seed, folds);
    listen_to(&pypi);
    srand(seed);
    pypi.own_cross(&one.problem, &one.parameter, folds, own_of);
    const int own_next = rand();
    memcpy(own_lines, text, sizeof own_lines);
    listen_to(&pypi);
    words[2] = (uint64_t)folds;
    words[3] = (uintptr_t)ours_of;
    memset(ours_of, -1, sizeof ours_of);
    assert_true(is_read(&op_liblinear_cross_validation, &one, pypi.of_cross));
    srand(seed);
    assert_int_equal(run_call(), GPU_OK);
    assert_true(call.op->foreign->judge(&call) <= 1);
    call.op->foreign->complete(&call, &(struct accel_result){{0}, {{0}}});
    assert_int_equal(rand(), own_next);
    assert_same_lines(text, own_lines, what);
    for (int i = 0; i < one.problem.rows; i++)
        if (!(fabs(ours_of[i] - own_of[i]) <= 1e-6 * (1 + fabs(own_of[i]))))
            fail_msg("%s: row %d is %g, not %g", what, i, ours_of[i], own_of[i]);
}

static void cross_validation_is_the_librarys(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 3; seed++)
        assert_validates_as_the_library(seed, 2 + (int)seed);
    assert_validates_as_the_library(4, 5);
}

static void assert_finds_as_the_library(unsigned seed, int folds, double c, double p)
{
    static char own_lines[TEXT];
    double own[3] = {-7, -7, -7}, ours[3] = {-7, -7, -7};
    char what[64];
    struct one one = make_problem(seed, LINEAR_243);
    one.parameter.new.init_sol = NULL;
    one.parameter.common.class_weights = 0; /* a fold may be without a class */
    one.parameter.common.eps = 0.1;
    snprintf(what, sizeof what, "problem %u, C from %g, p from %g", seed, c, p);
    listen_to(&pypi);
    srand(seed);
    pypi.own_find(&one.problem, &one.parameter, folds, c, p, &own[0], &own[1], &own[2]);
    const int own_next = rand();
    memcpy(own_lines, text, sizeof own_lines);
    listen_to(&pypi);
    words[2] = (uint64_t)folds;
    for (int i = 0; i < 3; i++)
        words[3 + i] = (uintptr_t)&ours[i];
    reals[0][0] = c;
    reals[1][0] = p;
    assert_true(is_read(&op_liblinear_find_parameters, &one, pypi.of_find));
    srand(seed);
    assert_int_equal(run_call(), GPU_OK);
    assert_true(call.op->foreign->judge(&call) <= 1);
    call.op->foreign->complete(&call, &(struct accel_result){{0}, {{0}}});
    assert_int_equal(rand(), own_next);
    assert_same_lines(text, own_lines, what);
    for (int i = 0; i < 3; i++)
        if (!(fabs(ours[i] - own[i]) <= 1e-6 * fabs(own[i])))
            fail_msg("%s: result %d is %g, not %g", what, i, ours[i], own[i]);
}

/* Of regression p is given, or there are twenty. */
static void find_parameters_is_the_librarys(void **state)
{
    (void)state;
    assert_finds_as_the_library(0, 2, 256, -1);
    assert_finds_as_the_library(1, 3, 512, -1);
    assert_finds_as_the_library(3, 2, -1, -1);
    assert_finds_as_the_library(2, 2, 524288, 1e-9);
    assert_finds_as_the_library(5, 2, 1048576, -1);
    assert_finds_as_the_library(8, 2, -1, 1e-9);
}

static void other_folds_are_the_librarys(void **state)
{
    const struct accel_op *cross = &op_liblinear_cross_validation;
    const struct accel_op *find = &op_liblinear_find_parameters;
    struct one one = make_problem(1, LINEAR_243);
    const int rows = one.problem.rows;
    (void)state;
    words[3] = words[4] = words[5] = (uintptr_t)ours_of;
    reals[0][0] = 1;
    reals[1][0] = -1;
    for (int folds = -1; folds <= 102; folds++) {
        words[2] = (uint32_t)folds;
        const bool fits =
            folds >= 2 && folds <= (rows < LINEAR_FOLDS_MOST ? rows : LINEAR_FOLDS_MOST);
        assert_int_equal(is_read(cross, &one, pypi.of_cross), fits);
        assert_int_equal(is_read(find, &one, pypi.of_find), fits);
    }
    words[2] = 3;
    for (int i = 3; i <= 5; i++) {
        words[i] = 0;
        assert_int_equal(is_read(cross, &one, pypi.of_cross), i != 3);
        assert_false(is_read(find, &one, pypi.of_find));
        words[i] = (uintptr_t)ours_of;
    }
}

/* The values of C that may be tried, for each p: one training for each fold and value. */
static void the_search_is_as_long_as_it_may_be(void **state)
{
    struct one one = make_problem(0, LINEAR_243);
    (void)state;
    words[2] = 3;
    words[3] = words[4] = words[5] = (uintptr_t)ours_of;
    reals[1][0] = -1;
    for (int values = 1; values <= 11; values++) {
        reals[0][0] = 2048 / exp2(values);
        assert_true(is_read(&op_liblinear_find_parameters, &one, pypi.of_find));
        const double all = values * 3. * (one.classes > 2 ? one.classes : 1);
        const double predicted = 2e-5 * values * one.elements;
        const struct accel_effort cpu = call.op->cost->effort(&call, false);
        const struct accel_effort gpu = call.op->cost->effort(&call, true);
        assert_float_equal(call.op->cost->flops(&call), all * 10 * 4 * one.elements, 1e-3);
        assert_float_equal(cpu.operations, all * 4 * 4 * one.elements, 1e-3);
        assert_float_equal(gpu.operations, all * 25 * 4 * one.elements, 1e-3);
        assert_float_equal(gpu.steps, all * 25 + predicted + 1e-4 * one.elements, 1e-9);
    }
    one = make_problem(2, LINEAR_243);
    for (int i = 0; i < one.problem.rows; i++)
        target[i] = i == 0 ? 20 : 1;
    reals[0][0] = 1048576;
    for (int i = 0; i < 20; i++) {
        reals[1][0] = i + 0.5;
        assert_true(is_read(&op_liblinear_find_parameters, &one, pypi.of_find));
        assert_int_equal(call.own.integer[LINEAR_VALUES], i + 1);
    }
    reals[1][0] = -1;
    assert_true(is_read(&op_liblinear_find_parameters, &one, pypi.of_find));
    assert_int_equal(call.own.integer[LINEAR_VALUES], 20);
}

/* ---- scikit-learn's copy, beside a plain minimizer ---- */

struct plain {
    const struct one *one;
    double y[ROWS], c[ROWS], eps;
};

static double dot(const struct linear_node *row, const double *w)
{
    double sum = 0;
    for (; row->index != -1; row++)
        sum += row->value * w[row->index - 1];
    return sum;
}

/* Returns the objective at w; g: its gradient. */
static double plain_gradient(const struct plain *p, const double *w, double *g)
{
    const int solver = p->one->parameter.common.solver;
    const double width = p->one->parameter.sklearn.p;
    double f = 0;
    for (int j = 0; j < p->one->problem.columns; j++) {
        g[j] = w[j];
        f += w[j] * w[j] / 2;
    }
    for (int i = 0; i < p->one->problem.rows; i++) {
        const double z = dot(x[i], w), y = p->y[i];
        double loss, slope;
        if (solver == LINEAR_LR) {
            loss = log1p(exp(-y * z));
            slope = -y / (1 + exp(y * z));
        } else if (solver == LINEAR_L2_SVC) {
            const double d = y * z < 1 ? 1 - y * z : 0;
            loss = d * d;
            slope = -2 * y * d;
        } else {
            const double d = z - y > width ? z - y - width : z - y < -width ? z - y + width : 0;
            loss = d * d;
            slope = 2 * d;
        }
        f += p->c[i] * loss;
        for (const struct linear_node *n = x[i]; n->index != -1; n++)
            g[n->index - 1] += p->c[i] * slope * n->value;
    }
    return f;
}

static double norm_of(int count, const double *v)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

/* Sorted labels; of two classes the second is the positive one. */
static void begin_plain(struct plain *p, const struct one *one, const struct linear_model *model,
                        int number)
{
    const struct linear_parameter *c = &one->parameter.common;
    int rows = 0, positives = 0;
    p->one = one;
    for (int i = 0; i < one->problem.rows; i++) {
        const double weight = weight_of_row[i];
        p->y[i] = target[i];
        p->c[i] = c->c * weight;
        if (!model->label)
            continue;
        const int positive = model->label[model->classes == 2 ? 1 : number];
        p->y[i] = (int)target[i] == positive ? 1 : -1;
        rows += weight > 0;
        positives += weight > 0 && p->y[i] > 0;
        for (int k = 0; k < c->class_weights; k++)
            if (c->weight_label[k] == (int)target[i] && (p->y[i] > 0 || model->classes == 2))
                p->c[i] *= c->weight[k];
    }
    const int fewer = positives < rows - positives ? positives : rows - positives;
    p->eps = model->label ? c->eps * (fewer > 1 ? fewer : 1) / rows : c->eps;
}

static void assert_is_minimum(const struct one *one, const struct linear_model_sklearn *model)
{
    static const double zero[COLUMNS + 1];
    const int columns = one->problem.columns;
    const int problems = linear_problems_of(model->model.label ? model->model.classes : 0);
    for (int k = 0; k < problems; k++) {
        struct plain p;
        double w[COLUMNS + 1], g[COLUMNS + 1];
        begin_plain(&p, one, &model->model, k);
        for (int j = 0; j < columns; j++)
            w[j] = model->model.w[j * problems + k];
        const double at_zero = (plain_gradient(&p, zero, g), norm_of(columns, g));
        const double here = (plain_gradient(&p, w, g), norm_of(columns, g));
        assert_true(here <= p.eps * at_zero * (1 + 1e-9));
        assert_true(here > 0 && model->iterations[k] >= 1);
    }
}

static void scikit_learns_model_is_at_the_minimum(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 24; seed++) {
        struct accel_result result = {{0}, {{0}}};
        struct one one = make_problem(seed, LINEAR_SKLEARN);
        one.parameter.common.class_weights = 0;
        listen_to(&sklearn);
        assert_true(is_read(&op_liblinear_train, &one, sklearn.of_train));
        assert_int_equal(run_call(), GPU_OK);
        const double ratio = call.op->foreign->judge(&call);
        assert_true(ratio > 0 && ratio <= 1);
        call.op->foreign->complete(&call, &result);
        struct linear_model_sklearn *model = (void *)(uintptr_t)result.gpr[0];
        for (int k = 1; model->model.label && k < model->model.classes; k++)
            assert_true(model->model.label[k - 1] < model->model.label[k]);
        assert_is_minimum(&one, model);
        linear_model_free(model, &model->model, model->iterations);
    }
}

/* A step is a line; the caller's cap ends the method. */
static void scikit_learns_cap_of_iterations_is_kept(void **state)
{
    (void)state;
    for (int most = 1; most <= 3; most++) {
        struct accel_result result = {{0}, {{0}}};
        struct one one = make_problem(2, LINEAR_SKLEARN);
        one.parameter.sklearn.max_iter = most;
        one.parameter.common.eps = 1e-12;
        assert_true(is_read(&op_liblinear_train, &one, sklearn.of_train));
        assert_int_equal(run_call(), GPU_OK);
        assert_true(call.op->foreign->judge(&call) < 0); /* it has not had enough */
        call.op->foreign->complete(&call, &result);
        struct linear_model_sklearn *model = (void *)(uintptr_t)result.gpr[0];
        assert_int_equal(model->iterations[0], most);
        linear_model_free(model, &model->model, model->iterations);
    }
}

/* ---- Failures ---- */

static int originals;
static bool original_fails;

static bool original(void *context, const struct accel_call *part)
{
    struct library *of = context;
    originals++;
    if (original_fails)
        return false;
    void *model =
        of->own_train(part->own.pointer[LINEAR_PROBLEM], part->own.pointer[LINEAR_PARAMETER]);
    of->destroy(&model);
    return true;
}

static int launches, launch_fails_at;
static CUresult launch_error;

static CUresult count_launch(CUfunction function, unsigned across, unsigned down, unsigned deep,
                             unsigned threads_x, unsigned threads_y, unsigned threads_z,
                             unsigned bytes, CUstream stream, void **arguments, void **extra)
{
    return ++launches == launch_fails_at
               ? launch_error
               : real.cuLaunchKernel_p(function, across, down, deep, threads_x, threads_y,
                                       threads_z, bytes, stream, arguments, extra);
}

/* The program has seen no line: the caller runs the original. Else it has been run, without the
 * lines that there have been. */
static void a_launch_may_fail(void **state)
{
    static char own_lines[TEXT];
    struct library *const libraries[] = {&debian, &pypi};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct library *of = libraries[i % 2];
        const bool short_of_memory = i >= 2;
        struct one one = make_problem(4, of->layout);
        int none = 0, some = 0;
        launch_error = short_of_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
        listen_to(of);
        void *own = of->own_train(&one.problem, &one.parameter);
        memcpy(own_lines, text, sizeof own_lines);
        of->destroy(&own);
        for (int place = 1;; place += 1 + place / 4) {
            struct failure before;
            assert_true(place < 5000);
            failure_begin(&before);
            listen_to(of);
            assert_true(is_read(&op_liblinear_train, &one, of->of_train));
            host.original = original;
            host.context = of;
            launches = originals = 0;
            launch_fails_at = place;
            original_fails = place % 2 == 0;
            cuda_api.cuLaunchKernel_p = count_launch;
            const enum gpu_status status = call.op->gpu->run(&work);
            gpu_memory(&work)->drop(&work);
            cuda_api = real;
            failure_end(&before);
            if (status == GPU_OK) {
                assert_true(launches < place);
                call.op->gpu->discard(&call);
                break;
            }
            if (originals == 0) {
                assert_int_equal(status, short_of_memory ? GPU_NO_MEMORY : GPU_ERROR);
                assert_string_equal(text, "");
                none++;
            } else {
                assert_int_equal(originals, 1);
                assert_int_equal(status, original_fails    ? GPU_LOST
                                         : short_of_memory ? GPU_SHORT_ELSE
                                                           : GPU_FINISHED_ELSE);
                if (!original_fails) {
                    assert_same_lines(text, own_lines, "after a failure");
                    assert_true(call.op->foreign->judge(&call) < 0); /* there is nothing to judge */
                }
                some++;
            }
        }
        assert_true(none > 0 && some > 1);
    }
}

/* Runs a call with each request for memory failing in turn; nothing may be left. */
static void assert_memory_may_be_short(const struct accel_op *op, struct one *one, int layout)
{
    int shortages = 0, after = 0;
    for (int place = 1;; place++) {
        struct failure before;
        failure_begin(&before);
        watch(place);
        const bool read = is_read(op, one, layout);
        srand(1);
        const enum gpu_status status = read ? run_call() : GPU_NO_MEMORY;
        const bool done = status == GPU_OK && requests < place;
        if (status == GPU_OK)
            call.op->gpu->discard(&call);
        const int next = rand();
        stop_watching();
        failure_end(&before);
        srand(1);
        assert_int_equal(next, rand()); /* nothing has been drawn */
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
    (void)state;
    words[2] = 3;
    words[3] = words[4] = words[5] = (uintptr_t)ours_of;
    reals[0][0] = 1024;
    reals[1][0] = -1;
    for (unsigned seed = 4; seed < 7; seed++) {
        struct one one = make_problem(seed, LINEAR_243);
        one.parameter.new.init_sol = NULL;
        listen_to(&pypi);
        originals = 0;
        assert_memory_may_be_short(&op_liblinear_train, &one, pypi.of_train);
        assert_memory_may_be_short(&op_liblinear_cross_validation, &one, pypi.of_cross);
        if (seed == 4)
            assert_memory_may_be_short(&op_liblinear_find_parameters, &one, pypi.of_find);
        one = make_problem(seed, LINEAR_SKLEARN);
        assert_memory_may_be_short(&op_liblinear_train, &one, sklearn.of_train);
    }
}

/* ---- The rows on the device, and the loss ---- */

static void assert_close(double a, double b, double size)
{
    if (!(fabs(a - b) <= 1e-12 * (size + fabs(b))))
        fail_msg("%.17g is not %.17g", a, b);
}

/* Without the bias's column they are dense or sparse, with rows in any order; a column of many rows
 * is several segments. */
static void the_loss_is_the_sum_over_rows(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 30; seed++) {
        struct one one = make_problem(seed, LINEAR_SKLEARN);
        const int columns = one.problem.columns;
        struct linear_rows rows;
        struct linear_loss f;
        struct plain p = {.one = &one};
        double w[COLUMNS + 1], g[COLUMNS + 1], expected[COLUMNS + 1], s[COLUMNS + 1];
        double square = 0;
        for (int i = 0; i < one.problem.rows; i++) {
            p.y[i] = one.classes ? (target[i] > 1 ? 1 : -1) : target[i];
            p.c[i] = number(0, 2);
        }
        for (int j = 0; j < columns; j++) {
            w[j] = number(-1, 1);
            s[j] = number(-1, 1);
        }
        assert_int_equal(linear_rows_load(&rows, &work, x, one.problem.rows, columns, one.elements),
                         GPU_OK);
        assert_int_equal(
            linear_loss_make(&f, &rows, one.parameter.common.solver, one.parameter.sklearn.p),
            GPU_OK);
        linear_loss_begin(&f, p.y, p.c);
        for (int j = 0; j < columns; j++)
            square += w[j] * w[j] / 2;
        assert_close(linear_loss_at(&f, w), plain_gradient(&p, w, expected) - square, 10);
        linear_loss_gradient(&f, g);
        for (int j = 0; j < columns; j++)
            assert_close(g[j], expected[j] - w[j], 100);
        /* A step of any size, and where it leads */
        linear_loss_aim(&f, s);
        double there[COLUMNS + 1];
        square = 0;
        for (int j = 0; j < columns; j++) {
            there[j] = w[j] + 0.25 * s[j];
            square += there[j] * there[j] / 2;
        }
        const double ahead = plain_gradient(&p, there, expected) - square;
        assert_close(linear_loss_ahead(&f, 0.25), ahead, 10);
        linear_loss_advance(&f, 0.25);
        linear_loss_gradient(&f, g);
        for (int j = 0; j < columns; j++)
            assert_close(g[j], expected[j] - there[j], 100);
        /* The Hessian's diagonal, by unit vectors */
        double m[COLUMNS + 1], h[COLUMNS + 1];
        linear_loss_diagonal(&f, m);
        for (int j = 0; j < columns; j++) {
            double unit[COLUMNS + 1] = {0};
            unit[j] = 1;
            linear_loss_hessian(&f, unit, h);
            if (seed % 11 != 10)
                assert_close(m[j], h[j], 100);
        }
        assert_int_equal(f.failure, GPU_OK);
        gpu_work_give_back(&work);
    }
}

static int start_libraries(void **state)
{
    char pattern[256];
    const char *build = getenv("BUILD");
    glob_t found;
    setenv("TESTGPU_DELAY_US", "0", 0);
    snprintf(pattern, sizeof pattern, "%s/liblinear/*/liblinear/clib*.so", build ? build : "build");
    if (glob(pattern, 0, NULL, &found) != 0)
        return -1;
    open_library(&debian, "liblinear.so.4", LINEAR_230);
    open_library(&pypi, found.gl_pathv[found.gl_pathc - 1], LINEAR_243);
    globfree(&found);
    pypi.of_cross = op_liblinear_cross_validation.foreign->accepts(&pypi.cross);
    pypi.of_find = op_liblinear_find_parameters.foreign->accepts(&pypi.find);
    open_sklearn();
    return start_work(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {TEST(train_is_the_librarys),
                                       TEST(no_step_may_be_good_enough),
                                       TEST(sizes_are_the_problems),
                                       TEST(the_log_has_a_calls_fields),
                                       TEST(unusual_arguments_are_the_librarys),
                                       TEST(scikit_learns_arguments_too),
                                       TEST(cross_validation_is_the_librarys),
                                       TEST(find_parameters_is_the_librarys),
                                       TEST(other_folds_are_the_librarys),
                                       TEST(the_search_is_as_long_as_it_may_be),
                                       TEST(scikit_learns_model_is_at_the_minimum),
                                       TEST(scikit_learns_cap_of_iterations_is_kept),
                                       TEST(a_launch_may_fail),
                                       TEST(memory_may_be_short),
                                       TEST(the_loss_is_the_sum_over_rows)};
    return cmocka_run_group_tests(tests, start_libraries, stop_device);
}
