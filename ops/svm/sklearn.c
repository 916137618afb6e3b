/*
 * svm_train() and svm_csr_train() of scikit-learn.
 *
 * A call that estimates probabilities trains five folds of each pair of classes, or of all rows, beside the rest. A training that the
 * caller's max_iter ends is scikit-learn's own: what it has then depends on each step before.
 */
#include "sklearn.h"

#include <stdlib.h>

#include "fit.h"
#include "judge.h"
#include "train.h"

static bool has_arguments(const struct sklearn_fit *fit)
{
    const struct sklearn_problem *problem = fit->problem;
    if (!problem || !fit->parameter || problem->rows < 2 || !problem->target || !problem->x.dense ||
        !problem->weight)
        return false;
    struct libsvm_parameter plain = fit->parameter->libsvm;
    const bool estimates = plain.probability == 1;
    if (estimates && (plain.svm_type == SVM_ONE_CLASS || fit->parameter->seed < 0))
        return false;
    plain.probability = estimates ? 0 : plain.probability;
    return libsvm_is_valid(&plain);
}

static bool may_estimate(const struct sklearn_fit *fit)
{
    return !fit->parameter->libsvm.probability ||
           svm_may_decide((double)svm_function_count(fit->training.type, fit->classes.count) *
                              (1 + SKLEARN_FOLDS),
                          (double)fit->training.x.rows);
}

static bool parse(struct accel_call *call, const struct accel_passed *passed, int layout)
{
    struct sklearn_fit fit = {.library = sklearn_numbered(layout),
                              .problem = (void *)(uintptr_t)passed->gpr[0],
                              .parameter = (void *)(uintptr_t)passed->gpr[1]};
    const struct libsvm_parameter *parameter = &fit.parameter->libsvm;
    if (!has_arguments(&fit))
        return false;
    const bool read = sklearn_read(&fit, false) && may_estimate(&fit);
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
    struct svm_job *
        jobs; /* the call's, whose training and classes are the fit's, then SKLEARN_FOLDS for each group */
    struct sklearn_group *groups;
    int group_count; /* 0: no probabilities */
    struct sklearn_model *model;
    struct svm_progress progress;
};

static int job_count(const struct trained *t)
{
    return 1 + t->group_count * SKLEARN_FOLDS;
}

static void discard(struct trained *t)
{
    if (t->jobs)
        svm_functions_free(t->jobs[0].functions, svm_job_functions(&t->jobs[0]));
    for (int i = 1; t->jobs && i < job_count(t); i++)
        svm_job_free(&t->jobs[i]);
    free(t->jobs);
    sklearn_groups_free(t->groups, t->group_count);
    sklearn_release(&t->fit);
    free(t);
}

static bool make_jobs(struct trained *t)
{
    const struct svm_job whole = {.training = t->fit.training, .classes = t->fit.classes};
    const int functions = svm_job_functions(&whole);
    if (t->fit.parameter->libsvm.probability)
        t->group_count = functions;
    t->jobs = calloc((size_t)job_count(t), sizeof *t->jobs);
    t->groups = calloc((size_t)t->group_count + 1, sizeof *t->groups);
    if (!t->jobs || !t->groups)
        return false;
    t->jobs[0] = whole;
    t->jobs[0].functions = calloc((size_t)functions, sizeof *t->jobs[0].functions);
    return t->jobs[0].functions &&
           (!t->group_count || sklearn_make_groups(&t->fit, t->groups, t->jobs + 1));
}

static enum gpu_status estimate(struct smo *s, const struct smo_matrix *x, struct trained *t)
{
    const int own = svm_job_functions(&t->jobs[0]);
    int functions = 0;
    for (int i = 0; i < job_count(t); i++)
        functions += svm_job_functions(&t->jobs[i]);
    double *values = calloc((size_t)functions, (size_t)x->rows * sizeof *values);
    if (!values)
        return GPU_NO_MEMORY;
    enum gpu_status status = svm_decide_jobs(s, x, t->jobs, job_count(t), values);
    if (status == GPU_OK &&
        !sklearn_estimate(&t->fit, t->groups, t->group_count, t->jobs + 1, values + own, functions))
        status = GPU_NO_MEMORY;
    free(values);
    return status;
}

static enum gpu_status train(struct gpu_work *work, struct trained *t)
{
    struct smo s = {.work = work, .progress = svm_note_progress, .context = &t->progress};
    if (!sklearn_read(&t->fit, true))
        return GPU_NO_MEMORY;
    if (!make_jobs(t))
        return GPU_UNSUPPORTED;
    const struct smo_matrix x = svm_put(&s, &t->fit.training.x);
    enum gpu_status status = svm_fit_jobs(&s, &x, t->jobs, job_count(t));
    if (status == GPU_OK && t->group_count)
        status = estimate(&s, &x, t);
    if (status != GPU_OK)
        return status;
    t->model = sklearn_model_of(&t->fit, t->jobs[0].functions, t->groups, t->group_count);
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

/* ---- Lines ---- */

static int64_t print_folds(const struct trained *t, int group, int64_t dots)
{
    const struct libsvm *lines = &t->fit.library->lines;
    const struct svm_job *job = &t->jobs[1 + group * SKLEARN_FOLDS];
    for (int fold = 0; fold < SKLEARN_FOLDS; fold++, job++)
        dots = libsvm_print_job(lines, job, dots);
    if (t->groups[group].message)
        libsvm_say(lines, "%s", t->groups[group].message);
    return dots;
}

/* The folds of a pair are trained before the pair, those of a regression before the whole. */
static void print(const struct trained *t)
{
    const struct libsvm *lines = &t->fit.library->lines;
    const struct svm_job *job = &t->jobs[0];
    int64_t dots = t->progress.dots;
    if (!t->group_count || job->classes.count == 1) {
        if (t->group_count) {
            dots = print_folds(t, 0, dots);
            libsvm_say_sigma(lines, t->groups[0].a);
        }
        libsvm_print_job(lines, job, dots);
        return;
    }
    for (int i = 0, group = 0; i < job->classes.count; i++)
        for (int j = i + 1; j < job->classes.count; j++, group++) {
            dots = print_folds(t, group, dots);
            dots = libsvm_print_function(lines, &job->training, &job->functions[group], i, j, dots);
        }
    libsvm_say(lines, "Total nSV = %d\n", job->support);
}

/* Seeds, prints and leaves no status, as scikit-learn's function does. */
static void complete(const struct accel_call *call, struct accel_result *result)
{
    struct trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    result->rax = (uintptr_t)t->model;
    if (t->fit.parameter->seed >= 0)
        t->fit.library->set_seed((unsigned)t->fit.parameter->seed);
    print(t);
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
    return svm_judge_jobs(&t->fit.training.x, t->jobs, job_count(t));
}

const struct svm_dialect svm_dialect_sklearn = {sklearn_of, parse,        run,
                                                complete,   discard_call, judge};
