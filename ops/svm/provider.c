/*
 * Whether a program's libsvm is one that we know: by its version, and by what its svm_train() makes
 * of two vectors. Programs have copies of libsvm with members added under the same version number,
 * such as a weight for each vector.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/forks.h"
#include "libsvm.h"
#include "ops/print_variable.h"

static const struct libsvm_model_layout layouts[] = {
    {289, 312, 0, 0, 152, 160, 168, 176},
    {313, 325, 0, 152, 160, 168, 176, 184},
    {330, 337, 152, 160, 168, 176, 184, 192},
};

static const struct libsvm_model_layout *layout_of(const struct accel_provider *provider)
{
    const int *version = provider->symbol(provider, "libsvm_version");
    /* scikit-learn's own structs. */
    if (!version || provider->symbol(provider, "svm_csr_train"))
        return NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (*version >= layouts[i].first && *version <= layouts[i].last)
            return &layouts[i];
    return NULL;
}

/* ---- The function that prints ---- */

static void print_nothing(const char *text)
{
    (void)text;
}

libsvm_print *volatile *libsvm_print_of(const struct accel_provider *provider)
{
    static libsvm_print *volatile silent = print_nothing;
    const void *set = provider->symbol(provider, "svm_set_print_string_function");
    if (provider->symbol(provider, "R_init_e1071")) /* it has no lines at all */
        return &silent;
    if (!set) /* to 2.90: a variable of the program's */
        return provider->symbol(provider, "svm_print_string");
    return accel_print_variable(set);
}

/* ---- Its svm_train() ---- */

typedef struct libsvm_model *train_function(const struct libsvm_problem *problem,
                                            const struct libsvm_parameter *parameter);

static int integer_at(const struct libsvm_model *model, size_t offset)
{
    int integer;
    memcpy(&integer, (const char *)model + offset, sizeof integer);
    return integer;
}

/* Both vectors are support vectors, with a coefficient of C. */
static bool is_expected(const struct libsvm_model *model, const struct libsvm_model_layout *layout,
                        const struct libsvm_problem *problem, double c)
{
    const int *label, *counts, *indices;
    if (model->nr_class != 2 || model->l != 2 || integer_at(model, layout->free_sv) != 0 ||
        model->probA || model->probB)
        return false;
    label = libsvm_pointer_at(model, layout->label);
    counts = libsvm_pointer_at(model, layout->counts);
    indices = layout->indices ? libsvm_pointer_at(model, layout->indices) : NULL;
    return label && counts && label[0] == -label[1] && counts[0] == 1 && counts[1] == 1 &&
           (indices != NULL) == (layout->indices != 0) && model->sv_coef[0][0] == c &&
           model->sv_coef[0][1] == -c && (indices ? indices[0] + indices[1] == 3 : true) &&
           model->SV[0] == problem->x[label[0] == 1];
}

/* Trains with two vectors; the first has label -1. Behind the structs are pointers to weights, as
 * some copies want them. */
static bool try_train(train_function *train, const struct libsvm_model_layout *layout, bool *swaps)
{
    struct libsvm_node nodes[2][2] = {{{1, -1}, {-1, 0}}, {{1, 1}, {-1, 0}}};
    struct libsvm_node *x[2] = {nodes[0], nodes[1]};
    double y[2] = {-1, 1}, weights[2] = {0.5, 0.25};
    const struct {
        struct libsvm_problem problem;
        double *weights[4];
    } given = {{2, y, x}, {weights, weights, weights, weights}};
    const struct {
        struct libsvm_parameter parameter;
        double more[8];
    } with = {{.svm_type = SVM_C_SVC,
               .kernel_type = SVM_LINEAR,
               .cache_size = 1,
               .eps = 1e-3,
               .C = 0.125,
               .shrinking = 1},
              {0}};
    struct libsvm_model *model = train(&given.problem, &with.parameter);
    if (!model || !is_expected(model, layout, &given.problem, with.parameter.C))
        return false; /* nothing says that it can be freed */
    *swaps = ((const int *)libsvm_pointer_at(model, layout->label))[0] == 1;
    libsvm_model_free(model, layout);
    return true;
}

/* Lines of a libsvm that is being asked go nowhere, those of the program's other threads to the
 * program's function. */
static _Thread_local bool asks __attribute__((tls_model("initial-exec")));
static libsvm_print *_Atomic print_of_program;

static void print_of_others(const char *text)
{
    libsvm_print *const print = print_of_program;
    if (!asks && print)
        print(text);
}

/* Asks libsvm, with its lines turned off. */
static bool is_known_libsvm(struct libsvm *library)
{
    train_function *train;
    libsvm_print *const before = *library->print, *ours = print_of_others;
    memcpy(&train, &library->train, sizeof train);
    print_of_program = before;
    asks = true;
    *library->print = ours;
    const bool known = try_train(train, library->model, &library->swaps);
    asks = false;
    /* Unless another thread has set it. */
    __atomic_compare_exchange_n(library->print, &ours, before, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return known;
}

/* ---- All that this process has had ---- */

enum { LIBRARIES = 64 };
static struct {
    struct libsvm library;
    bool asked, known;
} libraries[LIBRARIES];
static int library_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

static bool is_same_libsvm(const struct libsvm *a, const struct libsvm *b)
{
    return a->train == b->train && a->model == b->model && a->print == b->print &&
           a->shuffle == b->shuffle;
}

int libsvm_of(const struct accel_provider *provider)
{
    struct libsvm library = {.train = provider->symbol(provider, "svm_train"),
                             .model = layout_of(provider),
                             .prints_nu = true,
                             .shuffle =
                                 provider->refers(provider, "rand") ? accel_shuffle_by_rand : NULL};
    int i = 0;
    if (!library.train || !library.model)
        return 0;
    library.print = libsvm_print_of(provider);
    pthread_mutex_lock(&lock);
    while (i < library_count && !is_same_libsvm(&libraries[i].library, &library))
        i++;
    if (i == library_count && i < LIBRARIES)
        libraries[library_count++].library = library;
    pthread_mutex_unlock(&lock);
    return library.print && i < LIBRARIES ? i + 1 : 0;
}

const struct libsvm *libsvm_numbered(int number)
{
    return &libraries[number - 1].library;
}

const struct libsvm *libsvm_asked(int number)
{
    const int i = number - 1;
    pthread_mutex_lock(&lock);
    if (!libraries[i].asked)
        libraries[i].known = is_known_libsvm(&libraries[i].library);
    libraries[i].asked = true;
    const bool known = libraries[i].known;
    pthread_mutex_unlock(&lock);
    return known ? &libraries[i].library : NULL;
}
