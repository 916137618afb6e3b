/* What the factorisations of symmetric and of Hermitian matrices share. */
#ifndef TESTGPU_SOLVER_INDEFINITE_H
#define TESTGPU_SOLVER_INDEFINITE_H

#include "solver_routine.h"

/* INFO as cuSOLVER 12.0 was seen to give it: nothing is said of a first pivot of 0. */
int info_of_indefinite(const struct solver_call *call, const char *a, const int *pivots, int info);
/* The right-hand sides' columns are the call's k. */
bool describe_indefinite_sides(struct solver_call *call);
int64_t room_of_indefinite_sides(const struct solver_call *call);
bool read_indefinite_pivots(struct solver_call *call, const void *pivots);

#endif
