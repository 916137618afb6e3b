/* sytrd, which is hetrd of complex numbers. */
#include <stdlib.h>
#include "solver_cost.h"
#include "solver_lapack.h"

typedef void sytrd_routine(const char *uplo, const int *n, void *a, const int *lda, void *d,
                           void *e, void *tau, void *work, const int *lwork, int *info, size_t);
sytrd_routine REAL_ONES(sytrd), COMPLEX_ONES(hetrd);

/* The diagonal is in VALUES, what is beside it in VT, tau in B. */
static bool describe_sytrd(struct solver_call *x)
{
    set_triangle(x, A, x->n);
    set_list(x, VALUES, x->n, real_bytes(x));
    set_list(x, VT, larger(1, x->n) - 1, real_bytes(x));
    set_list(x, B, larger(1, x->n) - 1, element_bytes(x->precision));
    return true;
}

static int64_t room_of_sytrd(const struct solver_call *x)
{
    return 64 * larger(1, x->n);
}

static int compute_sytrd(const struct solver_call *x, void *const *at)
{
    static sytrd_routine *const routines[] = {REAL_ONES(sytrd), COMPLEX_ONES(hetrd)};
    struct words w = words_of(x);
    int info = 0, lwork = (int)room_of_sytrd(x);
    void *work = memory(lwork, element_bytes(x->precision));
    ALONE(routines[x->precision], &w.uplo, &w.n, at[A], &w.lda, at[VALUES], at[VT], at[B], work,
          &lwork, &info, 1);
    free(work);
    destroy_other(&x->at[A], at[A]);
    return info;
}

static const struct solver_routine sytrd = {
    .name = "sytrd",
    .result = A,
    .describe = describe_sytrd,
    .room = room_of_sytrd,
    .compute = compute_sytrd,
    .operations = operations_of_sytrd,
};

#define SYTRD_FIELDS(TYPE)                                                                         \
    .routine = &sytrd, ONE_TYPE(TYPE), .uplo = uplo, .n = n, OPERAND(A, a, lda), LIST(VALUES, d),  \
    LIST(VT, e), LIST(B, tau)
#define SYTRD(NAME, ELEMENT, REAL, TYPE, REAL_TYPE)                                                \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME##_bufferSize(                                    \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, const ELEMENT *a, int lda,        \
        const REAL *d, const REAL *e, const ELEMENT *tau, int *lwork)                              \
    {                                                                                              \
        struct solver_call x = {SYTRD_FIELDS(TYPE)};                                               \
        SOLVER_SIZE(handle, x, lwork);                                                             \
    }                                                                                              \
    cusolverStatus_t CUSOLVERAPI cusolverDn##NAME(                                                 \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, ELEMENT *a, int lda, REAL *d,     \
        REAL *e, ELEMENT *tau, ELEMENT *work, int lwork, int *info)                                \
    {                                                                                              \
        struct solver_call x = {SYTRD_FIELDS(TYPE), WORK(ELEMENT)};                                \
        SOLVER_CALL(handle, x);                                                                    \
    }

REAL_TYPES(SYTRD, sytrd)
COMPLEX_TYPES(SYTRD, hetrd)
