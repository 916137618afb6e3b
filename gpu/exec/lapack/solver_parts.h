/*
 * For the files that solver.h is made of alone.
 */
#ifndef ACCEL_SOLVER_PARTS_H
#define ACCEL_SOLVER_PARTS_H

#include "solver.h"

/* Returns the bytes of an element. */
static inline int64_t solver_element(struct array x)
{
    return (int64_t)accel_dtype_size(x.dtype);
}

/* Returns an operand as a rectangle; a vector is one column. */
struct host_rectangle solver_rectangle(const struct accel_span *x);

/* Uploads an operand to an array of its shape, as solver_upload() does. hermitian: LAPACK ignores
 * the imaginary parts of the diagonal, which become 0. only_to_cache: only if it is on the device
 * already, or is to be cached there: it is digested then. Returns whether it has been brought, or
 * all is lost. */
bool solver_bring(struct solver *s, struct array to, const struct accel_span *x, char uplo,
                  bool hermitian, bool only_to_cache);

/* Does solver_get(), to a rectangle of the array's shape. */
void solver_get_rectangle(struct solver *s, const struct host_rectangle *to, struct array from);

/* Gives the results to the program, at the end: if all is well. Frees what is staged. */
void solver_deliver(struct solver *s);

/* Forgets the results, of which nothing has been written. */
void solver_drop_results(struct solver *s);

/* Caches the inputs that are to be, after the call. A failure to do so is the device's, and the
 * next call's. */
void solver_cache_inputs(struct solver *s);

#endif
