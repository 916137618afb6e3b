/*
 * svm_cross_validation() of libsvm: all folds are trained side by side, and then decide at once on
 * the vectors that they have not seen. One that estimates probabilities is libsvm's; its calls of
 * svm_train() come here one by one.
 */
#include <stdlib.h>

#include "gpu/device/work.h"
#include "libsvm.h"
#include "train.h"

static bool may_decide(const struct accel_call *call, int folds)
{
    const int classes = (int)call->own.integer[SVM_CLASSES];
    return svm_may_decide((double)folds * svm_function_count(svm_traits_type(call), classes),
                          (double)call->own.integer[SVM_ROWS]);
}

static bool parse_svm_cross(struct accel_call *call, const struct accel_passed *passed)
{
    const struct libsvm_parameter *parameter = (void *)(uintptr_t)passed->gpr[1];
    const int folds = (int)(uint32_t)passed->gpr[2];
    double *target = (void *)(uintptr_t)passed->gpr[3];
    if (!target || folds < 2 || !libsvm_parse(call, passed, passed->layout) ||
        parameter->probability || !libsvm_numbered(passed->layout)->shuffle ||
        folds > call->own.integer[SVM_ROWS] || !may_decide(call, folds))
        return false;
    call->own.integer[SVM_TRAITS] += (int64_t)folds << 32;
    svm_set_spans(call);
    call->span[ACCEL_b] =
        accel_column("target", target, call->own.integer[SVM_ROWS], ACCEL_FLOAT64, ACCEL_WRITE);
    return true;
}

/* All that the device has done: what complete_svm_cross() prints. */
struct validated {
    const struct libsvm *library;
    const struct libsvm_problem *problem;
    const struct libsvm_parameter *parameter;
    struct libsvm_folds folds;
    struct svm_job *jobs; /* one for each fold */
    struct svm_progress progress;
    struct accel_rand before;
};

static void discard_validated(struct validated *v)
{
    for (int i = 0; v->jobs && i < v->folds.count; i++)
        svm_job_free(&v->jobs[i]);
    free(v->jobs);
    libsvm_folds_free(&v->folds);
    free(v);
}

/* ---- Predictions ---- */

/* values: of all functions; a row is predicted by the fold that leaves it out. */
static enum gpu_status predict(const struct validated *v, const double *values, int64_t functions,
                               double *target)
{
    int place = 0, most = 1;
    for (int fold = 0; fold < v->folds.count; fold++)
        if (v->jobs[fold].classes.count > most)
            most = v->jobs[fold].classes.count;
    int64_t *votes = malloc((size_t)most * sizeof *votes);
    for (int fold = 0; votes && fold < v->folds.count; fold++) {
        const struct svm_job *job = &v->jobs[fold];
        for (int at = v->folds.start[fold]; at < v->folds.start[fold + 1]; at++) {
            const int row = v->folds.place[at];
            const double *value = &values[row * functions + place];
            target[row] = svm_answer(job->training.type, job->classes.label, job->classes.count,
                                     value, votes);
        }
        place += svm_job_functions(job);
    }
    free(votes);
    return votes ? GPU_OK : GPU_NO_MEMORY;
}

/* ---- The call ---- */

/* Shuffles classes apart unless each row is a fold. */
static bool draw(struct validated *v, int count)
{
    const struct libsvm_source source = libsvm_source_of(v->library, v->problem);
    const struct libsvm_rows all = {source.l, NULL, source.y};
    struct svm_classes classes;
    if (!libsvm_classifies(v->parameter->svm_type) || count == source.l)
        return libsvm_fold_all(&source, source.l, count, &v->folds);
    if (!libsvm_group(v->library, &all, true, &classes))
        return false;
    const bool drawn = libsvm_fold_classes(&source, &classes, count, &v->folds);
    svm_classes_free(&classes);
    return drawn;
}

static bool make_jobs(struct validated *v, int64_t *functions)
{
    const struct libsvm_source source = libsvm_source_of(v->library, v->problem);
    const struct libsvm_rows all = {source.l, NULL, source.y};
    v->jobs = calloc((size_t)v->folds.count, sizeof *v->jobs);
    *functions = 0;
    for (int fold = 0; v->jobs && fold < v->folds.count; fold++) {
        if (!libsvm_fold_job(&source, v->parameter, &v->folds, fold, &all, &v->jobs[fold]))
            return false;
        *functions += svm_job_functions(&v->jobs[fold]);
    }
    return v->jobs;
}

static enum gpu_status fit_and_predict(struct smo *s, struct validated *v,
                                       const struct svm_matrix *x, int64_t functions,
                                       double *target)
{
    double *values = calloc((size_t)functions, (size_t)x->rows * sizeof *values);
    if (!values)
        return GPU_NO_MEMORY;
    const struct smo_matrix on_device = svm_put(s, x);
    enum gpu_status status = svm_fit_jobs(s, &on_device, v->jobs, v->folds.count);
    if (status == GPU_OK)
        status = svm_decide_jobs(s, &on_device, v->jobs, v->folds.count, values);
    if (status == GPU_OK)
        status = predict(v, values, functions, target);
    free(values);
    return status;
}

static enum gpu_status validate(struct gpu_work *work, struct validated *v)
{
    const bool precomputed = v->parameter->kernel_type == SVM_PRECOMPUTED;
    struct smo s = {.work = work, .progress = svm_note_progress, .context = &v->progress};
    struct libsvm_size size;
    struct svm_matrix x;
    int64_t functions;
    if (!draw(v, svm_traits_folds(work->call)) || !make_jobs(v, &functions))
        return GPU_UNSUPPORTED;
    if (!libsvm_measure(v->problem, precomputed, &size) ||
        !libsvm_vectors(v->problem, precomputed, &size, &x))
        return GPU_NO_MEMORY;
    const enum gpu_status status =
        fit_and_predict(&s, v, &x, functions, work->call->span[ACCEL_b].ptr);
    svm_matrix_free(&x);
    return status;
}

static enum gpu_status run_svm_cross(struct gpu_work *work)
{
    struct validated *v = calloc(1, sizeof *v);
    if (!v)
        return GPU_NO_MEMORY;
    v->library = libsvm_numbered(svm_traits_layout(work->call));
    v->problem = work->call->own.pointer[SVM_PROBLEM];
    v->parameter = work->call->own.pointer[SVM_PARAMETER];
    v->progress = svm_progress_of(v->library);
    accel_rand_keep(&v->before);
    const enum gpu_status status = validate(work, v);
    if (status == GPU_OK) {
        svm_leave(work->call, v);
        return status;
    }
    accel_rand_put_back(&v->before);
    discard_validated(v);
    return status;
}

static void complete_svm_cross(const struct accel_call *call, struct accel_result *result)
{
    struct validated *v = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    int64_t dots = v->progress.dots;
    (void)result;
    for (int fold = 0; fold < v->folds.count; fold++)
        dots = libsvm_print_job(v->library, &v->jobs[fold], dots);
    discard_validated(v);
}

static void discard_call(const struct accel_call *call)
{
    struct validated *v = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    accel_rand_put_back(&v->before);
    discard_validated(v);
}

/* Judges the trainings, not the predictions. */
static double verify_svm_cross(const struct accel_call *call)
{
    const struct validated *v = call->own.pointer[SVM_RESULT];
    return libsvm_judge(v->problem, v->jobs, v->folds.count);
}

const struct accel_op op_svm_cross_validation = {
    .traits = {.group = ACCEL_NO_BLAS},
    .cost = &svm_cost,
    OP_GPU(.run = run_svm_cross, .discard = discard_call),
    OP_FOREIGN(SVM_FOREIGN, .accepts = libsvm_of, .parse = parse_svm_cross,
               .complete = complete_svm_cross, .judge = verify_svm_cross)};
