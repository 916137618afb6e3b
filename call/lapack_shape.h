/*
 * The shapes of LAPACK's matrices, which follow from its flags and ranges. Pure functions.
 */
#ifndef ACCEL_LAPACK_SHAPE_H
#define ACCEL_LAPACK_SHAPE_H

#include "call.h"

/* Returns the job of one side. gesdd has one flag for both: with O, the vectors of the longer side
 * come into A, and all of the other side's into their own matrix. */
char lapack_job_of(const struct accel_call *call, enum accel_flag job);

/* Returns the number of vectors that a job asks for in a matrix of their own: all, or one for each
 * singular value. */
int64_t lapack_vectors(char job, int64_t all, int64_t values);

/* Returns how many eigenvalues a range by numbers has; 0: its numbers are wrong. */
int64_t lapack_range_length(const struct accel_call *call);

/* Returns whether a flag asks for vectors. */
bool lapack_wants_vectors(const struct accel_call *call);

/* Returns a size derived from the others and from the flags: ACCEL_one and all after it. */
int64_t lapack_size(const struct accel_call *call, int which);

#endif
