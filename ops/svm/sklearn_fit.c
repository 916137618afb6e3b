/* Reads a fit's arguments: its rows to a matrix, and the job. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "sklearn.h"

/* ---- Memory that lives as long as the fit ---- */

static void *alloc_owned(struct sklearn_fit *fit, int64_t count, int64_t size)
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
    double *weight = alloc_owned(fit, problem->rows, sizeof *weight);
    double *target = alloc_owned(fit, problem->rows, sizeof *target);
    fit->kept = alloc_owned(fit, problem->rows, sizeof *fit->kept);
    if (!weight || !target || !fit->kept)
        return false;
    int rows = 0;
    for (int i = 0; i < problem->rows; i++) {
        if (!(problem->weight[i] > 0))
            continue;
        if (!isfinite(problem->weight[i]))
            return false;
        weight[rows] = problem->weight[i];
        target[rows] = problem->target[i];
        fit->kept[rows++] = i;
    }
    fit->x.rows = rows;
    fit->source = (struct libsvm_source){.library = &fit->library->libsvm,
                                         .l = rows,
                                         .y = target,
                                         .weight = weight,
                                         .max_iterations = fit->parameter->max_iterations,
                                         .seed = fit->parameter->seed};
    return rows > 0;
}

/* Returns the caller's rows as one matrix, if they lie one behind the other; else NULL. */
static const double *in_one(const struct sklearn_fit *fit)
{
    const struct sklearn_node *node = fit->problem->x.dense;
    const double *first = node[fit->kept[0]].values;
    for (int64_t i = 0; i < fit->x.rows; i++) {
        const struct sklearn_node *row = &node[fit->kept[i]];
        if (row->values != first + i * fit->x.features || (is_precomputed(fit) && row->row != i))
            return NULL;
    }
    return first;
}

static const double *gathered(struct sklearn_fit *fit)
{
    const struct sklearn_node *node = fit->problem->x.dense;
    const int64_t rows = fit->x.rows, columns = fit->x.features;
    double *all = alloc_owned(fit, rows, columns * (int64_t)sizeof *all);
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
    struct svm_matrix *x = &fit->x;
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
static int64_t measure_nodes(const struct libsvm_node *node, int64_t *features)
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
    int32_t *column = alloc_owned(fit, fit->stored, sizeof *column);
    double *value = alloc_owned(fit, fit->stored, sizeof *value);
    for (int64_t i = 0; column && value && i < fit->x.rows; i++) {
        const struct libsvm_node *node = fit->problem->x.csr[fit->kept[i]];
        for (int64_t at = start[i]; at < start[i + 1]; at++, node++) {
            column[at] = node->index - 1;
            value[at] = node->value;
        }
    }
    fit->x.column = column;
    fit->x.value = value;
    return column && value;
}

static bool read_csr(struct sklearn_fit *fit, bool vectors)
{
    struct svm_matrix *x = &fit->x;
    int64_t *start = alloc_owned(fit, x->rows + 1, sizeof *start);
    if (!start || is_precomputed(fit))
        return false;
    start[0] = 0;
    for (int64_t i = 0; i < x->rows; i++) {
        const struct libsvm_node *node = fit->problem->x.csr[fit->kept[i]];
        const int64_t length = node ? measure_nodes(node, &x->features) : -1;
        if (length < 0)
            return false;
        start[i + 1] = start[i] + length;
    }
    x->start = start;
    fit->stored = start[x->rows];
    return x->features > 0 && (!vectors || copy_csr(fit, start));
}

/* ---- The whole ---- */

bool sklearn_read(struct sklearn_fit *fit, bool vectors, struct svm_job *job)
{
    const struct libsvm_parameter *parameter = &fit->parameter->libsvm;
    fit->owned_count = 0;
    fit->x = (struct svm_matrix){0};
    return keep_rows(fit) && libsvm_has_targets(&fit->source, parameter->svm_type) &&
           (fit->library->csr ? read_csr(fit, vectors) : read_dense(fit, vectors)) &&
           libsvm_job_make(&fit->source, parameter,
                           &(struct libsvm_rows){fit->source.l, NULL, fit->source.y}, job);
}
