/* Which liblinear it is: by its version, by what its train() makes of two rows, and for
 * scikit-learn by the package. */
#include "library.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/forks.h"
#include "ops/print_variable.h"
#include "ops/sklearn_version.h"

_Static_assert(sizeof(struct linear_parameter_230) == 64 && sizeof(struct linear_model_230) == 96,
               "liblinear 2.30: linear.h");
_Static_assert(sizeof(struct linear_parameter_243) == 80 && sizeof(struct linear_model_243) == 120,
               "liblinear 2.43 to 2.50: linear.h");
_Static_assert(sizeof(struct linear_parameter_sklearn) == 64 &&
                   sizeof(struct linear_model_sklearn) == 104,
               "scikit-learn: sklearn/svm/src/liblinear/linear.h");

enum { LIBRARIES_MOST = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static struct linear_library known[LIBRARIES_MOST];
static int known_count;

const struct linear_library *linear_library_numbered(int number)
{
    return &known[number - 1];
}

/* ---- The function that prints ---- */

static pthread_mutex_t skipping = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(skipping);
static linear_print_function *_Atomic behind; /* skip_line() */
static _Thread_local int64_t to_skip __attribute__((tls_model("initial-exec")));

/* Other threads may train meanwhile. */
static void skip_line(const char *text)
{
    if (to_skip > 0)
        to_skip--;
    else
        behind(text);
}

bool linear_skip_lines(const struct linear_library *library, int64_t lines,
                       bool (*original)(void *context), void *context)
{
    linear_print_function **print = (linear_print_function **)(uintptr_t)library->print;
    linear_print_function *ours = skip_line, *before;
    pthread_mutex_lock(&skipping);
    /* Else the library's find_parameters() has put ours back, which it had read meanwhile */
    if (*print != skip_line)
        behind = *print;
    before = behind;
    to_skip = lines;
    *print = ours;
    const bool done = original(context);
    to_skip = 0;
    /* Unless another thread has set it. */
    __atomic_compare_exchange_n(print, &ours, before, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&skipping);
    return done;
}

/* ---- Its train() ---- */

struct train_probe {
    const struct accel_provider *provider;
    const struct linear_library *library;
};

/* Trains with rows 1 and -1. There are copies of liblinear under the same version with weights of
 * rows: they find theirs behind the problem, and come to another result. */
static bool trains_as_expected(void *context)
{
    const struct train_probe *trial = context;
    const struct accel_provider *provider = trial->provider;
    typedef void *train_function(const struct linear_problem *, const struct linear_parameter *);
    typedef void destroy_function(void **model);
    train_function *train;
    destroy_function *destroy;
    void *found = provider->symbol(provider, "free_and_destroy_model");
    memcpy(&train, &trial->library->train, sizeof train);
    memcpy(&destroy, &found, sizeof destroy);
    if (!found)
        return false;
    struct linear_node nodes[2][2] = {{{1, 1}, {-1, 0}}, {{1, -1}, {-1, 0}}};
    struct linear_node *x[2] = {nodes[0], nodes[1]};
    double y[2] = {1, -1}, weights[2] = {0.5, 0.25};
    const struct linear_problem problem = {2, 1, y, x, -1, weights};
    const struct linear_parameter_243 parameter = {
        .common = {.solver = LINEAR_L2_SVC, .eps = 1e-6, .c = 0.125}, .regularize_bias = 1};
    void *model = train(&problem, &parameter.common);
    if (!model)
        return false;
    const struct linear_model *common = trial->library->layout == LINEAR_230
                                            ? &((struct linear_model_230 *)model)->model
                                            : &((struct linear_model_243 *)model)->model;
    const bool expected = common->classes == 2 && common->features == 1 && common->bias == -1 &&
                          common->w && common->label && fabs(common->w[0] - 1. / 3) < 1e-6 &&
                          common->label[0] == 1 && common->label[1] == -1;
    destroy(&model);
    return expected;
}

/* Tries it, with all its lines skipped. */
static bool is_expected(const struct accel_provider *provider, const struct linear_library *library)
{
    return linear_skip_lines(library, INT64_MAX, trains_as_expected,
                             &(struct train_probe){provider, library});
}

/* ---- Which one it is ---- */

/* 2.44 and 2.46 lie between versions that are alike. Multicore LIBLINEAR has other structs under
 * the same version. */
static enum linear_layout layout_of(const struct accel_provider *provider)
{
    const int *version = provider->symbol(provider, "liblinear_version");
    if (!version)
        return sklearn_is_known(provider, "_liblinear") &&
                       provider->symbol(provider, "get_n_iter") &&
                       provider->symbol(provider, "_ZN4TRONC1EPK8functiondiP13BlasFunctions")
                   ? LINEAR_SKLEARN
                   : 0;
    if (provider->symbol(provider, "_ZN14Reduce_VectorsC1Ei"))
        return 0;
    return *version == 230 ? LINEAR_230 : *version >= 243 && *version <= 250 ? LINEAR_243 : 0;
}

static int number_of(const struct linear_library *library)
{
    for (int i = 0; i < known_count; i++)
        if (known[i].train == library->train && known[i].layout == library->layout &&
            known[i].print == library->print)
            return i + 1;
    return 0;
}

static int library_of(const struct accel_provider *provider, const void *train)
{
    struct linear_library library = {.train = train, .layout = layout_of(provider)};
    void *predict = provider->symbol(provider, "predict");
    if (!library.layout)
        return 0;
    memcpy(&library.predict, &predict, sizeof predict);
    library.print = accel_print_variable(provider->symbol(provider, "set_print_string_function"));
    pthread_mutex_lock(&lock);
    int number = number_of(&library);
    pthread_mutex_unlock(&lock);
    if (number || !library.print ||
        (library.layout != LINEAR_SKLEARN && !is_expected(provider, &library)))
        return number;
    pthread_mutex_lock(&lock);
    number = number_of(&library);
    if (!number && known_count < LIBRARIES_MOST) {
        known[known_count] = library;
        number = ++known_count;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

int linear_library_of(const struct accel_provider *provider)
{
    return library_of(provider, provider->function);
}

int linear_library_around(const struct accel_provider *provider)
{
    const void *train = provider->symbol(provider, "train");
    const enum linear_layout layout = train ? layout_of(provider) : 0;
    if (layout && provider->refers(provider, "train"))
        return -1;
    const int number = layout == LINEAR_243 ? library_of(provider, train) : 0;
    return number && linear_library_numbered(number)->predict ? number : 0;
}

/* ---- Structs ---- */

struct linear_training linear_training_of(const struct linear_library *library,
                                          const struct linear_problem *problem,
                                          const struct linear_parameter *parameter)
{
    struct linear_training t = {library, problem, parameter, 0, NULL, false, 1000};
    const struct linear_parameter_230 *p230 = (const void *)parameter;
    const struct linear_parameter_243 *p243 = (const void *)parameter;
    const struct linear_parameter_sklearn *sklearn = (const void *)parameter;
    switch (library->layout) {
    case LINEAR_230:
        t.p = p230->p;
        t.init_sol = p230->init_sol;
        break;
    case LINEAR_243:
        t.p = p243->p;
        t.init_sol = p243->init_sol;
        t.free_bias = p243->regularize_bias == 0;
        break;
    case LINEAR_SKLEARN:
        t.p = sklearn->p;
        t.max_iterations = sklearn->max_iter;
        break;
    }
    return t;
}

static struct linear_model *common_of(void *model, const struct linear_training *training)
{
    struct linear_model_230 *m230 = model;
    struct linear_model_243 *m243 = model;
    struct linear_model_sklearn *sklearn = model;
    switch (training->library->layout) {
    case LINEAR_230:
        m230->parameter = *(const struct linear_parameter_230 *)training->parameter;
        return &m230->model;
    case LINEAR_243:
        m243->parameter = *(const struct linear_parameter_243 *)training->parameter;
        return &m243->model;
    case LINEAR_SKLEARN:
        sklearn->parameter = *(const struct linear_parameter_sklearn *)training->parameter;
        return &sklearn->model;
    }
    return NULL;
}

void linear_model_free(void *model, struct linear_model *common, int *iterations)
{
    if (model) {
        free(common->w);
        free(common->label);
    }
    free(iterations);
    free(model);
}

void *linear_model_make(const struct linear_training *training, size_t weights, int labels,
                        int problems, struct linear_model **common, int **iterations)
{
    static const size_t bytes[] = {[LINEAR_230] = sizeof(struct linear_model_230),
                                   [LINEAR_243] = sizeof(struct linear_model_243),
                                   [LINEAR_SKLEARN] = sizeof(struct linear_model_sklearn)};
    const struct linear_problem *problem = training->problem;
    const bool counts = training->library->layout == LINEAR_SKLEARN;
    void *model = calloc(1, bytes[training->library->layout]);
    *common = NULL;
    *iterations = counts ? calloc((size_t)problems, sizeof **iterations) : NULL;
    if (model) {
        *common = common_of(model, training);
        **common = (struct linear_model){
            .classes = labels ? labels : 2,
            .features = problem->columns - (problem->bias >= 0),
            .w = calloc(weights, sizeof(double)),
            .label = labels ? calloc((size_t)labels, sizeof(int)) : NULL,
            .bias = problem->bias,
        };
        if (counts)
            ((struct linear_model_sklearn *)model)->iterations = *iterations;
    }
    if (model && (*common)->w && (!labels || (*common)->label) && (!counts || *iterations))
        return model;
    linear_model_free(model, *common, *iterations);
    return NULL;
}
