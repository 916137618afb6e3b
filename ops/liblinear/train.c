/*
 * liblinear's train() with the solvers that work on the primal problem; the others go to the library. cross_validation() and
 * find_parameters() call train() through the dynamic linker, so that each of their problems comes here. Predictions are not here: one is a
 * product of two vectors, which never pays.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "ops/op.h"
#include "solve.h"

/* Milliseconds of a direction on the device that are no arithmetic. */
#define STEP_MS 0.1

/* call->own */
enum { MODEL, PROBLEM, PARAMETER, LIBRARY, SIZES };
/* The sizes */
enum { ROWS, COLUMNS, ELEMENTS, CLASSES, SIZE_COUNT };

static struct linear_training training_of(const struct accel_call *call)
{
    return linear_training_of(linear_library_numbered((int)call->own.integer[LIBRARY]),
                              call->own.pointer[PROBLEM], call->own.pointer[PARAMETER]);
}

/* ---- The arguments ---- */

static bool is_weight_of_classes(const struct linear_parameter *parameter)
{
    if (parameter->class_weights < 0 ||
        (parameter->class_weights > 0 && (!parameter->weight_label || !parameter->weight)))
        return false;
    for (int i = 0; i < parameter->class_weights; i++)
        if (!isfinite(parameter->weight[i]) || parameter->weight[i] < 0)
            return false;
    return true;
}

/* Parameters that the library's check_parameter() would complain of are the library's. */
static bool is_usual(const struct linear_training *t)
{
    const struct linear_parameter *p = t->parameter;
    const struct linear_problem *problem = t->problem;
    return (p->solver == LINEAR_LR || p->solver == LINEAR_L2_SVC || p->solver == LINEAR_L2_SVR) &&
           p->eps > 0 && isfinite(p->eps) && p->c > 0 && isfinite(p->c) && t->p >= 0 &&
           isfinite(t->p) && is_weight_of_classes(p) && problem->rows > 0 && problem->columns > 0 &&
           problem->target && problem->x && t->max_iterations > 0 &&
           (t->library->layout != LINEAR_SKLEARN || problem->weight) &&
           (!t->free_bias || problem->bias == 1);
}

/* Counts the row's elements. Returns a negative number if the row is not one. */
static int64_t elements_of(const struct linear_node *row, int columns)
{
    const struct linear_node *node = row;
    for (; node && node->index != -1; node++)
        if (node->index < 1 || node->index > columns || !isfinite(node->value))
            return -1;
    return node ? node - row : -1;
}

/* Counts all elements. Returns false if a number is none, or an index is none of the columns. */
static bool measure(const struct linear_training *t, int64_t *elements)
{
    const struct linear_problem *problem = t->problem;
    const bool regression = t->parameter->solver == LINEAR_L2_SVR;
    *elements = 0;
    for (int i = 0; i < problem->rows; i++) {
        const int64_t count = elements_of(problem->x[i], problem->columns);
        const double target = problem->target[i];
        if (count < 0 || !isfinite(target) || (!regression && fabs(target) >= 2147483648.))
            return false;
        if (problem->weight && t->library->layout == LINEAR_SKLEARN &&
            !isfinite(problem->weight[i]))
            return false;
        *elements += count;
    }
    return true;
}

static struct accel_span span_of(const char *name, void *ptr, int64_t length,
                                 enum accel_access access)
{
    return (struct accel_span){.name = name,
                               .ptr = ptr,
                               .rows = length,
                               .cols = 1,
                               .ld = length,
                               .dtype = ACCEL_FLOAT64,
                               .access = access};
}

/* The spans stand for the elements, which lie in many places, and for the model. */
static void shape(struct accel_call *call, const int64_t size[])
{
    memcpy(&call->own.integer[SIZES], size, SIZE_COUNT * sizeof *size);
    call->span[ACCEL_a] = span_of("x", NULL, size[ELEMENTS], ACCEL_READ);
    call->span[ACCEL_y] = span_of("model", &call->own.integer[MODEL], 1, ACCEL_WRITE);
}

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    const struct linear_problem *problem = (const void *)(uintptr_t)passed->gpr[0];
    const struct linear_parameter *parameter = (const void *)(uintptr_t)passed->gpr[1];
    struct linear_classes classes = {0};
    int64_t elements;
    if (!problem || !parameter)
        return false;
    call->own.pointer[PROBLEM] = problem;
    call->own.pointer[PARAMETER] = parameter;
    call->own.integer[LIBRARY] = passed->layout;
    const struct linear_training t = training_of(call);
    if (!is_usual(&t) || !measure(&t, &elements))
        return false;
    const bool made = linear_classes_make(&classes, &t);
    const int64_t size[] = {[ROWS] = problem->rows,
                            [COLUMNS] = problem->columns,
                            [ELEMENTS] = elements,
                            [CLASSES] = classes.count};
    linear_classes_free(&classes);
    shape(call, size);
    return made;
}

/* The first member of all libraries' problems is the number of rows. */
static int count_at(int layout)
{
    (void)layout;
    return 0;
}

static const int64_t *sizes(const struct accel_call *call)
{
    return &call->own.integer[SIZES];
}

/* Of two classes and in regression, one problem. */
static int problems_of(int classes)
{
    return classes == 0 || classes == 2 ? 1 : classes;
}

/* Two products for each direction that a problem tries: some tens. */
static double flops_of(const struct accel_call *call, double directions)
{
    return directions * 4 * (double)call->own.integer[SIZES + ELEMENTS] *
           problems_of((int)call->own.integer[SIZES + CLASSES]);
}

static double flops(const struct accel_call *call)
{
    return flops_of(call, 40);
}

/* The device waits for the host in each direction, and before that the host sorts the elements, ten nanoseconds for each. */
static struct accel_effort effort(const struct accel_call *call, bool device)
{
    const double few = 20, many = 100;
    if (!device)
        return (struct accel_effort){.operations = flops_of(call, few)};
    return (struct accel_effort){.operations = flops_of(call, many),
                                 .steps =
                                     many * problems_of((int)call->own.integer[SIZES + CLASSES]) +
                                     1e-5 / STEP_MS * (double)call->own.integer[SIZES + ELEMENTS]};
}

static void describe(const struct accel_call *call, const struct accel_fields *fields)
{
    const struct linear_parameter *parameter = call->own.pointer[PARAMETER];
    fields->integer(fields, "solver", parameter->solver);
    fields->integer(fields, "l", call->own.integer[SIZES + ROWS]);
    fields->integer(fields, "features", call->own.integer[SIZES + COLUMNS]);
    fields->integer(fields, "nnz", call->own.integer[SIZES + ELEMENTS]);
    if (call->own.integer[SIZES + CLASSES] > 0)
        fields->integer(fields, "classes", call->own.integer[SIZES + CLASSES]);
}

static void complete(const struct accel_call *call, struct accel_result *result)
{
    result->rax = (uint64_t)(uintptr_t)call->own.pointer[MODEL];
}

/* ---- The device ---- */

/* A call under way. */
struct train {
    struct linear_training training;
    struct linear_classes classes;
    struct linear_rows x;
    struct linear_loss loss;
    struct linear_solve solve;
    int rows;                  /* that count */
    struct linear_node **x_of; /* of each of them */
    double *y, *c;
    void *model;
    struct linear_model *common;
    int *iterations;
};

static bool make(struct train *t)
{
    const struct linear_problem *problem = t->training.problem;
    if (!linear_classes_make(&t->classes, &t->training))
        return false;
    const int classes = t->classes.count, problems = problems_of(classes);
    t->x_of = malloc((size_t)problem->rows * sizeof *t->x_of);
    t->y = malloc((size_t)problem->rows * sizeof *t->y);
    t->c = malloc((size_t)problem->rows * sizeof *t->c);
    t->model = linear_model_make(&t->training, (size_t)problem->columns * (size_t)problems, classes,
                                 problems, &t->common, &t->iterations);
    return linear_solve_make(&t->solve, problem->columns) && t->x_of && t->y && t->c && t->model;
}

/* Leaves the model. */
static void drop(struct train *t)
{
    linear_classes_free(&t->classes);
    free(t->x_of);
    free(t->y);
    free(t->c);
    free(t->solve.memory);
}

/* C of a row is that of its class times its own weight. */
static double weight_of(const struct train *t, int row)
{
    return t->training.library->layout == LINEAR_SKLEARN ? t->training.problem->weight[row] : 1;
}

static void begin_regression(struct train *t)
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

/* One class against the others. Of two classes, liblinear's positive one is the first, scikit-learn's the second. */
static void begin_class(struct train *t, int number)
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

static void solve_problem(struct train *t, int number)
{
    const int problems = problems_of(t->classes.count);
    struct linear_solve *s = &t->solve;
    for (int64_t j = 0; j < s->n; j++)
        s->w[j] = t->training.init_sol ? t->training.init_sol[j * problems + number] : 0;
    if (t->classes.count == 0)
        begin_regression(t);
    else
        begin_class(t, number);
    linear_loss_begin(&t->loss, t->y, t->c);
    const int iterations =
        t->training.library->layout == LINEAR_243 ? linear_newton(s) : linear_trust_region(s);
    if (t->iterations)
        t->iterations[number] = iterations;
    for (int64_t j = 0; j < s->n; j++)
        t->common->w[j * problems + number] = s->w[j];
}

static enum gpu_status solve_all(struct train *t, struct gpu_work *work)
{
    const struct linear_problem *problem = t->training.problem;
    for (int i = 0; i < problem->rows; i++)
        if (linear_counts(&t->training, i))
            t->x_of[t->rows++] = problem->x[i];
    enum gpu_status status = linear_rows_load(&t->x, work, t->x_of, t->rows, problem->columns,
                                              work->call->own.integer[SIZES + ELEMENTS]);
    if (status == GPU_OK)
        status = linear_loss_make(&t->loss, &t->x, t->training.parameter->solver, t->training.p);
    t->solve.training = &t->training;
    t->solve.loss = &t->loss;
    for (int k = 0; status == GPU_OK && k < problems_of(t->classes.count); k++) {
        solve_problem(t, k);
        status = t->loss.failure;
    }
    return status;
}

static bool run_original(void *context)
{
    const struct gpu_work *work = context;
    return gpu_work_by_original(work, work->call);
}

/* The program has seen the lines so far: the original trains from the start, and prints the others. */
static enum gpu_status finish_else(struct train *t, struct gpu_work *work, enum gpu_status failure)
{
    if (t->solve.lines == 0)
        return failure;
    if (!linear_repeat(t->training.library, t->solve.lines, run_original, work))
        return GPU_LOST;
    return failure == GPU_NO_MEMORY ? GPU_SHORT_ELSE : GPU_FINISHED_ELSE;
}

static enum gpu_status run(struct gpu_work *work)
{
    struct accel_call *call = (struct accel_call *)(uintptr_t)work->call;
    struct train t = {.training = training_of(call)};
    enum gpu_status status = make(&t) ? solve_all(&t, work) : GPU_NO_MEMORY;
    if (status == GPU_OK && t.classes.count > 0)
        memcpy(t.common->label, t.classes.label, (size_t)t.classes.count * sizeof(int));
    if (status == GPU_OK)
        *(void **)call->span[ACCEL_y].ptr = t.model;
    else {
        if (t.model)
            linear_model_free(t.model, t.common, t.iterations);
        status = finish_else(&t, work, status);
    }
    drop(&t);
    return status;
}

/* liblinear's products of sparse rows reach about a GFlop a second, the device's are bound by its memory. */
const struct accel_op op_liblinear_train = {
    .group = ACCEL_NO_BLAS,
    .ml = ACCEL_LIBLINEAR,
    .nominal = {.cpu_share = 0.02, .gpu_share = 0.005, .gpu_step_ms = STEP_MS},
    .accepts = linear_library_of,
    .count_at = count_at,
    .parse = parse,
    .sizes = sizes,
    .flops = flops,
    .effort = effort,
    .typical = shape,
    .dimensions = SIZE_COUNT,
    .describe = describe,
    .complete = complete,
    .run = run};
