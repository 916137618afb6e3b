/* The model of a fit, as scikit-learn's svm_train makes it. */
#include <stdlib.h>
#include <string.h>

#include "sklearn.h"

static void *array(int64_t count, size_t size)
{
    return malloc(count > 0 ? (size_t)count * size : 1);
}

void sklearn_free_model(struct sklearn_model *model)
{
    for (int i = 0; model->coefficient && i < model->classes - 1; i++)
        free(model->coefficient[i]);
    free(model->vectors);
    free(model->coefficient);
    free(model->iterations);
    free(model->index);
    free(model->rho);
    free(model->prob_a);
    free(model->prob_b);
    free(model->label);
    free(model->support_of);
    free(model);
}

/* Returns the function of classes i < j, the only one if there are no classes. */
static const struct svm_function *function_of(const struct sklearn_fit *fit,
                                              const struct svm_function *functions, int i, int j)
{
    return &functions[(int64_t)i * (2 * (int64_t)fit->classes.count - i - 1) / 2 + j - i - 1];
}

/* Returns row k of class i's coefficient in the function of class i and another one. */
static double coefficient_of(const struct sklearn_fit *fit, const struct svm_function *functions,
                             int i, int64_t k, int other)
{
    return i < other
               ? function_of(fit, functions, i, other)->coefficient[k]
               : function_of(fit, functions, other, i)->coefficient[fit->classes.number[other] + k];
}

static bool is_support(const struct sklearn_fit *fit, const struct svm_function *functions, int i,
                       int64_t k)
{
    bool found = !fit->classes.label && functions->coefficient[k] != 0;
    for (int other = 0; !found && fit->classes.label && other < fit->classes.count; other++)
        found = other != i && coefficient_of(fit, functions, i, k, other) != 0;
    return found;
}

/* Returns the support vectors' number. place: of each, in the order of the classes. */
static int find_support(const struct sklearn_fit *fit, const struct svm_function *functions,
                        int *place, int *support_of)
{
    int total = 0;
    for (int i = 0; i < fit->classes.count; i++) {
        const int before = total;
        for (int k = 0; k < fit->classes.number[i]; k++)
            if (is_support(fit, functions, i, k))
                place[total++] = fit->classes.start[i] + k;
        support_of[i] = total - before;
    }
    return total;
}

/* The support vectors' coefficients: of class i in the function with class j > i in array j - 1, with class j < i in array j. */
static void fill_coefficients(struct sklearn_model *model, const struct sklearn_fit *fit,
                              const struct svm_function *functions, const int *place)
{
    const struct svm_classes *classes = &fit->classes;
    for (int at = 0, i = 0; at < model->support; at++) {
        while (place[at] >= classes->start[i] + classes->number[i])
            i++;
        const int64_t k = place[at] - classes->start[i];
        if (!classes->label)
            model->coefficient[0][at] = functions->coefficient[k];
        for (int j = 0; classes->label && j < classes->count; j++)
            if (j != i)
                model->coefficient[j > i ? j - 1 : j][at] = coefficient_of(fit, functions, i, k, j);
    }
}

static void fill_support(struct sklearn_model *model, const struct sklearn_fit *fit,
                         const int *place)
{
    for (int at = 0; at < model->support; at++) {
        const int row = fit->classes.row[place[at]];
        model->index[at] = row; /* among the rows that count: scikit-learn's own model is so */
        if (fit->library->csr)
            ((const struct libsvm_node **)model->vectors)[at] = fit->problem->x.csr[fit->kept[row]];
        else
            ((struct sklearn_node *)model->vectors)[at] = fit->problem->x.dense[fit->kept[row]];
    }
}

/* Takes the arrays whose lengths are the numbers of classes and support vectors. */
static bool take_arrays(struct sklearn_model *model, const struct sklearn_fit *fit, int functions)
{
    const size_t vector = fit->library->csr ? sizeof(void *) : sizeof(struct sklearn_node);
    model->vectors = array(model->support, vector);
    model->index = array(model->support, sizeof *model->index);
    model->iterations = array(functions, sizeof *model->iterations);
    model->rho = array(functions, sizeof *model->rho);
    model->coefficient = calloc((size_t)model->classes - 1, sizeof *model->coefficient);
    bool taken =
        model->vectors && model->index && model->iterations && model->rho && model->coefficient;
    for (int i = 0; taken && i < model->classes - 1; i++)
        taken = (model->coefficient[i] = array(model->support, sizeof(double))) != NULL;
    if (taken && fit->classes.label) {
        model->label = array(model->classes, sizeof *model->label);
        taken = model->label != NULL;
    }
    return taken;
}

static bool fill(struct sklearn_model *model, const struct sklearn_fit *fit,
                 const struct svm_function *functions, int *place)
{
    const int count = svm_function_count(fit->training.type, fit->classes.count);
    model->parameter = *fit->parameter;
    model->classes = fit->classes.label ? fit->classes.count : 2;
    model->support_of = array(fit->classes.count, sizeof *model->support_of);
    if (!model->support_of)
        return false;
    model->support = find_support(fit, functions, place, model->support_of);
    if (!take_arrays(model, fit, count))
        return false;
    for (int i = 0; i < count; i++) {
        model->rho[i] = functions[i].rho;
        model->iterations[i] = (int)functions[i].iterations;
    }
    fill_coefficients(model, fit, functions, place);
    fill_support(model, fit, place);
    if (model->label) {
        memcpy(model->label, fit->classes.label, (size_t)model->classes * sizeof *model->label);
    } else {
        free(model->support_of);
        model->support_of = NULL;
    }
    return true;
}

/* Copies what the groups have found: of a regression one number. */
static bool add_estimates(struct sklearn_model *model, const struct sklearn_fit *fit,
                          const struct sklearn_group *groups, int count)
{
    model->prob_a = array(count, sizeof *model->prob_a);
    if (model->prob_a && fit->classes.label)
        model->prob_b = array(count, sizeof *model->prob_b);
    for (int i = 0; model->prob_a && i < count; i++)
        model->prob_a[i] = groups[i].a;
    for (int i = 0; model->prob_b && i < count; i++)
        model->prob_b[i] = groups[i].b;
    return model->prob_a && (model->prob_b || !fit->classes.label);
}

struct sklearn_model *sklearn_model_of(const struct sklearn_fit *fit,
                                       const struct svm_function *functions,
                                       const struct sklearn_group *groups, int group_count)
{
    struct sklearn_model *model = calloc(1, sizeof *model);
    int *place = array(fit->training.x.rows, sizeof *place);
    const bool filled = model && place && fill(model, fit, functions, place) &&
                        (!group_count || add_estimates(model, fit, groups, group_count));
    free(place);
    if (model && !filled) {
        sklearn_free_model(model);
        model = NULL;
    }
    return model;
}
