/* What the tests of the stand-in for cuSOLVER share. */
#ifndef TEST_SOLVER_H
#define TEST_SOLVER_H

#include <cusolverDn.h>
#include "test_testgpu.h"

#define SOLVER_OK(CALL) CHECK((CALL) == CUSOLVER_STATUS_SUCCESS)

enum { SLOTS = 5 };

struct solver {
    enum type type;
    CUstream stream;
    cusolverDnHandle_t handle;
    cusolverDnParams_t params;
    CUdeviceptr slot[SLOTS]; /* of ROOM elements each */
    CUdeviceptr info, work;
    void *host_work;
    size_t bytes, host_bytes;
};

int solver_set_up(struct solver *solver);
int solver_tear_down(struct solver *solver);
/* A test of one type for each of them, and as a scenario's function. */
int for_types(int (*test)(struct solver *));
#define FOR_TYPES(TEST)                                                                            \
    static int TEST##_right(void)                                                                  \
    {                                                                                              \
        return for_types(TEST);                                                                    \
    }

/* To and from a slot; the second waits for the stream. */
int put(struct solver *solver, int slot, const double complex *x, size_t count);
int get(struct solver *solver, int slot, double complex *x, size_t count);
int get_real(struct solver *solver, int slot, double *x, size_t count);
/* After a call, with its status. */
enum { REFUSED = -1000 };
int info_of(struct solver *solver, cusolverStatus_t status);

cudaDataType data_type(enum type type);
cudaDataType real_data_type(enum type type);

/* Any call, with a workspace that is more than enough: Cholesky's of the matrix in slot 0, which
 * for this one has a diagonal of 2. */
enum { SMALL = 4, SMALL_BYTES = 1 << 14 };
extern const double definite[SMALL * SMALL];
extern char host_work[SMALL_BYTES];
cusolverStatus_t factor(struct solver *s);
cusolverStatus_t factor_at(struct solver *s, CUdeviceptr a, CUdeviceptr work, size_t bytes);

/* Calls with workspaces of just the size that they ask for; the slots of A, B or the like, and of
 * lists. They wait, and return info or REFUSED. */
int getrf(struct solver *s, int m, int n, int a, int lda, int pivots);
int getrs(struct solver *s, cublasOperation_t op, int n, int k, int a, int lda, int pivots, int b,
          int ldb);
int potrf(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda);
int potrs(struct solver *s, cublasFillMode_t uplo, int n, int k, int a, int lda, int b, int ldb);
int potri(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda);
int lauum(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda);
int laswp(struct solver *s, int n, int a, int lda, int k1, int k2, int pivots, int incx);
int trtri(struct solver *s, cublasFillMode_t uplo, cublasDiagType_t diag, int n, int a, int lda);
int geqrf(struct solver *s, int m, int n, int a, int lda, int tau);
int orgqr(struct solver *s, int m, int n, int k, int a, int lda, int tau);
int ormqr(struct solver *s, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k, int a,
          int lda, int tau, int c, int ldc);
int sytrf(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda, int pivots);
/* The real elements beside the diagonal go to a slot, too. */
int sytrd(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda, int diagonal, int beside,
          int tau);
int sytrs(struct solver *s, cublasFillMode_t uplo, int n, int k, int a, int lda, int pivots, int b,
          int ldb);
int hetrf(struct solver *s, cublasFillMode_t uplo, int n, int a, int lda, int pivots);
int hetrs(struct solver *s, cublasFillMode_t uplo, int n, int k, int a, int lda, int pivots, int b,
          int ldb);

/* An eigenproblem: of a pair where it has a type, of a part of the values where it has a range. */
struct eigen {
    cusolverEigType_t itype;
    cusolverEigMode_t jobz;
    cusolverEigRange_t range;
    cublasFillMode_t uplo;
    int n, a, lda, b, ldb, values;
    double vl, vu;
    int il, iu;
    int64_t found;
};
int eigen(struct solver *s, struct eigen *e);
int gesvd(struct solver *s, char jobu, char jobvt, int m, int n, int a, int lda, int values, int u,
          int ldu, int vt, int ldvt);
/* A in slot 0, values in 2, U in 3, V in 4. */
int gesvdp(struct solver *s, bool vectors, bool economy, int m, int n, double *perturbation);
int gesvdj(struct solver *s, bool vectors, bool economy, int m, int n);
/* mixed: complex values of a real matrix. */
int geev(struct solver *s, cusolverEigMode_t job, bool mixed, int n, int a, int lda, int values,
         int vr, int ldvr);

/* test_solver_matrix.c: on the host, in double precision, all with the leading dimension LD. */
enum { LD = 16, AREA = LD * LD };
extern const double complex gap; /* what is around a matrix */
enum shape { GENERAL, SYMMETRIC, HERMITIAN, DEFINITE, DIAGONALLY_LARGE };
void make(enum type type, enum shape shape, int m, int n, double complex *x);
/* op(A) op(B), m by n, with k between. */
void multiply(int m, int n, int k, cublasOperation_t ta, const double complex *a,
              cublasOperation_t tb, const double complex *b, double complex *c);
void unit(int n, double complex *x);
/* Takes one triangle, the other zero or the mirrored one. */
void triangle(cublasFillMode_t uplo, cublasDiagType_t diag, int m, int n, const double complex *x,
              double complex *to);
void mirror(cublasFillMode_t uplo, bool hermitian, int n, double complex *x);
/* Whether they are the same up to rounding. */
bool close_to(enum type type, int m, int n, const double complex *x, const double complex *y);
/* Whether nothing around an m by n matrix has changed, and the elements that are not numbers are
 * just those of the other triangle. */
bool gap_is_whole(int m, int n, const double complex *x);
bool other_is_gone(cublasFillMode_t uplo, int n, const double complex *x);
bool all_is_gone(int m, int from, int n, const double complex *x);

#endif
