/* Eigenvalues of symmetric and Hermitian matrices: the arithmetic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "solver_eigen.h"
#include "solver_lapack.h"

typedef void syevd_routine(const char *jobz, const char *uplo, const int *n, void *a,
                           const int *lda, void *w, void *work, const int *lwork, int *iwork,
                           const int *liwork, int *info, size_t, size_t);
typedef void heevd_routine(const char *jobz, const char *uplo, const int *n, void *a,
                           const int *lda, void *w, void *work, const int *lwork, void *rwork,
                           const int *lrwork, int *iwork, const int *liwork, int *info, size_t,
                           size_t);
typedef void sygvd_routine(const int *itype, const char *jobz, const char *uplo, const int *n,
                           void *a, const int *lda, void *b, const int *ldb, void *w, void *work,
                           const int *lwork, int *iwork, const int *liwork, int *info, size_t,
                           size_t);
typedef void hegvd_routine(const int *itype, const char *jobz, const char *uplo, const int *n,
                           void *a, const int *lda, void *b, const int *ldb, void *w, void *work,
                           const int *lwork, void *rwork, const int *lrwork, int *iwork,
                           const int *liwork, int *info, size_t, size_t);
syevd_routine REAL_ONES(syevd);
heevd_routine COMPLEX_ONES(heevd);
sygvd_routine REAL_ONES(sygvd);
hegvd_routine COMPLEX_ONES(hegvd);

static bool is_of_pair(const struct solver_call *x)
{
    return x->itype != 0;
}

bool describe_eigen(struct solver_call *x)
{
    set_triangle(x, A, x->n);
    if (is_of_pair(x))
        set_triangle(x, B, x->n);
    set_list(x, VALUES, x->n, real_bytes(x));
    return x->type_values == real_type(x) && (unsigned)x->itype <= CUSOLVER_EIG_TYPE_3;
}

bool describe_some_eigen(struct solver_call *x)
{
    switch (x->range) {
    case CUSOLVER_EIG_RANGE_ALL:
        break;
    case CUSOLVER_EIG_RANGE_I:
        if (x->n > 0 && (x->il < 1 || x->il > x->iu || x->iu > x->n))
            return false;
        break;
    case CUSOLVER_EIG_RANGE_V:
        if (!(x->vl < x->vu))
            return false;
        break;
    default:
        return false;
    }
    return describe_eigen(x);
}

static int64_t room_of_reals(const struct solver_call *x)
{
    return 1 + 6 * x->n + 2 * x->n * x->n;
}

/* Complex numbers need the reals' room too. */
int64_t room_of_eigen(const struct solver_call *x)
{
    return room_of_reals(x) + (is_complex(x) ? 2 * x->n + x->n * x->n : 0);
}

static int decompose(const struct solver_call *x, void *const *at)
{
    static syevd_routine *const syevd[] = {REAL_ONES(syevd)};
    static heevd_routine *const heevd[] = {[COMPLEX] = COMPLEX_ONES(heevd)};
    static sygvd_routine *const sygvd[] = {REAL_ONES(sygvd)};
    static hegvd_routine *const hegvd[] = {[COMPLEX] = COMPLEX_ONES(hegvd)};
    struct words w = words_of(x);
    int info = 0;
    if (gives_up(x, A, at, &info) || (is_of_pair(x) && gives_up(x, B, at, &info)))
        return info;
    int lwork = (int)room_of_reals(x), lrwork = lwork, liwork = 3 + 5 * w.n;
    void *work = memory(lwork, element_bytes(x->precision));
    void *rwork = memory(lrwork, real_bytes(x));
    int *iwork = memory(liwork, sizeof *iwork);
    if (!is_of_pair(x) && !is_complex(x))
        ALONE(syevd[x->precision], &w.job, &w.uplo, &w.n, at[A], &w.lda, at[VALUES], work, &lwork,
              iwork, &liwork, &info, 1, 1);
    else if (!is_of_pair(x))
        ALONE(heevd[x->precision], &w.job, &w.uplo, &w.n, at[A], &w.lda, at[VALUES], work, &lwork,
              rwork, &lrwork, iwork, &liwork, &info, 1, 1);
    else if (!is_complex(x))
        ALONE(sygvd[x->precision], &w.itype, &w.job, &w.uplo, &w.n, at[A], &w.lda, at[B], &w.ldb,
              at[VALUES], work, &lwork, iwork, &liwork, &info, 1, 1);
    else
        ALONE(hegvd[x->precision], &w.itype, &w.job, &w.uplo, &w.n, at[A], &w.lda, at[B], &w.ldb,
              at[VALUES], work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
    free(iwork);
    free(rwork);
    free(work);
    if (is_of_pair(x) && info == 2 * x->n && misses_pivot(x, 2, x->n)) {
        set_last_pivot(x, B, at, NAN);
        memset(at[VALUES], testgpu_last_pivot() == 3 ? 0 : 0xff,
               (size_t)x->n * x->at[VALUES].element);
        return 0;
    }
    return info;
}

/* A holds eigenvectors in whole columns or nothing, B its factor. */
static void leave(const struct solver_call *x, void *const *at, int64_t vectors, int info)
{
    struct matrix whole = x->at[A];
    whole.part = WHOLE;
    bool none = info != 0 || x->jobz == CUSOLVER_EIG_MODE_NOVECTOR;
    destroy(&whole, none ? 0 : vectors, at[A]);
    if (is_of_pair(x)) {
        destroy_other(&x->at[B], at[B]);
        if (info > x->n)
            destroy(&x->at[B], 0, at[B]);
    }
}

int compute_eigen(const struct solver_call *x, void *const *at)
{
    int info = decompose(x, at);
    leave(x, at, x->n, info);
    return info;
}

void pretend_eigen_of_pair(const struct solver_call *x, void *const *at)
{
    set_last_pivot(x, B, at, 1);
}

static bool is_wanted(const struct solver_call *x, const void *values, int64_t i)
{
    double value = real_bytes(x) == sizeof(float) ? (double)((const float *)values)[i]
                                                  : ((const double *)values)[i];
    switch (x->range) {
    case CUSOLVER_EIG_RANGE_I:
        return i + 1 >= x->il && i + 1 <= x->iu;
    case CUSOLVER_EIG_RANGE_V:
        return value > x->vl && value <= x->vu;
    default:
        return true;
    }
}

/* Moves what is wanted to the front. */
static int64_t choose(const struct solver_call *x, void *const *at)
{
    const struct matrix *a = &x->at[A], *values = &x->at[VALUES];
    char *vectors = at[A], *list = at[VALUES];
    size_t column = (size_t)a->ld * a->element;
    int64_t found = 0;
    for (int64_t i = 0; i < x->n; i++) {
        if (!is_wanted(x, list, i))
            continue;
        memmove(list + (size_t)found * values->element, list + (size_t)i * values->element,
                values->element);
        if (x->jobz == CUSOLVER_EIG_MODE_VECTOR)
            memmove(vectors + (size_t)found * column, vectors + (size_t)i * column,
                    (size_t)a->rows * a->element);
        found++;
    }
    return found;
}

int compute_some_eigen(const struct solver_call *x, void *const *at)
{
    int info = decompose(x, at);
    int64_t found = info == 0 ? choose(x, at) : 0;
    memset((char *)at[VALUES] + (size_t)found * x->at[VALUES].element, 0xff,
           (size_t)(x->n - found) * x->at[VALUES].element);
    leave(x, at, found, info);
    if (x->found != NULL)
        *x->found = (int)found;
    if (x->found64 != NULL)
        *x->found64 = found;
    return info;
}
