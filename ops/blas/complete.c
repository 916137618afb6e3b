/*
 * After a call of LAPACK: what the caller finds in INFO and in the first element of each workspace.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "abi.h"
#include "ops/op.h"
#include "ops/rules/rules.h"
#include "pass.h"

/* Returns the length that a workspace tells in its first element, as its slot; 0: none. */
static int told_length(const struct accel_routine *routine, int i)
{
    const struct accel_arg *arg = &routine->arg[i];
    if (arg->kind != ACCEL_ARG_WORK)
        return 0;
    if (i + 1 < routine->args && routine->arg[i + 1].kind == ACCEL_ARG_LWORK)
        return routine->arg[i + 1].slot;
    return arg->slot;
}

static int64_t *length_slot(struct accel_lengths *lengths, int slot)
{
    return slot == ACCEL_lwork    ? &lengths->work
           : slot == ACCEL_lrwork ? &lengths->rwork
                                  : &lengths->iwork;
}

/* ---- The question ---- */

bool blas_question(struct accel_words *words, struct accel_passed *question,
                   const struct accel_routine *routine, const struct accel_passed *passed)
{
    bool asks = false;
    if (passed->abi != ACCEL_ABI_FORTRAN || !accel_is_lapack(routine))
        return false;
    *question = blas_repeat(words, routine, passed);
    memset(words->value, 0, sizeof words->value);
    for (int i = 0; i < routine->args; i++) {
        const enum accel_kind kind = routine->arg[i].kind;
        if (kind == ACCEL_ARG_LWORK || kind == ACCEL_ARG_INFO)
            words->value[i].i64 = -1; /* of either width */
        if (kind == ACCEL_ARG_LWORK || kind == ACCEL_ARG_INFO || kind == ACCEL_ARG_WORK)
            words->word[i] = (uintptr_t)&words->value[i];
        asks = asks || kind == ACCEL_ARG_LWORK;
    }
    return asks;
}

/* A double, and an INTEGER of 64 bits, hold all lengths below. */
#define LENGTH_MOST ((int64_t)1 << 53)

static int64_t load_length(const void *work, const struct accel_routine *routine, int slot,
                           int width)
{
    double number;
    float single;
    if (slot == ACCEL_liwork)
        return blas_load_integer((uintptr_t)work, width, 0);
    memcpy(&number, work, sizeof number);
    memcpy(&single, work, sizeof single);
    if (!accel_is_double(routine->dtype))
        number = single;
    /* A NaN raises no flag: these may be the program's. */
    return isgreaterequal(number, 0) && islessequal(number, (double)LENGTH_MOST) ? (int64_t)number
                                                                                 : 0;
}

/* Returns the lengths that the routine leaves in its workspaces; 0: not known, or not told. */
static struct accel_lengths lengths_left(const struct accel_call *call, int width,
                                         const struct accel_words *answers)
{
    const struct accel_routine *routine = call->routine;
    struct accel_lengths lengths = {0, 0, 0};
    for (int i = 0; i < routine->args; i++) {
        const int slot = told_length(routine, i);
        if (slot > 0)
            *length_slot(&lengths, slot) = load_length(&answers->value[i], routine, slot, width);
        if (routine->arg[i].kind == ACCEL_ARG_INFO &&
            blas_load_integer((uintptr_t)&answers->value[i], width, 0) != 0)
            return (struct accel_lengths){0, 0, 0}; /* it knows no such question */
    }
    accel_call_lengths_left(call, &lengths);
    return lengths;
}

/* ---- The end ---- */

static void store_length(void *work, const struct accel_routine *routine, int slot, int width,
                         int64_t length)
{
    struct accel_complex z = {(double)length, 0};
    int32_t narrow = (int32_t)length;
    if (slot == ACCEL_liwork) {
        if (width == 64)
            memcpy(work, &length, sizeof length);
        else
            memcpy(work, &narrow, sizeof narrow);
        return;
    }
    /* Round up, as LAPACK's SROUNDUP_LWORK does: programs round it down. */
    if (!accel_is_double(routine->dtype) && (double)(float)z.re < z.re)
        z.re = (double)(float)z.re * (1 + (double)FLT_EPSILON);
    blas_store_scalar(work, z,
                      slot == ACCEL_lrwork ? accel_real_dtype(routine->dtype) : routine->dtype);
}

/* Where the original has not told a length, the one that the caller has passed will do. */
static void complete_work(const struct accel_routine *routine, int i, int slot,
                          const struct accel_passed *passed, int64_t length)
{
    const bool passes_one = routine->arg[i].slot != slot;
    if (length < 1 && passes_one)
        length = blas_load_integer(blas_word_of(passed, i + 1), passed->width, 0);
    if (length > 0)
        store_length((void *)(uintptr_t)blas_word_of(passed, i), routine, slot, passed->width,
                     length);
}

void blas_complete(const struct accel_call *call, const struct accel_passed *passed,
                   const struct accel_words *answers, struct accel_result *result)
{
    const struct accel_routine *routine = call->routine;
    struct accel_lengths left = {0, 0, 0};
    if (passed->abi == ACCEL_ABI_LAPACKE)
        result->gpr[0] = 0;
    if (passed->abi != ACCEL_ABI_FORTRAN)
        return;
    if (answers)
        left = lengths_left(call, passed->width, answers);
    for (int i = 0; i < routine->args; i++) {
        const int slot = told_length(routine, i);
        if (slot > 0) /* the caller may leave out others */
            complete_work(routine, i, slot, passed, *length_slot(&left, slot));
        if (routine->arg[i].kind == ACCEL_ARG_INFO)
            memset((void *)(uintptr_t)blas_word_of(passed, i), 0, (size_t)passed->width / 8);
    }
}

bool blas_info(const struct accel_call *call, const struct accel_passed *passed,
               const struct accel_result *result, int64_t *info)
{
    const struct accel_routine *routine = call->routine;
    if (!accel_is_lapack(routine))
        return false;
    if (passed->abi == ACCEL_ABI_LAPACKE) {
        *info = passed->width == 64 ? (int64_t)result->gpr[0] : (int32_t)result->gpr[0];
        return true;
    }
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_INFO) {
            *info = blas_load_integer(blas_word_of(passed, i), passed->width, 0);
            return true;
        }
    return false;
}
