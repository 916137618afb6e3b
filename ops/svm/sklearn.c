/*
 * svm_train() and svm_csr_train() of scikit-learn.
 *
 * A call that estimates probabilities trains within scikit-learn, which draws its own random numbers for that: its calls of
 * svm_train() come here one by one. A training that the caller's max_iter ends is scikit-learn's own, too: what it has then depends
 * on each step before.
 */
#include "sklearn.h"

#include <stdlib.h>

#include "fit.h"
#include "judge.h"
#include "train.h"

static bool has_arguments(const struct sklearn_fit *fit)
{
    const struct sklearn_problem *problem = fit->problem;
    return problem && fit->parameter && problem->rows > 1 && problem->target && problem->x.dense &&
           problem->weight && libsvm_is_valid(&fit->parameter->libsvm);
}

static bool parse(struct accel_call *call, const struct accel_passed *passed, int layout)
{
    struct sklearn_fit fit = {.library = sklearn_numbered(layout),
                              .problem = (void *)(uintptr_t)passed->gpr[0],
                              .parameter = (void *)(uintptr_t)passed->gpr[1]};
    const struct libsvm_parameter *parameter = &fit.parameter->libsvm;
    if (!has_arguments(&fit))
        return false;
    const bool read = sklearn_read(&fit, false);
    call->own.pointer[SVM_PROBLEM] = fit.problem;
    call->own.pointer[SVM_PARAMETER] = fit.parameter;
    call->own.integer[SVM_TRAITS] = svm_traits(layout, parameter->svm_type, parameter->kernel_type);
    call->own.integer[SVM_ROWS] = fit.problem->rows;
    call->own.integer[SVM_FEATURES] = fit.training.x.features;
    call->own.integer[SVM_CLASSES] = fit.classes.count;
    call->own.integer[SVM_STORED] = fit.stored;
    sklearn_release(&fit);
    return read;
}

/* A training that the device has done. */
struct trained {
    struct sklearn_fit fit;
    struct svm_function *functions;
    struct sklearn_model *model;
    struct svm_progress progress;
};

static void discard(struct trained *t)
{
    if (t->functions)
        svm_functions_free(t->functions,
                           svm_function_count(t->fit.training.type, t->fit.classes.count));
    sklearn_release(&t->fit);
    free(t);
}

static enum gpu_status train(struct gpu_work *work, struct trained *t)
{
    struct smo s = {.work = work, .progress = svm_note_progress, .context = &t->progress};
    if (!sklearn_read(&t->fit, true))
        return GPU_NO_MEMORY;
    t->functions = calloc((size_t)svm_function_count(t->fit.training.type, t->fit.classes.count),
                          sizeof *t->functions);
    if (!t->functions)
        return GPU_NO_MEMORY;
    const enum gpu_status status =
        svm_fit(&s, &t->fit.training, &t->fit.classes, false, t->functions);
    if (status != GPU_OK)
        return status;
    t->model = sklearn_model_of(&t->fit, t->functions);
    return t->model ? GPU_OK : GPU_NO_MEMORY;
}

static enum gpu_status run(struct gpu_work *work)
{
    struct trained *t = calloc(1, sizeof *t);
    if (!t)
        return GPU_NO_MEMORY;
    t->fit.library = sklearn_numbered(svm_traits_layout(work->call) % SVM_LAYOUTS);
    t->fit.problem = work->call->own.pointer[SVM_PROBLEM];
    t->fit.parameter = work->call->own.pointer[SVM_PARAMETER];
    t->progress = svm_progress_of(&t->fit.library->lines);
    const enum gpu_status status = train(work, t);
    if (status == GPU_OK)
        svm_leave(work->call, t);
    else
        discard(t);
    return status;
}

/* Seeds, prints and leaves no status, as scikit-learn's function does. */
static void complete(const struct accel_call *call, struct accel_result *result)
{
    struct trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    result->rax = (uintptr_t)t->model;
    if (t->fit.parameter->seed >= 0)
        t->fit.library->set_seed((unsigned)t->fit.parameter->seed);
    libsvm_print_training(&t->fit.library->lines, &t->fit.training, &t->fit.classes, t->functions,
                          t->model->support, t->progress.dots);
    discard(t);
}

static void discard_call(const struct accel_call *call)
{
    struct trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    sklearn_free_model(t->model);
    discard(t);
}

static double judge(const struct accel_call *call)
{
    const struct trained *t = call->own.pointer[SVM_RESULT];
    return svm_judge(&t->fit.training.x, &t->fit.training, &t->fit.classes, t->functions);
}

const struct svm_dialect svm_dialect_sklearn = {sklearn_of, parse,        run,
                                                complete,   discard_call, judge};
