/* Calls of cuSOLVER by type, with the workspaces that they ask for. */
#include <stdlib.h>
#include "solver_hermitian.h"
#include "test_solver.h"

static bool give_back(struct solver *s)
{
    bool given = s->work == 0 || cuMemFree(s->work) == CUDA_SUCCESS;
    free(s->host_work);
    s->work = 0;
    s->host_work = NULL;
    return given;
}

int info_of(struct solver *s, cusolverStatus_t status)
{
    int info = REFUSED;
    if (cuStreamSynchronize(s->stream) != CUDA_SUCCESS)
        return REFUSED;
    if (status == CUSOLVER_STATUS_SUCCESS &&
        cuMemcpyDtoH(&info, s->info, sizeof info) != CUDA_SUCCESS)
        return REFUSED;
    return give_back(s) ? info : REFUSED;
}

/* Just what is asked for; the info is not yet there. */
static bool provide(struct solver *s, cusolverStatus_t status)
{
    const int none = REFUSED;
    if (status != CUSOLVER_STATUS_SUCCESS ||
        cuMemcpyHtoD(s->info, &none, sizeof none) != CUDA_SUCCESS)
        return false;
    s->host_work = s->host_bytes > 0 ? malloc(s->host_bytes) : NULL;
    return s->bytes == 0 || cuMemAlloc(&s->work, s->bytes) == CUDA_SUCCESS;
}

static bool provide_elements(struct solver *s, cusolverStatus_t status, int elements)
{
    s->bytes = (size_t)elements * type_bytes(s->type);
    s->host_bytes = 0;
    return provide(s, status);
}

#define AT(SLOT)  ((void *)s->slot[SLOT])
#define INFO      ((int *)s->info)
#define SIZES     &s->bytes, &s->host_bytes
#define X_WORK    (void *)s->work, s->bytes, s->host_work, s->host_bytes, INFO
#define TYPE      data_type(s->type)
#define REAL_TYPE real_data_type(s->type)

/* The function of the solver's type, which has one name for real numbers and one for complex. */
#define BY_TYPE(REAL, COMPLEX, ...)                                                                \
    (s->type == S   ? cusolverDnS##REAL(__VA_ARGS__)                                               \
     : s->type == D ? cusolverDnD##REAL(__VA_ARGS__)                                               \
     : s->type == C ? cusolverDnC##COMPLEX(__VA_ARGS__)                                            \
                    : cusolverDnZ##COMPLEX(__VA_ARGS__))

int getrf(struct solver *s, int m, int n, int a, int lda, int pivots)
{
    if (!provide(s, cusolverDnXgetrf_bufferSize(s->handle, s->params, m, n, TYPE, AT(a), lda, TYPE,
                                                SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXgetrf(s->handle, s->params, m, n, TYPE, AT(a), lda, AT(pivots),
                                       TYPE, X_WORK));
}

int getrs(struct solver *s, cublasOperation_t op, int n, int k, int a, int lda, int pivots, int b,
          int ldb)
{
    return info_of(s, cusolverDnXgetrs(s->handle, s->params, op, n, k, TYPE, AT(a), lda, AT(pivots),
                                       TYPE, AT(b), ldb, INFO));
}

int potrf(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda)
{
    if (!provide(s, cusolverDnXpotrf_bufferSize(s->handle, s->params, uplo, n, TYPE, AT(a), lda,
                                                TYPE, SIZES)))
        return REFUSED;
    return info_of(s,
                   cusolverDnXpotrf(s->handle, s->params, uplo, n, TYPE, AT(a), lda, TYPE, X_WORK));
}

int potrs(struct solver *s, cublasFillMode_t uplo, int n, int k, int a, int lda, int b, int ldb)
{
    return info_of(s, cusolverDnXpotrs(s->handle, s->params, uplo, n, k, TYPE, AT(a), lda, TYPE,
                                       AT(b), ldb, INFO));
}

int potri(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda)
{
    int lwork = 0;
    cusolverStatus_t status =
        BY_TYPE(potri_bufferSize, potri_bufferSize, s->handle, uplo, n, AT(a), lda, &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(
        s, BY_TYPE(potri, potri, s->handle, uplo, n, AT(a), lda, (void *)s->work, lwork, INFO));
}

int lauum(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda)
{
    int lwork = 0;
    cusolverStatus_t status =
        BY_TYPE(lauum_bufferSize, lauum_bufferSize, s->handle, uplo, n, AT(a), lda, &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(
        s, BY_TYPE(lauum, lauum, s->handle, uplo, n, AT(a), lda, (void *)s->work, lwork, INFO));
}

int laswp(struct solver *s, int n, int a, int lda, int k1, int k2, int pivots, int incx)
{
    cusolverStatus_t status =
        BY_TYPE(laswp, laswp, s->handle, n, AT(a), lda, k1, k2, AT(pivots), incx);
    return status == CUSOLVER_STATUS_SUCCESS ? 0 : REFUSED;
}

int trtri(struct solver *s, cublasFillMode_t uplo, cublasDiagType_t diag, int n, int a, int lda)
{
    if (!provide(s, cusolverDnXtrtri_bufferSize(s->handle, uplo, diag, n, TYPE, AT(a), lda, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXtrtri(s->handle, uplo, diag, n, TYPE, AT(a), lda, X_WORK));
}

int geqrf(struct solver *s, int m, int n, int a, int lda, int tau)
{
    if (!provide(s, cusolverDnXgeqrf_bufferSize(s->handle, s->params, m, n, TYPE, AT(a), lda, TYPE,
                                                AT(tau), TYPE, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXgeqrf(s->handle, s->params, m, n, TYPE, AT(a), lda, TYPE, AT(tau),
                                       TYPE, X_WORK));
}

int orgqr(struct solver *s, int m, int n, int k, int a, int lda, int tau)
{
    int lwork = 0;
    cusolverStatus_t status = BY_TYPE(orgqr_bufferSize, ungqr_bufferSize, s->handle, m, n, k, AT(a),
                                      lda, AT(tau), &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(s, BY_TYPE(orgqr, ungqr, s->handle, m, n, k, AT(a), lda, AT(tau),
                              (void *)s->work, lwork, INFO));
}

int ormqr(struct solver *s, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k, int a,
          int lda, int tau, int c, int ldc)
{
    int lwork = 0;
    cusolverStatus_t status = BY_TYPE(ormqr_bufferSize, unmqr_bufferSize, s->handle, side, op, m, n,
                                      k, AT(a), lda, AT(tau), AT(c), ldc, &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(s, BY_TYPE(ormqr, unmqr, s->handle, side, op, m, n, k, AT(a), lda, AT(tau),
                              AT(c), ldc, (void *)s->work, lwork, INFO));
}

int sytrf(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda, int pivots)
{
    int lwork = 0;
    cusolverStatus_t status =
        BY_TYPE(sytrf_bufferSize, sytrf_bufferSize, s->handle, n, AT(a), lda, &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(s, BY_TYPE(sytrf, sytrf, s->handle, uplo, n, AT(a), lda, AT(pivots),
                              (void *)s->work, lwork, INFO));
}

int sytrd(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda, int diagonal, int beside,
          int tau)
{
    int lwork = 0;
    void *d = AT(diagonal), *e = AT(beside);
    cusolverStatus_t status = BY_TYPE(sytrd_bufferSize, hetrd_bufferSize, s->handle, uplo, n, AT(a),
                                      lda, d, e, AT(tau), &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(s, BY_TYPE(sytrd, hetrd, s->handle, uplo, n, AT(a), lda, d, e, AT(tau),
                              (void *)s->work, lwork, INFO));
}

int sytrs(struct solver *s, cublasFillMode_t uplo, int n, int k, int a, int lda, int pivots, int b,
          int ldb)
{
    if (!provide(s, cusolverDnXsytrs_bufferSize(s->handle, uplo, n, k, TYPE, AT(a), lda, AT(pivots),
                                                TYPE, AT(b), ldb, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXsytrs(s->handle, uplo, n, k, TYPE, AT(a), lda, AT(pivots), TYPE,
                                       AT(b), ldb, X_WORK));
}

int hetrf(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda, int pivots)
{
    if (!provide(s, cusolverDnXhetrf_bufferSize(s->handle, s->params, uplo, n, TYPE, AT(a), lda,
                                                AT(pivots), TYPE, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXhetrf(s->handle, s->params, uplo, n, TYPE, AT(a), lda, AT(pivots),
                                       TYPE, X_WORK));
}

int hetrs(struct solver *s, cublasFillMode_t uplo, int n, int k, int a, int lda, int pivots, int b,
          int ldb)
{
    if (!provide(s, cusolverDnXhetrs_bufferSize(s->handle, s->params, uplo, n, k, TYPE, AT(a), lda,
                                                AT(pivots), TYPE, AT(b), ldb, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXhetrs(s->handle, s->params, uplo, n, k, TYPE, AT(a), lda,
                                       AT(pivots), TYPE, AT(b), ldb, X_WORK));
}

static int eigen_of_one(struct solver *s, struct eigen *e)
{
    if (!provide(s, cusolverDnXsyevd_bufferSize(s->handle, s->params, e->jobz, e->uplo, e->n, TYPE,
                                                AT(e->a), e->lda, REAL_TYPE, AT(e->values), TYPE,
                                                SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXsyevd(s->handle, s->params, e->jobz, e->uplo, e->n, TYPE, AT(e->a),
                                       e->lda, REAL_TYPE, AT(e->values), TYPE, X_WORK));
}

static int some_eigen_of_one(struct solver *s, struct eigen *e)
{
    float single[2] = {(float)e->vl, (float)e->vu};
    void *vl = REAL_TYPE == CUDA_R_32F ? (void *)&single[0] : (void *)&e->vl;
    void *vu = REAL_TYPE == CUDA_R_32F ? (void *)&single[1] : (void *)&e->vu;
    if (!provide(s, cusolverDnXsyevdx_bufferSize(s->handle, s->params, e->jobz, e->range, e->uplo,
                                                 e->n, TYPE, AT(e->a), e->lda, vl, vu, e->il, e->iu,
                                                 &e->found, REAL_TYPE, AT(e->values), TYPE, SIZES)))
        return REFUSED;
    e->found = REFUSED;
    cusolverStatus_t status = cusolverDnXsyevdx(s->handle, s->params, e->jobz, e->range, e->uplo,
                                                e->n, TYPE, AT(e->a), e->lda, vl, vu, e->il, e->iu,
                                                &e->found, REAL_TYPE, AT(e->values), TYPE, X_WORK);
    if (e->found == REFUSED)
        return REFUSED; /* it is there without waiting */
    return info_of(s, status);
}

static int eigen_of_pair(struct solver *s, struct eigen *e)
{
    int lwork = 0;
    cusolverStatus_t status =
        BY_TYPE(sygvd_bufferSize, hegvd_bufferSize, s->handle, e->itype, e->jobz, e->uplo, e->n,
                AT(e->a), e->lda, AT(e->b), e->ldb, AT(e->values), &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    return info_of(s,
                   BY_TYPE(sygvd, hegvd, s->handle, e->itype, e->jobz, e->uplo, e->n, AT(e->a),
                           e->lda, AT(e->b), e->ldb, AT(e->values), (void *)s->work, lwork, INFO));
}

#define PAIR                                                                                       \
    s->handle, e->itype, e->jobz, e->range, e->uplo, e->n, AT(e->a), e->lda, AT(e->b), e->ldb
#define SINGLE_BOUNDS (float)e->vl, (float)e->vu
#define DOUBLE_BOUNDS e->vl, e->vu
#define SOME(TAIL, ...)                                                                            \
    (s->type == S   ? cusolverDnSsygvdx##TAIL(PAIR, SINGLE_BOUNDS, __VA_ARGS__)                    \
     : s->type == C ? cusolverDnChegvdx##TAIL(PAIR, SINGLE_BOUNDS, __VA_ARGS__)                    \
     : s->type == D ? cusolverDnDsygvdx##TAIL(PAIR, DOUBLE_BOUNDS, __VA_ARGS__)                    \
                    : cusolverDnZhegvdx##TAIL(PAIR, DOUBLE_BOUNDS, __VA_ARGS__))

static int some_eigen_of_pair(struct solver *s, struct eigen *e)
{
    int lwork = 0, found = REFUSED;
    cusolverStatus_t status = SOME(_bufferSize, e->il, e->iu, &found, AT(e->values), &lwork);
    if (!provide_elements(s, status, lwork))
        return REFUSED;
    status = SOME(, e->il, e->iu, &found, AT(e->values), (void *)s->work, lwork, INFO);
    e->found = found; /* it is there without waiting */
    return info_of(s, status);
}

int eigen(struct solver *s, struct eigen *e)
{
    if (e->itype == 0)
        return e->range == 0 ? eigen_of_one(s, e) : some_eigen_of_one(s, e);
    return e->range == 0 ? eigen_of_pair(s, e) : some_eigen_of_pair(s, e);
}

int gesvd(struct solver *s, char jobu, char jobvt, int m, int n, int a, int lda, int values, int u,
          int ldu, int vt, int ldvt)
{
    if (!provide(s, cusolverDnXgesvd_bufferSize(s->handle, s->params, (signed char)jobu,
                                                (signed char)jobvt, m, n, TYPE, AT(a), lda,
                                                REAL_TYPE, AT(values), TYPE, AT(u), ldu, TYPE,
                                                AT(vt), ldvt, TYPE, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXgesvd(s->handle, s->params, (signed char)jobu, (signed char)jobvt,
                                       m, n, TYPE, AT(a), lda, REAL_TYPE, AT(values), TYPE, AT(u),
                                       ldu, TYPE, AT(vt), ldvt, TYPE, X_WORK));
}

int gesvdp(struct solver *s, bool vectors, bool economy, int m, int n, double *perturbation)
{
    cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
#define GESVDP                                                                                     \
    s->handle, s->params, job, economy, m, n, TYPE, AT(0), LD, REAL_TYPE, AT(2), TYPE, AT(3), LD,  \
        TYPE, AT(4), LD, TYPE
    if (!provide(s, cusolverDnXgesvdp_bufferSize(GESVDP, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXgesvdp(GESVDP, X_WORK, perturbation));
}

int gesvdj(struct solver *s, bool vectors, bool economy, int m, int n)
{
    cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
    cusolverStatus_t status = CUSOLVER_STATUS_NOT_SUPPORTED;
    gesvdjInfo_t settings;
    int lwork = 0, info = REFUSED;
    if (cusolverDnCreateGesvdjInfo(&settings) != CUSOLVER_STATUS_SUCCESS)
        return REFUSED;
#define GESVDJ(NAME, ELEMENT, REAL, END, ...)                                                      \
    cusolverDn##NAME##gesvdj##END(s->handle, job, economy, m, n, (ELEMENT *)AT(0), LD,             \
                                  (REAL *)AT(2), (ELEMENT *)AT(3), LD, (ELEMENT *)AT(4), LD,       \
                                  __VA_ARGS__, settings)
#define ONE(LETTER, ELEMENT, REAL)                                                                 \
    if (s->type == LETTER) {                                                                       \
        status = GESVDJ(LETTER, ELEMENT, REAL, _bufferSize, &lwork);                               \
        if (provide_elements(s, status, lwork))                                                    \
            info = info_of(s, GESVDJ(LETTER, ELEMENT, REAL, , (ELEMENT *)s->work, lwork, INFO));   \
    }
    ONE(S, float, float)
    ONE(D, double, double)
    ONE(C, cuComplex, float)
    ONE(Z, cuDoubleComplex, double)
    if (cusolverDnDestroyGesvdjInfo(settings) != CUSOLVER_STATUS_SUCCESS)
        return REFUSED;
    return info;
}

int geev(struct solver *s, cusolverEigMode_t job, bool mixed, int n, int a, int lda, int values,
         int vr, int ldvr)
{
    cudaDataType type_values = mixed ? data_type(s->type == S ? C : Z) : TYPE;
    if (!provide(s, cusolverDnXgeev_bufferSize(s->handle, s->params, CUSOLVER_EIG_MODE_NOVECTOR,
                                               job, n, TYPE, AT(a), lda, type_values, AT(values),
                                               TYPE, NULL, 1, TYPE, AT(vr), ldvr, TYPE, SIZES)))
        return REFUSED;
    return info_of(s, cusolverDnXgeev(s->handle, s->params, CUSOLVER_EIG_MODE_NOVECTOR, job, n,
                                      TYPE, AT(a), lda, type_values, AT(values), TYPE, NULL, 1,
                                      TYPE, AT(vr), ldvr, TYPE, X_WORK));
}
