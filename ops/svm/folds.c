/* Folds, as libsvm draws them. */
#include <stdlib.h>
#include <string.h>

#include "libsvm.h"

static bool allocate(struct libsvm_folds *folds, int rows, int count)
{
    *folds = (struct libsvm_folds){count, malloc((size_t)rows * sizeof(int)),
                                   calloc((size_t)count + 1, sizeof(int))};
    if (folds->place && folds->start)
        return true;
    libsvm_folds_free(folds);
    return false;
}

bool libsvm_fold_all(const struct libsvm_source *source, int places, int count,
                     struct libsvm_folds *folds)
{
    if ((int64_t)count * places > INT32_MAX || !allocate(folds, places, count))
        return false;
    for (int i = 0; i < places; i++)
        folds->place[i] = i;
    source->library->shuffle(folds->place, places, source->seed);
    for (int i = 0; i <= count; i++)
        folds->start[i] = accel_fold_start(i, places, count);
    return true;
}

bool libsvm_fold_classes(const struct libsvm_source *source, const struct svm_classes *classes,
                         int count, struct libsvm_folds *folds)
{
    const int last = classes->count - 1, rows = classes->start[last] + classes->number[last];
    int *index = malloc((size_t)rows * sizeof *index), at = 0;
    if (!index || (int64_t)count * rows > INT32_MAX || !allocate(folds, rows, count)) {
        free(index);
        return false;
    }
    memcpy(index, classes->row, (size_t)rows * sizeof *index);
    for (int c = 0; c < classes->count; c++)
        source->library->shuffle(&index[classes->start[c]], classes->number[c], source->seed);
    for (int i = 0; i < count; i++) {
        for (int c = 0; c < classes->count; c++)
            for (int k = accel_fold_start(i, classes->number[c], count);
                 k < accel_fold_start(i + 1, classes->number[c], count); k++)
                folds->place[at++] = index[classes->start[c] + k];
        folds->start[i + 1] = at;
    }
    free(index);
    return true;
}

void libsvm_folds_free(struct libsvm_folds *folds)
{
    free(folds->place);
    free(folds->start);
    *folds = (struct libsvm_folds){0};
}

bool libsvm_fold_job(const struct libsvm_source *source, const struct libsvm_parameter *parameter,
                     const struct libsvm_folds *folds, int fold, const struct libsvm_rows *all,
                     struct svm_job *job)
{
    const int before = folds->start[fold], after = folds->start[fold + 1];
    const int count = before + folds->start[folds->count] - after;
    int *row = malloc(((size_t)count + 1) * sizeof *row);
    double *y = malloc(((size_t)count + 1) * sizeof *y);
    bool made = row && y;
    for (int i = 0; made && i < count; i++) {
        const int place = folds->place[i < before ? i : i - before + after];
        row[i] = all->row ? all->row[place] : place;
        y[i] = all->y[place];
    }
    made = made && libsvm_job_make(source, parameter, &(struct libsvm_rows){count, row, y}, job);
    free(row);
    free(y);
    return made;
}
