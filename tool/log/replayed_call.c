#include "replayed_call.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/plan/precision.h"
#include "ops/blas/abi.h"
#include "ops/blas/row_major.h"
#include "ops/names.h"
#include "ops/op.h"
#include "ops/rules/rules.h"
#include "call/shape.h"
#include "ops/typical.h"

static void assume(struct replayed_call *told, const char *what)
{
    const size_t length = strlen(told->assumed);
    snprintf(told->assumed + length, sizeof told->assumed - length, "%s%s", length ? ", " : "",
             what);
}

/* False if the line lacks the argument, or has no number there. */
static bool read_integer(const struct log_line *line, const struct accel_arg *arg, int64_t *value)
{
    const char *text = log_string(line, arg->name);
    char *end;
    if (!text)
        return false;
    *value = strtoll(text, &end, 10);
    return end > text && !*end;
}

/* Reasons in the order in which they matter. */
static const char *refusal(const struct accel_routine *routine, const struct log_line *line)
{
    static const struct {
        const char *why, *refusal;
    } refused[] = {{"workspace_query", "it asked for a size of workspace"},
                   {"bad_argument", "its arguments were wrong"},
                   {"empty", "it had nothing to compute"},
                   {"device_data", "its operands were in device memory"}};
    const char *layout = log_string(line, "layout");
    if (log_string(line, "arithmetic"))
        return "its thread rounded otherwise than to nearest, or had traps";
    if (!accel_is_blas(routine))
        return "the log does not have its data";
    if (accel_is_batch(routine))
        return "the log does not have the matrices of a batch";
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(log_string(line, "why"), refused[i].why) == 0)
            return refused[i].refusal;
    if (layout && accel_is_lapack(routine))
        return "LAPACKE in row-major order calls another name, which has a line of its own";
    return NULL;
}

/* Reads the letters of "args=N,T". False if there are others than the routine has. */
static bool read_flags(struct accel_call *call, const struct log_line *line)
{
    const char *letters = log_string(line, "args");
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind != ACCEL_ARG_FLAG)
            continue;
        const bool conjugated = letters && *letters == 'R' && strchr(arg->allowed, 'C');
        if (!letters || !*letters || (!strchr(arg->allowed, *letters) && !conjugated) ||
            (letters[1] && letters[1] != ','))
            return false;
        call->blas.given[i] = call->blas.flag[arg->slot] = *letters;
        letters += letters[1] ? 2 : 1;
    }
    return !letters || !*letters;
}

static bool read_sizes(int64_t size[ACCEL_DIMENSIONS], const struct accel_routine *routine,
                       const struct log_line *line)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_SIZE &&
            !read_integer(line, &routine->arg[i], &size[routine->arg[i].slot]))
            return false;
    return true;
}

/* An INTEGER that is no size: a range of numbers is all of them. */
static int64_t usual_integer(const struct accel_call *call, const struct accel_arg *arg)
{
    return arg->slot == ACCEL_iu || arg->slot == ACCEL_k2 ? call->blas.size[ACCEL_n] : 1;
}

static void read_integers(struct replayed_call *told, const struct log_line *line)
{
    struct accel_call *call = &told->call;
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        char text[64];
        int64_t value;
        if (arg->kind != ACCEL_ARG_INTEGER)
            continue;
        if (!read_integer(line, arg, &value)) {
            value = usual_integer(call, arg);
            const bool counts = (arg->slot != ACCEL_il && arg->slot != ACCEL_iu) ||
                                call->blas.flag[ACCEL_range] == 'I';
            snprintf(text, sizeof text, "%s = %lld", arg->name, (long long)value);
            if (counts)
                assume(told, text);
        }
        call->blas.given[i] = *blas_integer_of(call, arg) = value;
    }
}

/* A scalar is a number, or in the log a class of numbers. */
static void read_scalars(struct replayed_call *told, const struct log_line *line)
{
    struct accel_call *call = &told->call;
    /* All eigenvalues of a matrix of random numbers; the norm of one that is well-conditioned. */
    call->blas.scalar[ACCEL_vl].re = -4 - 2 * (double)call->blas.size[ACCEL_n];
    call->blas.scalar[ACCEL_vu].re = 4 + 2 * (double)call->blas.size[ACCEL_n];
    call->blas.scalar[ACCEL_anorm].re = 1;
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind != ACCEL_ARG_SCALAR && arg->kind != ACCEL_ARG_REAL)
            continue;
        const bool counts = arg->slot == ACCEL_alpha || arg->slot == ACCEL_beta ||
                            (arg->slot <= ACCEL_vu && call->blas.flag[ACCEL_range] == 'V') ||
                            arg->slot == ACCEL_anorm;
        struct accel_complex *scalar = &call->blas.scalar[arg->slot];
        char text[64];
        if (log_string(line, arg->name)) /* a class without a number is any other */
            scalar->re = log_number(line, arg->name, 0.7);
        else if (counts)
            snprintf(text, sizeof text, "%s = %g", arg->name, scalar->re), assume(told, text);
    }
}

/* ---- Operands, which JSON alone tells ---- */

static const char *text_of(struct json_object *operand, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(operand, name, &value) ? json_object_get_string(value) : "";
}

static bool are_on_host(struct json_object *operands)
{
    for (size_t i = 0; operands && i < json_object_array_length(operands); i++)
        if (strcmp(text_of(json_object_array_get_idx(operands, i), "place"), "host") != 0)
            return false;
    return true;
}

/* Reads the leading dimension or the increment of an operand. */
static bool read_gap(struct json_object *operands, const char *name, enum accel_kind kind,
                     int64_t *value)
{
    for (size_t i = 0; operands && i < json_object_array_length(operands); i++) {
        struct json_object *operand = json_object_array_get_idx(operands, i), *gap;
        if (strcmp(text_of(operand, "name"), name) != 0 ||
            !json_object_object_get_ex(operand, kind == ACCEL_ARG_LD ? "ld" : "inc", &gap))
            continue;
        *value = json_object_get_int64(gap);
        return true;
    }
    return false;
}

/* Returns the name of the operand that a leading dimension or an increment belongs to. */
static const char *owner_of(const struct accel_routine *routine, const struct accel_arg *of)
{
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if ((arg->kind == ACCEL_ARG_MATRIX || arg->kind == ACCEL_ARG_VECTOR) &&
            arg->slot == of->slot)
            return arg->name;
    }
    return "";
}

/* No gap of a call that ran is as large. */
#define GAP_MAX ((int64_t)1 << 40)

/* Reads what the line says of gaps between elements; 0: nothing. As the caller passed them. False
 * if one is too large. */
static bool read_gaps(struct replayed_call *told, const struct log_line *line,
                      struct json_object *operands)
{
    struct accel_call *call = &told->call;
    bool said = true;
    for (int i = 0; i < ACCEL_SPANS; i++)
        call->span[i].ld = 0;
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        struct accel_span *x = &call->span[accel_span_of(arg)];
        int64_t value;
        if (arg->kind != ACCEL_ARG_LD && arg->kind != ACCEL_ARG_INC)
            continue;
        const bool there = (read_integer(line, arg, &value) ||
                            read_gap(operands, owner_of(call->routine, arg), arg->kind, &value)) &&
                           value != 0;
        said = said && there;
        if (!there)
            continue;
        if (value < -GAP_MAX || value > GAP_MAX)
            return false;
        x->ld = value < 0 ? -value : value;
        x->inc = arg->kind == ACCEL_ARG_INC ? value : 0;
    }
    if (!said)
        assume(told, "no gaps between columns and elements");
    return true;
}

/* Sizes that the call's arguments do not tell (the rows of laswp) are those of a square matrix.
 * False if an operand is too large. */
static bool fill_gaps(struct accel_call *call)
{
    for (struct accel_span *x = call->span; x < call->span + ACCEL_SPANS; x++)
        if (x->ld == 0 && accel_rules_of(call->op)->rows)
            x->ld = accel_max(1, call->blas.size[ACCEL_n]);
    shape_operands(call);
    for (struct accel_span *x = call->span; x < call->span + ACCEL_SPANS; x++) {
        x->ld = x->ld ? x->ld : accel_max(1, x->rows);
        if (!accel_mul(x->ld, x->cols, &x->stride))
            return false;
    }
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_LD || arg->kind == ACCEL_ARG_INC)
            call->blas.given[i] = *blas_integer_of(call, arg);
    }
    return true;
}

static const char *read_call(struct replayed_call *told, const struct log_line *line,
                             struct json_object *operands)
{
    const struct accel_routine *routine = accel_name_called(log_string(line, "sym"));
    const char *wrong = routine ? refusal(routine, line) : "this version does not know the name";
    const char *too_large = "its operands are larger than any memory";
    int64_t size[ACCEL_DIMENSIONS] = {0};
    struct accel_call *call = &told->call;
    told->assumed[0] = 0;
    told->abi = ACCEL_ABI_FORTRAN;
    if (wrong)
        return wrong;
    if (!are_on_host(operands))
        return "an operand was not in the host's memory";
    if (!read_sizes(size, routine, line))
        return "the line lacks its sizes";
    shape_typical(call, routine, size);
    if (!read_flags(call, line))
        return "the line lacks its letters, or has wrong ones";
    read_integers(told, line);
    read_scalars(told, line);
    if (!read_gaps(told, line, operands))
        return too_large;
    if (log_string(line, "layout")) {
        call->blas.layout = ACCEL_ROW_MAJOR;
        row_major_exchange(call);
        if (accel_is_level2(routine)) /* column-major order lacks some of its letters */
            told->abi = ACCEL_ABI_CBLAS;
    }
    const char *precision = log_string(line, "precision");
    if (precision && strcmp(precision, gpu_precision_names[GPU_NATIVE]) != 0)
        assume(told, "the type's own precision");
    if (!fill_gaps(call))
        return too_large;
    if (accel_call_shape_fault(call))
        return "the line's numbers contradict each other";
    return NULL;
}

const char *replayed_call_read(struct replayed_call *told, const struct log_line *line)
{
    const char *text = log_string(line, "operands");
    struct json_object *operands = text ? json_tokener_parse(text) : NULL;
    const bool is_list = json_object_is_type(operands, json_type_array);
    const char *wrong = read_call(told, line, is_list ? operands : NULL);
    json_object_put(operands);
    return wrong;
}
