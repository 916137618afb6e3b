/*
 * The steps of LAPACK's operations. They work on copies: the program's matrices come up, the whole
 * driver runs on the device, and the results go back only if the device's library reports success.
 * Otherwise the original runs on untouched input: for a singular or indefinite matrix (then INFO is
 * LAPACK's own), a NaN or an infinity, an iteration that does not converge, a device that fails.
 * Operands in device memory come through host memory, except in lacpy, laswp, gecon and pocon,
 * where the copies would take most of the time.
 *
 * The solver keeps the first failure as its status; after one, all functions do nothing.
 */
#ifndef ACCEL_SOLVER_H
#define ACCEL_SOLVER_H

#include "gpu/device/kernels.h"
#include "gpu/cache/result_capture.h"

/* A matrix on the device; a vector is one column. */
struct array {
    struct dmat at;
    int64_t rows, cols;
    enum accel_dtype dtype;
};

/* A result that waits for the others. */
struct result {
    const struct accel_span *to;
    /* On the device; without ptr if the host has had the result from the start */
    struct array from;
    char uplo;       /* 0: all; U, L: a triangle; u, l: without its diagonal */
    bool has_pivots; /* an LU factor: see solver_return_lu() */
    bool integers;   /* int64 on the device, the program's INTEGER on the host */
    /* Its elements, packed, in memory of our own on the host; NULL: not yet, or never */
    void *staged;
    int64_t copied; /* bytes that have come down */
    struct result_capture capture;
};

/* A copy of an input that is to be cached on the device. */
struct cached_copy {
    gpu_address memory;
    struct cached_operand cached;
};

#define RESULTS_MAX 8

/* Workspaces that are taken before the steps begin, for steps that must not wait for the device.
 * While they are measured, steps ask for them and do nothing else. Then each takes its part, and
 * its INFO stays where s->info says. */
struct solver_reserve {
    bool measuring;
    size_t device_bytes; /* the steps share it, in stream order */
    size_t host_bytes;   /* each step has its own: nobody says when it is no longer used */
    gpu_address device;
    char *host;
    size_t host_used;
};

/* What a step leaves on the device. INFO comes first. pivot: of a Cholesky factor the last one, of
 * the routine's precision. cuSOLVER of CUDA 13.0 says INFO = 0 of some that fail
 * (docs/measurements). A NaN in an earlier pivot reaches it. */
struct solver_outcome {
    int32_t info, unused;
    union {
        float single;
        double full;
    } pivot;
};

struct solver {
    struct gpu_work *work;
    const struct accel_call *call; /* the work's */
    enum gpu_status status;
    enum accel_dtype dtype, real;
    gpu_address info; /* of a struct solver_outcome, which begins there */
    double largest;   /* magnitude in the inputs so far, of real and imaginary parts */
    struct result result[RESULTS_MAX];
    int results;
    struct cached_copy cached_copy[ACCEL_SPANS];
    int cached_copies;
    bool touched; /* a result has overwritten an input */
    void *host;   /* the workspace on the host, or NULL */
    /* Or NULL: each step takes its workspaces, and waits for INFO */
    struct solver_reserve *reserve;
};

/* Runs an operation's steps, and gives the results to the program if they succeed. in_panels:
 * others in their place, if the device's memory is too small for those; NULL: there are none.
 * Returns GPU_UNSUPPORTED without a solver library. */
enum gpu_status solver_run(struct gpu_work *work, void (*steps)(struct solver *s),
                           void (*in_panels)(struct solver *s));

/* Notes a failure, unless there has been one; returns whether all is well. */
bool solver_note(struct solver *s, enum gpu_status status);
static inline bool solver_is_well(const struct solver *s)
{
    return s->status == GPU_OK;
}

/* Take device memory for a matrix, uninitialised or with zeros; for a vector of real numbers, or of
 * any type. */
struct array solver_array(struct solver *s, int64_t rows, int64_t cols);
struct array solver_zeros(struct solver *s, int64_t rows, int64_t cols);
struct array solver_reals(struct solver *s, int64_t n);
struct array solver_vector(struct solver *s, int64_t n, enum accel_dtype dtype);

/* Takes device memory for a matrix of any type. */
struct array solver_array_of(struct solver *s, int64_t rows, int64_t cols, enum accel_dtype dtype);

/* Returns a part of a matrix. */
struct array solver_part(struct array x, int64_t row, int64_t col, int64_t rows, int64_t cols);

/* Returns a matrix's diagonal, as a vector. */
static inline struct dmat solver_diagonal(struct array x)
{
    return (struct dmat){x.at.ptr, x.at.ld + 1};
}

/* Returns an operand that kernels can use where it is, by gpu_in_place(), as an array. */
static inline struct array solver_in_place(const struct accel_span *x)
{
    return (struct array){dmat_in_place(x), x->rows, x->cols, x->dtype};
}

/* Returns a copy of an operand. uplo: 0: all of it; U, L: a triangle with zeros beside it; u, l:
 * the same with zeros on its diagonal, too. A number that is not finite is GPU_UNSUPPORTED. */
struct array solver_upload(struct solver *s, const struct accel_span *x, char uplo);
/* Copies its first rows x cols elements to an array of at least that shape, whose other elements
 * stay. */
void solver_upload_to(struct solver *s, struct array to, const struct accel_span *x, int64_t rows,
                      int64_t cols, char uplo);

/* Returns a copy of a triangle of a symmetric or Hermitian matrix. LAPACK ignores the imaginary
 * parts of the diagonal: they become 0. */
struct array solver_upload_hermitian(struct solver *s, const struct accel_span *x, char uplo);

/* Returns a copy of LAPACK's pivots as int64. They must be 1 .. limit (with_signs: or -limit ..
 * -1): others are GPU_UNSUPPORTED. */
struct array solver_upload_pivots(struct solver *s, const struct accel_span *x, int64_t limit,
                                  bool with_signs);

/* Return the same in host memory, which the caller frees; NULL on a failure. */
int64_t *solver_read_pivots(struct solver *s, const struct accel_span *x, int64_t limit,
                            bool with_signs);
/* Returns an operand's elements, packed, in host memory, which the caller frees; NULL on a failure.
 * uplo: of a triangle alone. A number that is not finite is GPU_UNSUPPORTED. */
void *solver_read(struct solver *s, const struct accel_span *x, char uplo);
/* Returns a copy of what has been read so, and may have been changed since, with zeros beside a
 * triangle. */
struct array solver_upload_packed(struct solver *s, const struct accel_span *x, void *packed,
                                  char uplo);

/* Leaves to the original a triangular matrix with a zero on its diagonal, which it reports. */
void solver_refuse_zero_diagonal(struct solver *s, const struct accel_span *x);

/* Leaves to the original an LU factorisation with a pivot below the least normal number, which
 * LAPACK and GSL divide by: multiplied with its inverse, which is infinite, multipliers are no
 * numbers. So does a pivot that is no number. On the device; in host memory. */
void solver_refuse_small_pivots(struct solver *s, struct array lu);
void solver_refuse_small_pivots_of(struct solver *s, const void *lu, int64_t ld, int64_t pivots);

/* Leaves to the original inputs that it would scale before an iteration, and a matrix of zeros. */
void solver_refuse_extremes(struct solver *s);

/* Returns the letter of the adjoint in the routine's type: T or C. */
static inline char solver_adjoint(const struct solver *s)
{
    return accel_is_complex(s->dtype) ? 'C' : 'T';
}

/* Copy packed host memory to an array, and back, in stream order. solver_put() returns when the
 * host memory has been read, solver_get() when it is written. */
void solver_put(struct solver *s, struct array to, const void *from);
void solver_get(struct solver *s, void *to, struct array from);

/* Return a workspace of `bytes` bytes on the device; on the host, where the next one takes its
 * place. */
struct array solver_work(struct solver *s, size_t bytes);
void *solver_host_work(struct solver *s, size_t bytes);

/* Take both, from the reserve if there is one. Returns whether the step may go on. */
bool solver_take_work(struct solver *s, size_t device_bytes, size_t host_bytes,
                      struct array *device, void **host);

/* Waits for the device; returns whether all is well and INFO is 0. */
bool solver_has_succeeded(struct solver *s);
/* Does the same, and leaves the call to the original if not. With a reserve, does nothing. */
void solver_require_success(struct solver *s);

/* Take memory for so many outcomes; return one of them. */
struct array solver_outcomes(struct solver *s, int64_t count);
struct array solver_outcome_at(struct array outcomes, int64_t number);

/* Puts the last pivot of a Cholesky factor beside INFO, in stream order: so that it takes no wait
 * of its own. */
void solver_keep_pivot(struct solver *s, struct array factor);
/* Returns whether a matrix whose outcome is in host memory is positive definite. */
bool solver_is_definite(const struct solver *s, const struct solver_outcome *outcome);
/* Does what solver_require_success() does, behind solver_keep_pivot(). */
void solver_require_definite(struct solver *s);
/* Leaves the call to the original if one of these real numbers is not finite. */
void solver_require_finite(struct solver *s, struct array values);

/* Give `from` to the program at the end, as the first rows and columns of `to`. */
void solver_return(struct solver *s, const struct accel_span *to, struct array from, char uplo);
/* Does the same with an LU factor, by solver_refuse_small_pivots(): one that is staged is looked at
 * in host memory, which takes no wait of its own. */
void solver_return_lu(struct solver *s, const struct accel_span *to, struct array from);
void solver_return_pivots(struct solver *s, const struct accel_span *to, struct array from);

/* Gives the program, at the end, what the host has already: rows x cols elements of the span's
 * type, packed, or int64 for an INTEGER array (then rows of them). Frees them, by
 * solver_packed_free(): memory of malloc() or solver_panels_memory(); NULL does nothing. */
void solver_return_packed(struct solver *s, const struct accel_span *to, int64_t rows, int64_t cols,
                          void *packed, char uplo);

void solver_packed_free(void *packed);

/* Gives the program, at the end, the first `count` elements of an INTEGER array: one value at even,
 * one at odd indexes. */
void solver_return_integers(struct solver *s, const struct accel_span *to, int64_t count,
                            int64_t even, int64_t odd);

/* Between matrices on the device: to := from; to := its adjoint. */
void solver_copy(struct solver *s, struct array to, struct array from);
void solver_transpose(struct solver *s, struct array to, struct array from);
/* Returns a copy of the upper triangle, with zeros below. */
struct array solver_upper(struct solver *s, struct array from);

/* Copies the diagonal, in order, to host memory. */
void solver_get_diagonal(struct solver *s, void *to, struct array a);

/* Returns whether one of `count` elements in host memory is zero. */
bool solver_has_zero(const struct solver *s, const void *values, int64_t count);

/* Sets the diagonal of a matrix of zeros to the real values, or to 1 if values is NULL. */
void solver_set_diagonal(struct solver *s, struct array a, const double *values);

/* Makes the imaginary parts of a diagonal 0: LAPACK ignores those of a Hermitian matrix. */
void solver_clear_imaginary(struct solver *s, struct array a);

/* BLAS on arrays: c := op(a) op(b); b := op(a)^-1 b. */
void solver_gemm(struct solver *s, char transa, char transb, struct array a, struct array b,
                 struct array c);
void solver_trsm(struct solver *s, char uplo, char trans, char diag, struct array a,
                 struct array b);

/* Which eigenvalues: by LAPACK's RANGE those in (vl, vu], those from number il to iu, or all. */
struct spectrum {
    char range;
    double vl, vu;
    int64_t il, iu;
};

/* The device's library of LAPACK: each function is a driver or a part of one. They overwrite their
 * operands as LAPACK's do, and wait for INFO: see solver_require_success(). */
struct solver_library {
    void (*potrf)(struct solver *s, char uplo, struct array a);
    void (*potrs)(struct solver *s, char uplo, struct array a, struct array b);
    void (*potri)(struct solver *s, char uplo, struct array a);
    void (*lauum)(struct solver *s, char uplo, struct array a);
    /* pivots: ACCEL_INT32 for sytrf, ACCEL_INT64 for sytrs */
    void (*sytrf)(struct solver *s, char uplo, struct array a, struct array pivots);
    void (*sytrs)(struct solver *s, char uplo, struct array a, struct array pivots, struct array b);
    /* Of a Hermitian matrix; pivots: ACCEL_INT64. has_hetrf(): whether the library has both. */
    bool (*has_hetrf)(void);
    void (*hetrf)(struct solver *s, char uplo, struct array a, struct array pivots);
    void (*hetrs)(struct solver *s, char uplo, struct array a, struct array pivots, struct array b);
    void (*trtri)(struct solver *s, char uplo, char diag, struct array a);

    /* pivots: ACCEL_INT64 */
    void (*getrf)(struct solver *s, struct array a, struct array pivots);
    void (*getrs)(struct solver *s, char trans, struct array a, struct array pivots,
                  struct array b);
    /* Exchanges row i with row swaps[i - 1], for i = first .. last; swaps: ACCEL_INT32. Does not
     * wait: it has no INFO. */
    void (*laswp)(struct solver *s, struct array a, struct array swaps, int64_t first,
                  int64_t last);

    void (*geqrf)(struct solver *s, struct array a, struct array tau);
    void (*orgqr)(struct solver *s, struct array a, struct array tau);
    /* c := op(Q) c */
    void (*ormqr)(struct solver *s, char side, char trans, struct array a, struct array tau,
                  struct array c);

    /* a's triangle becomes the tridiagonal matrix and the reflectors, as ?sytrd and ?hetrd have
     * them; d, e: its real elements; tau: with room for a.rows elements. */
    void (*sytrd)(struct solver *s, char uplo, struct array a, struct array d, struct array e,
                  struct array tau);

    /* The functions that take a spectrum return how many eigenvalues are in it. */
    void (*syevd)(struct solver *s, char jobz, char uplo, struct array a, struct array w);
    int64_t (*syevdx)(struct solver *s, char jobz, struct spectrum part, char uplo, struct array a,
                      struct array w);
    void (*sygvd)(struct solver *s, int64_t itype, char jobz, char uplo, struct array a,
                  struct array b, struct array w);
    int64_t (*sygvdx)(struct solver *s, int64_t itype, char jobz, struct spectrum part, char uplo,
                      struct array a, struct array b, struct array w);
    /* Computes the right vectors. Of a real matrix, w gets the real parts of all eigenvalues first,
     * then the imaginary ones. */
    bool (*has_geev)(void);
    void (*geev)(struct solver *s, char jobvr, struct array a, struct array w, struct array vr);

    /* Decomposes a, with rows >= cols, and destroys it; jobs: N, S, A. */
    void (*gesvd)(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
                  struct array u, struct array vt);
    /* Do so by polar decomposition, which perturbs singular values close to zero, and by Jacobi
     * rotations. economy: u has as many columns as a. v is not transposed; u and v must exist even
     * if no vectors are wanted. Return solver_has_succeeded(). */
    bool (*gesvdp)(struct solver *s, bool wanted, bool economy, struct array a, struct array values,
                   struct array u, struct array v, double *perturbation);
    bool (*gesvdj)(struct solver *s, bool wanted, bool economy, struct array a, struct array values,
                   struct array u, struct array v);
};

static inline const struct solver_library *solver_library(const struct solver *s)
{
    return s->work->device->functions->solver;
}

#endif
