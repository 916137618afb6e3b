/*
 * Solves systems of a triangle in double precision, by a vector at a time. Pure functions,
 * thread-safe.
 */
#ifndef ACCEL_CPU_REF_SUBSTITUTE_H
#define ACCEL_CPU_REF_SUBSTITUTE_H

#include "apply.h"

/* x := op(T)^-1 x, T a square view of structure TRIANGULAR or UNIT_TRIANGULAR; op as apply()'s. A
 * zero on the diagonal makes x Inf or NaN. */
void substitute(const struct view *triangle, char op, double *x);

/* The largest reciprocal of a number on the diagonal, of a triangle or trapezoid; infinite if there
 * is a zero. Libraries multiply by reciprocals, which may be beyond the range of the type where
 * quotients are not. */
double largest_reciprocal(const struct view *triangle);

#endif
