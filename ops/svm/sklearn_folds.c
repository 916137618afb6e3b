/*
 * What scikit-learn's svm_train() does for probabilities: five folds of each pair of classes, or of a regression's rows, decide on the
 * vectors that they have not seen.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sklearn.h"

static int part_of(int i, int count)
{
    return (int)((int64_t)i * count / SKLEARN_FOLDS);
}

/* ---- Groups ---- */

static bool take_group(struct sklearn_group *group, int count)
{
    group->count = count;
    group->row = malloc((size_t)count * sizeof *group->row);
    group->place = malloc((size_t)count * sizeof *group->place);
    group->label = malloc((size_t)count * sizeof *group->label);
    return group->row && group->place && group->label;
}

/* Rows of class i have label 1, those of class j -1; all rows of a regression 1. */
static bool make_group(const struct svm_classes *classes, int i, int j, struct sklearn_group *group)
{
    const int first = classes->number[i];
    if (!take_group(group, first + (j == i ? 0 : classes->number[j])))
        return false;
    for (int k = 0; k < group->count; k++) {
        group->row[k] =
            classes->row[k < first ? classes->start[i] + k : classes->start[j] + k - first];
        group->label[k] = k < first ? 1 : -1;
    }
    return true;
}

void sklearn_groups_free(struct sklearn_group *groups, int count)
{
    for (int i = 0; groups && i < count; i++) {
        free(groups[i].row);
        free(groups[i].place);
        free(groups[i].label);
    }
    free(groups);
}

/* ---- The training without a fold ---- */

/* Puts the rows outside of the fold that have a label behind those that are there. */
static void add_class(const struct sklearn_group *group, int fold, int label,
                      struct svm_classes *classes, int c)
{
    const int begin = part_of(fold, group->count), end = part_of(fold + 1, group->count);
    classes->start[c] = c > 0 ? classes->number[0] : 0;
    classes->number[c] = 0;
    for (int at = 0; at < group->count; at++)
        if ((at < begin || at >= end) && group->label[group->place[at]] == label)
            classes->row[classes->start[c] + classes->number[c]++] = group->row[group->place[at]];
}

static bool take_classes(struct svm_classes *classes, int count, int rows)
{
    *classes = (struct svm_classes){.count = count,
                                    .label = calloc((size_t)count, sizeof *classes->label),
                                    .start = calloc((size_t)count, sizeof *classes->start),
                                    .number = calloc((size_t)count, sizeof *classes->number),
                                    .row = malloc((size_t)rows * sizeof *classes->row)};
    return classes->label && classes->start && classes->number && classes->row;
}

/* Of the labels -1 and 1, in this order. c: of 1 and of -1. If all rows outside of the fold are of one class, there is nothing to
 * train: the job stays empty. */
static bool make_pair_job(const struct sklearn_fit *fit, struct sklearn_group *group, int fold,
                          const double c[2], struct svm_job *job)
{
    struct svm_classes *classes = &job->classes;
    if (!take_classes(classes, 2, group->count))
        return false;
    for (int i = 0; i < 2; i++) {
        classes->label[i] = i == 0 ? -1 : 1;
        add_class(group, fold, classes->label[i], classes, i);
    }
    group->sign[fold] = (classes->number[1] > 0) - (classes->number[0] > 0);
    if (!classes->number[0] || !classes->number[1]) {
        svm_job_free(job);
        return true;
    }
    job->training = fit->training;
    job->training.class_c = malloc(2 * sizeof *job->training.class_c);
    job->functions = calloc(1, sizeof *job->functions);
    if (!job->training.class_c || !job->functions)
        return false;
    job->training.class_c[0] = c[1];
    job->training.class_c[1] = c[0];
    return fit->training.type != SVM_NU_SVC || sklearn_is_feasible(&job->training, classes);
}

static bool make_regression_job(const struct sklearn_fit *fit, const struct sklearn_group *group,
                                int fold, struct svm_job *job)
{
    if (!take_classes(&job->classes, 1, group->count))
        return false;
    add_class(group, fold, 1, &job->classes, 0);
    job->training = fit->training;
    job->training.class_c = NULL;
    job->functions = calloc(1, sizeof *job->functions);
    return job->functions && job->classes.number[0] > 0;
}

/* Each training seeds anew. */
static bool make_pair(const struct sklearn_fit *fit, int i, int j, struct sklearn_random *random,
                      struct sklearn_group *group, struct svm_job *jobs)
{
    const double *class_c = fit->training.class_c;
    const double c[2] = {class_c[i], class_c[j]};
    if (!make_group(&fit->classes, i, j, group))
        return false;
    sklearn_shuffle(random, group->place, group->count);
    for (int fold = 0; fold < SKLEARN_FOLDS; fold++) {
        if (!make_pair_job(fit, group, fold, c, &jobs[fold]))
            return false;
        if (jobs[fold].functions)
            sklearn_seed(random, (uint32_t)fit->parameter->seed);
    }
    return true;
}

bool sklearn_make_groups(const struct sklearn_fit *fit, struct sklearn_group *groups,
                         struct svm_job *jobs)
{
    struct sklearn_random random;
    const int classes = fit->classes.count;
    sklearn_seed(&random, (uint32_t)fit->parameter->seed);
    for (int i = 0; i < classes; i++)
        for (int j = i + 1; j < classes; j++, groups++, jobs += SKLEARN_FOLDS)
            if (!make_pair(fit, i, j, &random, groups, jobs))
                return false;
    bool made = classes > 1 || make_group(&fit->classes, 0, 0, groups);
    if (classes == 1 && made)
        sklearn_shuffle(&random, groups->place, groups->count);
    for (int fold = 0; classes == 1 && made && fold < SKLEARN_FOLDS; fold++)
        made = make_regression_job(fit, groups, fold, &jobs[fold]);
    return made;
}

/* ---- Estimates ---- */

/* values: of the function among all functions that decides on the fold's rows; `functions` to a row. */
static void decide_fold(const struct sklearn_group *group, int fold, const struct svm_job *job,
                        const double *values, int functions, double *decisions)
{
    for (int at = part_of(fold, group->count); at < part_of(fold + 1, group->count); at++) {
        const int place = group->place[at];
        const double value = job->functions ? values[(int64_t)group->row[place] * functions] : 0;
        decisions[place] = !job->functions           ? group->sign[fold]
                           : job->classes.count == 1 ? value
                                                     : value * job->classes.label[0];
    }
}

static bool estimate(const struct sklearn_fit *fit, struct sklearn_group *group, double *decisions)
{
    if (fit->classes.count > 1) {
        group->message =
            libsvm_sigmoid(group->count, decisions, group->label, &group->a, &group->b);
        return group->message;
    }
    for (int at = 0; at < group->count; at++)
        decisions[at] = fabs(fit->training.target[group->row[at]] - decisions[at]);
    group->a = libsvm_sigma(decisions, group->count);
    return true;
}

bool sklearn_estimate(const struct sklearn_fit *fit, struct sklearn_group *groups, int count,
                      const struct svm_job *jobs, const double *values, int functions)
{
    bool done = true;
    for (int i = 0; done && i < count; i++) {
        double *decisions = malloc((size_t)groups[i].count * sizeof *decisions);
        done = decisions != NULL;
        for (int fold = 0; done && fold < SKLEARN_FOLDS; fold++, jobs++) {
            decide_fold(&groups[i], fold, jobs, values, functions, decisions);
            values += svm_job_functions(jobs);
        }
        done = done && estimate(fit, &groups[i], decisions);
        free(decisions);
    }
    return done;
}
