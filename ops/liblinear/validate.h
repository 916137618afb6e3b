/*
 * The folds of a problem: each is trained without its rows, which the model then predicts. All rows
 * lie on the device once.
 */
#ifndef ACCEL_LIBLINEAR_VALIDATE_H
#define ACCEL_LIBLINEAR_VALIDATE_H

#include "fit.h"
#include "ops/folds.h"
#include "train.h"

/* More are the library's: each takes memory for all rows. */
enum { LINEAR_FOLDS_MOST = 100 };

struct linear_fold {
    struct linear_problem problem; /* without the fold's rows */
    struct linear_spread spread;
    struct linear_fit fit;
};

struct linear_validation {
    struct linear_training training;       /* of all rows */
    struct linear_parameter_243 parameter; /* of the next trainings */
    int count;
    int *place, *start;       /* the rows of a fold beside each other; count + 1 starts */
    struct linear_fold *fold; /* each is trained anew for each parameter */
    struct linear_rows x;
    struct linear_loss loss;
    double *y, *c;  /* of all rows, for a fold */
    double *target; /* what is predicted for each row */
    double best[3]; /* find_parameters(): C, p, score */
    int64_t lines;  /* printed, beside those of the trainings */
    struct accel_rand before;
};

/* Reads the call's problem, parameter and number of folds. Returns false if the library must
 * answer. */
bool linear_validates(struct accel_call *call, const struct accel_passed *passed);

/* Steps of the device (struct accel_effort) for an element that the host multiplies as it predicts:
 * two nanoseconds. */
#define LINEAR_PREDICT_STEPS (2e-6 / LINEAR_STEP_MS)

/* Draws the folds of the call, and brings the rows to the device. linear_validation_end() follows,
 * whatever is returned. */
enum gpu_status linear_validation_begin(struct linear_validation *v, struct gpu_work *work);

/* Trains a fold by v->parameter, from the weights `start` (NULL: 0), and predicts its rows. */
enum gpu_status linear_validation_train(struct linear_validation *v, int fold, const double *start);

/* Leaves the validation, which is malloc()'s, in the call's result. After a failure it is none: it
 * is undone and freed, and the original does the call if the program has seen lines of it. Returns
 * what run() does. */
enum gpu_status linear_validation_end(struct linear_validation *v, struct gpu_work *work,
                                      enum gpu_status status);

/* The result of a call; NULL: the original has done it. */
struct linear_validation *linear_validation_of(const struct accel_call *call);
void linear_validation_free(struct linear_validation *v);

/* Functions of both operations. The last training of each fold is judged. */
void linear_validation_discard(const struct accel_call *call);
double linear_validation_judge(const struct accel_call *call);

/* An operation, by functions of its file. */
#define LINEAR_VALIDATION(parse_call, count, effort_of, run_call, complete_call)                   \
    {                                                                                              \
        .traits = {.group = ACCEL_NO_BLAS},                                                        \
        OP_COST(LINEAR_COST, .flops = (count), .effort = (effort_of)),                             \
        OP_GPU(.run = (run_call), .discard = linear_validation_discard),                           \
        OP_FOREIGN(LINEAR_FOREIGN, .accepts = linear_library_around, .parse = (parse_call),        \
                   .complete = (complete_call), .judge = linear_validation_judge)                  \
    }

#endif
