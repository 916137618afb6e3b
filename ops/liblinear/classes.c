#include "classes.h"

#include <stdlib.h>
#include <string.h>

/* Returns the label's class, new if there is none yet; -1: memory is short. */
static int find_or_add_class(struct linear_classes *classes, int *room, int label)
{
    for (int k = 0; k < classes->count; k++)
        if (classes->label[k] == label)
            return k;
    if (classes->count == *room) {
        const int more = *room ? *room * 2 : 16;
        int *longer = realloc(classes->label, (size_t)more * sizeof *longer);
        if (!longer)
            return -1;
        classes->label = longer;
        *room = more;
    }
    classes->label[classes->count] = label;
    return classes->count++;
}

static int by_size(const void *x, const void *y)
{
    const int a = *(const int *)x, b = *(const int *)y;
    return (a > b) - (a < b);
}

/* Numbers the classes by their order in `label`, which has changed. */
static bool renumber(struct linear_classes *classes, const int *before, int rows)
{
    int *now = malloc((size_t)classes->count * sizeof *now);
    if (!now)
        return false;
    for (int k = 0; k < classes->count; k++)
        for (int j = 0; j < classes->count; j++)
            if (classes->label[j] == before[k])
                now[k] = j;
    for (int i = 0; i < rows; i++)
        classes->of_row[i] = now[classes->of_row[i]];
    free(now);
    return true;
}

/* liblinear orders labels as they come first, but -1 and 1 as 1, -1; scikit-learn sorts them. */
static bool order(struct linear_classes *classes, bool sorts, int rows)
{
    int *const label = classes->label;
    const bool swaps = !sorts && classes->count == 2 && label[0] == -1 && label[1] == 1;
    int *before = malloc((size_t)classes->count * sizeof *before);
    if (!before)
        return false;
    memcpy(before, label, (size_t)classes->count * sizeof *before);
    if (sorts)
        qsort(label, (size_t)classes->count, sizeof *label, by_size);
    if (swaps) {
        label[0] = 1;
        label[1] = -1;
    }
    const bool done = (!sorts && !swaps) || renumber(classes, before, rows);
    free(before);
    return done;
}

bool linear_classes_weigh(struct linear_classes *classes, const struct linear_parameter *parameter)
{
    if (!classes->c)
        classes->c = malloc((size_t)classes->count * sizeof *classes->c);
    if (!classes->c)
        return false;
    for (int k = 0; k < classes->count; k++)
        classes->c[k] = parameter->c;
    for (int i = 0; i < parameter->class_weights; i++) {
        int k = 0;
        while (k < classes->count && classes->label[k] != parameter->weight_label[i])
            k++;
        if (k == classes->count)
            return false; /* the library says so to the user */
        classes->c[k] *= parameter->weight[i];
    }
    return true;
}

bool linear_classes_make(struct linear_classes *classes, const struct linear_training *training)
{
    const struct linear_problem *problem = training->problem;
    int room = 0, rows = 0;
    *classes = (struct linear_classes){0};
    if (training->parameter->solver == LINEAR_L2_SVR)
        return true;
    classes->of_row = malloc((size_t)problem->rows * sizeof *classes->of_row);
    if (!classes->of_row)
        return false;
    for (int i = 0; i < problem->rows; i++) {
        if (!linear_counts(training, i))
            continue;
        classes->of_row[rows] = find_or_add_class(classes, &room, (int)problem->target[i]);
        if (classes->of_row[rows++] < 0)
            return false;
    }
    return rows > 0 && order(classes, training->library->layout == LINEAR_SKLEARN, rows) &&
           linear_classes_weigh(classes, training->parameter);
}

void linear_classes_free(struct linear_classes *classes)
{
    free(classes->label);
    free(classes->c);
    free(classes->of_row);
}
