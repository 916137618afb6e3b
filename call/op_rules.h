/*
 * What the documentation of BLAS or LAPACK says of an operation's calls.
 */
#ifndef ACCEL_OP_RULES_H
#define ACCEL_OP_RULES_H

#include "call.h"
#include "passing.h"

struct equation;
struct equation_source;
struct lapack_sizes;
struct test;

/* The least LWORK, LRWORK and LIWORK. Where RWORK has no argument for its length, rwork is set only
 * if it grows with a square. */
struct accel_lengths {
    int64_t work, rwork, iwork;
};

/* What a right call and a right result are. Each member may be NULL: there is no such rule. */
struct accel_rules {
    /* ---- A call in parts, each decided for itself: ACCEL_BATCH ---- */
    /* Turns a part into the next one, from the caller's arguments. Returns false after the last. */
    bool (*next)(struct accel_call *part, const struct accel_passed *passed);
    /* Returns the largest of all parts' sizes that the entries' gate compares; the call has not
     * been read yet. Negative: a size is negative, or the call is whole. */
    int64_t (*largest)(const struct accel_routine *routine, const struct accel_passed *passed);

    /* ---- LAPACK's arguments ---- */
    /* Returns the name of an argument that contradicts another one, or NULL: see
     * lapack_shape_fault(). */
    const char *(*fault)(const struct accel_call *call);
    /* Returns whether the routine has nothing to do. NULL: if any size is 0. */
    bool (*is_empty)(const struct accel_call *call);
    /* Returns the least lengths of workspace that LAPACK 3.11 accepts. NULL: 1. */
    struct accel_lengths (*workspace)(const struct lapack_sizes *sizes);
    /* Turns the lengths that a workspace query answers into those that LAPACK leaves in the
     * workspaces on success. NULL: they are the same. */
    void (*left)(const struct lapack_sizes *sizes, struct accel_lengths *lengths);

    /* ---- Shapes that only operands tell; NULL: the arguments do ---- */
    /* Returns the first span's rows, if the other spans are in host memory. */
    int64_t (*rows)(const struct accel_call *call);
    /* Cuts the spans down to the results found, if the last span, which counts them, is in host
     * memory. */
    void (*trim)(struct accel_call *call);
    /* Cuts the spans down to the results that the arguments ask for, where a routine's
     * documentation wants more room for them: on the GPU, a call writes no more. */
    void (*narrow)(struct accel_call *call);
    /* Operands, as bits 1 << enum accel_matrix, for which the program may have room as long as
     * these results alone. */
    unsigned may_be_short;

    /* ---- Judging a result: cpu_ref/checks.h; one of both, or it is not judged ---- */
    void (*equation)(struct equation *e, const struct equation_source *from); /* BLAS */
    void (*check)(struct test *test); /* LAPACK, and GSL's factorisations */
};

#endif
