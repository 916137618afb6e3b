/*
 * svm_train() of libsvm itself.
 *
 * A call that estimates probabilities trains five folds of each pair of classes, or of all rows,
 * which it draws by rand(): they are trained beside the rest. If the device cannot do all of it,
 * rand() goes back to where it was, and libsvm runs the call.
 */
#include <stdlib.h>

#include "judge.h"
#include "libsvm.h"
#include "train.h"

/* A training that the device has done: what complete_libsvm() makes of it. */
struct libsvm_trained {
    struct libsvm_trainings all;
    const struct libsvm_problem *problem;
    const struct libsvm_parameter *parameter;
    struct libsvm_model *model;
    struct accel_rand before; /* if there are groups */
};

static void discard_libsvm(struct libsvm_trained *t)
{
    libsvm_trainings_free(&t->all);
    free(t);
}

/* Whether the call estimates probabilities. Versions that have no marks of a density do not for
 * one-class. */
static bool estimates(const struct libsvm *library, const struct libsvm_parameter *p)
{
    return p->probability && (p->svm_type != SVM_ONE_CLASS || library->model->density_marks);
}

bool libsvm_takes(const struct libsvm *library, const struct libsvm_problem *problem,
                  const struct libsvm_parameter *parameter, struct libsvm_size *size,
                  struct svm_job *job)
{
    if (!problem || !parameter || problem->l < 2 || !problem->y || !problem->x ||
        (estimates(library, parameter) &&
         (parameter->svm_type == SVM_ONE_CLASS || !library->shuffle)))
        return false;
    const struct libsvm_source source = libsvm_source_of(library, problem);
    if (!libsvm_is_valid(parameter) || !libsvm_has_targets(&source, parameter->svm_type) ||
        !libsvm_measure(problem, parameter->kernel_type == SVM_PRECOMPUTED, size) ||
        !libsvm_job_make(&source, parameter, &(struct libsvm_rows){source.l, NULL, source.y}, job))
        return false;
    const bool fits = !estimates(library, parameter) || libsvm_may_estimate(job, problem->l);
    if (!fits)
        svm_job_free(job);
    return fits;
}

double libsvm_judge(const struct libsvm_problem *problem, const struct svm_job *jobs, int count)
{
    const bool precomputed = jobs[0].training.kernel.type == SVM_PRECOMPUTED;
    struct libsvm_size size;
    struct svm_matrix x;
    if (!libsvm_measure(problem, precomputed, &size) ||
        !libsvm_vectors(problem, precomputed, &size, &x))
        return -1;
    const double ratio = svm_judge_jobs(&x, jobs, count);
    svm_matrix_free(&x);
    return ratio;
}

bool libsvm_parse(struct accel_call *call, const struct accel_passed *passed, int layout)
{
    const struct libsvm_problem *problem = (void *)(uintptr_t)passed->gpr[0];
    const struct libsvm_parameter *parameter = (void *)(uintptr_t)passed->gpr[1];
    struct libsvm_size size;
    struct svm_job job;
    const struct libsvm *library = libsvm_asked(layout);
    if (!library || !libsvm_takes(library, problem, parameter, &size, &job))
        return false;
    call->own.pointer[SVM_PROBLEM] = problem;
    call->own.pointer[SVM_PARAMETER] = parameter;
    call->own.integer[SVM_TRAITS] = svm_traits(layout, parameter->svm_type, parameter->kernel_type);
    call->own.integer[SVM_ROWS] = problem->l;
    call->own.integer[SVM_FEATURES] = size.features;
    call->own.integer[SVM_CLASSES] = job.classes.count;
    call->own.integer[SVM_STORED] = size.stored;
    svm_job_free(&job);
    return true;
}

/* ---- On the device ---- */

/* Takes what libsvm_parse() has seen. Returns false without memory. */
static bool begin_training(struct libsvm_trained *t, struct libsvm_size *size)
{
    struct svm_job job;
    return libsvm_takes(t->all.source.library, t->problem, t->parameter, size, &job) &&
           libsvm_trainings_take(&t->all, &job, estimates(t->all.source.library, t->parameter));
}

static enum gpu_status solve_trainings(struct gpu_work *work, struct libsvm_trained *t,
                                       const struct libsvm_size *size)
{
    struct svm_matrix x;
    if (!libsvm_vectors(t->problem, t->parameter->kernel_type == SVM_PRECOMPUTED, size, &x))
        return GPU_NO_MEMORY;
    const enum gpu_status status = libsvm_trainings_run(&t->all, work, &x);
    svm_matrix_free(&x);
    return status;
}

static enum gpu_status make_model(struct libsvm_trained *t)
{
    t->model = libsvm_model_of(t->all.source.library, t->problem, t->parameter, &t->all.jobs[0]);
    if (t->model && t->all.group_count &&
        !libsvm_copy_estimates(&t->all, &t->model->probA, &t->model->probB)) {
        libsvm_model_free(t->model, t->all.source.library->model);
        t->model = NULL;
    }
    return t->model ? GPU_OK : GPU_NO_MEMORY;
}

/* With folds drawn. */
static enum gpu_status train_all(struct gpu_work *work, struct libsvm_trained *t,
                                 const struct libsvm_size *size)
{
    if (t->all.group_count &&
        !libsvm_make_groups(&t->all.source, t->parameter, t->all.jobs + 1, t->all.groups))
        return GPU_UNSUPPORTED;
    const enum gpu_status status = solve_trainings(work, t, size);
    return status == GPU_OK ? make_model(t) : status;
}

static enum gpu_status train(struct gpu_work *work, struct libsvm_trained *t)
{
    struct libsvm_size size;
    if (!begin_training(t, &size))
        return GPU_NO_MEMORY;
    if (t->all.group_count)
        accel_rand_keep(&t->before);
    const enum gpu_status status = train_all(work, t, &size);
    if (t->all.group_count && status != GPU_OK)
        accel_rand_put_back(&t->before);
    return status;
}

static enum gpu_status run_libsvm(struct gpu_work *work)
{
    struct libsvm_trained *t = calloc(1, sizeof *t);
    if (!t)
        return GPU_NO_MEMORY;
    t->problem = work->call->own.pointer[SVM_PROBLEM];
    t->all.source =
        libsvm_source_of(libsvm_numbered(svm_traits_layout(work->call) % SVM_LAYOUTS), t->problem);
    t->parameter = work->call->own.pointer[SVM_PARAMETER];
    t->all.progress = svm_progress_of(t->all.source.library);
    const enum gpu_status status = train(work, t);
    if (status == GPU_OK)
        svm_leave(work->call, t);
    else
        discard_libsvm(t);
    return status;
}

/* ---- For the program ---- */

/* Prints when the device and its memory have been given back: the program's function may do what it
 * likes. */
static void complete_libsvm(const struct accel_call *call, struct accel_result *result)
{
    struct libsvm_trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    result->gpr[0] = (uintptr_t)t->model;
    /* Versions that estimate densities train a regression's folds last, others first. */
    libsvm_trainings_print(&t->all, t->all.source.library->model->density_marks);
    discard_libsvm(t);
}

static void discard_call(const struct accel_call *call)
{
    struct libsvm_trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    if (t->all.group_count)
        accel_rand_put_back(&t->before);
    libsvm_model_free(t->model, t->all.source.library->model);
    discard_libsvm(t);
}

static double verify_libsvm(const struct accel_call *call)
{
    const struct libsvm_trained *t = call->own.pointer[SVM_RESULT];
    return libsvm_judge(t->problem, t->all.jobs, libsvm_job_count(&t->all));
}

const struct svm_dialect svm_dialect_libsvm = {libsvm_of,       libsvm_parse, run_libsvm,
                                               complete_libsvm, discard_call, verify_libsvm};
