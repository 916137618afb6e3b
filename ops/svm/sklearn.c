/*
 * svm_train() and svm_csr_train() of scikit-learn.
 *
 * A call that estimates probabilities trains five folds of each pair of classes, or of all rows,
 * beside the rest. A training that the caller's max_iter ends after scikit-learn's has shrunk is
 * its own: what it has then depends on each step before.
 */
#include "sklearn.h"

#include <stdlib.h>

#include "judge.h"
#include "train.h"

static bool has_arguments(const struct sklearn_fit *fit)
{
    const struct sklearn_problem *problem = fit->problem;
    if (!problem || !fit->parameter || problem->rows < 2 || !problem->target || !problem->x.dense ||
        !problem->weight)
        return false;
    const struct libsvm_parameter *parameter = &fit->parameter->libsvm;
    if (fit->parameter->max_iterations < -1)
        return false;
    if (parameter->probability &&
        (parameter->svm_type == SVM_ONE_CLASS || fit->parameter->seed < 0))
        return false;
    return libsvm_is_valid(parameter);
}

static bool parse_sklearn(struct accel_call *call, const struct accel_passed *passed, int layout)
{
    struct sklearn_fit fit = {.library = sklearn_numbered(layout),
                              .problem = (void *)(uintptr_t)passed->gpr[0],
                              .parameter = (void *)(uintptr_t)passed->gpr[1]};
    const struct libsvm_parameter *parameter = &fit.parameter->libsvm;
    struct svm_job job = {.functions = NULL};
    if (!passed->gpr[2] || !has_arguments(&fit))
        return false;
    const bool takes = sklearn_read(&fit, false, &job) &&
                       (!parameter->probability || libsvm_may_estimate(&job, fit.source.l));
    call->own.pointer[SVM_PROBLEM] = fit.problem;
    call->own.pointer[SVM_PARAMETER] = fit.parameter;
    call->own.pointer[SVM_STATUS] = (void *)(uintptr_t)passed->gpr[2];
    call->own.integer[SVM_TRAITS] = svm_traits(layout, parameter->svm_type, parameter->kernel_type);
    call->own.integer[SVM_ROWS] = fit.problem->rows;
    call->own.integer[SVM_FEATURES] = fit.x.features;
    call->own.integer[SVM_CLASSES] = job.classes.count;
    call->own.integer[SVM_STORED] = fit.stored;
    call->own.integer[SVM_CAP] = (int64_t)fit.parameter->max_iterations + 1;
    svm_job_free(&job);
    sklearn_release(&fit);
    return takes;
}

/* A training that the device has done. */
struct sklearn_trained {
    struct sklearn_fit fit;
    struct libsvm_trainings all;
    struct sklearn_model *model;
};

static void discard_sklearn(struct sklearn_trained *t)
{
    libsvm_trainings_free(&t->all);
    sklearn_release(&t->fit);
    free(t);
}

static enum gpu_status train(struct gpu_work *work, struct sklearn_trained *t)
{
    const struct libsvm_parameter *parameter = &t->fit.parameter->libsvm;
    struct svm_job job;
    if (!sklearn_read(&t->fit, true, &job) ||
        !libsvm_trainings_take(&t->all, &job, parameter->probability))
        return GPU_NO_MEMORY;
    t->all.source = t->fit.source;
    t->all.progress = svm_progress_of(t->fit.source.library);
    if (t->all.group_count &&
        !libsvm_make_groups(&t->all.source, parameter, t->all.jobs + 1, t->all.groups))
        return GPU_UNSUPPORTED;
    const enum gpu_status status = libsvm_trainings_run(&t->all, work, &t->fit.x);
    if (status != GPU_OK)
        return status;
    t->model = sklearn_model_of(&t->fit, &t->all);
    return t->model ? GPU_OK : GPU_NO_MEMORY;
}

static enum gpu_status run_sklearn(struct gpu_work *work)
{
    struct sklearn_trained *t = calloc(1, sizeof *t);
    if (!t)
        return GPU_NO_MEMORY;
    t->fit.library = sklearn_numbered(svm_traits_layout(work->call) % SVM_LAYOUTS);
    t->fit.problem = work->call->own.pointer[SVM_PROBLEM];
    t->fit.parameter = work->call->own.pointer[SVM_PARAMETER];
    const enum gpu_status status = train(work, t);
    if (status == GPU_OK)
        svm_leave(work->call, t);
    else
        discard_sklearn(t);
    return status;
}

/* Whether max_iter has ended a training. Folds of a regression have a status that scikit-learn
 * drops. */
static bool is_capped(const struct libsvm_trainings *t)
{
    const int jobs = libsvm_classifies(t->jobs[0].training.type) ? libsvm_job_count(t) : 1;
    for (int i = 0; i < jobs; i++)
        for (int k = 0; t->jobs[i].functions && k < svm_job_functions(&t->jobs[i]); k++)
            if (t->jobs[i].functions[k].variables)
                return true;
    return false;
}

/* Seeds, prints and sets the status, as scikit-learn's function does. */
static void complete_sklearn(const struct accel_call *call, struct accel_result *result)
{
    struct sklearn_trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    result->gpr[0] = (uintptr_t)t->model;
    if (t->fit.parameter->seed >= 0)
        t->fit.library->set_seed((unsigned)t->fit.parameter->seed);
    libsvm_trainings_print(&t->all, false);
    if (is_capped(&t->all))
        *(int *)(uintptr_t)call->own.pointer[SVM_STATUS] |= 1;
    discard_sklearn(t);
}

static void discard_call(const struct accel_call *call)
{
    struct sklearn_trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    sklearn_free_model(t->model);
    discard_sklearn(t);
}

static double verify_sklearn(const struct accel_call *call)
{
    const struct sklearn_trained *t = call->own.pointer[SVM_RESULT];
    return svm_judge_jobs(&t->fit.x, t->all.jobs, libsvm_job_count(&t->all));
}

const struct svm_dialect svm_dialect_sklearn = {sklearn_of,       parse_sklearn, run_sklearn,
                                                complete_sklearn, discard_call,  verify_sklearn};
