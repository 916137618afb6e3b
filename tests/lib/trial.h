/*
 * A call of order N with operands that a test sets, and how it is judged. The files that include it
 * have included cmocka.h.
 */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

#include <stdbool.h>

#include "call/call.h"
#include "cpu_ref/verify.h"

enum { N = 12, SPACE = 2 * N * N };

/* A call with its operands and what they were, in memory for any type. */
struct trial {
    struct accel_call call;
    double now[ACCEL_SPANS][SPACE], old[ACCEL_SPANS][SPACE];
    bool has_old[ACCEL_SPANS];
};

/* Opens one, of zeros; the same memory each time. */
struct trial *trial_open(const char *name);

/* Sets element i at `at`, of an operand or of what it was. */
void trial_put(void *at, int64_t i, enum accel_dtype dtype, double re, double im);

/* Set memory like an operand's, an operand, or what it was, to `diagonal` times the identity, plus
 * `rest` elsewhere. */
void trial_fill(void *x, const struct accel_call *call, enum accel_matrix which, double diagonal,
                double rest);
void trial_set(struct trial *t, enum accel_matrix which, double diagonal, double rest);
void trial_set_old(struct trial *t, enum accel_matrix which, double diagonal, double rest);

/* Returns what cpu_ref_verify() says of it. */
double trial_judged(struct trial *t);

#define assert_right(ratio)   assert_true((ratio) >= 0 && (ratio) <= 1)
#define assert_wrong(ratio)   assert_true((ratio) > 1)
#define assert_unknown(ratio) assert_true((ratio) == CPU_REF_NOT_JUDGED)

#endif
