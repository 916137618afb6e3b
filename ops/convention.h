/*
 * How a library's functions are called: reads arguments, passes them on, completes a call. BLAS and
 * LAPACK have one convention, driven by their tables (ops/blas/); a function of another library has
 * its operation's (function.c). Constant data; pure functions.
 */
#ifndef ACCEL_CONVENTION_H
#define ACCEL_CONVENTION_H

#include "op.h"

/* The memory that one argument by reference points to. */
union accel_value {
    int64_t i64;
    int32_t i32;
    char letter;
    double scalar[2];
    void *matrix;
};

/* Memory for a call's arguments. word: the layout, the arguments, a hidden length for each
 * CHARACTER. */
struct accel_words {
    uint64_t word[1 + 2 * ACCEL_ARGS_MAX];
    double fpr[8][2];
    union accel_value value[ACCEL_ARGS_MAX];
};

struct accel_convention {
    /* Reads a caller's call. Returns false if it does not understand the arguments: the original
     * gets the call, untouched. */
    bool (*parse)(struct accel_call *call, const struct accel_routine *routine,
                  const struct accel_passed *passed);
    /* Lists the letters and sizes of a call in word[], in which calls of a routine differ that take
     * different times; reads nothing that the original may leave unread. Returns how many there
     * are; 0: these do not tell. NULL: they never do. */
    int (*shape)(uint64_t word[ACCEL_ARGS_MAX + 1], const struct accel_routine *routine,
                 const struct accel_passed *passed);
    /* Returns the caller's own arguments once more; may use *words for them. */
    struct accel_passed (*repeat)(struct accel_words *words, const struct accel_routine *routine,
                                  const struct accel_passed *passed);
    /* Returns the arguments of a call like the caller's, such as a part of it; may use *words for
     * them. */
    struct accel_passed (*pass)(struct accel_words *words, const struct accel_call *call,
                                const struct accel_passed *passed);
    /* Makes the question that the original answers before complete(): its arguments use *words,
     * where the answers come. The original then reads no operand, and writes to *words alone.
     * False: there is none. NULL: there never is one. */
    bool (*question)(struct accel_words *words, struct accel_passed *question,
                     const struct accel_routine *routine, const struct accel_passed *passed);
    /* Fills in what the caller finds in its arguments and registers after a call that the GPU has
     * done. answers: the words of the question; NULL: there was none. */
    void (*complete)(const struct accel_call *call, const struct accel_passed *passed,
                     const struct accel_words *answers, struct accel_result *result);
};

extern const struct accel_convention blas_convention, function_convention;

static inline const struct accel_convention *
accel_convention_of(const struct accel_routine *routine)
{
    return accel_is_blas(routine) ? &blas_convention : &function_convention;
}

#endif
