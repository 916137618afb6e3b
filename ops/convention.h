/*
 * How a library's functions are called: how its arguments are read, passed on, and how a call ends. BLAS and LAPACK have one
 * convention, driven by their tables (ops/blas/); of any other library each function's operation has its own (function.c).
 * Constant data; pure functions.
 */
#ifndef ACCEL_CONVENTION_H
#define ACCEL_CONVENTION_H

#include "op.h"

/* What an argument that is passed by reference points to. */
union accel_value {
    int64_t i64;
    int32_t i32;
    char letter;
    double scalar[2];
    void *matrix;
};

/* The memory of a call's arguments: the layout, the arguments, a hidden length for each CHARACTER argument. */
struct accel_words {
    uint64_t word[1 + 2 * ACCEL_ARGS_MAX];
    double xmm[8][2];
    union accel_value value[ACCEL_ARGS_MAX];
};

struct accel_convention {
    /* Reads a caller's call. False where the arguments are not understood: the original has the call, untouched. */
    bool (*parse)(struct accel_call *call, const struct accel_routine *routine,
                  const struct accel_passed *passed);
    /* The caller's own arguments once more, perhaps in *words. */
    struct accel_passed (*repeat)(struct accel_words *words, const struct accel_routine *routine,
                                  const struct accel_passed *passed);
    /* The arguments of a call like the caller's, such as a part of it, perhaps in *words. */
    struct accel_passed (*pass)(struct accel_words *words, const struct accel_call *call,
                                const struct accel_passed *passed);
    /* After a call that the GPU has done: what the caller finds in its arguments and registers. */
    void (*complete)(const struct accel_call *call, const struct accel_passed *passed,
                     struct accel_result *result);
};

extern const struct accel_convention blas_convention, function_convention;

static inline const struct accel_convention *
accel_convention_of(const struct accel_routine *routine)
{
    return accel_is_blas(routine) ? &blas_convention : &function_convention;
}

#endif
