#include "abi.h"

#include <string.h>

/* R is OpenBLAS's CblasConjNoTrans, 114. */
const struct blas_letters blas_letters[ACCEL_FLAGS] = {
    [ACCEL_transa] = {111, "NTCR"}, [ACCEL_transb] = {111, "NTCR"}, [ACCEL_trans] = {111, "NTCR"},
    [ACCEL_uplo] = {121, "UL"},     [ACCEL_diag] = {131, "NU"},     [ACCEL_side] = {141, "LR"},
};

bool blas_is_passed(enum accel_abi abi, const struct accel_arg *arg)
{
    return abi == ACCEL_ABI_LAPACKE ? !accel_is_fortran_only(arg->kind)
                                    : arg->kind != ACCEL_ARG_EXTRA;
}

bool blas_is_by_value(enum accel_abi abi, const struct accel_routine *routine,
                      const struct accel_arg *arg)
{
    return abi != ACCEL_ABI_FORTRAN && !arg->array &&
           (arg->kind == ACCEL_ARG_REAL ||
            (arg->kind == ACCEL_ARG_SCALAR && !accel_is_complex(routine->dtype)));
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
