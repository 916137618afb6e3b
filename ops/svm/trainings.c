/* The trainings of a call of svm_train(), libsvm's or scikit-learn's, on the device: the call's
 * own, and its folds beside it. */
#include <stdlib.h>

#include "libsvm.h"

bool libsvm_may_estimate(const struct svm_job *job, int rows)
{
    return svm_may_decide((double)svm_job_functions(job) * (1 + LIBSVM_FOLDS), rows);
}

int libsvm_job_count(const struct libsvm_trainings *t)
{
    return 1 + t->group_count * LIBSVM_FOLDS;
}

bool libsvm_trainings_take(struct libsvm_trainings *t, struct svm_job *job, bool estimates)
{
    t->group_count = estimates ? svm_job_functions(job) : 0;
    t->jobs = calloc((size_t)libsvm_job_count(t), sizeof *t->jobs);
    t->groups = calloc((size_t)t->group_count + 1, sizeof *t->groups);
    if (!t->jobs) {
        svm_job_free(job);
        return false;
    }
    t->jobs[0] = *job;
    *job = (struct svm_job){0};
    return t->groups;
}

void libsvm_trainings_free(struct libsvm_trainings *t)
{
    for (int i = 0; t->jobs && i < libsvm_job_count(t); i++)
        svm_job_free(&t->jobs[i]);
    free(t->jobs);
    libsvm_groups_free(t->groups, t->group_count);
}

/* ---- On the device ---- */

static enum gpu_status estimate(struct smo *s, const struct smo_matrix *x,
                                struct libsvm_trainings *t)
{
    int64_t functions = 0;
    for (int i = 0; i < libsvm_job_count(t); i++)
        functions += svm_job_functions(&t->jobs[i]);
    double *values = calloc((size_t)functions, (size_t)x->rows * sizeof *values);
    if (!values)
        return GPU_NO_MEMORY;
    enum gpu_status status = svm_decide_jobs(s, x, t->jobs, libsvm_job_count(t), values);
    if (status == GPU_OK && !libsvm_estimate_groups(&t->source, t->jobs + 1, values, t->groups))
        status = GPU_NO_MEMORY;
    free(values);
    return status;
}

enum gpu_status libsvm_trainings_run(struct libsvm_trainings *t, struct gpu_work *work,
                                     const struct svm_matrix *x)
{
    struct smo s = {.work = work, .progress = svm_note_progress, .context = &t->progress};
    const struct smo_matrix on_device = svm_put(&s, x);
    const enum gpu_status status = svm_fit_jobs(&s, &on_device, t->jobs, libsvm_job_count(t));
    return status == GPU_OK && t->group_count ? estimate(&s, &on_device, t) : status;
}

/* ---- Lines ---- */

static int64_t print_folds(const struct libsvm_trainings *t, int group, int64_t dots)
{
    for (int fold = 0; fold < LIBSVM_FOLDS; fold++)
        dots = libsvm_print_job(t->source.library, &t->jobs[1 + group * LIBSVM_FOLDS + fold], dots);
    if (t->groups[group].message)
        libsvm_say(t->source.library, "%s", t->groups[group].message);
    return dots;
}

/* The folds of a pair are trained before the pair. */
static void print_pairs(const struct libsvm_trainings *t, int64_t dots)
{
    const struct svm_job *job = &t->jobs[0];
    int group = 0;
    for (int i = 0; i < job->classes.count; i++)
        for (int j = i + 1; j < job->classes.count; j++, group++) {
            dots = print_folds(t, group, dots);
            dots = libsvm_print_function(t->source.library, &job->training, &job->functions[group],
                                         i, j, dots);
        }
    libsvm_say(t->source.library, "Total nSV = %d\n", job->support);
}

static int64_t print_regression_folds(const struct libsvm_trainings *t, int64_t dots)
{
    dots = print_folds(t, 0, dots);
    libsvm_say_sigma(t->source.library, t->groups[0].a);
    return dots;
}

void libsvm_trainings_print(const struct libsvm_trainings *t, bool folds_last)
{
    int64_t dots = t->progress.dots;
    if (t->group_count && t->jobs[0].classes.count > 1) {
        print_pairs(t, dots);
        return;
    }
    if (t->group_count && !folds_last)
        dots = print_regression_folds(t, dots);
    dots = libsvm_print_job(t->source.library, &t->jobs[0], dots);
    if (t->group_count && folds_last)
        print_regression_folds(t, dots);
}

/* ---- The model ---- */

bool libsvm_copy_estimates(const struct libsvm_trainings *t, double **a, double **b)
{
    const bool classifies = libsvm_classifies(t->jobs[0].training.type);
    const size_t bytes = (size_t)t->group_count * sizeof **a;
    *a = malloc(bytes);
    *b = classifies ? malloc(bytes) : NULL;
    for (int i = 0; *a && i < t->group_count; i++)
        (*a)[i] = t->groups[i].a;
    for (int i = 0; *b && i < t->group_count; i++)
        (*b)[i] = t->groups[i].b;
    return *a && (*b || !classifies);
}
