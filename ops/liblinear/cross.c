/*
 * cross_validation() of the builds whose own call of train() nobody sees: PyPI's. The folds are
 * trained one after the other, as there.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/device/work.h"
#include "validate.h"

static bool parse_linear_cross(struct accel_call *call, const struct accel_passed *passed)
{
    call->own.integer[LINEAR_OUTPUT] = (int64_t)passed->gpr[3];
    return call->own.pointer[LINEAR_OUTPUT] && linear_validates(call, passed);
}

static double flops_of_linear_cross(const struct accel_call *call)
{
    return linear_effort(call, false, linear_folds_of(call), 40, 0).operations;
}

/* The host predicts each row once. */
static struct accel_effort effort_of_linear_cross(const struct accel_call *call, bool device)
{
    return linear_effort(call, device, linear_folds_of(call),
                         device ? LINEAR_DIRECTIONS_MOST : LINEAR_DIRECTIONS,
                         LINEAR_PREDICT_STEPS * (double)call->own.integer[LINEAR_ELEMENTS]);
}

static enum gpu_status run_linear_cross(struct gpu_work *work)
{
    struct linear_validation *v = malloc(sizeof *v);
    if (!v)
        return GPU_NO_MEMORY;
    enum gpu_status status = linear_validation_begin(v, work);
    for (int fold = 0; status == GPU_OK && fold < v->count; fold++)
        status = linear_validation_train(v, fold, v->training.init_sol);
    return linear_validation_end(v, work, status);
}

static void complete_linear_cross(const struct accel_call *call, struct accel_result *result)
{
    struct linear_validation *v = linear_validation_of(call);
    (void)result;
    memcpy((void *)(uintptr_t)call->own.pointer[LINEAR_OUTPUT], v->target,
           (size_t)v->training.problem->rows * sizeof *v->target);
    linear_validation_free(v);
}

const struct accel_op op_liblinear_cross_validation =
    LINEAR_VALIDATION(parse_linear_cross, flops_of_linear_cross, effort_of_linear_cross,
                      run_linear_cross, complete_linear_cross);
