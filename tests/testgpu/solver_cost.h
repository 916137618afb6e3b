/* What a kernel costs: each routine's operations, as struct solver_routine has them. */
#ifndef TESTGPU_SOLVER_COST_H
#define TESTGPU_SOLVER_COST_H

#include "solver_routine.h"

double operations_of_cholesky(const struct solver_call *call); /* and trtri, lauum, sytrf */
double operations_of_potri(const struct solver_call *call);
double operations_of_right_sides(const struct solver_call *call);
double operations_of_getrf(const struct solver_call *call);
double operations_of_geqrf(const struct solver_call *call);
double operations_of_orgqr(const struct solver_call *call);
double operations_of_ormqr(const struct solver_call *call);
double operations_of_sytrd(const struct solver_call *call);
double operations_of_syevd(const struct solver_call *call);
double operations_of_sygvd(const struct solver_call *call);
double operations_of_gesvd(const struct solver_call *call);
double operations_of_gesvdp(const struct solver_call *call);
double operations_of_gesvdj(const struct solver_call *call);
double operations_of_geev(const struct solver_call *call);

/* Each operand is moved once; workspaces cost nothing. */
struct testgpu_cost cost_of(const struct solver_call *call);

#endif
