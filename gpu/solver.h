/*
 * What the operations of LAPACK share. They work on copies: the program's matrices come up, the whole driver runs on the
 * device, and only when the device's library has said that all is well do results go back. So wherever something is not as it should
 * be, the original runs on untouched input: a singular or indefinite matrix (whose INFO is LAPACK's own then), a NaN or
 * an infinity, an iteration that does not converge, a device that fails. Operands in device memory come through host
 * memory, except where the copies would take most of the time: lacpy, laswp, gecon, pocon.
 *
 * Functions of this file go through the status in the solver: after a failure they do nothing.
 */
#ifndef ACCEL_SOLVER_H
#define ACCEL_SOLVER_H

#include "kernels.h"

/* A matrix on the device; a vector is one column. */
struct array {
    gpu_address ptr;
    int64_t rows, cols, ld;
    enum accel_dtype dtype;
};

/* A result that waits for the others. */
struct result {
    const struct accel_span *to;
    struct array
        from;      /* on the device; without ptr if the host has had the result from the start */
    char uplo;     /* 0: all; U, L: a triangle; u, l: without its diagonal */
    bool integers; /* int64 on the device, the program's INTEGER on the host */
    void *
        staged; /* its elements, packed, in memory of our own on the host; NULL: not yet, or never */
};

#define RESULTS_MAX 8

struct solver {
    struct gpu_work *work;
    enum gpu_status status;
    enum accel_dtype dtype, real;
    gpu_address info; /* an int */
    double largest;   /* of the inputs so far, of real and imaginary parts */
    struct result result[RESULTS_MAX];
    int results;
    bool touched; /* what a result has overwritten was an input */
    void *host;   /* the workspace on the host */
};

/* Takes an operation's steps (op->steps), and gives the results to the program where all went well. GPU_UNSUPPORTED without a solver
 * library. */
enum gpu_status solver_run(struct gpu_work *work, void (*steps)(struct solver *s));

/* Notes a failure, unless there is one; returns whether all is well. */
bool solver_note(struct solver *s, enum gpu_status status);
static inline bool solver_is_well(const struct solver *s)
{
    return s->status == GPU_OK;
}

/* Device memory for a matrix, as it is found; or with zeros. */
struct array solver_array(struct solver *s, int64_t rows, int64_t cols);
struct array solver_zeros(struct solver *s, int64_t rows, int64_t cols);
struct array solver_reals(struct solver *s, int64_t n);
struct array solver_vector(struct solver *s, int64_t n, enum accel_dtype dtype);

/* Rows and columns of a matrix that are another one. */
struct array solver_part(struct array x, int64_t row, int64_t col, int64_t rows, int64_t cols);

/* An operand that kernels can use where it is: gpu_in_place(). */
static inline struct array solver_in_place(const struct accel_span *x)
{
    return (struct array){(gpu_address)(uintptr_t)x->ptr, x->rows, x->cols, x->ld, x->dtype};
}

/* A copy of an operand. uplo: 0; or U, L, a triangle with zeros beside it; u, l: the same with zeros on its diagonal,
 * too. What is not finite is GPU_UNSUPPORTED. */
struct array solver_upload(struct solver *s, const struct accel_span *x, char uplo);
/* The same of its first rows x cols elements, to an array of at least that shape whose other elements stay. */
void solver_upload_to(struct solver *s, struct array to, const struct accel_span *x, int64_t rows,
                      int64_t cols, char uplo);

/* The same of a triangle of a symmetric or Hermitian matrix: LAPACK does not look at the imaginary parts of its diagonal,
 * which become 0. */
struct array solver_upload_hermitian(struct solver *s, const struct accel_span *x, char uplo);

/* LAPACK's pivots 1 .. limit (-limit .. limit where signs have a meaning) as int64. Others are GPU_UNSUPPORTED. */
struct array solver_upload_pivots(struct solver *s, const struct accel_span *x, int64_t limit,
                                  bool with_signs);

/* A zero on a triangular matrix's diagonal is the original's to report. */
void solver_refuse_zero_diagonal(struct solver *s, const struct accel_span *x);

/* Leaves to the original what it would scale before an iteration, and a matrix of zeros. */
void solver_refuse_extremes(struct solver *s);

/* The transposition of the routine's type that is an adjoint: T or C. */
static inline char solver_adjoint(const struct solver *s)
{
    return accel_is_complex(s->dtype) ? 'C' : 'T';
}

/* Host memory and an array of the same elements, one way and the other, in order; both return when it is done. */
void solver_put(struct solver *s, struct array to, const void *from);
void solver_get(struct solver *s, void *to, struct array from);

/* Workspace of so many bytes on the device and on the host. */
struct array solver_work(struct solver *s, size_t bytes);
void *solver_host_work(struct solver *s, size_t bytes);

/* Waits for the device. Whether all is well, and INFO is 0; else the call is left to the original. */
bool solver_has_succeeded(struct solver *s);
void solver_require_success(struct solver *s);

/* Results: given to the program at the end. Of `to` the first rows and columns, as many as `from` has. */
void solver_return(struct solver *s, const struct accel_span *to, struct array from, char uplo);
void solver_return_pivots(struct solver *s, const struct accel_span *to, struct array from);

/* The first `count` elements of an INTEGER array: one value for the even, one for the odd indexes. */
void solver_return_integers(struct solver *s, const struct accel_span *to, int64_t count,
                            int64_t even, int64_t odd);

/* Between matrices on the device: to := op(from), of one shape; the upper triangle alone, zeros below. */
void solver_copy(struct solver *s, struct array to, struct array from);
void solver_transpose(struct solver *s, struct array to, struct array from);
struct array solver_upper(struct solver *s, struct array from);

/* The diagonal, in order, to host memory. */
void solver_get_diagonal(struct solver *s, void *to, struct array a);

/* Whether one of `count` elements in host memory is zero. */
bool solver_has_zero(const struct solver *s, const void *values, int64_t count);

/* The diagonal of a matrix of zeros := values[i], real ones, or 1 where there are none. */
void solver_set_diagonal(struct solver *s, struct array a, const double *values);

/* BLAS on arrays. */
void solver_gemm(struct solver *s, char transa, char transb, struct array a, struct array b,
                 struct array c);
void solver_trsm(struct solver *s, char uplo, char trans, char diag, struct array a,
                 struct array b);

/* ---- Steps, each a driver or a part of one as the device's library has it. They overwrite their operands as LAPACK's do, and wait for
 * INFO: see solver_require_success(). ---- */

void solver_potrf(struct solver *s, char uplo, struct array a);
void solver_potrs(struct solver *s, char uplo, struct array a, struct array b);
void solver_potri(struct solver *s, char uplo, struct array a);
void solver_lauum(struct solver *s, char uplo, struct array a);
/* pivots: ACCEL_INT32, where sytrs wants ACCEL_INT64 */
void solver_sytrf(struct solver *s, char uplo, struct array a, struct array pivots);
void solver_sytrs(struct solver *s, char uplo, struct array a, struct array pivots, struct array b);
void solver_trtri(struct solver *s, char uplo, char diag, struct array a);

/* pivots: ACCEL_INT64 */
void solver_getrf(struct solver *s, struct array a, struct array pivots);
void solver_getrs(struct solver *s, char trans, struct array a, struct array pivots,
                  struct array b);
/* Exchanges row i with row swaps[i - 1], for i = first .. last; swaps: ACCEL_INT32. Has no INFO, and does not wait. */
void solver_laswp(struct solver *s, struct array a, struct array swaps, int64_t first,
                  int64_t last);

void solver_geqrf(struct solver *s, struct array a, struct array tau);
void solver_orgqr(struct solver *s, struct array a, struct array tau);
/* c := op(Q) c */
void solver_ormqr(struct solver *s, char side, char trans, struct array a, struct array tau,
                  struct array c);

/* Of the eigenvalues those in (vl, vu], those from number il to iu, or all: by LAPACK's RANGE. */
struct spectrum {
    char range;
    double vl, vu;
    int64_t il, iu;
};

/* Those with a spectrum return how many eigenvalues there are in it. */
void solver_syevd(struct solver *s, char jobz, char uplo, struct array a, struct array w);
int64_t solver_syevdx(struct solver *s, char jobz, struct spectrum part, char uplo, struct array a,
                      struct array w);
void solver_sygvd(struct solver *s, int64_t itype, char jobz, char uplo, struct array a,
                  struct array b, struct array w);
int64_t solver_sygvdx(struct solver *s, int64_t itype, char jobz, struct spectrum part, char uplo,
                      struct array a, struct array b, struct array w);
/* The right vectors. A real matrix has the real parts of all eigenvalues first in w, then the imaginary ones. */
bool solver_has_geev(void);
void solver_geev(struct solver *s, char jobvr, struct array a, struct array w, struct array vr);

/* Of a with rows >= cols, which is destroyed; jobs: N, S, A. */
void solver_gesvd(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
                  struct array u, struct array vt);
/* By polar decomposition, which perturbs singular values close to zero, and by Jacobi rotations. economy: u has as many columns as a. v is
 * not transposed; both are there also where no vectors are wanted. They return solver_has_succeeded(). */
bool solver_gesvdp(struct solver *s, bool wanted, bool economy, struct array a, struct array values,
                   struct array u, struct array v, double *perturbation);
bool solver_gesvdj(struct solver *s, bool wanted, bool economy, struct array a, struct array values,
                   struct array u, struct array v);

#endif
