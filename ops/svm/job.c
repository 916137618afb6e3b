/* Makes a training of rows and of the parameters of a call. */
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
           (p->shrinking == 0 || p->shrinking == 1) && (p->probability == 0 || p->probability == 1);
}

bool libsvm_has_targets(const struct libsvm_source *source, int type)
{
    for (int i = 0; i < source->l; i++) {
        const double y = source->y[i];
        if (!isfinite(y) || (libsvm_classifies(type) && !(y > INT_MIN && y < INT_MAX)))
            return false;
    }
    return true;
}

/* Whether any two classes have enough vectors, or weigh enough, for nu. */
static bool is_feasible(const struct svm_training *training, const struct svm_classes *classes)
{
    double least = INFINITY, most = 0;
    for (int i = 0; i < classes->count; i++) {
        double sum = training->weight ? 0 : classes->number[i];
        for (int k = 0; training->weight && k < classes->number[i]; k++)
            sum += training->weight[classes->row[classes->start[i] + k]];
        least = sum < least ? sum : least;
        most = sum > most ? sum : most;
    }
    return training->nu * (least + most) / 2 <= least;
}

/* Sets the C of each class. Returns false without memory, and if a weight is for no class, or makes
 * no sense: libsvm warns. Weights that are not there are libsvm's to read. */
static bool weigh_classes(const struct libsvm_parameter *p, const struct svm_classes *classes,
                          double **class_c)
{
    if (p->nr_weight > 0 && (!p->weight_label || !p->weight))
        return false;
    double *c = malloc((size_t)classes->count * sizeof *c);
    *class_c = c;
    for (int i = 0; c && i < classes->count; i++)
        c[i] = p->C;
    for (int i = 0; c && i < p->nr_weight; i++) {
        int j = 0;
        while (j < classes->count && classes->label[j] != p->weight_label[i])
            j++;
        if (j == classes->count)
            return false;
        c[j] *= p->weight[i];
    }
    for (int i = 0; c && p->svm_type == SVM_C_SVC && i < classes->count; i++)
        if (!(c[i] > 0) || !isfinite(c[i]))
            return false;
    return c;
}

bool libsvm_job_make(const struct libsvm_source *source, const struct libsvm_parameter *parameter,
                     const struct libsvm_rows *rows, struct svm_job *job)
{
    const int type = parameter->svm_type;
    *job = (struct svm_job){.training = {.type = type,
                                         .kernel = {parameter->kernel_type, parameter->degree,
                                                    parameter->gamma, parameter->coef0},
                                         .target = source->y,
                                         .weight = source->weight,
                                         .c = parameter->C,
                                         .nu = parameter->nu,
                                         .p = parameter->p,
                                         .eps = parameter->eps,
                                         .max_iterations = source->max_iterations,
                                         .shrinking = parameter->shrinking}};
    const bool classifies = libsvm_classifies(type);
    if (rows->count < 2 || !libsvm_group(source->library, rows, classifies, &job->classes))
        return false;
    bool right = !classifies || (job->classes.count > 1 &&
                                 weigh_classes(parameter, &job->classes, &job->training.class_c));
    if (right && type == SVM_NU_SVC)
        right = is_feasible(&job->training, &job->classes);
    if (right)
        job->functions = calloc((size_t)svm_job_functions(job), sizeof *job->functions);
    if (!job->functions)
        svm_job_free(job);
    return job->functions;
}
