#include "describe.h"

static void describe_flags(const struct accel_call *call, const struct accel_fields *fields)
{
    const struct accel_routine *routine = call->routine;
    char flags[2 * ACCEL_ARGS_MAX + 1];
    int n = 0;
    for (int i = 0; i < routine->args; i++) {
        if (routine->arg[i].kind != ACCEL_ARG_FLAG)
            continue;
        flags[n++] = (char)call->blas.given[i];
        flags[n++] = ',';
    }
    if (n == 0)
        return;
    flags[n - 1] = 0;
    fields->string(fields, "args", flags);
}

void blas_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    const struct accel_routine *routine = call->routine;
    describe_flags(call, fields);
    if (call->blas.layout == ACCEL_ROW_MAJOR)
        fields->string(fields, "layout", "row");
    for (int i = 0; i < routine->args; i++) {
        enum accel_kind kind = routine->arg[i].kind;
        if (kind == ACCEL_ARG_SIZE || kind == ACCEL_ARG_BATCH || kind == ACCEL_ARG_GROUPS)
            fields->integer(fields, routine->arg[i].name, call->blas.given[i]);
    }
    if (call->parts > 1)
        fields->integer(fields, "group", call->part + 1);
}

static const char *class_of_scalar(struct accel_complex z)
{
    return accel_is_zero(z) ? "0" : accel_is_one(z) ? "1" : "other";
}

void blas_describe_scalars(const struct accel_call *call, const struct accel_fields *fields)
{
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        const bool is_scalar = arg->kind == ACCEL_ARG_SCALAR || arg->kind == ACCEL_ARG_REAL;
        if (is_scalar && (arg->slot == ACCEL_alpha || arg->slot == ACCEL_beta))
            fields->string(fields, arg->name, class_of_scalar(call->blas.scalar[arg->slot]));
    }
}
