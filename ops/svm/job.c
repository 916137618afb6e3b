/* What one svm_train() of libsvm is asked for, to a training. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "libsvm.h"

bool libsvm_classifies(int type)
{
    return type == SVM_C_SVC || type == SVM_NU_SVC;
}

static bool has_c(int type)
{
    return type == SVM_C_SVC || type == SVM_EPSILON_SVR || type == SVM_NU_SVR;
}

bool libsvm_is_valid(const struct libsvm_parameter *p)
{
    const bool nu =
        p->svm_type == SVM_NU_SVC || p->svm_type == SVM_ONE_CLASS || p->svm_type == SVM_NU_SVR;
    const bool shaped = p->kernel_type != SVM_LINEAR && p->kernel_type != SVM_PRECOMPUTED;
    return p->svm_type >= SVM_C_SVC && p->svm_type <= SVM_NU_SVR && p->kernel_type >= SVM_LINEAR &&
           p->kernel_type <= SVM_PRECOMPUTED &&
           (!shaped || (p->gamma >= 0 && isfinite(p->gamma))) &&
           (p->kernel_type != SVM_POLY || p->degree >= 0) &&
           (!shaped || p->kernel_type == SVM_RBF || isfinite(p->coef0)) && p->cache_size > 0 &&
           p->eps > 0 && isfinite(p->eps) &&
           (!has_c(p->svm_type) || (p->C > 0 && isfinite(p->C))) &&
           (!nu || (p->nu > 0 && p->nu <= 1)) &&
           (p->svm_type != SVM_EPSILON_SVR || (p->p >= 0 && isfinite(p->p))) &&
           (p->shrinking == 0 || p->shrinking == 1) && p->probability == 0;
}

bool libsvm_has_targets(const struct libsvm_problem *problem, int type)
{
    for (int i = 0; i < problem->l; i++) {
        const double y = problem->y[i];
        if (!isfinite(y) || (libsvm_classifies(type) && !(y > INT_MIN && y < INT_MAX)))
            return false;
    }
    return true;
}

/* Whether any two classes have enough vectors for nu. */
static bool is_feasible(const struct libsvm_parameter *p, const struct svm_classes *classes)
{
    for (int i = 0; i < classes->count; i++)
        for (int j = i + 1; j < classes->count; j++) {
            const int less = classes->number[i] < classes->number[j] ? i : j;
            if (p->nu * (classes->number[i] + classes->number[j]) / 2 > classes->number[less])
                return false;
        }
    return true;
}

/* Sets the C of each class. Returns false without memory, and if a weight is for no class, or makes no sense: libsvm warns. */
static bool weigh_classes(const struct libsvm_parameter *p, const struct svm_classes *classes,
                          double **class_c)
{
    double *c = malloc((size_t)classes->count * sizeof *c);
    *class_c = c;
    for (int i = 0; c && i < classes->count; i++)
        c[i] = p->C;
    for (int i = 0; c && p->svm_type == SVM_C_SVC && i < p->nr_weight; i++) {
        int j = 0;
        while (j < classes->count && classes->label[j] != p->weight_label[i])
            j++;
        if (j == classes->count)
            return false;
        c[j] *= p->weight[i];
    }
    for (int i = 0; c && i < classes->count; i++)
        if (!(c[i] > 0) || !isfinite(c[i]))
            return false;
    return c;
}

bool libsvm_job_make(const struct libsvm *library, const struct libsvm_problem *problem,
                     const struct libsvm_parameter *parameter, const struct libsvm_rows *rows,
                     struct svm_job *job)
{
    const int type = parameter->svm_type;
    *job = (struct svm_job){.training = {.type = type,
                                         .kernel = {parameter->kernel_type, parameter->degree,
                                                    parameter->gamma, parameter->coef0},
                                         .target = problem->y,
                                         .c = parameter->C,
                                         .nu = parameter->nu,
                                         .p = parameter->p,
                                         .eps = parameter->eps,
                                         .max_iterations = -1,
                                         .shrinking = parameter->shrinking}};
    if (rows->count < 2 || !libsvm_group(library, rows, libsvm_classifies(type), &job->classes))
        return false;
    bool right = !libsvm_classifies(type) || job->classes.count > 1;
    if (right && type == SVM_C_SVC)
        right = weigh_classes(parameter, &job->classes, &job->training.class_c);
    if (right && type == SVM_NU_SVC)
        right = is_feasible(parameter, &job->classes);
    if (right)
        job->functions = calloc((size_t)svm_job_functions(job), sizeof *job->functions);
    if (!job->functions)
        svm_job_free(job);
    return job->functions;
}
