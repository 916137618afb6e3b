/* Eigenvalues of symmetric and Hermitian matrices, also of pairs of them: B is then there. */
#ifndef TESTGPU_SOLVER_EIGEN_H
#define TESTGPU_SOLVER_EIGEN_H

#include "solver_routine.h"

/* As struct solver_routine has them. */
bool describe_eigen(struct solver_call *call);
bool describe_some_eigen(struct solver_call *call);
int64_t room_of_eigen(const struct solver_call *call);
int compute_eigen(const struct solver_call *call, void *const *at);
int compute_some_eigen(const struct solver_call *call, void *const *at);
void pretend_eigen_of_pair(const struct solver_call *call, void *const *at);

#endif
