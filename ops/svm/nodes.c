/* libsvm's vectors, which end with index -1, to matrices. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "fit.h"
#include "libsvm.h"

/* A matrix is dense if it is no more than so many times as large as its elements. */
enum { DENSE_SHARE = 8 };

/* Finds the end of a vector. Returns its length, or -1 if a matrix cannot have one of its indices
 * or values. */
static int64_t measure_vector(const struct libsvm_node *x, struct libsvm_size *size)
{
    int64_t length = 0;
    for (int before = -1; x[length].index != -1; before = x[length++].index)
        if (x[length].index <= before || !isfinite(x[length].value) || x[length].index == INT_MAX)
            return -1;
    if (length > 0 && x[0].index == 0)
        size->base = 0;
    if (length > 0 && x[length - 1].index > size->features)
        size->features = x[length - 1].index;
    size->stored += length;
    return length;
}

/* Returns the place of a vector's kernel values in the others, which its first node tells; 0:
 * none. */
static int serial_of(const struct libsvm_node *x)
{
    return x[0].index == 0 && x[0].value >= 1 && x[0].value < INT_MAX ? (int)x[0].value : 0;
}

static bool measure_precomputed(const struct libsvm_problem *problem, struct libsvm_size *size)
{
    int64_t shortest = INT64_MAX;
    int last = 0;
    for (int i = 0; i < problem->l; i++) {
        struct libsvm_size of_row = {0};
        const int64_t length = problem->x[i] ? measure_vector(problem->x[i], &of_row) : -1;
        const int serial = length > 0 ? serial_of(problem->x[i]) : 0;
        if (!serial)
            return false;
        shortest = length < shortest ? length : shortest;
        last = serial > last ? serial : last;
    }
    size->features = problem->l;
    size->stored = (int64_t)problem->l * problem->l;
    return last < shortest;
}

bool libsvm_measure(const struct libsvm_problem *problem, bool precomputed,
                    struct libsvm_size *size)
{
    *size = (struct libsvm_size){.base = 1};
    if (precomputed)
        return measure_precomputed(problem, size);
    for (int i = 0; i < problem->l; i++)
        if (!problem->x[i] || measure_vector(problem->x[i], size) < 0)
            return false;
    size->features += 1 - size->base;
    return size->features > 0;
}

static bool make_precomputed(const struct libsvm_problem *problem, struct svm_matrix *x)
{
    const size_t l = (size_t)problem->l;
    double *values = calloc(l, l * sizeof *values);
    x->dense = values;
    for (size_t i = 0; values && i < l; i++)
        for (size_t j = 0; j < l; j++)
            values[i * l + j] = problem->x[i][serial_of(problem->x[j])].value;
    return values;
}

static bool make_dense(const struct libsvm_problem *problem, const struct libsvm_size *size,
                       struct svm_matrix *x)
{
    double *values = calloc((size_t)problem->l, (size_t)size->features * sizeof *values);
    x->dense = values;
    for (int i = 0; values && i < problem->l; i++, values += size->features)
        for (const struct libsvm_node *node = problem->x[i]; node->index != -1; node++)
            values[node->index - size->base] = node->value;
    return x->dense;
}

static bool make_sparse(const struct libsvm_problem *problem, const struct libsvm_size *size,
                        struct svm_matrix *x)
{
    int64_t *start = malloc(((size_t)problem->l + 1) * sizeof *start), at = 0;
    int32_t *column = malloc((size_t)size->stored * sizeof *column + 1);
    double *value = malloc((size_t)size->stored * sizeof *value + 1);
    x->start = start;
    x->column = column;
    x->value = value;
    if (!start || !column || !value)
        return false;
    for (int i = 0; i < problem->l; i++) {
        start[i] = at;
        for (const struct libsvm_node *node = problem->x[i]; node->index != -1; node++, at++) {
            column[at] = node->index - size->base;
            value[at] = node->value;
        }
    }
    start[problem->l] = at;
    return true;
}

bool libsvm_is_dense(int64_t rows, const struct libsvm_size *size)
{
    return rows * size->features <= DENSE_SHARE * size->stored;
}

bool libsvm_vectors(const struct libsvm_problem *problem, bool precomputed,
                    const struct libsvm_size *size, struct svm_matrix *x)
{
    *x = (struct svm_matrix){.rows = problem->l, .features = size->features};
    const bool made = precomputed                         ? make_precomputed(problem, x)
                      : libsvm_is_dense(problem->l, size) ? make_dense(problem, size, x)
                                                          : make_sparse(problem, size, x);
    if (!made)
        svm_matrix_free(x);
    return made;
}

/* ---- Classes ---- */

/* Finds a label, or adds it. Returns -1 without memory, or if there are too many. */
static int find_or_add_label(struct svm_classes *classes, int label, int *room)
{
    for (int c = 0; c < classes->count; c++)
        if (classes->label[c] == label)
            return c;
    if (classes->count == SVM_MOST_CLASSES)
        return -1;
    if (classes->count == *room) {
        *room = *room ? 2 * *room : 16;
        int *labels = realloc(classes->label, (size_t)*room * sizeof *labels);
        if (!labels)
            return -1;
        classes->label = labels;
    }
    classes->label[classes->count] = label;
    return classes->count++;
}

static int by_label(const void *one, const void *other)
{
    const int a = *(const int *)one, b = *(const int *)other;
    return (a > b) - (a < b);
}

/* Labels have come in the order of the rows. */
static void order_labels(const struct libsvm *library, struct svm_classes *classes)
{
    int *label = classes->label;
    if (library->sorts) {
        qsort(label, (size_t)classes->count, sizeof *label, by_label);
    } else if (library->swaps && classes->count == 2 && label[0] == -1 && label[1] == 1) {
        label[0] = 1;
        label[1] = -1;
    }
}

/* Sets class_of_row[] and the labels. */
static bool label_rows(const struct libsvm *library, const struct libsvm_rows *rows,
                       struct svm_classes *classes, int *class_of_row)
{
    int room = 0;
    for (int i = 0; i < rows->count; i++)
        if (find_or_add_label(classes, (int)rows->y[i], &room) < 0)
            return false;
    order_labels(library, classes);
    for (int i = 0; i < rows->count; i++)
        class_of_row[i] = find_or_add_label(classes, (int)rows->y[i], &room);
    return true;
}

static bool sort_rows(struct svm_classes *classes, const struct libsvm_rows *rows,
                      const int *class_of_row)
{
    const size_t count = (size_t)classes->count;
    classes->start = calloc(count, sizeof *classes->start);
    classes->number = calloc(count, sizeof *classes->number);
    if (!classes->start || !classes->number)
        return false;
    for (int i = 0; i < rows->count; i++)
        classes->number[class_of_row[i]]++;
    for (int c = 1; c < classes->count; c++)
        classes->start[c] = classes->start[c - 1] + classes->number[c - 1];
    for (int i = 0; i < rows->count; i++)
        classes->row[classes->start[class_of_row[i]]++] = rows->row ? rows->row[i] : i;
    for (int c = 0; c < classes->count; c++)
        classes->start[c] -= classes->number[c];
    return true;
}

bool libsvm_group(const struct libsvm *library, const struct libsvm_rows *rows, bool classifies,
                  struct svm_classes *classes)
{
    const size_t count = (size_t)rows->count;
    int *class_of_row = calloc(count, sizeof *class_of_row);
    *classes = (struct svm_classes){.row = malloc(count * sizeof *classes->row)};
    bool made = class_of_row && classes->row;
    if (made && classifies)
        made = label_rows(library, rows, classes, class_of_row);
    else
        classes->count = 1;
    made = made && sort_rows(classes, rows, class_of_row);
    free(class_of_row);
    if (!made)
        svm_classes_free(classes);
    return made;
}
