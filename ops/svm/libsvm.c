/*
 * svm_train() of libsvm itself.
 *
 * A call that estimates probabilities trains five folds of each pair of classes, or of all rows, which it draws by rand(): they are
 * trained beside the rest. If the device cannot do all of it, rand() goes back to where it was, and libsvm runs the call.
 */
#include <stdlib.h>

#include "judge.h"
#include "libsvm.h"
#include "train.h"

/* A training that the device has done: what complete() makes of it. */
struct trained {
    const struct libsvm *library;
    const struct libsvm_problem *problem;
    struct libsvm_parameter parameter; /* without the wish for probabilities */
    struct svm_job *jobs;              /* the call's, then LIBSVM_FOLDS for each group */
    struct libsvm_group *groups;
    int group_count; /* 0: no probabilities */
    struct libsvm_model *model;
    struct svm_progress progress;
    struct libsvm_rand before; /* if there are groups */
};

static int job_count(const struct trained *t)
{
    return 1 + t->group_count * LIBSVM_FOLDS;
}

static void discard(struct trained *t)
{
    for (int i = 0; t->jobs && i < job_count(t); i++)
        svm_job_free(&t->jobs[i]);
    free(t->jobs);
    libsvm_groups_free(t->groups, t->group_count);
    free(t);
}

/* Whether the call estimates probabilities. Versions that have no marks of a density do not for one-class. */
static bool estimates(const struct libsvm *library, const struct libsvm_parameter *p)
{
    return p->probability && (p->svm_type != SVM_ONE_CLASS || library->model->density_marks);
}

bool libsvm_takes(const struct libsvm *library, const struct libsvm_problem *problem,
                  const struct libsvm_parameter *parameter, struct libsvm_size *size,
                  struct svm_job *job)
{
    struct libsvm_parameter plain;
    if (!problem || !parameter || problem->l < 2 || !problem->y || !problem->x ||
        (parameter->probability != 0 && parameter->probability != 1) ||
        (estimates(library, parameter) &&
         (parameter->svm_type == SVM_ONE_CLASS || !library->draws)))
        return false;
    plain = *parameter;
    plain.probability = 0;
    if (!libsvm_is_valid(&plain) || !libsvm_has_targets(problem, plain.svm_type) ||
        !libsvm_measure(problem, plain.kernel_type == SVM_PRECOMPUTED, size) ||
        !libsvm_job_make(library, problem, &plain,
                         &(struct libsvm_rows){problem->l, NULL, problem->y}, job))
        return false;
    const bool fits =
        !estimates(library, parameter) ||
        svm_may_decide((double)svm_job_functions(job) * (1 + LIBSVM_FOLDS), problem->l);
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
static bool begin(struct trained *t, struct libsvm_size *size, struct svm_job *job)
{
    const struct libsvm_parameter *parameter = &t->parameter;
    if (!libsvm_takes(t->library, t->problem, parameter, size, job))
        return false;
    if (estimates(t->library, parameter))
        t->group_count = svm_job_functions(job);
    t->jobs = calloc((size_t)job_count(t), sizeof *t->jobs);
    t->groups = calloc((size_t)t->group_count + 1, sizeof *t->groups);
    if (!t->jobs) {
        svm_job_free(job);
        return false;
    }
    t->jobs[0] = *job;
    t->parameter.probability = 0;
    return t->groups;
}

static enum gpu_status estimate(struct smo *s, const struct smo_matrix *x, struct trained *t)
{
    int64_t functions = 0;
    for (int i = 0; i < job_count(t); i++)
        functions += svm_job_functions(&t->jobs[i]);
    double *values = calloc((size_t)functions, (size_t)t->problem->l * sizeof *values);
    if (!values)
        return GPU_NO_MEMORY;
    enum gpu_status status = svm_decide_jobs(s, x, t->jobs, job_count(t), values);
    if (status == GPU_OK && !libsvm_estimate_groups(t->problem, t->jobs + 1, values, t->groups))
        status = GPU_NO_MEMORY;
    free(values);
    return status;
}

static enum gpu_status solve(struct gpu_work *work, struct trained *t,
                             const struct libsvm_size *size)
{
    struct smo s = {.work = work, .progress = svm_note_progress, .context = &t->progress};
    struct svm_matrix x;
    if (!libsvm_vectors(t->problem, t->parameter.kernel_type == SVM_PRECOMPUTED, size, &x))
        return GPU_NO_MEMORY;
    const struct smo_matrix on_device = svm_put(&s, &x);
    enum gpu_status status = svm_fit_jobs(&s, &on_device, t->jobs, job_count(t));
    if (status == GPU_OK && t->group_count)
        status = estimate(&s, &on_device, t);
    svm_matrix_free(&x);
    return status;
}

/* Copies what the groups have found into arrays of the model's own. */
static bool add_estimates(struct trained *t)
{
    const bool classifies = libsvm_classifies(t->parameter.svm_type);
    double *a = malloc((size_t)t->group_count * sizeof *a);
    double *b = classifies ? malloc((size_t)t->group_count * sizeof *b) : NULL;
    if (!a || (classifies && !b)) {
        free(a);
        free(b);
        return false;
    }
    for (int i = 0; i < t->group_count; i++) {
        a[i] = t->groups[i].a;
        if (b)
            b[i] = t->groups[i].b;
    }
    t->model->probA = a;
    t->model->probB = b;
    return true;
}

static enum gpu_status make_model(struct trained *t, const struct libsvm_parameter *parameter)
{
    t->model = libsvm_model_of(t->library, t->problem, parameter, &t->jobs[0]);
    if (t->model && t->group_count && !add_estimates(t)) {
        libsvm_model_free(t->model, t->library->model);
        t->model = NULL;
    }
    return t->model ? GPU_OK : GPU_NO_MEMORY;
}

/* With folds drawn. */
static enum gpu_status train_all(struct gpu_work *work, struct trained *t,
                                 const struct libsvm_size *size)
{
    if (t->group_count &&
        !libsvm_make_groups(t->library, t->problem, &t->parameter, t->jobs + 1, t->groups))
        return GPU_UNSUPPORTED;
    const enum gpu_status status = solve(work, t, size);
    return status == GPU_OK ? make_model(t, work->call->own.pointer[SVM_PARAMETER]) : status;
}

static enum gpu_status train(struct gpu_work *work, struct trained *t)
{
    struct libsvm_size size;
    struct svm_job job;
    if (!begin(t, &size, &job))
        return GPU_NO_MEMORY;
    if (t->group_count)
        libsvm_rand_keep(&t->before);
    const enum gpu_status status = train_all(work, t, &size);
    if (t->group_count && status != GPU_OK)
        libsvm_rand_put_back(&t->before);
    return status;
}

static enum gpu_status run(struct gpu_work *work)
{
    struct trained *t = calloc(1, sizeof *t);
    if (!t)
        return GPU_NO_MEMORY;
    t->library = libsvm_numbered(svm_traits_layout(work->call) % SVM_LAYOUTS);
    t->problem = work->call->own.pointer[SVM_PROBLEM];
    t->parameter = *(const struct libsvm_parameter *)work->call->own.pointer[SVM_PARAMETER];
    t->progress = svm_progress_of(t->library);
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
    for (int fold = 0; fold < LIBSVM_FOLDS; fold++)
        dots = libsvm_print_job(t->library, &t->jobs[1 + group * LIBSVM_FOLDS + fold], dots);
    if (t->groups[group].message)
        libsvm_say(t->library, "%s", t->groups[group].message);
    return dots;
}

/* libsvm trains the folds of a pair before the pair. */
static void print_pairs(const struct trained *t, int64_t dots)
{
    const struct svm_job *job = &t->jobs[0];
    int group = 0;
    for (int i = 0; i < job->classes.count; i++)
        for (int j = i + 1; j < job->classes.count; j++, group++) {
            dots = print_folds(t, group, dots);
            dots = libsvm_print_function(t->library, &job->training, &job->functions[group], i, j,
                                         dots);
        }
    libsvm_say(t->library, "Total nSV = %d\n", job->support);
}

static int64_t print_regression_folds(const struct trained *t, int64_t dots)
{
    dots = print_folds(t, 0, dots);
    libsvm_say_sigma(t->library, t->groups[0].a);
    return dots;
}

/* Versions that estimate densities train a regression's folds last, others first. */
static void print(const struct trained *t)
{
    const bool last = t->library->model->density_marks;
    int64_t dots = t->progress.dots;
    if (t->group_count && t->jobs[0].classes.count > 1) {
        print_pairs(t, dots);
        return;
    }
    if (t->group_count && !last)
        dots = print_regression_folds(t, dots);
    dots = libsvm_print_job(t->library, &t->jobs[0], dots);
    if (t->group_count && last)
        print_regression_folds(t, dots);
}

/* Prints when the device and its memory have been given back: the program's function may do what it likes. */
static void complete(const struct accel_call *call, struct accel_result *result)
{
    struct trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    result->rax = (uintptr_t)t->model;
    print(t);
    discard(t);
}

static void discard_call(const struct accel_call *call)
{
    struct trained *t = (void *)(uintptr_t)call->own.pointer[SVM_RESULT];
    if (t->group_count)
        libsvm_rand_put_back(&t->before);
    libsvm_model_free(t->model, t->library->model);
    discard(t);
}

static double judge(const struct accel_call *call)
{
    const struct trained *t = call->own.pointer[SVM_RESULT];
    return libsvm_judge(t->problem, t->jobs, job_count(t));
}

const struct svm_dialect svm_dialect_libsvm = {libsvm_of, libsvm_parse, run,
                                               complete,  discard_call, judge};
