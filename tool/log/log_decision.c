#define _GNU_SOURCE
#include "log_decision.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/names.h"
#include "ops/op.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "dispatch/cost/model.h"
#include "report/record.h"

static const struct accel_routine *routine_of(const struct log_line *line)
{
    const char *symbol = log_string(line, "sym");
    return symbol ? accel_name_called(symbol) : NULL;
}

/* Sets the call's flags from "N,T". */
static void set_flags(struct accel_call *call, const char *letters)
{
    const struct accel_routine *routine = call->routine;
    for (int i = 0; i < routine->args && letters; i++) {
        if (routine->arg[i].kind != ACCEL_ARG_FLAG || !*letters)
            continue;
        call->blas.given[i] = call->blas.flag[routine->arg[i].slot] = *letters;
        letters = strchr(letters, ',');
        letters += letters != NULL;
    }
}

bool log_call(struct accel_call *call, const struct log_line *line)
{
    const struct accel_routine *routine = routine_of(line);
    int64_t size[ACCEL_DIMENSIONS] = {0};
    double batch = 1;
    if (!routine || !accel_is_blas(routine))
        return false;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        const double value = log_number(line, arg->name, -1);
        const bool is_size = arg->kind == ACCEL_ARG_SIZE;
        if ((is_size || arg->kind == ACCEL_ARG_BATCH) && !(value >= 0 && value < 0x1p31))
            return false;
        if (is_size && arg->slot < ACCEL_DIMENSIONS)
            size[arg->slot] = (int64_t)value;
        if (arg->kind == ACCEL_ARG_BATCH)
            batch = value;
    }
    shape_typical(call, routine, size);
    set_flags(call, log_string(line, "args"));
    call->batch = (int64_t)batch;
    shape_operands(call);
    return true;
}

/* ---- Numbers ---- */

/* m, n and k of BLAS and LAPACK; vectors, training points and queries of machine learning. */
static void set_sizes(struct log_decision *decision, const struct log_line *line)
{
    static const char *const sizes[] = {"m", "n", "k", "l", "train", "test"};
    double logs = 0;
    int found = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double size = log_number(line, sizes[i], 0);
        if (!(size >= 1 && size < 0x1p53))
            continue;
        logs += log(size);
        found++;
        decision->largest = accel_max(decision->largest, (int64_t)size);
    }
    decision->size = found ? exp(logs / found) : 0;
}

/* Questions for workspace, wrong calls and empty ones take time, but have no rate. */
static bool computes(const struct log_decision *decision)
{
    static const enum accel_why nothing[] = {ACCEL_WORKSPACE_QUERY, ACCEL_BAD_ARGUMENT,
                                             ACCEL_EMPTY};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strcmp(decision->why, accel_why_name(nothing[i])) == 0)
            return false;
    return true;
}

static void set_work(struct log_decision *decision, const struct log_line *line)
{
    struct accel_call call;
    struct model_work work;
    if (!computes(decision) || !log_call(&call, line))
        return;
    model_work_of(&call, false, &work);
    decision->operations = fmax(0, accel_flops(&call)) * (double)decision->calls;
    decision->operand_bytes = (work.up_bytes + work.down_bytes) * (double)decision->calls;
}

void log_decision_read(struct log_decision *decision, const struct log_line *line)
{
    const struct accel_routine *routine = routine_of(line);
    const char *ran = log_string(line, "ran");
    *decision = (struct log_decision){
        .ran = ran,
        .why = log_string(line, "why"),
        .side = strncmp(ran, "gpu", 3) != 0 ? LOG_CPU
                : strstr(ran, "+cpu")       ? LOG_BOTH
                                            : LOG_GPU,
        .calls = 1,
        .inner = log_number(line, "depth", 0) > 0,
        .ms = log_number(line, "ms", -1),
        .est_cpu_ms = log_number(line, "est_cpu_ms", 0),
        .est_gpu_ms = log_number(line, "est_gpu_ms", 0),
        .up_mb = log_number(line, "up_mb", 0),
        .down_mb = log_number(line, "down_mb", 0),
        .kept_mb = log_number(line, "kept_mb", 0),
        .dtype = routine ? routine->dtype : ACCEL_FLOAT64,
    };
    snprintf(decision->name, sizeof decision->name, "%s",
             routine ? routine->name : log_string(line, "sym"));
    set_sizes(decision, line);
    set_work(decision, line);
}
