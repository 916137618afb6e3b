/* What a fit's arguments say, in the form that all fits have. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/call.h"
#include "sklearn.h"

/* ---- Memory that lives as long as the fit ---- */

static void *take(struct sklearn_fit *fit, int64_t count, int64_t size)
{
    int64_t bytes;
    void *memory = accel_mul(count, size, &bytes) ? malloc(bytes > 0 ? (size_t)bytes : 1) : NULL;
    if (memory)
        fit->owned[fit->owned_count++] = memory;
    return memory;
}

void sklearn_release(struct sklearn_fit *fit)
{
    while (fit->owned_count > 0)
        free(fit->owned[--fit->owned_count]);
}

static bool is_precomputed(const struct sklearn_fit *fit)
{
    return fit->parameter->libsvm.kernel_type == SVM_PRECOMPUTED;
}

/* ---- Rows ---- */

static bool keep_rows(struct sklearn_fit *fit)
{
    const struct sklearn_problem *problem = fit->problem;
    double *weight = take(fit, problem->rows, sizeof *weight);
    double *target = take(fit, problem->rows, sizeof *target);
    fit->kept = take(fit, problem->rows, sizeof *fit->kept);
    if (!weight || !target || !fit->kept)
        return false;
    int64_t rows = 0;
    for (int i = 0; i < problem->rows; i++) {
        if (!(problem->weight[i] > 0))
            continue;
        if (!isfinite(problem->weight[i]) || !isfinite(problem->target[i]))
            return false;
        weight[rows] = problem->weight[i];
        target[rows] = problem->target[i];
        fit->kept[rows++] = i;
    }
    fit->training.x.rows = rows;
    fit->training.weight = weight;
    fit->training.target = target;
    return rows > 0;
}

/* Returns the caller's rows as one matrix, if they lie one behind the other; else NULL. */
static const double *in_one(const struct sklearn_fit *fit)
{
    const struct sklearn_node *node = fit->problem->x.dense;
    const double *first = node[fit->kept[0]].values;
    for (int64_t i = 0; i < fit->training.x.rows; i++) {
        const struct sklearn_node *row = &node[fit->kept[i]];
        if (row->values != first + i * fit->training.x.features ||
            (is_precomputed(fit) && row->row != i))
            return NULL;
    }
    return first;
}

static const double *gathered(struct sklearn_fit *fit)
{
    const struct sklearn_node *node = fit->problem->x.dense;
    const int64_t rows = fit->training.x.rows, columns = fit->training.x.features;
    double *all = take(fit, rows, columns * (int64_t)sizeof *all);
    for (int64_t i = 0; all && i < rows; i++) {
        const struct sklearn_node *row = &node[fit->kept[i]];
        double *to = &all[i * columns];
        if (!is_precomputed(fit))
            memcpy(to, row->values, (size_t)columns * sizeof *to);
        else
            for (int64_t j = 0; j < columns; j++)
                to[j] = row->values[node[fit->kept[j]].row];
    }
    return all;
}

static bool read_dense(struct sklearn_fit *fit, bool vectors)
{
    const struct sklearn_node *node = fit->problem->x.dense;
    struct svm_matrix *x = &fit->training.x;
    const int features = node[fit->kept[0]].features;
    for (int64_t i = 0; i < x->rows; i++) {
        const struct sklearn_node *row = &node[fit->kept[i]];
        if (!row->values || row->features != features ||
            (is_precomputed(fit) && (row->row < 0 || row->row >= features)))
            return false;
    }
    x->features = is_precomputed(fit) ? x->rows : features;
    fit->stored = x->rows * x->features;
    if (!vectors)
        return features > 0;
    x->dense = features == x->features ? in_one(fit) : NULL;
    if (!x->dense)
        x->dense = gathered(fit);
    return x->dense;
}

/* Returns a vector's length, -1 if its indices do not ascend. */
static int64_t length_of(const struct libsvm_node *node, int64_t *features)
{
    int64_t length = 0;
    for (int before = 0; node[length].index != -1; before = node[length++].index)
        if (node[length].index <= before)
            return -1;
    if (length > 0)
        *features = accel_max(*features, node[length - 1].index);
    return length;
}

static bool copy_csr(struct sklearn_fit *fit, const int64_t *start)
{
    int32_t *column = take(fit, fit->stored, sizeof *column);
    double *value = take(fit, fit->stored, sizeof *value);
    for (int64_t i = 0; column && value && i < fit->training.x.rows; i++) {
        const struct libsvm_node *node = fit->problem->x.csr[fit->kept[i]];
        for (int64_t at = start[i]; at < start[i + 1]; at++, node++) {
            column[at] = node->index - 1;
            value[at] = node->value;
        }
    }
    fit->training.x.column = column;
    fit->training.x.value = value;
    return column && value;
}

static bool read_csr(struct sklearn_fit *fit, bool vectors)
{
    struct svm_matrix *x = &fit->training.x;
    int64_t *start = take(fit, x->rows + 1, sizeof *start);
    if (!start || is_precomputed(fit))
        return false;
    start[0] = 0;
    for (int64_t i = 0; i < x->rows; i++) {
        const struct libsvm_node *node = fit->problem->x.csr[fit->kept[i]];
        const int64_t length = node ? length_of(node, &x->features) : -1;
        if (length < 0)
            return false;
        start[i + 1] = start[i] + length;
    }
    x->start = start;
    fit->stored = start[x->rows];
    return x->features > 0 && (!vectors || copy_csr(fit, start));
}

/* ---- Classes ---- */

static int by_label(const void *one, const void *other)
{
    const int a = *(const int *)one, b = *(const int *)other;
    return (a > b) - (a < b);
}

/* Returns the label's place in their order, -1 if there is none; 0 where there are no labels. */
static int class_of(const struct svm_classes *classes, int label)
{
    if (!classes->label)
        return 0;
    const int *found =
        bsearch(&label, classes->label, (size_t)classes->count, sizeof label, by_label);
    return found ? (int)(found - classes->label) : -1;
}

static bool find_labels(struct sklearn_fit *fit)
{
    struct svm_classes *classes = &fit->classes;
    const int64_t rows = fit->training.x.rows;
    classes->label = take(fit, rows, sizeof *classes->label);
    if (!classes->label)
        return false;
    for (int64_t i = 0; i < rows; i++)
        classes->label[i] = (int)fit->training.target[i];
    qsort(classes->label, (size_t)rows, sizeof *classes->label, by_label);
    for (int64_t i = 0; i < rows; i++)
        if (i == 0 || classes->label[i] != classes->label[i - 1])
            classes->label[classes->count++] = classes->label[i];
    return classes->count > 1 && classes->count <= SVM_MOST_CLASSES;
}

/* Rows keep their order within a class. */
static void group_rows(const struct sklearn_fit *fit, struct svm_classes *classes)
{
    const int64_t rows = fit->training.x.rows;
    memset(classes->number, 0, (size_t)classes->count * sizeof *classes->number);
    for (int64_t i = 0; i < rows; i++)
        classes->number[class_of(classes, (int)fit->training.target[i])]++;
    for (int i = 0, next = 0; i < classes->count; i++) {
        classes->start[i] = next;
        next += classes->number[i];
    }
    for (int64_t i = 0; i < rows; i++)
        classes->row[classes->start[class_of(classes, (int)fit->training.target[i])]++] = (int)i;
    for (int i = 0; i < classes->count; i++)
        classes->start[i] -= classes->number[i];
}

static bool read_classes(struct sklearn_fit *fit)
{
    const int type = fit->training.type;
    struct svm_classes *classes = &fit->classes;
    if (type != SVM_C_SVC && type != SVM_NU_SVC)
        classes->count = 1;
    else if (!find_labels(fit))
        return false;
    classes->start = take(fit, classes->count, sizeof *classes->start);
    classes->number = take(fit, classes->count, sizeof *classes->number);
    classes->row = take(fit, fit->training.x.rows, sizeof *classes->row);
    if (!classes->start || !classes->number || !classes->row)
        return false;
    group_rows(fit, classes);
    return true;
}

/* A weight of a class that is not there is worth a message, which scikit-learn's own function prints. */
static bool weigh_classes(struct sklearn_fit *fit)
{
    const struct libsvm_parameter *parameter = &fit->parameter->libsvm;
    double *c = take(fit, fit->classes.count, sizeof *c);
    fit->training.class_c = c;
    for (int i = 0; c && i < fit->classes.count; i++)
        c[i] = parameter->C;
    for (int i = 0; c && i < parameter->nr_weight; i++) {
        const int at = class_of(&fit->classes, parameter->weight_label[i]);
        if (at < 0 || (parameter->svm_type == SVM_C_SVC &&
                       !(parameter->weight[i] > 0 && isfinite(parameter->weight[i]))))
            return false;
        c[at] *= parameter->weight[i];
    }
    return c;
}

bool sklearn_is_feasible(const struct svm_training *training, const struct svm_classes *classes)
{
    double least = INFINITY, most = 0;
    for (int i = 0; i < classes->count; i++) {
        double sum = 0;
        for (int k = 0; k < classes->number[i]; k++)
            sum += training->weight[classes->row[classes->start[i] + k]];
        least = sum < least ? sum : least;
        most = sum > most ? sum : most;
    }
    return training->nu * (least + most) / 2 <= least;
}

bool sklearn_read(struct sklearn_fit *fit, bool vectors)
{
    const struct libsvm_parameter *parameter = &fit->parameter->libsvm;
    fit->owned_count = 0;
    fit->classes = (struct svm_classes){0};
    fit->training = (struct svm_training){
        .type = parameter->svm_type,
        .kernel = {parameter->kernel_type, parameter->degree, parameter->gamma, parameter->coef0},
        .c = parameter->C,
        .nu = parameter->nu,
        .p = parameter->p,
        .eps = parameter->eps,
        .max_iterations = fit->parameter->max_iterations,
        .shrinking = parameter->shrinking};
    if (!keep_rows(fit) ||
        !(fit->library->csr ? read_csr(fit, vectors) : read_dense(fit, vectors)) ||
        !read_classes(fit))
        return false;
    if (parameter->svm_type == SVM_NU_SVC && !sklearn_is_feasible(&fit->training, &fit->classes))
        return false;
    return fit->classes.count == 1 || weigh_classes(fit);
}
