/*
 * What LAPACK's calls in panels (in_panels.h) consist of: jobs that factor a matrix, or apply
 * another one to it. Pure functions, except the steps.
 */
#ifndef ACCEL_LAPACK_PANEL_JOBS_H
#define ACCEL_LAPACK_PANEL_JOBS_H

#include "gpu/exec/lapack/solver_shared.h"
#include "in_panels.h"

/* ---- Descriptions ---- */

/* Describes a job on a matrix of m x n elements of the call's type. */
struct panels_call panel_job_of(const struct accel_call *call, enum panels_kind kind, int64_t m,
                                int64_t n);

/* Describes one whose panels are of a matrix of m x n elements, and whose blocks are of another,
 * with m rows and `order` columns. Sweeps are added to it, in their order, once `call.across` and
 * so on are set. */
struct panels_job panel_job_applying(const struct accel_call *call, int64_t m, int64_t n,
                                     int64_t order);

/* Add a sweep that solves by a triangle, or its transpose; that multiplies by a triangle's
 * transpose (with call.triangle); that multiplies by Q, or its adjoint. */
void panel_job_solves(struct panels_job *job, char uplo, char trans, char diag);
void panel_job_multiplies(struct panels_job *job, char uplo, char trans);
void panel_job_reflects(struct panels_job *job, char trans);

/* Returns the letter of the adjoint in the call's type: T or C. */
char panel_job_adjoint(const struct accel_call *call);

/* Returns whether the call has right-hand sides. */
bool panel_job_has_right_sides(const struct accel_call *call);

/* ---- Steps ---- */

/* Factors the operand A. The list: of pivots (int64_t) or the scalars of reflectors; NULL: none.
 * Returns its packed factors, which the caller frees or returns. */
char *panel_job_factor(struct solver *s, enum panels_kind kind, void *list);

/* Applies a matrix of the operand A's to x, which comes from x's own memory, or from job->from.
 * Returns the packed result, which the caller frees or returns. It is in job->to, if that is
 * set. */
char *panel_job_apply(struct solver *s, struct panels_job *job, enum accel_matrix x,
                      const void *other, int64_t other_ld);

/* Gives the program a packed result at the end, which is freed then. */
void panel_job_return(struct solver *s, enum accel_matrix which, char *packed, char uplo);

/* Returns the program's pivots, which must be within the matrix: others are GPU_UNSUPPORTED. The
 * caller frees them. */
int64_t *panel_job_pivots(struct solver *s);

/* Returns the first columns of the identity, packed. The caller frees them. */
char *panel_job_identity(struct solver *s, int64_t rows, int64_t cols);

#endif
