/*
 * Probabilities of svm_train(): five folds of each pair of classes, or of a regression's rows,
 * decide on the vectors that they have not seen.
 */
#include <math.h>
#include <stdlib.h>

#include "libsvm.h"

static void free_rows(struct libsvm_rows *rows)
{
    free((void *)(uintptr_t)rows->row);
    free((void *)(uintptr_t)rows->y);
}

/* Labels the rows of two classes 1 and -1. */
static bool label_pair(const struct svm_classes *classes, int i, int j, struct libsvm_rows *rows)
{
    const int first = classes->number[i], count = first + classes->number[j];
    int *row = malloc((size_t)count * sizeof *row);
    double *y = malloc((size_t)count * sizeof *y);
    *rows = (struct libsvm_rows){count, row, y};
    for (int k = 0; row && y && k < count; k++) {
        row[k] = classes->row[k < first ? classes->start[i] + k : classes->start[j] + k - first];
        y[k] = k < first ? 1 : -1;
    }
    return row && y;
}

/* Returns 1 or -1 if all rows outside of the fold are of that class, else 0. */
static int sign_of(const struct libsvm_group *group, int fold)
{
    const struct libsvm_folds *folds = &group->folds;
    int count[2] = {0, 0};
    for (int at = 0; at < group->rows.count; at++)
        if (at < folds->start[fold] || at >= folds->start[fold + 1])
            count[group->rows.y[folds->place[at]] > 0]++;
    return count[0] && count[1] ? 0 : count[1] ? 1 : -1;
}

/* The classes' own C are weights of 1. */
static bool make_pair(const struct libsvm_source *source, const struct libsvm_parameter *parameter,
                      const double c[2], struct svm_job *jobs, struct libsvm_group *group)
{
    struct libsvm_parameter with = *parameter;
    double weights[2] = {c[0], c[1]};
    int labels[2] = {1, -1};
    with.C = 1;
    with.nr_weight = 2;
    with.weight_label = labels;
    with.weight = weights;
    if (!libsvm_fold_all(source, group->rows.count, LIBSVM_FOLDS, &group->folds))
        return false;
    for (int fold = 0; fold < LIBSVM_FOLDS; fold++) {
        group->sign[fold] = sign_of(group, fold);
        if (!group->sign[fold] &&
            !libsvm_fold_job(source, &with, &group->folds, fold, &group->rows, &jobs[fold]))
            return false;
    }
    return true;
}

/* Of fewer rows than folds libsvm makes as many folds as rows, and warns. */
static bool make_regression(const struct libsvm_source *source,
                            const struct libsvm_parameter *parameter, struct svm_job *jobs,
                            struct libsvm_group *group)
{
    const struct libsvm_rows all = {source->l, NULL, source->y};
    bool made = source->l >= LIBSVM_FOLDS &&
                libsvm_fold_all(source, source->l, LIBSVM_FOLDS, &group->folds);
    for (int fold = 0; made && fold < LIBSVM_FOLDS; fold++)
        made = libsvm_fold_job(source, parameter, &group->folds, fold, &all, &jobs[fold]);
    return made;
}

bool libsvm_make_groups(const struct libsvm_source *source,
                        const struct libsvm_parameter *parameter, struct svm_job *jobs,
                        struct libsvm_group *groups)
{
    const struct svm_classes *classes = &jobs[-1].classes;
    const double *class_c = jobs[-1].training.class_c;
    if (!libsvm_classifies(parameter->svm_type))
        return make_regression(source, parameter, jobs, groups);
    for (int i = 0; i < classes->count; i++)
        for (int j = i + 1; j < classes->count; j++, groups++, jobs += LIBSVM_FOLDS) {
            const double c[2] = {class_c[i], class_c[j]};
            if (!label_pair(classes, i, j, &groups->rows) ||
                !make_pair(source, parameter, c, jobs, groups))
                return false;
        }
    return true;
}

/* ---- Estimates ---- */

/* Decisions of a fold's job: its place among all functions, and their count. */
struct column {
    const double *values;
    int place, functions;
};

static double value_in_row(const struct column *column, int row)
{
    return column->values[(int64_t)row * column->functions + column->place];
}

static bool estimate_pair(struct libsvm_group *group, const struct svm_job *jobs,
                          struct column *column)
{
    const struct libsvm_folds *folds = &group->folds;
    double *decisions = malloc((size_t)group->rows.count * sizeof *decisions);
    for (int fold = 0; decisions && fold < LIBSVM_FOLDS; fold++) {
        for (int at = folds->start[fold]; at < folds->start[fold + 1]; at++) {
            const int place = folds->place[at];
            decisions[place] = group->sign[fold] ? group->sign[fold]
                                                 : value_in_row(column, group->rows.row[place]) *
                                                       jobs[fold].classes.label[0];
        }
        column->place += svm_job_functions(&jobs[fold]);
    }
    group->message = decisions ? libsvm_sigmoid(group->rows.count, decisions, group->rows.y,
                                                &group->a, &group->b)
                               : NULL;
    free(decisions);
    return group->message;
}

/* Laplace's sigma: the mean error without those that are beyond five standard deviations. */
static double sigma_of(const double *errors, int count)
{
    double sum = 0, kept = 0;
    for (int i = 0; i < count; i++)
        sum += errors[i];
    const double mean = sum / count, deviation = sqrt(2 * mean * mean);
    sum = 0;
    for (int i = 0; i < count; i++) {
        const bool near = !(errors[i] > 5 * deviation);
        sum += near ? errors[i] : 0;
        kept += near;
    }
    return sum / kept;
}

static bool estimate_regression(const struct libsvm_source *source, struct libsvm_group *group,
                                struct column *column)
{
    const struct libsvm_folds *folds = &group->folds;
    double *errors = malloc((size_t)source->l * sizeof *errors);
    for (int fold = 0; errors && fold < LIBSVM_FOLDS; fold++, column->place++)
        for (int at = folds->start[fold]; at < folds->start[fold + 1]; at++) {
            const int row = folds->place[at];
            errors[row] = fabs(source->y[row] - value_in_row(column, row));
        }
    if (errors)
        group->a = sigma_of(errors, source->l);

    free(errors);
    return errors;
}

bool libsvm_estimate_groups(const struct libsvm_source *source, const struct svm_job *jobs,
                            const double *values, struct libsvm_group *groups)
{
    const int type = jobs[-1].training.type, own = svm_job_functions(&jobs[-1]);
    const int count = libsvm_classifies(type) ? own : 1;
    struct column column = {values, own, own};
    for (int i = 0; i < count * LIBSVM_FOLDS; i++)
        column.functions += svm_job_functions(&jobs[i]);
    if (!libsvm_classifies(type))
        return estimate_regression(source, groups, &column);
    for (int i = 0; i < count; i++)
        if (!estimate_pair(&groups[i], &jobs[i * LIBSVM_FOLDS], &column))
            return false;
    return true;
}

void libsvm_groups_free(struct libsvm_group *groups, int count)
{
    for (int i = 0; groups && i < count; i++) {
        free_rows(&groups[i].rows);
        libsvm_folds_free(&groups[i].folds);
    }
    free(groups);
}
