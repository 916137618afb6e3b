/* The model that libsvm's svm_train() returns: each array is a malloc() of its own, and the vectors
 * stay the caller's. */
#include <stdlib.h>
#include <string.h>

#include "libsvm.h"

/* Some models have no place for one or the other. */
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

static bool allocate(struct libsvm_model *model, int functions, struct arrays *arrays)
{
    const int classes = model->nr_class;
    bool all = true;
    arrays->indices = libsvm_array(model->l, sizeof(int));
    arrays->label = libsvm_array(classes, sizeof(int));
    arrays->counts = libsvm_array(classes, sizeof(int));
    model->SV = libsvm_array(model->l, sizeof *model->SV);
    model->rho = libsvm_array(functions, sizeof *model->rho);
    model->sv_coef = calloc((size_t)classes - 1, sizeof *model->sv_coef);
    for (int i = 0; model->sv_coef && i < classes - 1; i++)
        all = (model->sv_coef[i] = libsvm_array(model->l, sizeof(double))) && all;
    return all && arrays->indices && arrays->label && arrays->counts && model->SV && model->rho &&
           model->sv_coef;
}

/* Lists the rows of the support vectors, and counts those of each class. */
static void list_support(const struct svm_classes *classes, const bool *used, int *row, int *counts)
{
    for (int c = 0; c < classes->count; c++) {
        counts[c] = 0;
        for (int k = classes->start[c]; k < classes->start[c] + classes->number[c]; k++) {
            if (!used[k])
                continue;
            *row++ = classes->row[k];
            counts[c]++;
        }
    }
}

/* Puts a function's coefficients of one class in their places: from `to` on, one for each used
 * place. */
static int spread(double *to, const bool *used, int number, const double *coefficient)
{
    int count = 0;
    for (int k = 0; k < number; k++)
        if (used[k])
            to[count++] = coefficient[k];
    return count;
}

static void fill_coefficients(const struct svm_job *job, const bool *used, const int *counts,
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

void libsvm_fill(const struct svm_job *job, const bool *used, int *row, int *counts,
                 double **coefficient, double *rho)
{
    list_support(&job->classes, used, row, counts);
    fill_coefficients(job, used, counts, coefficient, rho);
}

static void fill_model(struct libsvm_model *model, const struct libsvm_problem *problem,
                       const struct svm_job *job, const bool *used, struct arrays *arrays)
{
    libsvm_fill(job, used, arrays->indices, arrays->counts, model->sv_coef, model->rho);
    for (int i = 0; i < model->l; i++)
        model->SV[i] = problem->x[arrays->indices[i]++]; /* indices are from 1 */
    if (job->classes.label)
        memcpy(arrays->label, job->classes.label, (size_t)model->nr_class * sizeof(int));
}

/* Gives an array to the model, or back if the model has no place for it. */
static void give(struct libsvm_model *model, uint8_t offset, int *array)
{
    if (offset)
        memcpy((char *)model + offset, &array, sizeof array);
    else
        free(array);
}

struct libsvm_model *libsvm_model_of(const struct libsvm *library,
                                     const struct libsvm_problem *problem,
                                     const struct libsvm_parameter *parameter,
                                     const struct svm_job *job)
{
    const struct libsvm_model_layout *layout = library->model;
    const bool classifies = job->classes.count > 1;
    struct arrays arrays = {NULL, NULL, NULL};
    struct libsvm_model *model = calloc(1, layout->bytes);
    bool *used = calloc((size_t)problem->l, sizeof *used), made = false;
    if (model && used) {
        model->param = *parameter;
        model->nr_class = classifies ? job->classes.count : 2;
        model->l = svm_support_of(job, used);
        made = allocate(model, svm_job_functions(job), &arrays);
        if (made)
            fill_model(model, problem, job, used, &arrays);
        give(model, layout->indices, arrays.indices);
        give(model, classifies ? layout->label : 0, arrays.label);
        give(model, classifies ? layout->counts : 0, arrays.counts);
    }
    free(used);
    if (model && !made) {
        libsvm_model_free(model, layout);
        model = NULL;
    }
    return model;
}
