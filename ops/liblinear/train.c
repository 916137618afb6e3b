/*
 * liblinear's train() with the solvers that work on the primal problem; the others go to the
 * library. Debian's cross_validation() and find_parameters() call train() through the dynamic
 * linker, so that each of their problems comes here; those of other builds: cross.c and
 * parameters.c. Predictions are not here: one is a product of two vectors, which takes less time
 * than a launch up to 30,000 elements.
 */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "gpu/device/work.h"

struct linear_training linear_training_in(const struct accel_call *call)
{
    return linear_training_of(
        linear_library_numbered((int)(uint32_t)call->own.integer[LINEAR_TRAITS]),
        call->own.pointer[LINEAR_PROBLEM], call->own.pointer[LINEAR_PARAMETER]);
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

/* Counts all elements. Returns false if a number is not finite, or an index is beyond the
 * columns. */
static bool measure_problem(const struct linear_training *t, int64_t *elements)
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

/* The spans stand for the elements, which lie in many places, and for the result. */
static void shape(struct accel_call *call, const int64_t size[])
{
    memcpy(&call->own.integer[LINEAR_ROWS], size, ACCEL_DIMENSIONS * sizeof *size);
    call->span[ACCEL_a] =
        accel_column("x", NULL, call->own.integer[LINEAR_ELEMENTS], ACCEL_FLOAT64, ACCEL_READ);
    call->span[ACCEL_y] =
        accel_column("model", &call->own.integer[LINEAR_RESULT], 1, ACCEL_FLOAT64, ACCEL_WRITE);
}

bool linear_parse(struct accel_call *call, const struct accel_passed *passed, int folds)
{
    const struct linear_problem *problem = (const void *)(uintptr_t)passed->gpr[0];
    const struct linear_parameter *parameter = (const void *)(uintptr_t)passed->gpr[1];
    struct linear_classes classes = {0};
    int64_t elements;
    if (!problem || !parameter)
        return false;
    call->own.pointer[LINEAR_PROBLEM] = problem;
    call->own.pointer[LINEAR_PARAMETER] = parameter;
    call->own.integer[LINEAR_TRAITS] = (int64_t)folds << 32 | passed->layout;
    const struct linear_training t = linear_training_in(call);
    if (!is_usual(&t) || !measure_problem(&t, &elements))
        return false;
    const bool made = linear_classes_make(&classes, &t);
    shape(call, (const int64_t[]){problem->rows, problem->columns, elements,
                                  accel_max(1, classes.count)});
    linear_classes_free(&classes);
    return made;
}

static bool parse_linear_training(struct accel_call *call, const struct accel_passed *passed)
{
    return linear_parse(call, passed, 0);
}

/* The first member of all libraries' problems is the number of rows. */
int linear_count_at(int layout)
{
    (void)layout;
    return 0;
}

const int64_t *linear_sizes(const struct accel_call *call)
{
    return &call->own.integer[LINEAR_ROWS];
}

/* Two products for each direction. On the CPU a step is a row in a direction. The device waits for
 * the host in each direction, and before that the host sorts the elements, ten nanoseconds for
 * each. */
struct accel_effort linear_effort(const struct accel_call *call, bool device, double trainings,
                                  double directions, double steps)
{
    const int problems = linear_problems_of((int)call->own.integer[LINEAR_CLASSES]);
    const double all = trainings * directions * problems;
    const double elements = (double)call->own.integer[LINEAR_ELEMENTS];
    return (struct accel_effort){.operations = all * 4 * elements,
                                 .steps = device ? all + steps + 1e-5 / LINEAR_STEP_MS * elements
                                                 : all * (double)call->own.integer[LINEAR_ROWS]};
}

/* Some tens of directions. */
static double flops_of_linear_training(const struct accel_call *call)
{
    return linear_effort(call, false, 1, 40, 0).operations;
}

static struct accel_effort effort_of_linear_training(const struct accel_call *call, bool device)
{
    return linear_effort(call, device, 1, device ? LINEAR_DIRECTIONS_MOST : LINEAR_DIRECTIONS, 0);
}

void linear_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    const struct linear_parameter *parameter = call->own.pointer[LINEAR_PARAMETER];
    fields->integer(fields, "solver", parameter->solver);
    fields->integer(fields, "l", call->own.integer[LINEAR_ROWS]);
    fields->integer(fields, "features", call->own.integer[LINEAR_COLUMNS]);
    fields->integer(fields, "nnz", call->own.integer[LINEAR_ELEMENTS]);
    if (call->own.integer[LINEAR_CLASSES] > 1)
        fields->integer(fields, "classes", call->own.integer[LINEAR_CLASSES]);
    if (linear_folds_of(call) > 0)
        fields->integer(fields, "folds", linear_folds_of(call));
}

/* ---- The device ---- */

static bool run_original_training(void *context)
{
    const struct gpu_work *work = context;
    return gpu_work_by_original(work, work->call);
}

enum gpu_status linear_finish_else(const struct linear_library *library, int64_t lines,
                                   struct gpu_work *work, enum gpu_status failure)
{
    if (lines == 0)
        return failure;
    if (!linear_skip_lines(library, lines, run_original_training, work))
        return GPU_LOST;
    return failure == GPU_NO_MEMORY ? GPU_SHORT_ELSE : GPU_FINISHED_ELSE;
}

static void discard_fit(struct linear_fit *t)
{
    linear_fit_free_model(t);
    linear_fit_free(t);
    free(t);
}

static enum gpu_status run_linear_training(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct linear_training training = linear_training_in(call);
    struct linear_fit *t = malloc(sizeof *t);
    if (!t)
        return GPU_NO_MEMORY;
    enum gpu_status status = linear_fit_make(t, &training)
                                 ? linear_fit_train(t, work, call->own.integer[LINEAR_ELEMENTS])
                                 : GPU_NO_MEMORY;
    if (status == GPU_OK) {
        memcpy(call->span[ACCEL_y].ptr, &t, sizeof t);
    } else {
        status = linear_finish_else(training.library, t->solve.lines, work, status);
        discard_fit(t);
    }
    return status;
}

static void complete_linear_training(const struct accel_call *call, struct accel_result *result)
{
    struct linear_fit *t = (void *)(uintptr_t)call->own.pointer[LINEAR_RESULT];
    result->gpr[0] = (uintptr_t)t->model;
    linear_fit_free(t);
    free(t);
}

static void discard_linear_training(const struct accel_call *call)
{
    discard_fit((void *)(uintptr_t)call->own.pointer[LINEAR_RESULT]);
}

/* Of a call that the original has finished there is nothing to judge. */
static double verify_linear_training(const struct accel_call *call)
{
    struct linear_fit *t = (void *)(uintptr_t)call->own.pointer[LINEAR_RESULT];
    return t ? linear_fit_judge(t) : -1;
}

const struct accel_op op_liblinear_train = {
    .traits = {.group = ACCEL_NO_BLAS},
    OP_COST(LINEAR_COST, .flops = flops_of_linear_training, .effort = effort_of_linear_training,
            .typical = shape),
    OP_GPU(.run = run_linear_training, .discard = discard_linear_training),
    OP_FOREIGN(LINEAR_FOREIGN, .accepts = linear_library_of, .parse = parse_linear_training,
               .complete = complete_linear_training, .judge = verify_linear_training)};
