/* The model that libsvm's svm_train() returns: each array is a malloc() of its own, and the vectors stay the caller's. */
#include <stdlib.h>
#include <string.h>

#include "libsvm.h"

static void put(struct libsvm_model *model, uint8_t offset, const void *value, size_t bytes)
{
    if (offset)
        memcpy((char *)model + offset, value, bytes);
}

/* The arrays of a model; those that it does not have are NULL. */
struct arrays {
    int *indices, *label, *counts;
};

void libsvm_model_free(struct libsvm_model *model, const struct libsvm_model_layout *layout)
{
    const uint8_t others[] = {layout->indices, layout->label, layout->counts};
    for (int i = 0; model->sv_coef && i < model->nr_class - 1; i++)
        free(model->sv_coef[i]);
    for (size_t i = 0; i < sizeof others; i++) {
        void *array;
        memcpy(&array, (char *)model + others[i], sizeof array);
        if (others[i])
            free(array);
    }
    free(model->sv_coef);
    free(model->SV);
    free(model->rho);
    free(model->probA);
    free(model->probB);
    free(model);
}

void *libsvm_array(int64_t count, size_t size)
{
    return malloc(count > 0 ? (size_t)count * size : 1);
}

static bool allocate(struct libsvm_model *model, int functions, int classes, bool classifies,
                     bool indices, struct arrays *arrays)
{
    bool all = true;
    model->SV = libsvm_array(model->l, sizeof *model->SV);
    model->rho = libsvm_array(functions, sizeof *model->rho);
    model->sv_coef = calloc((size_t)classes - 1, sizeof *model->sv_coef);
    for (int i = 0; model->sv_coef && i < classes - 1; i++)
        all = (model->sv_coef[i] = libsvm_array(model->l, sizeof(double))) && all;
    if (indices)
        all = (arrays->indices = libsvm_array(model->l, sizeof(int))) && all;
    if (classifies) {
        arrays->label = libsvm_array(classes, sizeof(int));
        arrays->counts = libsvm_array(classes, sizeof(int));
        all = all && arrays->label && arrays->counts;
    }
    return all && model->SV && model->rho && model->sv_coef;
}

/* Puts a function's coefficients of one class in their places: from `to` on, one for each used place. */
static int spread(double *to, const bool *used, int number, const double *coefficient)
{
    int count = 0;
    for (int k = 0; k < number; k++)
        if (used[k])
            to[count++] = coefficient[k];
    return count;
}

void libsvm_fill_coefficients(const struct svm_job *job, const bool *used, const int *counts,
                              double **coefficient, double *rho)
{
    const struct svm_classes *classes = &job->classes;
    const struct svm_function *f = job->functions;
    if (classes->count == 1) {
        spread(coefficient[0], used, f->rows, f->coefficient);
        rho[0] = f->rho;
        return;
    }
    for (int i = 0, first = 0; i < classes->count; first += counts[i++]) {
        int second = first + counts[i];
        for (int j = i + 1; j < classes->count; second += counts[j++], f++) {
            spread(&coefficient[j - 1][first], &used[classes->start[i]], classes->number[i],
                   f->coefficient);
            spread(&coefficient[i][second], &used[classes->start[j]], classes->number[j],
                   f->coefficient + classes->number[i]);
            rho[f - job->functions] = f->rho;
        }
    }
}

static void fill(struct libsvm_model *model, const struct libsvm_problem *problem,
                 const struct svm_job *job, const bool *used, struct arrays *arrays)
{
    const struct svm_classes *classes = &job->classes;
    int at = 0;
    for (int c = 0; c < classes->count; c++) {
        const int before = at;
        for (int k = classes->start[c]; k < classes->start[c] + classes->number[c]; k++) {
            if (!used[k])
                continue;
            model->SV[at] = problem->x[classes->row[k]];
            if (arrays->indices)
                arrays->indices[at] = classes->row[k] + 1;
            at++;
        }
        if (arrays->label) {
            arrays->label[c] = classes->label[c];
            arrays->counts[c] = at - before;
        }
    }
    libsvm_fill_coefficients(job, used, arrays->counts, model->sv_coef, model->rho);
}

struct libsvm_model *libsvm_model_of(const struct libsvm *library,
                                     const struct libsvm_problem *problem,
                                     const struct libsvm_parameter *parameter,
                                     const struct svm_job *job)
{
    const struct libsvm_model_layout *layout = library->model;
    const bool classifies = job->classes.count > 1;
    const int nr_class = classifies ? job->classes.count : 2;
    struct arrays arrays = {NULL, NULL, NULL};
    struct libsvm_model *model = calloc(1, layout->bytes);
    bool *used = calloc((size_t)problem->l, sizeof *used), made = false;
    if (model && used) {
        model->param = *parameter;
        model->nr_class = nr_class;
        model->l = svm_support_of(job, used);
        made =
            allocate(model, svm_job_functions(job), nr_class, classifies, layout->indices, &arrays);
        put(model, layout->indices, &arrays.indices, sizeof arrays.indices);
        put(model, layout->label, &arrays.label, sizeof arrays.label);
        put(model, layout->counts, &arrays.counts, sizeof arrays.counts);
        if (made)
            fill(model, problem, job, used, &arrays);
    }
    free(used);
    if (model && !made) {
        libsvm_model_free(model, layout);
        model = NULL;
    }
    return model;
}
