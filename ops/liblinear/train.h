/*
 * What the calls of liblinear's functions have in common: train(), cross_validation() and
 * find_parameters() begin with a problem and a parameter.
 */
#ifndef ACCEL_LIBLINEAR_TRAIN_H
#define ACCEL_LIBLINEAR_TRAIN_H

#include "library.h"
#include "ops/op.h"

/* call->own */
enum {
    LINEAR_RESULT,    /* what run() leaves for complete() */
    LINEAR_PROBLEM,   /* pointer */
    LINEAR_PARAMETER, /* pointer */
    LINEAR_TRAITS,    /* the library's number; above 32 bits the folds, 0: train() */
    LINEAR_ROWS,      /* the sizes that the cost depends on */
    LINEAR_COLUMNS,
    LINEAR_ELEMENTS,
    LINEAR_CLASSES, /* 1: none */
    LINEAR_OUTPUT,  /* pointers that the caller passes for its results: up to three */
    LINEAR_START_C = LINEAR_OUTPUT + 3, /* numbers that find_parameters() begins with */
    LINEAR_START_P,
    LINEAR_VALUES /* of the parameters that it may try, at most */
};

_Static_assert(LINEAR_CLASSES - LINEAR_ROWS + 1 == ACCEL_DIMENSIONS,
               "as many sizes as the cost model takes");

static inline int linear_folds_of(const struct accel_call *call)
{
    return (int)(call->own.integer[LINEAR_TRAITS] >> 32);
}

/* The call's problem and parameter. */
struct linear_training linear_training_in(const struct accel_call *call);

/* Reads the problem and the parameter. Returns false if the library must answer. folds: 0: of
 * train(). */
bool linear_parse(struct accel_call *call, const struct accel_passed *passed, int folds);

/* Milliseconds of a direction on the device that are no arithmetic. */
#define LINEAR_STEP_MS 0.1

/* Returns the work of so many trainings with the same rows, if each tries so many directions.
 * steps: besides those, on the device. */
struct accel_effort linear_effort(const struct accel_call *call, bool device, double trainings,
                                  double directions, double steps);

/* After a failure on the device. If the program has seen no lines it is returned; otherwise the
 * original has done the whole call, without the lines so far. */
enum gpu_status linear_finish_else(const struct linear_library *library, int64_t lines,
                                   struct gpu_work *work, enum gpu_status failure);

/* Functions of all operations. */
int linear_count_at(int layout);
const int64_t *linear_sizes(const struct accel_call *call);
void linear_describe(const struct accel_call *call, const struct accel_fields *fields);

/* What the operations have in common: in their struct accel_cost, and in struct accel_foreign.
 * nominal: liblinear's products of sparse rows reach about a GFlop a second where they come from
 * memory, and a row takes 5 ns besides; the device's are bound by its memory. */
#define LINEAR_COST                                                                                \
    .nominal = {.cpu_share = 0.04,                                                                 \
                .cpu_step_ms = 5e-6,                                                               \
                .gpu_share = 0.005,                                                                \
                .gpu_step_ms = LINEAR_STEP_MS},                                                    \
    .sizes = linear_sizes, .dimensions = ACCEL_DIMENSIONS, .measured_as = "train"
#define LINEAR_FOREIGN                                                                             \
    .ml = ACCEL_LIBLINEAR, .count_at = linear_count_at, .describe = linear_describe

#endif
