#include "pass.h"

#include <string.h>

#include "abi.h"
#include "ops/op.h"
#include "row_major.h"

static int count_words(const struct accel_routine *routine, enum accel_abi abi)
{
    int words = abi != ACCEL_ABI_FORTRAN ? 1 : 0;
    for (int i = 0; i < routine->args; i++)
        if (blas_is_passed(abi, &routine->arg[i]) &&
            !blas_is_by_value(abi, routine, &routine->arg[i]))
            words++;
    return words;
}

size_t blas_stack_words(const struct accel_routine *routine, enum accel_abi abi)
{
    return accel_words_on_stack((size_t)count_words(routine, abi));
}

static int count_characters(const struct accel_routine *routine)
{
    int n = 0;
    for (int i = 0; i < routine->args; i++)
        n += routine->arg[i].kind == ACCEL_ARG_FLAG;
    return n;
}

/* Appends a hidden length for each CHARACTER to the arguments in *words. */
static struct accel_passed finish_words(struct accel_words *words,
                                        const struct accel_routine *routine, enum accel_abi abi,
                                        int width)
{
    size_t n = (size_t)count_words(routine, abi);
    if (abi == ACCEL_ABI_FORTRAN)
        for (int i = count_characters(routine); i > 0; i--)
            words->word[n++] = 1;
    return (struct accel_passed){.gpr = words->word,
                                 .fpr = (const double(*)[2])words->fpr,
                                 .stack = words->word + ACCEL_WORD_REGISTERS,
                                 .stack_words = accel_words_on_stack(n),
                                 .abi = abi,
                                 .width = width};
}

struct accel_passed blas_repeat(struct accel_words *words, const struct accel_routine *routine,
                                const struct accel_passed *passed)
{
    memcpy(words->word, passed->gpr, ACCEL_WORD_REGISTERS * sizeof words->word[0]);
    memcpy(words->word + ACCEL_WORD_REGISTERS, passed->stack,
           blas_stack_words(routine, passed->abi) * sizeof words->word[0]);
    memcpy(words->fpr, passed->fpr, sizeof words->fpr);
    return finish_words(words, routine, passed->abi, passed->width);
}

/* Returns the word for an argument. Puts an argument by reference into *value. */
static uint64_t word_for(struct accel_call *call, int i, enum accel_abi abi, int width,
                         union accel_value *value)
{
    const struct accel_arg *arg = &call->routine->arg[i];
    const struct accel_span *x = &call->span[accel_span_of(arg)];
    bool reference = abi == ACCEL_ABI_FORTRAN || arg->array;
    int64_t integer;
    switch (arg->kind) {
    case ACCEL_ARG_WORK:
    case ACCEL_ARG_INFO:
    case ACCEL_ARG_EXTRA:
        return (uint64_t)call->blas.given[i];
    case ACCEL_ARG_MATRIX:
    case ACCEL_ARG_VECTOR:
        if (!arg->array)
            return (uintptr_t)x->ptr;
        if (x->array)
            return (uintptr_t)x->array;
        value->matrix = x->ptr; /* one product of a batch */
        return (uintptr_t)&value->matrix;
    case ACCEL_ARG_SCALAR:
    case ACCEL_ARG_REAL:
        blas_store_scalar(value->scalar, call->blas.scalar[arg->slot],
                          blas_scalar_dtype(call->routine, arg->kind));
        return (uintptr_t)value;
    case ACCEL_ARG_FLAG:
        if (abi == ACCEL_ABI_FORTRAN) {
            value->letter = call->blas.flag[arg->slot];
            return (uintptr_t)value;
        } else if (abi == ACCEL_ABI_LAPACKE) {
            return (unsigned char)call->blas.flag[arg->slot];
        } else {
            const char *letters = blas_letters[arg->slot].letters;
            const char *at = strchr(letters, call->blas.flag[arg->slot]);
            value->i32 = (int32_t)(blas_letters[arg->slot].first + (at - letters));
            return arg->array ? (uintptr_t)value : (uint64_t)value->i32;
        }
    default:
        integer = *blas_integer_of(call, arg);
        if (!reference)
            return (uint64_t)integer;
        if (width == 64)
            value->i64 = integer;
        else
            value->i32 = (int32_t)integer;
        return (uintptr_t)value;
    }
}

struct accel_passed blas_pass(struct accel_words *words, enum accel_abi abi, int width,
                              const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    struct accel_call own = *call;
    int n = 0, reals = 0;

    memset(words->fpr, 0, sizeof words->fpr);
    own.parts = 1;
    /* In column-major order, only OpenBLAS has flags for the conjugated ones. */
    bool rows = call->blas.layout == ACCEL_ROW_MAJOR && accel_is_level2(routine);
    if (rows)
        row_major_exchange(&own);
    if (abi != ACCEL_ABI_FORTRAN)
        words->word[n++] = rows ? CBLAS_ROW_MAJOR : CBLAS_COL_MAJOR;
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (!blas_is_passed(abi, arg))
            continue;
        if (blas_is_by_value(abi, routine, arg))
            blas_store_scalar(words->fpr[reals++], own.blas.scalar[arg->slot],
                              blas_scalar_dtype(routine, arg->kind));
        else
            words->word[n++] = word_for(&own, i, abi, width, &words->value[i]);
    }
    return finish_words(words, routine, abi, width);
}
