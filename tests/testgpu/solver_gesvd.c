/* Xgesvd: U is the call's B. */
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"
#include "solver_lapack.h"

typedef void real_routine(const char *jobu, const char *jobvt, const int *m, const int *n, void *a,
                          const int *lda, void *s, void *u, const int *ldu, void *vt,
                          const int *ldvt, void *work, const int *lwork, int *info, size_t, size_t);
typedef void complex_routine(const char *jobu, const char *jobvt, const int *m, const int *n,
                             void *a, const int *lda, void *s, void *u, const int *ldu, void *vt,
                             const int *ldvt, void *work, const int *lwork, void *rwork, int *info,
                             size_t, size_t);
real_routine REAL_ONES(gesvd);
complex_routine COMPLEX_ONES(gesvd);

static bool is_job(char job)
{
    return job != '\0' && strchr("ASON", job) != NULL;
}

/* Documented: the vectors' leading dimensions count also where no vectors are wanted. */
static bool describe(struct solver_call *x)
{
    bool u = x->jobu == 'A' || x->jobu == 'S';
    bool vt = x->jobvt == 'A' || x->jobvt == 'S';
    if (!is_job(x->jobu) || !is_job(x->jobvt) || (x->jobu == 'O' && x->jobvt == 'O') || x->m < x->n)
        return false;
    set_operand(x, A, x->m, x->n);
    set_operand(x, B, u ? x->m : 0, x->jobu == 'A' ? x->m : u ? x->n : 0);
    set_operand(x, VT, vt ? x->n : 0, vt ? x->n : 0);
    set_list(x, VALUES, x->n, real_bytes(x));
    return x->type_values == real_type(x) && x->type_b == x->type && x->type_vt == x->type &&
           x->at[B].ld >= larger(1, x->m) && x->at[VT].ld >= larger(1, x->n);
}

/* Blocks of a bidiagonal reduction, and no second matrix: less than what U, V or a copy of a large
 * matrix takes, so that memory may suffice for this where it did not for those. */
int64_t room_of_singular_values(const struct solver_call *x)
{
    return 64 * (x->m + x->n);
}

/* What A holds in the end: the vectors that took its place, or nothing. */
static void leave(const struct solver_call *x, void *const *at)
{
    struct matrix rest = x->at[A];
    if (x->jobu == 'O')
        return; /* all its columns, as there are no more than rows */
    int64_t kept = x->jobvt == 'O' ? x->n : 0;
    rest.rows -= kept;
    destroy(&rest, 0, (char *)at[A] + (size_t)kept * rest.element);
}

int singular_values(const struct solver_call *x, void *const *at, void *vt, int ldvt)
{
    static real_routine *const reals[] = {REAL_ONES(gesvd)};
    static complex_routine *const complexes[] = {[COMPLEX] = COMPLEX_ONES(gesvd)};
    struct words w = words_of(x);
    int info = 0, lwork = (int)(x->n * x->n + 64 * (x->m + x->n));
    void *work = memory(lwork, element_bytes(x->precision));
    void *rwork = memory(5 * x->n, real_bytes(x));
    if (is_complex(x))
        ALONE(complexes[x->precision], &x->jobu, &x->jobvt, &w.m, &w.n, at[A], &w.lda, at[VALUES],
              at[B], &w.ldb, vt, &ldvt, work, &lwork, rwork, &info, 1, 1);
    else
        ALONE(reals[x->precision], &x->jobu, &x->jobvt, &w.m, &w.n, at[A], &w.lda, at[VALUES],
              at[B], &w.ldb, vt, &ldvt, work, &lwork, &info, 1, 1);
    free(rwork);
    free(work);
    return info;
}

static int compute(const struct solver_call *x, void *const *at)
{
    int info = 0;
    if (gives_up(x, A, at, &info))
        return info;
    info = singular_values(x, at, at[VT], (int)x->at[VT].ld);
    leave(x, at);
    return info;
}

static const struct solver_routine gesvd = {
    .name = "gesvd",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = VALUES,
    .describe = describe,
    .room = room_of_singular_values,
    .compute = compute,
    .operations = operations_of_gesvd,
};

#define FIELDS                                                                                     \
    .routine = &gesvd, .params = params, .type = dataTypeA, .type_b = dataTypeU,                   \
    .type_vt = dataTypeVT, .type_values = dataTypeS, .compute_type = computeType,                  \
    .jobu = (char)jobu, .jobvt = (char)jobvt, .m = m, .n = n, OPERAND(A, a, lda),                  \
    OPERAND(B, u, ldu), OPERAND(VT, vt, ldvt), LIST(VALUES, s)

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvd_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, signed char jobu, signed char jobvt,
    int64_t m, int64_t n, cudaDataType dataTypeA, const void *a, int64_t lda,
    cudaDataType dataTypeS, const void *s, cudaDataType dataTypeU, const void *u, int64_t ldu,
    cudaDataType dataTypeVT, const void *vt, int64_t ldvt, cudaDataType computeType, size_t *device,
    size_t *host)
{
    struct solver_call x = {FIELDS};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXgesvd(
    cusolverDnHandle_t handle, cusolverDnParams_t params, signed char jobu, signed char jobvt,
    int64_t m, int64_t n, cudaDataType dataTypeA, void *a, int64_t lda, cudaDataType dataTypeS,
    void *s, cudaDataType dataTypeU, void *u, int64_t ldu, cudaDataType dataTypeVT, void *vt,
    int64_t ldvt, cudaDataType computeType, void *bufferOnDevice, size_t workspaceInBytesOnDevice,
    void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {FIELDS, X_WORK};
    SOLVER_CALL(handle, x);
}
