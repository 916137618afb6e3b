/*
 * liblinear's train() with the solvers that work on the primal problem; the others go to the library. cross_validation() and
 * find_parameters() of Debian's library call train() through the dynamic linker, so that each of their problems comes here.
 * Predictions are not here: one is a product of two vectors, which takes less time than a launch up to 30,000 elements.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "ops/op.h"

/* Milliseconds of a direction on the device that are no arithmetic. */
#define STEP_MS 0.1

/* call->own */
enum { FIT, PROBLEM, PARAMETER, LIBRARY, SIZES };
/* The sizes */
enum { ROWS, COLUMNS, ELEMENTS, CLASSES /* 1: none */, SIZE_COUNT };

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

/* Counts all elements. Returns false if a number is not finite, or an index is beyond the columns. */
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

/* The spans stand for the elements, which lie in many places, and for the model. */
static void shape(struct accel_call *call, const int64_t size[])
{
    memcpy(&call->own.integer[SIZES], size, SIZE_COUNT * sizeof *size);
    call->span[ACCEL_a] = accel_column("x", NULL, size[ELEMENTS], ACCEL_FLOAT64, ACCEL_READ);
    call->span[ACCEL_y] =
        accel_column("model", &call->own.integer[FIT], 1, ACCEL_FLOAT64, ACCEL_WRITE);
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
                            [CLASSES] = accel_max(1, classes.count)};
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

/* Problems, times the directions of conjugate gradients that each tries. */
static double directions_of(const struct accel_call *call, double each)
{
    return each * linear_problems_of((int)call->own.integer[SIZES + CLASSES]);
}

/* Two products for each direction. */
static double flops_of(const struct accel_call *call, double directions)
{
    return directions_of(call, directions) * 4 * (double)call->own.integer[SIZES + ELEMENTS];
}

/* Some tens. */
static double flops(const struct accel_call *call)
{
    return flops_of(call, 40);
}

/* On the CPU a step is a row in a direction. The device waits for the host in each direction, and before that the host sorts the
 * elements, ten nanoseconds for each. */
static struct accel_effort effort(const struct accel_call *call, bool device)
{
    const double few = LINEAR_DIRECTIONS, many = 100;
    if (!device)
        return (struct accel_effort){.operations = flops_of(call, few),
                                     .steps = directions_of(call, few) *
                                              (double)call->own.integer[SIZES + ROWS]};
    return (struct accel_effort){.operations = flops_of(call, many),
                                 .steps =
                                     directions_of(call, many) +
                                     1e-5 / STEP_MS * (double)call->own.integer[SIZES + ELEMENTS]};
}

static void describe(const struct accel_call *call, const struct accel_fields *fields)
{
    const struct linear_parameter *parameter = call->own.pointer[PARAMETER];
    fields->integer(fields, "solver", parameter->solver);
    fields->integer(fields, "l", call->own.integer[SIZES + ROWS]);
    fields->integer(fields, "features", call->own.integer[SIZES + COLUMNS]);
    fields->integer(fields, "nnz", call->own.integer[SIZES + ELEMENTS]);
    if (call->own.integer[SIZES + CLASSES] > 1)
        fields->integer(fields, "classes", call->own.integer[SIZES + CLASSES]);
}

/* ---- The device ---- */

static bool run_original(void *context)
{
    const struct gpu_work *work = context;
    return gpu_work_by_original(work, work->call);
}

/* The program has seen the lines so far: the original trains from the start, and prints the others. */
static enum gpu_status finish_else(const struct linear_fit *t, struct gpu_work *work,
                                   enum gpu_status failure)
{
    if (t->solve.lines == 0)
        return failure;
    if (!linear_skip_lines(t->training.library, t->solve.lines, run_original, work))
        return GPU_LOST;
    return failure == GPU_NO_MEMORY ? GPU_SHORT_ELSE : GPU_FINISHED_ELSE;
}

static void discard_fit(struct linear_fit *t)
{
    linear_fit_free_model(t);
    linear_fit_free(t);
    free(t);
}

static enum gpu_status run(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct linear_training training = training_of(call);
    struct linear_fit *t = malloc(sizeof *t);
    if (!t)
        return GPU_NO_MEMORY;
    enum gpu_status status = linear_fit_make(t, &training)
                                 ? linear_fit_train(t, work, call->own.integer[SIZES + ELEMENTS])
                                 : GPU_NO_MEMORY;
    if (status == GPU_OK) {
        memcpy(call->span[ACCEL_y].ptr, &t, sizeof t);
    } else {
        status = finish_else(t, work, status);
        discard_fit(t);
    }
    return status;
}

static void complete(const struct accel_call *call, struct accel_result *result)
{
    struct linear_fit *t = (void *)(uintptr_t)call->own.pointer[FIT];
    result->rax = (uintptr_t)t->model;
    linear_fit_free(t);
    free(t);
}

static void discard(const struct accel_call *call)
{
    discard_fit((void *)(uintptr_t)call->own.pointer[FIT]);
}

/* Of a call that the original has finished there is nothing to judge. */
static double judge(const struct accel_call *call)
{
    struct linear_fit *t = (void *)(uintptr_t)call->own.pointer[FIT];
    return t ? linear_fit_judge(t) : -1;
}

/* liblinear's products of sparse rows reach about a GFlop a second where they come from memory, and a row takes 5 ns besides; the device's
 * are bound by its memory. */
const struct accel_op op_liblinear_train = {
    .group = ACCEL_NO_BLAS,
    .ml = ACCEL_LIBLINEAR,
    .nominal = {.cpu_share = 0.04, .cpu_step_ms = 5e-6, .gpu_share = 0.005, .gpu_step_ms = STEP_MS},
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
    .discard = discard,
    .run = run,
    .judge = judge};
