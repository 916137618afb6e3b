/* The model of a fit, as scikit-learn's svm_train makes it. */
#include <stdlib.h>
#include <string.h>

#include "sklearn.h"

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

static void fill_vectors(struct sklearn_model *model, const struct sklearn_fit *fit)
{
    for (int i = 0; i < model->support; i++) {
        const int row = fit->kept[model->index[i]];
        if (fit->library->csr)
            ((const struct libsvm_node **)model->vectors)[i] = fit->problem->x.csr[row];
        else
            ((struct sklearn_node *)model->vectors)[i] = fit->problem->x.dense[row];
    }
}

static bool take_arrays(struct sklearn_model *model, bool csr, const struct svm_job *job)
{
    const int functions = svm_job_functions(job);
    model->vectors = libsvm_array(model->support,
                                  csr ? sizeof(struct libsvm_node *) : sizeof(struct sklearn_node));
    model->index = libsvm_array(model->support, sizeof *model->index);
    model->iterations = libsvm_array(functions, sizeof *model->iterations);
    model->rho = libsvm_array(functions, sizeof *model->rho);
    model->label = libsvm_array(model->classes, sizeof *model->label);
    model->support_of = libsvm_array(model->classes, sizeof *model->support_of);
    model->coefficient = calloc((size_t)model->classes - 1, sizeof *model->coefficient);
    bool taken = model->vectors && model->index && model->iterations && model->rho &&
                 model->label && model->support_of && model->coefficient;
    for (int i = 0; taken && i < model->classes - 1; i++)
        taken = (model->coefficient[i] = libsvm_array(model->support, sizeof(double))) != NULL;
    return taken;
}

static void fill_sklearn_model(struct sklearn_model *model, const struct sklearn_fit *fit,
                               const struct svm_job *job, const bool *used)
{
    libsvm_fill(job, used, model->index, model->support_of, model->coefficient, model->rho);
    fill_vectors(model, fit);
    for (int i = 0; i < svm_job_functions(job); i++)
        model->iterations[i] = (int)job->functions[i].iterations;
    if (job->classes.label) {
        memcpy(model->label, job->classes.label, (size_t)model->classes * sizeof *model->label);
    } else {
        free(model->label);
        free(model->support_of);
        model->label = model->support_of = NULL;
    }
}

struct sklearn_model *sklearn_model_of(const struct sklearn_fit *fit,
                                       const struct libsvm_trainings *trainings)
{
    const struct svm_job *job = &trainings->jobs[0];
    struct sklearn_model *model = calloc(1, sizeof *model);
    bool *used = calloc((size_t)fit->x.rows, sizeof *used), made = false;
    if (model && used) {
        model->parameter = *fit->parameter;
        model->classes = job->classes.label ? job->classes.count : 2;
        model->support = svm_support_of(job, used);
        made = take_arrays(model, fit->library->csr, job) &&
               (!trainings->group_count ||
                libsvm_copy_estimates(trainings, &model->prob_a, &model->prob_b));
        if (made)
            fill_sklearn_model(model, fit, job, used);
    }
    free(used);
    if (model && !made) {
        sklearn_free_model(model);
        model = NULL;
    }
    return model;
}
