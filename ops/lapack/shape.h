/*
 * The shapes of LAPACK's matrices, which follow from its flags and ranges. Pure functions.
 */
#ifndef ACCEL_LAPACK_SHAPE_H
#define ACCEL_LAPACK_SHAPE_H

#include "ops/call.h"

/* gesdd has one flag for both sides; O: the vectors of the longer side come into A, the others into their
 * own matrix, all of them. */
char lapack_job_of(const struct accel_call *call, enum accel_flag job);

/* How many vectors a job asks for in a matrix of their own: all of them, or as many as singular values. */
int64_t lapack_vectors(char job, int64_t all, int64_t values);

/* Whether a flag that asks for vectors is set. */
bool lapack_wants_vectors(const struct accel_call *call);

/* A size that follows from the others and from the flags: enum accel_size, ACCEL_one and what follows. */
int64_t lapack_size(const struct accel_call *call, int which);

#endif
