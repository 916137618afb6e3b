#include "validate.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/work.h"

/* All folds are there at once, where the library has one after the other. Returns whether they take
 * little beside the rows. */
static bool is_small(const struct accel_call *call, int folds)
{
    const int64_t *size = call->own.integer;
    const int64_t of_column = 8 * (9 + linear_problems_of((int)size[LINEAR_CLASSES])), of_row = 60,
                  of_element = 16, always = INT64_C(1) << 30;
    return folds * (of_row * size[LINEAR_ROWS] + of_column * size[LINEAR_COLUMNS]) <=
           of_element * size[LINEAR_ELEMENTS] + always;
}

bool linear_validates(struct accel_call *call, const struct accel_passed *passed)
{
    const int folds = (int)(uint32_t)passed->gpr[2];
    return folds >= 2 && folds <= LINEAR_FOLDS_MOST && linear_parse(call, passed, folds) &&
           folds <= call->own.integer[LINEAR_ROWS] &&
           folds * call->own.integer[LINEAR_ROWS] <= INT32_MAX && is_small(call, folds);
}

/* ---- The folds ---- */

static bool draw(struct linear_validation *v)
{
    const int rows = v->training.problem->rows;
    v->place = malloc((size_t)rows * sizeof *v->place);
    v->start = malloc(((size_t)v->count + 1) * sizeof *v->start);
    if (!v->place || !v->start)
        return false;
    for (int i = 0; i < rows; i++)
        v->place[i] = i;
    accel_shuffle_by_rand(v->place, rows, 0);
    for (int i = 0; i <= v->count; i++)
        v->start[i] = accel_fold_start(i, rows, v->count);
    return true;
}

/* Makes the problem of all rows but those of the fold, in the order that was drawn. */
static bool make_fold(struct linear_validation *v, int number)
{
    const struct linear_problem *all = v->training.problem;
    const int first = v->start[number], after = v->start[number + 1];
    const int rows = all->rows - (after - first);
    struct linear_fold *fold = &v->fold[number];
    int *place = malloc((size_t)rows * sizeof *place);
    fold->spread = (struct linear_spread){all->rows, place, v->y, v->c};
    fold->problem =
        (struct linear_problem){.rows = rows,
                                .columns = all->columns,
                                .target = malloc((size_t)rows * sizeof(double)),
                                .x = malloc((size_t)rows * sizeof(struct linear_node *)),
                                .bias = all->bias};
    if (!place || !fold->problem.target || !fold->problem.x)
        return false;
    for (int i = 0; i < rows; i++) {
        place[i] = v->place[i < first ? i : i - first + after];
        fold->problem.target[i] = all->target[place[i]];
        fold->problem.x[i] = all->x[place[i]];
    }
    struct linear_training training = v->training;
    training.problem = &fold->problem;
    training.parameter = &v->parameter.common;
    const bool made = linear_fit_make(&fold->fit, &training);
    fold->fit.spread = &fold->spread;
    return made;
}

static bool make_validation(struct linear_validation *v)
{
    const size_t rows = (size_t)v->training.problem->rows;
    v->fold = calloc((size_t)v->count, sizeof *v->fold);
    v->y = calloc(rows, sizeof *v->y);
    v->c = malloc(rows * sizeof *v->c);
    v->target = malloc(rows * sizeof *v->target);
    bool made = v->fold && v->y && v->c && v->target && draw(v);
    for (int i = 0; made && i < v->count; i++)
        made = make_fold(v, i);
    return made;
}

void linear_validation_free(struct linear_validation *v)
{
    for (int i = 0; v->fold && i < v->count; i++) {
        struct linear_fold *fold = &v->fold[i];
        linear_fit_free_model(&fold->fit);
        linear_fit_free(&fold->fit);
        free((int *)(uintptr_t)fold->spread.place);
        free(fold->problem.target);
        free(fold->problem.x);
    }
    free(v->fold);
    free(v->place);
    free(v->start);
    free(v->y);
    free(v->c);
    free(v->target);
    free(v);
}

/* ---- The device ---- */

/* A class that a fold takes away altogether may have a weight, of which the library tells the
 * user. */
enum gpu_status linear_validation_begin(struct linear_validation *v, struct gpu_work *work)
{
    *v = (struct linear_validation){.training = linear_training_in(work->call),
                                    .count = linear_folds_of(work->call)};
    const struct linear_problem *problem = v->training.problem;
    memcpy(&v->parameter, v->training.parameter, sizeof v->parameter);
    accel_rand_keep(&v->before);
    if (!make_validation(v))
        return GPU_UNSUPPORTED;
    const enum gpu_status status =
        linear_rows_load(&v->x, work, problem->x, problem->rows, problem->columns,
                         work->call->own.integer[LINEAR_ELEMENTS]);
    return status == GPU_OK ? linear_loss_make(&v->loss, &v->x, v->parameter.common.solver, 0)
                            : status;
}

enum gpu_status linear_validation_train(struct linear_validation *v, int fold, const double *start)
{
    struct linear_fit *t = &v->fold[fold].fit;
    t->training.p = v->parameter.p;
    t->training.init_sol = start;
    if (t->classes.count > 0)
        linear_classes_weigh(&t->classes, &v->parameter.common);
    const enum gpu_status status = linear_fit_solve(t, &v->loss);
    for (int i = v->start[fold]; status == GPU_OK && i < v->start[fold + 1]; i++) {
        const int row = v->place[i];
        v->target[row] = v->training.library->predict(t->model, v->training.problem->x[row]);
    }
    return status;
}

enum gpu_status linear_validation_end(struct linear_validation *v, struct gpu_work *work,
                                      enum gpu_status status)
{
    const struct linear_library *library = v->training.library;
    int64_t lines = v->lines;
    if (status == GPU_OK) {
        memcpy(work->call->span[ACCEL_y].ptr, &v, sizeof v);
        return status;
    }
    for (int i = 0; v->fold && i < v->count; i++)
        lines += v->fold[i].fit.solve.lines;
    accel_rand_put_back(&v->before);
    linear_validation_free(v);
    return linear_finish_else(library, lines, work, status);
}

struct linear_validation *linear_validation_of(const struct accel_call *call)
{
    return (void *)(uintptr_t)call->own.pointer[LINEAR_RESULT];
}

void linear_validation_discard(const struct accel_call *call)
{
    struct linear_validation *v = linear_validation_of(call);
    accel_rand_put_back(&v->before);
    linear_validation_free(v);
}

double linear_validation_judge(const struct accel_call *call)
{
    struct linear_validation *v = linear_validation_of(call);
    double worst = 0;
    bool judged = v;
    for (int i = 0; v && i < v->count; i++) {
        const double ratio = linear_fit_judge(&v->fold[i].fit);
        judged = judged && ratio >= 0;
        worst = ratio > worst ? ratio : worst;
    }
    return judged || worst > 1 ? worst : -1;
}
