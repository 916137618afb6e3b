/*
 * train() of liblinear, whose parameters begin alike in 2.30 and later. The same problem takes more
 * or fewer directions by chance: what counts is the time of one.
 */
#include <stdlib.h>
#include <string.h>

#include "ml_bench.h"
#include "ops/liblinear/library.h"

static long directions; /* that its lines speak of */

/* A line for each iteration says how many directions of conjugate gradients there were; the
 * gradient takes as much as one. */
static void count_directions(const char *text)
{
    const char *number = strstr(text, " CG ");
    if (number && !strstr(text, "WARNING"))
        directions += strtol(number + 4, NULL, 10) + 1;
}

/* Returns the milliseconds of a training, and sets `directions`. */
static double train_once(const struct ml_library *liblinear, const struct linear_problem *problem,
                         int solver, double eps)
{
    const struct linear_parameter_243 parameter = {
        .common = {.solver = solver, .eps = eps, .c = 1}, .p = 0.1, .regularize_bias = 1};
    directions = 0;
    return ml_bench_train(liblinear, problem, &parameter);
}

/* Returns the milliseconds that so many directions take as a program's training is expected to try;
 * 0: it has tried none. On a device the rows have to be brought, too, once: a training that goes on
 * for longer tells what a direction takes. */
static double time_training(const struct ml_library *liblinear,
                            const struct linear_problem *problem, int solver)
{
    const double ms = train_once(liblinear, problem, solver, 1e-3), few = (double)directions;
    if (!liblinear->device || few <= 0)
        return few > 0 ? ms * LINEAR_DIRECTIONS / few : 0;
    const double longer = train_once(liblinear, problem, solver, 1e-7), many = (double)directions;
    if (ms <= 0 || longer <= ms || many <= few)
        return ms * LINEAR_DIRECTIONS_MOST / few;
    return ms + (longer - ms) / (many - few) * (LINEAR_DIRECTIONS_MOST - few);
}

/* Of two classes, the faster one of the two solvers: the estimate is to be too small rather than
 * too large. */
static double measure_linear(const struct ml_library *liblinear, const struct ml_bench_rows *made,
                             const int64_t size[ACCEL_DIMENSIONS])
{
    const struct linear_problem problem = {
        .rows = made->rows, .columns = made->features, .target = made->y, .x = made->x, .bias = -1};
    if (size[3] == 1)
        return time_training(liblinear, &problem, LINEAR_L2_SVR);
    const double lr = time_training(liblinear, &problem, LINEAR_LR);
    const double svc = time_training(liblinear, &problem, LINEAR_L2_SVC);
    return lr < svc ? lr : svc;
}

static double work_of(const int64_t size[ACCEL_DIMENSIONS])
{
    return (double)size[2] + 10 * (double)size[0];
}

/* Rows, columns, elements, classes; 1: regression. */
static const int64_t sizes[][ACCEL_DIMENSIONS] = {
    {500, 10, 5000, 2},       {500, 100, 50000, 2},     {5000, 4, 20000, 2},
    {2000, 50, 100000, 1},    {2000, 200, 400000, 2},   {20000, 4, 80000, 2},
    {20000, 20, 400000, 1},   {20000, 50, 1000000, 2},  {5000, 400, 2000000, 2},
    {100000, 10, 1000000, 2}, {100000, 30, 3000000, 1}, {50000, 100, 5000000, 2},
    {500000, 10, 5000000, 2}};

const struct ml_bench ml_bench_linear = {.routine = "train",
                                         .library = "liblinear.so.4",
                                         .version = "liblinear_version",
                                         .destroy = "free_and_destroy_model",
                                         .set_print = "set_print_string_function",
                                         .print = count_directions,
                                         .measure = measure_linear,
                                         .size = sizes,
                                         .sizes = sizeof sizes / sizeof *sizes,
                                         .work = work_of};
