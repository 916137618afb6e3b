/*
 * svm_train() of libsvm itself.
 *
 * A call that estimates probabilities trains five times, or on five folds, within libsvm, which draws rand() for that: libsvm runs
 * it, and its own calls of svm_train() come here one by one, through its procedure linkage table. So does svm_cross_validation(),
 * which therefore has no entry.
 */
#include "libsvm.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "fit.h"
#include "train.h"

static bool classifies(int type)
{
    return type == SVM_C_SVC || type == SVM_NU_SVC;
}

static bool has_c(int type)
{
    return type == SVM_C_SVC || type == SVM_EPSILON_SVR || type == SVM_NU_SVR;
}

bool libsvm_is_valid(const struct libsvm_parameter *p)
{
    const bool nu =
        p->svm_type == SVM_NU_SVC || p->svm_type == SVM_ONE_CLASS || p->svm_type == SVM_NU_SVR;
    const bool shaped = p->kernel_type != SVM_LINEAR && p->kernel_type != SVM_PRECOMPUTED;
    return p->svm_type >= SVM_C_SVC && p->svm_type <= SVM_NU_SVR && p->kernel_type >= SVM_LINEAR &&
           p->kernel_type <= SVM_PRECOMPUTED &&
           (!shaped || (p->gamma >= 0 && isfinite(p->gamma))) &&
           (p->kernel_type != SVM_POLY || p->degree >= 0) &&
           (!shaped || p->kernel_type == SVM_RBF || isfinite(p->coef0)) && p->cache_size > 0 &&
           p->eps > 0 && isfinite(p->eps) &&
           (!has_c(p->svm_type) || (p->C > 0 && isfinite(p->C))) &&
           (!nu || (p->nu > 0 && p->nu <= 1)) &&
           (p->svm_type != SVM_EPSILON_SVR || (p->p >= 0 && isfinite(p->p))) &&
           (p->shrinking == 0 || p->shrinking == 1) && p->probability == 0;
}

static bool has_targets(const struct libsvm_problem *problem, int type)
{
    for (int i = 0; i < problem->l; i++) {
        const double y = problem->y[i];
        if (!isfinite(y) || (classifies(type) && !(y > INT_MIN && y < INT_MAX)))
            return false;
    }
    return true;
}

/* Whether any two classes have enough vectors for nu. */
static bool is_feasible(const struct libsvm_parameter *p, const struct svm_classes *classes)
{
    for (int i = 0; i < classes->count; i++)
        for (int j = i + 1; j < classes->count; j++) {
            const int less = classes->number[i] < classes->number[j] ? i : j;
            if (p->nu * (classes->number[i] + classes->number[j]) / 2 > classes->number[less])
                return false;
        }
    return true;
}

/* Sets the C of each class. Returns false without memory, and if a weight is for no class, or makes no sense: libsvm warns. */
static bool weigh_classes(const struct libsvm_parameter *p, const struct svm_classes *classes,
                          double **class_c)
{
    double *c = malloc((size_t)classes->count * sizeof *c);
    *class_c = c;
    for (int i = 0; c && i < classes->count; i++)
        c[i] = p->C;
    for (int i = 0; c && p->svm_type == SVM_C_SVC && i < p->nr_weight; i++) {
        int j = 0;
        while (j < classes->count && classes->label[j] != p->weight_label[i])
            j++;
        if (j == classes->count)
            return false;
        c[j] *= p->weight[i];
    }
    for (int i = 0; c && i < classes->count; i++)
        if (!(c[i] > 0) || !isfinite(c[i]))
            return false;
    return c;
}

/* What run() needs beside the vectors. */
struct prepared {
    struct svm_classes classes;
    struct svm_training training;
};

static void unprepare(struct prepared *p)
{
    svm_classes_free(&p->classes);
    free(p->training.class_c);
    p->training.class_c = NULL;
}

/* Returns false if libsvm itself must answer; then there is nothing to free. */
static bool prepare(const struct libsvm *library, const struct libsvm_problem *problem,
                    const struct libsvm_parameter *parameter, struct prepared *p)
{
    const int type = parameter->svm_type;
    *p = (struct prepared){.training = {.type = type,
                                        .kernel = {parameter->kernel_type, parameter->degree,
                                                   parameter->gamma, parameter->coef0},
                                        .target = problem->y,
                                        .c = parameter->C,
                                        .nu = parameter->nu,
                                        .p = parameter->p,
                                        .eps = parameter->eps,
                                        .max_iterations = -1,
                                        .shrinking = parameter->shrinking}};
    if (!libsvm_group(library, problem, classifies(type), &p->classes))
        return false;
    bool right = !classifies(type) || p->classes.count > 1;
    if (right && type == SVM_C_SVC)
        right = weigh_classes(parameter, &p->classes, &p->training.class_c);
    if (right && type == SVM_NU_SVC)
        right = is_feasible(parameter, &p->classes);
    if (!right)
        unprepare(p);
    return right;
}

/* ---- The call ---- */

static bool parse(struct accel_call *call, const struct accel_passed *passed, int layout)
{
    const struct libsvm_problem *problem = (void *)(uintptr_t)passed->gpr[0];
    const struct libsvm_parameter *parameter = (void *)(uintptr_t)passed->gpr[1];
    struct libsvm_size size;
    struct prepared prepared;
    if (!problem || !parameter || problem->l < 2 || !problem->y || !problem->x ||
        !libsvm_is_valid(parameter) || !has_targets(problem, parameter->svm_type) ||
        !libsvm_measure(problem, parameter->kernel_type == SVM_PRECOMPUTED, &size) ||
        !prepare(libsvm_numbered(layout), problem, parameter, &prepared))
        return false;
    call->own.pointer[SVM_PROBLEM] = problem;
    call->own.pointer[SVM_PARAMETER] = parameter;
    call->own.integer[SVM_TRAITS] = svm_traits(layout, parameter->svm_type, parameter->kernel_type);
    call->own.integer[SVM_ROWS] = problem->l;
    call->own.integer[SVM_FEATURES] = size.features;
    call->own.integer[SVM_CLASSES] = prepared.classes.count;
    call->own.integer[SVM_STORED] = size.stored;
    unprepare(&prepared);
    return true;
}

/* A training that the device has done: what complete() makes of it. */
struct trained {
    const struct libsvm *library;
    struct prepared prepared;
    struct svm_function *functions;
    struct libsvm_model *model;
    struct svm_progress progress;
};

static void discard(struct trained *t)
{
    if (!t)
        return;
    svm_functions_free(t->functions,
                       svm_function_count(t->prepared.training.type, t->prepared.classes.count));
    unprepare(&t->prepared);
    free(t);
}

static enum gpu_status train(struct gpu_work *work, struct trained *t)
{
    const struct libsvm_problem *problem = work->call->own.pointer[SVM_PROBLEM];
    const struct libsvm_parameter *parameter = work->call->own.pointer[SVM_PARAMETER];
    const bool precomputed = parameter->kernel_type == SVM_PRECOMPUTED;
    struct svm_training *training = &t->prepared.training;
    struct libsvm_size size;
    struct smo s = {.work = work, .progress = svm_note_progress, .context = &t->progress};
    const size_t count = (size_t)svm_function_count(parameter->svm_type, t->prepared.classes.count);
    t->functions = calloc(count, sizeof *t->functions);
    if (!t->functions || !libsvm_measure(problem, precomputed, &size) ||
        !libsvm_vectors(problem, precomputed, &size, &training->x))
        return GPU_NO_MEMORY;
    const enum gpu_status status = svm_fit(&s, training, &t->prepared.classes, false, t->functions);
    svm_matrix_free(&training->x);
    if (status != GPU_OK)
        return status;
    t->model = libsvm_model_of(t->library, problem, parameter, &t->prepared.classes, t->functions);
    return t->model ? GPU_OK : GPU_NO_MEMORY;
}

static enum gpu_status run(struct gpu_work *work)
{
    struct trained *t = calloc(1, sizeof *t);
    enum gpu_status status = GPU_NO_MEMORY;
    if (!t)
        return status;
    t->library = libsvm_numbered(svm_traits_layout(work->call) % SVM_LAYOUTS);
    t->progress = svm_progress_of(t->library);
    if (prepare(t->library, work->call->own.pointer[SVM_PROBLEM],
                work->call->own.pointer[SVM_PARAMETER], &t->prepared))
        status = train(work, t);
    if (status == GPU_OK)
        svm_leave(work->call, t);
    else
        discard(t);
    return status;
}

/* Prints when the device and its memory have been given back: the program's function may do what it likes. */
static void complete(const struct accel_call *call, struct accel_result *result)
{
    struct trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    result->rax = (uintptr_t)t->model;
    libsvm_print_training(t->library, &t->prepared.training, &t->prepared.classes, t->functions,
                          t->model->l, t->progress.dots);
    discard(t);
}

const struct svm_dialect svm_dialect_libsvm = {libsvm_of, parse, run, complete};
