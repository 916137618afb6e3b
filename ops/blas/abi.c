#include "abi.h"

#include <string.h>

/* R is OpenBLAS's CblasConjNoTrans, 114. */
const struct blas_letters blas_letters[ACCEL_FLAGS] = {
    [ACCEL_transa] = {111, "NTCR"}, [ACCEL_transb] = {111, "NTCR"}, [ACCEL_trans] = {111, "NTCR"},
    [ACCEL_uplo] = {121, "UL"},     [ACCEL_diag] = {131, "NU"},     [ACCEL_side] = {141, "LR"},
};

static enum blas_word word_of(enum accel_abi abi, const struct accel_routine *routine,
                              const struct accel_arg *arg)
{
    switch (arg->kind) {
    case ACCEL_ARG_SIZE:
    case ACCEL_ARG_LD:
    case ACCEL_ARG_INC:
    case ACCEL_ARG_STRIDE:
    case ACCEL_ARG_BATCH:
    case ACCEL_ARG_GROUPS:
    case ACCEL_ARG_INTEGER:
    case ACCEL_ARG_LWORK:
    case ACCEL_ARG_INFO:
        return abi == ACCEL_ABI_FORTRAN || arg->array ? BLAS_WORD_INTEGER : BLAS_WORD_INTEGER_VALUE;
    case ACCEL_ARG_SCALAR:
    case ACCEL_ARG_REAL:
        return arg->array                                                ? BLAS_WORD_OTHER
               : accel_is_complex(blas_scalar_dtype(routine, arg->kind)) ? BLAS_WORD_COMPLEX
                                                                         : BLAS_WORD_REAL;
    default:
        return BLAS_WORD_OTHER;
    }
}

int blas_words(enum blas_word word[], int most, enum accel_abi abi,
               const struct accel_routine *routine)
{
    int count = 0;
    if (abi != ACCEL_ABI_FORTRAN)
        word[count++] = BLAS_WORD_OTHER; /* the order of matrices */
    for (int i = 0; i < routine->args && count < most; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (blas_is_passed(abi, arg) && !blas_is_by_value(abi, routine, arg))
            word[count++] = word_of(abi, routine, arg);
    }
    return count;
}

enum accel_dtype blas_scalar_dtype(const struct accel_routine *routine, enum accel_kind kind)
{
    if (kind == ACCEL_ARG_REAL)
        return accel_is_double(routine->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
    return routine->dtype;
}

void blas_store_scalar(void *p, struct accel_complex z, enum accel_dtype dtype)
{
    float f[2] = {(float)z.re, (float)z.im};
    if (accel_is_double(dtype))
        memcpy(p, &z, accel_dtype_size(dtype));
    else
        memcpy(p, f, accel_dtype_size(dtype));
}

uint64_t blas_word_of(const struct accel_passed *passed, int i)
{
    return accel_passed_word(passed, i + (passed->abi != ACCEL_ABI_FORTRAN ? 1 : 0));
}

int64_t *blas_integer_of(struct accel_call *call, const struct accel_arg *arg)
{
    struct accel_span *x = &call->span[accel_span_of(arg)];
    switch (arg->kind) {
    case ACCEL_ARG_LD:
        return &x->ld;
    case ACCEL_ARG_INC:
        return &x->inc;
    case ACCEL_ARG_STRIDE:
        return &x->stride;
    case ACCEL_ARG_BATCH:
        return &call->batch;
    case ACCEL_ARG_GROUPS:
        return &call->parts;
    default:
        return &call->blas.size[arg->slot];
    }
}

int64_t blas_load_integer(uint64_t word, int width, int64_t index)
{
    return accel_integer_at(width == 64 ? ACCEL_INT64 : ACCEL_INT32, (const void *)(uintptr_t)word,
                            index);
}
