/*
 * A call with NaN or infinities in its inputs: which rows and columns of the result these reach,
 * and the equation of all others. A library may multiply a NaN by a zero or skip it, so that
 * nothing can be said of what they reach; the rest must be right. Thread-safe.
 */
#ifndef ACCEL_CPU_REF_CLEAN_H
#define ACCEL_CPU_REF_CLEAN_H

#include "equation.h"

enum { CLEAN_COPIES = 6 };

struct clean {
    /* On copies with zeros in place of NaN and infinities, and of what these reach. */
    struct equation equation;
    bool *row, *col; /* of the result: reached */
    int64_t rows_left, cols_left;
    void *copy[CLEAN_COPIES];
    int copies;
};

/* Makes the equation of what is not reached; clean_free() ends it. False: nothing is reached, or
 * all is, or there is no memory; then there is nothing to free. Of a solution, a NaN in its matrix
 * reaches what is solved after its line. */
bool clean_make(struct clean *clean, const struct equation *e);

void clean_free(struct clean *clean);

#endif
