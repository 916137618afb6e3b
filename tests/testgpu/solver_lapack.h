/* Calls of the LAPACK inside the stand-in for libcusolver. */
#ifndef TESTGPU_SOLVER_LAPACK_H
#define TESTGPU_SOLVER_LAPACK_H

#include "openblas.h"
#include "solver_routine.h"

#define FOUR(NAME) s##NAME##_, d##NAME##_, c##NAME##_, z##NAME##_
#define TABLE(NAME)                                                                                \
    {                                                                                              \
        FOUR(NAME)                                                                                 \
    }
#define REAL_ONES(NAME)    s##NAME##_, d##NAME##_
#define COMPLEX_ONES(NAME) c##NAME##_, z##NAME##_

/* A call in Fortran's words. */
struct words {
    char job, side, uplo, diag, trans;
    int itype, m, n, k, lda, ldb, ldvt;
};
struct words words_of(const struct solver_call *call);

/*
 * A = U S V^H by ?gesvd: U to B, the adjoint of V to vt with leading dimension ldvt; jobs and
 * operands are the call's. Returns LAPACK's info.
 */
int singular_values(const struct solver_call *call, void *const *at, void *vt, int ldvt);
/* Elements of workspace that it takes. */
int64_t room_of_singular_values(const struct solver_call *call);

/* Never NULL. */
void *memory(int64_t count, size_t bytes);
/* The int64_t pivots of the functions with an X as LAPACK's, and back. */
int *narrow_pivots(const int64_t *pivots, int64_t count);
/*
 * Whether a matrix's part has something that is no finite number, with which LAPACK's iterations
 * end late, never or in a crash: all results are then no numbers, and nothing has converged.
 */
bool gives_up(const struct solver_call *call, enum operand operand, void *const *at, int *info);

#endif
