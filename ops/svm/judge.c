#include "judge.h"

#include <stdlib.h>

#include "cpu_ref/svm.h"

/* Returns the sum of the variables; *sum_y: the sum of y times them. */
static double sum_variables(const struct smo_problem *q, double *sum_y)
{
    double sum = 0;
    *sum_y = 0;
    for (int64_t i = 0; i < q->n; i++) {
        sum += q->alpha[i];
        *sum_y += q->y[i] * q->alpha[i];
    }
    return sum;
}

/* Finds the variables that the function's coefficients were made of. Regression has two for each
 * row; only one of them is more than 0, unless the tube is narrower than eps: then the conditions
 * hold to twice eps. */
static void set_solution(struct smo_problem *q, const struct svm_function *f, double scale)
{
    for (int64_t i = 0; i < q->n; i++) {
        const double variable = f->coefficient[i % f->rows] * q->y[i] * scale;
        q->alpha[i] = q->n == f->rows || variable > 0 ? variable : 0;
    }
}

static double judge_one(const struct svm_matrix *x, const struct svm_training *t,
                        struct smo_problem *start, const struct svm_function *f)
{
    const double scale = t->type == SVM_NU_SVC ? f->r : 1;
    const bool capped = f->variables;
    struct cpu_ref_svm q = {.n = start->n,
                            .row = start->row,
                            .y = start->y,
                            .p = start->p,
                            .c = start->c,
                            .alpha = capped ? f->variables : start->alpha,
                            .capped = capped,
                            .nu = start->nu,
                            .eps = start->eps,
                            .objective = f->objective * scale * scale,
                            .rho = f->rho * scale,
                            .r = f->r};
    double sum_y;
    q.sum = sum_variables(start, &q.sum_y);
    set_solution(start, f, scale);
    if (start->n != f->rows && !capped) {
        q.eps *= 2;
        q.sum = sum_variables(start, &sum_y);
    }
    return cpu_ref_svm(x, &t->kernel, &q);
}

static double worse_of(double a, double b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

static double judge_job(const struct svm_matrix *x, const struct svm_job *job)
{
    double worst = 0;
    int i = 0, j = job->classes.count > 1;
    for (int k = 0; job->functions && k < svm_job_functions(job);
         k++, svm_next_pair(job->classes.count, &i, &j)) {
        struct smo_problem start = {.alpha = NULL};
        worst = worse_of(worst, svm_problem_of(&start, &job->training, &job->classes, i, j)
                                    ? judge_one(x, &job->training, &start, &job->functions[k])
                                    : -1);
        free(start.alpha);
    }
    return worst;
}

double svm_judge_jobs(const struct svm_matrix *x, const struct svm_job *jobs, int count)
{
    double worst = 0;
    for (int i = 0; i < count; i++)
        worst = worse_of(worst, judge_job(x, &jobs[i]));
    return worst;
}
