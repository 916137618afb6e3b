#include "fit.h"

#include <stdlib.h>
#include <string.h>

#include "cpu_ref/linear.h"

bool linear_fit_make(struct linear_fit *t, const struct linear_training *training)
{
    const struct linear_problem *problem = training->problem;
    const size_t rows = (size_t)problem->rows;
    *t = (struct linear_fit){.training = *training};
    if (!linear_classes_make(&t->classes, &t->training))
        return false;
    const int classes = t->classes.count, problems = linear_problems_of(classes);
    t->problems = problems;
    t->x_of = malloc(rows * sizeof *t->x_of);
    t->y = malloc(rows * sizeof *t->y);
    t->c = malloc(rows * sizeof *t->c);
    t->ends = malloc((size_t)problems * sizeof *t->ends);
    t->model = linear_model_make(&t->training, (size_t)problem->columns * (size_t)problems, classes,
                                 problems, &t->common, &t->iterations);
    if (!linear_solve_make(&t->solve, problem->columns) || !t->x_of || !t->y || !t->c || !t->ends ||
        !t->model)
        return false;
    for (int i = 0; i < problem->rows; i++)
        if (linear_counts(&t->training, i))
            t->x_of[t->rows++] = problem->x[i];
    if (classes > 0)
        memcpy(t->common->label, t->classes.label, (size_t)classes * sizeof(int));
    return true;
}

void linear_fit_free(struct linear_fit *t)
{
    linear_classes_free(&t->classes);
    free(t->x_of);
    free(t->y);
    free(t->c);
    free(t->ends);
    free(t->solve.memory);
}

void linear_fit_free_model(struct linear_fit *t)
{
    if (t->model)
        linear_model_free(t->model, t->common, t->iterations);
    t->model = NULL;
}

/* ---- A problem ---- */

/* C of a row is that of its class times its own weight. */
static double weight_of(const struct linear_fit *t, int row)
{
    return t->training.library->layout == LINEAR_SKLEARN ? t->training.problem->weight[row] : 1;
}

static void begin_regression(struct linear_fit *t)
{
    const struct linear_problem *problem = t->training.problem;
    t->solve.eps = t->training.parameter->eps;
    for (int i = 0, at = 0; i < problem->rows; i++) {
        if (!linear_counts(&t->training, i))
            continue;
        t->y[at] = problem->target[i];
        t->c[at++] = t->training.parameter->c * weight_of(t, i);
    }
}

/* One class against the others. Of two classes, liblinear's positive one is the first,
 * scikit-learn's the second. */
static void begin_class(struct linear_fit *t, int number)
{
    const struct linear_problem *problem = t->training.problem;
    const bool pair = t->classes.count == 2;
    const int positive = pair && t->training.library->layout == LINEAR_SKLEARN ? 1 : number;
    const double c_of_others = pair ? t->classes.c[!positive] : t->training.parameter->c;
    int count = 0;
    for (int i = 0, at = 0; i < problem->rows; i++) {
        if (!linear_counts(&t->training, i))
            continue;
        const bool is_positive = t->classes.of_row[at] == positive;
        count += is_positive;
        t->y[at] = is_positive ? 1 : -1;
        t->c[at++] = (is_positive ? t->classes.c[positive] : c_of_others) * weight_of(t, i);
    }
    const int fewer = count < t->rows - count ? count : t->rows - count;
    t->solve.eps = t->training.parameter->eps * (fewer > 1 ? fewer : 1) / t->rows;
}

/* Sets y, c and eps. */
static void begin_function(struct linear_fit *t, int number)
{
    if (t->classes.count == 0)
        begin_regression(t);
    else
        begin_class(t, number);
}

/* ---- On the device ---- */

/* What the problem's rows cost, and the others nothing. */
static void begin_on_device(struct linear_fit *t, struct linear_loss *f)
{
    const struct linear_spread *all = t->spread;
    if (!all) {
        linear_loss_begin(f, t->y, t->c);
        return;
    }
    memset(all->c, 0, (size_t)all->rows * sizeof *all->c);
    for (int i = 0; i < t->rows; i++) {
        all->y[all->place[i]] = t->y[i];
        all->c[all->place[i]] = t->c[i];
    }
    linear_loss_begin(f, all->y, all->c);
}

static void solve_problem(struct linear_fit *t, int number)
{
    struct linear_solve *s = &t->solve;
    for (int64_t j = 0; j < s->n; j++)
        s->w[j] = t->training.init_sol ? t->training.init_sol[j * t->problems + number] : 0;
    begin_function(t, number);
    begin_on_device(t, s->loss);
    const int iterations =
        t->training.library->layout == LINEAR_243 ? linear_newton(s) : linear_trust_region(s);
    t->ends[number] = (struct linear_end){iterations, s->enough, s->objective, s->norm};
    if (t->iterations)
        t->iterations[number] = iterations;
    for (int64_t j = 0; j < s->n; j++)
        t->common->w[j * t->problems + number] = s->w[j];
}

/* A row that costs nothing may still have a decision value that is too large for a double. */
static enum gpu_status status_of(const struct linear_fit *t, int number)
{
    const bool spoilt = t->spread && t->ends[number].objective != t->ends[number].objective;
    return t->solve.loss->failure == GPU_OK && spoilt ? GPU_UNSUPPORTED : t->solve.loss->failure;
}

enum gpu_status linear_fit_solve(struct linear_fit *t, struct linear_loss *f)
{
    enum gpu_status status = GPU_OK;
    f->p = t->training.p;
    t->solve.training = &t->training;
    t->solve.loss = f;
    for (int k = 0; status == GPU_OK && k < t->problems; k++) {
        solve_problem(t, k);
        status = status_of(t, k);
    }
    return status;
}

enum gpu_status linear_fit_train(struct linear_fit *t, struct gpu_work *work, int64_t elements)
{
    enum gpu_status status =
        linear_rows_load(&t->x, work, t->x_of, t->rows, t->training.problem->columns, elements);
    if (status == GPU_OK)
        status = linear_loss_make(&t->loss, &t->x, t->training.parameter->solver, t->training.p);
    return status == GPU_OK ? linear_fit_solve(t, &t->loss) : status;
}

/* ---- On the CPU ---- */

static double judge_problem(struct linear_fit *t, int number)
{
    const struct linear_end *end = &t->ends[number];
    double *w = t->solve.w;
    for (int64_t j = 0; j < t->solve.n; j++)
        w[j] = t->common->w[j * t->problems + number];
    begin_function(t, number);
    return cpu_ref_linear(&(struct cpu_ref_linear){.rows = t->rows,
                                                   .columns = t->solve.n,
                                                   .x = t->x_of,
                                                   .y = t->y,
                                                   .c = t->c,
                                                   .solver = t->training.parameter->solver,
                                                   .p = t->training.p,
                                                   .free_bias = t->training.free_bias,
                                                   .w = w,
                                                   .eps = t->solve.eps,
                                                   .enough = end->enough,
                                                   .iterations = end->iterations,
                                                   .objective = end->objective,
                                                   .norm = end->norm});
}

double linear_fit_judge(struct linear_fit *t)
{
    double worst = 0;
    bool judged = true;
    for (int k = 0; k < t->problems; k++) {
        const double ratio = judge_problem(t, k);
        judged = judged && ratio >= 0;
        worst = ratio > worst ? ratio : worst;
    }
    return judged || worst > 1 ? worst : -1;
}
