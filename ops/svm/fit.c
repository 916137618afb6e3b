#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Variables of a problem ---- */

/* The rows that a problem is about: those of two classes, or all. */
struct members {
    const int *row[2];
    int number[2];
};

static struct members members_of(const struct svm_classes *classes, int i, int j)
{
    return (struct members){{&classes->row[classes->start[i]], &classes->row[classes->start[j]]},
                            {classes->number[i], j == i ? 0 : classes->number[j]}};
}

static int row_of(const struct members *members, int64_t at)
{
    const int first = members->number[0];
    return at < first ? members->row[0][at] : members->row[1][at - first];
}

static bool is_regression(int type)
{
    return type == SVM_EPSILON_SVR || type == SVM_NU_SVR;
}

static double weight_of(const struct svm_training *t, int row)
{
    return t->weight ? t->weight[row] : 1;
}

/* One block: the problem's arrays of n variables. */
static bool make_arrays(struct smo_problem *q, int64_t n)
{
    const size_t count = (size_t)n;
    double *block = calloc(count, 3 * sizeof(double) + sizeof(int32_t) + 1);
    q->n = n;
    q->alpha = block;
    if (!block)
        return false;
    q->p = block + count;
    q->c = block + 2 * count;
    q->row = (int32_t *)(block + 3 * count);
    q->y = (const signed char *)(q->row + count);
    return true;
}

/* Sets row, y, p and c. */
static void set_variables(struct smo_problem *q, const struct svm_training *t,
                          const struct members *members, const double c[2])
{
    int32_t *row = (int32_t *)(uintptr_t)q->row;
    signed char *y = (signed char *)(uintptr_t)q->y;
    double *p = (double *)(uintptr_t)q->p, *bound = (double *)(uintptr_t)q->c;
    const int64_t rows = members->number[0] + members->number[1];
    for (int64_t i = 0; i < q->n; i++) {
        const int64_t at = i < rows ? i : i - rows;
        const int side = at >= members->number[0];
        row[i] = row_of(members, at);
        y[i] = side || i >= rows ? -1 : 1;
        bound[i] = c[side] * weight_of(t, row[i]);
        if (t->type == SVM_C_SVC)
            p[i] = -1;
        else if (is_regression(t->type))
            p[i] = (t->type == SVM_EPSILON_SVR ? t->p : 0) - y[i] * t->target[row[i]];
    }
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* nu's share of `count` upper bounds, which are all alike unless rows have weights: rounded as
 * libsvm and scikit-learn do. */
static double share_of(const struct svm_training *t, const double *c, int64_t count)
{
    double shares = 0;
    if (!t->weight)
        return c[0] * t->nu * (double)count;
    for (int64_t i = 0; i < count; i++)
        shares += c[i] * t->nu;
    return shares;
}

/* nu problems start at a point that keeps the sums that nu asks for: libsvm's. */
static void set_start(struct smo_problem *q, const struct svm_training *t)
{
    if (t->type == SVM_NU_SVC) {
        const double half = share_of(t, q->c, q->n) / 2;
        double left[2] = {half, half};
        for (int64_t i = 0; i < q->n; i++) {
            double *rest = &left[q->y[i] < 0];
            q->alpha[i] = least(q->c[i], *rest);
            *rest -= q->alpha[i];
        }
    } else if (t->type == SVM_ONE_CLASS) {
        double left = share_of(t, q->c, q->n);
        for (int64_t i = 0; i < q->n && left > 0; i++) {
            q->alpha[i] = least(q->c[i], left);
            left -= q->alpha[i];
        }
    } else if (t->type == SVM_NU_SVR) {
        const int64_t rows = q->n / 2;
        double left = share_of(t, q->c, rows) / 2;
        for (int64_t i = 0; i < rows; i++) {
            q->alpha[i] = q->alpha[i + rows] = least(left, q->c[i]);
            left -= q->alpha[i];
        }
    }
}

bool svm_problem_of(struct smo_problem *q, const struct svm_training *t,
                    const struct svm_classes *classes, int i, int j)
{
    const struct members members = members_of(classes, i, j);
    const bool doubled = is_regression(t->type);
    double c[2] = {1, 1};
    if (!make_arrays(q, (members.number[0] + members.number[1]) * (doubled ? INT64_C(2) : 1)))
        return false;
    if (t->type == SVM_C_SVC) {
        c[0] = t->class_c[i];
        c[1] = t->class_c[j];
    } else if (doubled) {
        c[0] = t->c;
    }
    q->eps = t->eps;
    q->nu = t->type == SVM_NU_SVC || t->type == SVM_NU_SVR;
    q->max_iterations = t->max_iterations;
    set_variables(q, t, &members, c);
    set_start(q, t);
    return true;
}

/* ---- The function of a solution ---- */

static void count_support(struct svm_function *f, const struct smo_problem *q, double scale)
{
    for (int i = 0; i < f->rows; i++) {
        const double magnitude = fabs(f->coefficient[i]);
        f->support += magnitude > 0;
        f->bounded += magnitude > 0 && magnitude >= q->c[i] / scale;
    }
}

static bool keep_variables(struct svm_function *f, const struct smo_problem *q)
{
    f->variables = malloc((size_t)q->n * sizeof(double));
    if (f->variables)
        memcpy(f->variables, q->alpha, (size_t)q->n * sizeof(double));
    return f->variables;
}

static bool make_function(struct svm_function *f, const struct smo_problem *q,
                          const struct svm_training *t)
{
    const bool doubled = is_regression(t->type);
    const double scale = t->type == SVM_NU_SVC ? q->r : 1;
    f->rows = (int)(doubled ? q->n / 2 : q->n);
    f->coefficient = malloc((size_t)f->rows * sizeof(double));
    if (!f->coefficient)
        return false;
    for (int i = 0; i < f->rows; i++) {
        if (doubled)
            f->coefficient[i] = q->alpha[i] - q->alpha[i + f->rows];
        else
            f->coefficient[i] = q->alpha[i] * (q->y[i] / scale);
        f->sum += doubled ? fabs(f->coefficient[i]) : q->alpha[i];
    }
    f->rho = q->rho / scale;
    f->objective = q->objective / (scale * scale);
    f->r = q->r;
    f->iterations = q->iterations;
    count_support(f, q, scale);
    return q->converged || keep_variables(f, q);
}

/* A solution that a cap of iterations has ended depends on each step before. The library's steps
 * are these until it shrinks for the first time: see Solver::Solve() of libsvm and scikit-learn.
 * Its own cap is so far away that rounding may have made them others. */
static bool has_own_steps(const struct svm_training *t, const struct smo_problem *q)
{
    const int64_t first_shrinking = q->n < 1000 ? q->n : 1000;
    return q->iterations == t->max_iterations &&
           (!t->shrinking || t->max_iterations <= first_shrinking);
}

static bool is_sound(const struct svm_function *f, const struct smo_problem *q,
                     const struct svm_training *t)
{
    return isfinite(f->rho) && isfinite(f->objective) && (q->converged || has_own_steps(t, q));
}

/* ---- All of them ---- */

struct smo_matrix svm_put(struct smo *s, const struct svm_matrix *x)
{
    return x->dense ? smo_put_dense(s, x->dense, x->rows, x->features)
                    : smo_put_csr(s, x->start, x->column, x->value, x->rows, x->features);
}

void svm_next_pair(int classes, int *i, int *j)
{
    if (++*j >= classes)
        *j = ++*i + 1;
}

static bool make_problems(const struct svm_job *job, struct smo_problem *problems)
{
    int i = 0, j = job->classes.count > 1;
    for (int k = 0; k < svm_job_functions(job); k++, svm_next_pair(job->classes.count, &i, &j))
        if (!svm_problem_of(&problems[k], &job->training, &job->classes, i, j))
            return false;
    return true;
}

int svm_support_of(const struct svm_job *job, bool *used)
{
    const struct svm_classes *classes = &job->classes;
    int support = 0, i = 0, j = classes->count > 1;
    for (int k = 0; k < svm_job_functions(job); k++, svm_next_pair(classes->count, &i, &j)) {
        const struct svm_function *f = &job->functions[k];
        for (int at = 0; at < f->rows; at++) {
            const bool second = at >= classes->number[i];
            bool *place = &used[second ? classes->start[j] + at - classes->number[i]
                                       : classes->start[i] + at];
            support += f->coefficient[at] != 0 && !*place;
            *place = *place || f->coefficient[at] != 0;
        }
    }
    return support;
}

static bool count_vectors(struct svm_job *job)
{
    const struct svm_classes *classes = &job->classes;
    const int last = classes->count - 1;
    bool *used = calloc((size_t)classes->start[last] + (size_t)classes->number[last], sizeof *used);
    if (used)
        job->support = svm_support_of(job, used);
    free(used);
    return used;
}

static enum gpu_status make_functions(struct svm_job *job, const struct smo_problem *problems)
{
    for (int k = 0; k < svm_job_functions(job); k++) {
        if (!make_function(&job->functions[k], &problems[k], &job->training))
            return GPU_NO_MEMORY;
        if (!is_sound(&job->functions[k], &problems[k], &job->training))
            return GPU_UNSUPPORTED;
    }
    return !job->functions || count_vectors(job) ? GPU_OK : GPU_NO_MEMORY;
}

static int functions_of(const struct svm_job *jobs, int count)
{
    int functions = 0;
    for (int i = 0; i < count; i++)
        functions += svm_job_functions(&jobs[i]);
    return functions;
}

static enum gpu_status solve_jobs(struct smo *s, const struct smo_matrix *x, struct svm_job *jobs,
                                  int count, struct smo_problem *problems)
{
    struct smo_problem *next = problems;
    for (int i = 0; i < count; next += svm_job_functions(&jobs[i++]))
        if (!make_problems(&jobs[i], next))
            return GPU_NO_MEMORY;
    smo_solve(s, x, problems, next - problems);
    next = problems;
    for (int i = 0; i < count && s->status == GPU_OK; next += svm_job_functions(&jobs[i++]))
        s->status = make_functions(&jobs[i], next);
    return s->status;
}

enum gpu_status svm_fit_jobs(struct smo *s, const struct smo_matrix *x, struct svm_job *jobs,
                             int count)
{
    const struct svm_kernel *kernel = &jobs[0].training.kernel;
    const int functions = functions_of(jobs, count);
    struct smo_problem *problems = calloc((size_t)functions, sizeof *problems);
    if (!problems)
        return GPU_NO_MEMORY;
    s->kernel = (struct smo_kernel){kernel->type, kernel->degree, kernel->gamma, kernel->coef0};
    const enum gpu_status status = solve_jobs(s, x, jobs, count, problems);
    for (int k = 0; k < functions; k++)
        free(problems[k].alpha);
    free(problems);
    return status;
}

/* ---- Decisions ---- */

/* A coefficient for each row of the matrix. */
static void spread(const struct svm_job *job, int64_t rows, double *coefficient)
{
    int i = 0, j = job->classes.count > 1;
    for (int k = 0; k < svm_job_functions(job); k++, coefficient += rows) {
        const struct members members = members_of(&job->classes, i, j);
        for (int at = 0; at < job->functions[k].rows; at++)
            coefficient[row_of(&members, at)] = job->functions[k].coefficient[at];
        svm_next_pair(job->classes.count, &i, &j);
    }
}

/* votes: of each class, 0. */
static int class_of_most(int classes, const double *value, int64_t *votes)
{
    int most = 0;
    for (int i = 0; i < classes; i++)
        for (int j = i + 1; j < classes; j++)
            votes[*value++ > 0 ? i : j]++;
    for (int i = 1; i < classes; i++)
        if (votes[i] > votes[most])
            most = i;
    return most;
}

double svm_answer(int type, const int *label, int classes, const double *value, int64_t *votes)
{
    if (type == SVM_ONE_CLASS)
        return *value > 0 ? 1 : -1;
    if (type != SVM_C_SVC && type != SVM_NU_SVC)
        return *value;
    memset(votes, 0, (size_t)classes * sizeof *votes);
    return label[class_of_most(classes, value, votes)];
}

bool svm_may_decide(double functions, double rows)
{
    const double most = 1 << 27;
    return functions * rows <= most;
}

enum gpu_status svm_decide_jobs(struct smo *s, const struct smo_matrix *x,
                                const struct svm_job *jobs, int count, double *values)
{
    const int64_t functions = functions_of(jobs, count);
    double *coefficient = calloc((size_t)functions, (size_t)x->rows * sizeof *coefficient);
    double *next = coefficient;
    if (!coefficient)
        return GPU_NO_MEMORY;
    for (int i = 0; i < count; next += x->rows * svm_job_functions(&jobs[i++]))
        spread(&jobs[i], x->rows, next);
    smo_decide(s, x, x, coefficient, functions, values);
    free(coefficient);
    for (int64_t row = 0; row < x->rows && s->status == GPU_OK; row++)
        for (int i = 0; i < count; i++)
            for (int k = 0; k < svm_job_functions(&jobs[i]); k++)
                *values++ -= jobs[i].functions[k].rho;
    return s->status;
}

static void functions_free(struct svm_function *functions, int count)
{
    for (int k = 0; functions && k < count; k++) {
        free(functions[k].coefficient);
        free(functions[k].variables);
    }
    free(functions);
}

void svm_job_free(struct svm_job *job)
{
    functions_free(job->functions, svm_job_functions(job));
    svm_classes_free(&job->classes);
    free(job->training.class_c);
    *job = (struct svm_job){0};
}

void svm_matrix_free(struct svm_matrix *x)
{
    free((void *)(uintptr_t)x->dense);
    free((void *)(uintptr_t)x->start);
    free((void *)(uintptr_t)x->column);
    free((void *)(uintptr_t)x->value);
}

void svm_classes_free(struct svm_classes *classes)
{
    free(classes->label);
    free(classes->start);
    free(classes->number);
    free(classes->row);
    *classes = (struct svm_classes){0};
}
