/*
 * cuSOLVER's functions as the steps of gpu/exec/lapack/solver.h. GENERIC() calls a function for all
 * types with its two workspaces; LEGACY() calls one of four, by type, whose sizes are 32 bits;
 * SOLVE() passes its arguments after the handle. A function that this cuSOLVER lacks is
 * GPU_UNSUPPORTED.
 */
#include <limits.h>

#include "cublas_call.h"
#include "gpu/exec/lapack/solver.h"

#define PARAMS s->work->ctx->params
#define INFO   (int *)(uintptr_t)s->info
#define TYPE   types[s->dtype]
#define REAL   types[s->real]

static const cudaDataType types[ACCEL_DTYPES] = {[ACCEL_FLOAT32] = CUDA_R_32F,
                                                 [ACCEL_FLOAT64] = CUDA_R_64F,
                                                 [ACCEL_COMPLEX64] = CUDA_C_32F,
                                                 [ACCEL_COMPLEX128] = CUDA_C_64F};

/* An array for a generic function: its address; with its leading dimension. */
#define AT(x)     (void *)(uintptr_t)(x).at.ptr
#define MATRIX(x) AT(x), (x).at.ld
#define PIVOTS(x) (int64_t *)AT(x)

/* An array for a legacy function; T and R are the routine's type and its real counterpart. */
#define VALUES(x) (T *)AT(x)
#define TYPED(x)  VALUES(x), (int)(x).at.ld
#define REALS(x)  (R *)AT(x)
#define INTS(x)   (int *)AT(x)

/* A list of arguments in parentheses, without them. */
#define LIST(...) __VA_ARGS__

#define SOLVE(function, ...)                                                                       \
    do {                                                                                           \
        if (!CUDA(function))                                                                       \
            solver_note(s, GPU_UNSUPPORTED);                                                       \
        if (solver_is_well(s))                                                                     \
            solver_note(                                                                           \
                s, GPU_CHECK_CUSOLVER(function, stream_ctx_cusolver(s->work->ctx), __VA_ARGS__));  \
    } while (0)

/* query: the arguments of the function that returns the workspaces' sizes; last: arguments after
 * INFO. */
#define GENERIC_WITH(function, query, arguments, last)                                             \
    do {                                                                                           \
        size_t on_device = 0, on_host = 0;                                                         \
        SOLVE(function##_bufferSize, LIST query, &on_device, &on_host);                            \
        struct array device_work;                                                                  \
        void *host_work;                                                                           \
        if (solver_take_work(s, on_device, on_host, &device_work, &host_work))                     \
            SOLVE(function, LIST arguments, AT(device_work), on_device, host_work, on_host,        \
                  INFO LIST last);                                                                 \
    } while (0)
#define GENERIC(function, ...)                                                                     \
    do {                                                                                           \
        GENERIC_WITH(function, (__VA_ARGS__), (__VA_ARGS__), ());                                  \
        solver_require_success(s);                                                                 \
    } while (0)

/* Does step(function, ...) with the function for the routine's type. */
#define CASE_OF(dtype, function, type, real, step, ...)                                            \
    case dtype: {                                                                                  \
        typedef type T;                                                                            \
        typedef real R;                                                                            \
        (void)sizeof(R);                                                                           \
        step(function, __VA_ARGS__);                                                               \
        break;                                                                                     \
    }
#define BY_TYPE(step, real_op, complex_op, ...)                                                    \
    do {                                                                                           \
        switch (s->dtype) {                                                                        \
            CASE_OF(ACCEL_FLOAT32, cusolverDnS##real_op, float, float, step, __VA_ARGS__)          \
            CASE_OF(ACCEL_FLOAT64, cusolverDnD##real_op, double, double, step, __VA_ARGS__)        \
            CASE_OF(ACCEL_COMPLEX64, cusolverDnC##complex_op, cuComplex, float, step, __VA_ARGS__) \
            CASE_OF(ACCEL_COMPLEX128, cusolverDnZ##complex_op, cuDoubleComplex, double, step,      \
                    __VA_ARGS__)                                                                   \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    } while (0)

#define LEGACY_WITH(function, query, arguments, last)                                              \
    int lwork = 0;                                                                                 \
    SOLVE(function##_bufferSize, LIST query, &lwork LIST last);                                    \
    struct array device_work;                                                                      \
    void *host_work;                                                                               \
    if (solver_take_work(s, (size_t)lwork * sizeof(T), 0, &device_work, &host_work))               \
    SOLVE(function, LIST arguments, VALUES(device_work), lwork, INFO LIST last)
#define LEGACY(real_op, complex_op, ...)                                                           \
    do {                                                                                           \
        BY_TYPE(LEGACY_WITH, real_op, complex_op, (__VA_ARGS__), (__VA_ARGS__), ());               \
        solver_require_success(s);                                                                 \
    } while (0)

/* Returns whether all is well and two sizes can be passed as int; if they cannot, leaves the call
 * to the original. */
static bool fits_int(struct solver *s, int64_t a, int64_t b)
{
    return a <= INT_MAX && b <= INT_MAX ? solver_is_well(s) : solver_note(s, GPU_UNSUPPORTED);
}

static cusolverEigMode_t vectors(bool wanted)
{
    return wanted ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

static cusolverEigRange_t range_of(char range)
{
    return range == 'I'   ? CUSOLVER_EIG_RANGE_I
           : range == 'V' ? CUSOLVER_EIG_RANGE_V
                          : CUSOLVER_EIG_RANGE_ALL;
}

/* ---- Symmetric and Hermitian matrices, triangles ---- */

static void potrf(struct solver *s, char uplo, struct array a)
{
    GENERIC_WITH(cusolverDnXpotrf, (PARAMS, fill(uplo), a.rows, TYPE, MATRIX(a), TYPE),
                 (PARAMS, fill(uplo), a.rows, TYPE, MATRIX(a), TYPE), ());
    solver_keep_pivot(s, a);
    solver_require_definite(s);
}

static void potrs(struct solver *s, char uplo, struct array a, struct array b)
{
    if (b.cols == 0)
        return;
    SOLVE(cusolverDnXpotrs, PARAMS, fill(uplo), a.rows, b.cols, TYPE, MATRIX(a), TYPE, MATRIX(b),
          INFO);
    solver_require_success(s);
}

static void potri(struct solver *s, char uplo, struct array a)
{
    if (fits_int(s, a.rows, a.at.ld))
        LEGACY(potri, potri, fill(uplo), (int)a.rows, TYPED(a));
}

static void lauum(struct solver *s, char uplo, struct array a)
{
    if (fits_int(s, a.rows, a.at.ld))
        LEGACY(lauum, lauum, fill(uplo), (int)a.rows, TYPED(a));
}

/* Leaves a matrix whose first pivot is 0 to the original: cuSOLVER 12.0 does not report it in
 * INFO. */
static void require_first_pivot(struct solver *s, struct array a, struct array pivots)
{
    int64_t pivot = 0;
    double first[2]; /* room for an element of any type */
    solver_get(s, &pivot, solver_part(pivots, 0, 0, 1, 1));
    solver_get(s, first, solver_part(a, 0, 0, 1, 1));
    if (solver_is_well(s) && accel_integer_at(pivots.dtype, &pivot, 0) > 0 &&
        solver_has_zero(s, first, 1))
        solver_note(s, GPU_UNSUPPORTED);
}

static void sytrf(struct solver *s, char uplo, struct array a, struct array pivots)
{
    if (fits_int(s, a.rows, a.at.ld))
        BY_TYPE(LEGACY_WITH, sytrf, sytrf, ((int)a.rows, TYPED(a)),
                (fill(uplo), (int)a.rows, TYPED(a), INTS(pivots)), ());
    solver_require_success(s);
    require_first_pivot(s, a, pivots);
}

/* cuSOLVER 12.0 reads the pivots when Xsytrs is called, not in stream order. */
static void settle_pivots(struct solver *s)
{
    GPU_DO(s, gpu_work_settle(s->work));
}

static void sytrs(struct solver *s, char uplo, struct array a, struct array pivots, struct array b)
{
    if (b.cols == 0)
        return;
    settle_pivots(s);
    GENERIC(cusolverDnXsytrs, fill(uplo), a.rows, b.cols, TYPE, MATRIX(a), PIVOTS(pivots), TYPE,
            MATRIX(b));
}

/* cuSOLVER 12.4 has both. */
static bool has_hetrf(void)
{
    return CUDA(cusolverDnXhetrf) != NULL && CUDA(cusolverDnXhetrs) != NULL;
}

static void hetrf(struct solver *s, char uplo, struct array a, struct array pivots)
{
    GENERIC(cusolverDnXhetrf, PARAMS, fill(uplo), a.rows, TYPE, MATRIX(a), PIVOTS(pivots), TYPE);
    require_first_pivot(s, a, pivots);
}

static void hetrs(struct solver *s, char uplo, struct array a, struct array pivots, struct array b)
{
    if (b.cols == 0)
        return;
    settle_pivots(s);
    GENERIC(cusolverDnXhetrs, PARAMS, fill(uplo), a.rows, b.cols, TYPE, MATRIX(a), PIVOTS(pivots),
            TYPE, MATRIX(b));
}

static void trtri(struct solver *s, char uplo, char diag, struct array a)
{
    GENERIC(cusolverDnXtrtri, fill(uplo), diagonal(diag), a.rows, TYPE, MATRIX(a));
}

/* ---- LU ---- */

static void getrf(struct solver *s, struct array a, struct array pivots)
{
    GENERIC_WITH(cusolverDnXgetrf, (PARAMS, a.rows, a.cols, TYPE, MATRIX(a), TYPE),
                 (PARAMS, a.rows, a.cols, TYPE, MATRIX(a), PIVOTS(pivots), TYPE), ());
    solver_require_success(s);
}

static void getrs(struct solver *s, char trans, struct array a, struct array pivots, struct array b)
{
    if (b.cols == 0)
        return;
    SOLVE(cusolverDnXgetrs, PARAMS, operation(trans), a.rows, b.cols, TYPE, MATRIX(a),
          PIVOTS(pivots), TYPE, MATRIX(b), INFO);
    solver_require_success(s);
}

static void laswp(struct solver *s, struct array a, struct array swaps, int64_t first, int64_t last)
{
    if (fits_int(s, accel_max(a.rows, a.cols), a.at.ld))
        BY_TYPE(SOLVE, laswp, laswp, (int)a.cols, TYPED(a), (int)first, (int)last, INTS(swaps), 1);
}

/* ---- QR ---- */

static void geqrf(struct solver *s, struct array a, struct array tau)
{
    GENERIC(cusolverDnXgeqrf, PARAMS, a.rows, a.cols, TYPE, MATRIX(a), TYPE, AT(tau), TYPE);
}

static void orgqr(struct solver *s, struct array a, struct array tau)
{
    if (fits_int(s, accel_max(a.rows, a.cols), a.at.ld))
        LEGACY(orgqr, ungqr, (int)a.rows, (int)a.cols, (int)tau.rows, TYPED(a), VALUES(tau));
}

static void ormqr(struct solver *s, char side, char trans, struct array a, struct array tau,
                  struct array c)
{
    if (c.rows > 0 && c.cols > 0 &&
        fits_int(s, accel_max(c.rows, c.cols), accel_max(a.at.ld, c.at.ld)))
        LEGACY(ormqr, unmqr, at_side(side), operation(trans), (int)c.rows, (int)c.cols, (int)a.cols,
               TYPED(a), VALUES(tau), TYPED(c));
}

/* ---- Eigenvalues ---- */

/* cuSOLVER API reference, cusolverDn<t>sytrd(): the matrix has at most INT32_MAX elements. */
static void sytrd(struct solver *s, char uplo, struct array a, struct array d, struct array e,
                  struct array tau)
{
    if (fits_int(s, a.rows, a.at.ld) && fits_int(s, a.rows * a.at.ld, 1))
        LEGACY(sytrd, hetrd, fill(uplo), (int)a.rows, TYPED(a), REALS(d), REALS(e), VALUES(tau));
}

static void syevd(struct solver *s, char jobz, char uplo, struct array a, struct array w)
{
    GENERIC(cusolverDnXsyevd, PARAMS, vectors(jobz == 'V'), fill(uplo), a.rows, TYPE, MATRIX(a),
            REAL, AT(w), TYPE);
}

static int64_t syevdx(struct solver *s, char jobz, struct spectrum part, char uplo, struct array a,
                      struct array w)
{
    float lower = (float)part.vl, upper = (float)part.vu;
    void *vl = s->real == ACCEL_FLOAT64 ? (void *)&part.vl : &lower;
    void *vu = s->real == ACCEL_FLOAT64 ? (void *)&part.vu : &upper;
    int64_t found = 0;
    GENERIC(cusolverDnXsyevdx, PARAMS, vectors(jobz == 'V'), range_of(part.range), fill(uplo),
            a.rows, TYPE, MATRIX(a), vl, vu, part.il, part.iu, &found, REAL, AT(w), TYPE);
    return found;
}

/* Leaves the call to the original unless B's factor and the eigenvalues are good, too: INFO alone
 * does not tell. *found: the number of eigenvalues. cuSOLVER may write it as late as INFO, so it is
 * read behind the wait. */
static void require_pencil(struct solver *s, struct array b, struct array w, const int *found)
{
    solver_keep_pivot(s, b);
    solver_require_definite(s);
    solver_require_finite(s, solver_part(w, 0, 0, accel_min(*found, b.rows), 1));
}

static void sygvd(struct solver *s, int64_t itype, char jobz, char uplo, struct array a,
                  struct array b, struct array w)
{
#define ARGUMENTS                                                                                  \
    ((cusolverEigType_t)itype, vectors(jobz == 'V'), fill(uplo), (int)a.rows, TYPED(a), TYPED(b),  \
     REALS(w))
    if (fits_int(s, a.rows, a.at.ld))
        BY_TYPE(LEGACY_WITH, sygvd, hegvd, ARGUMENTS, ARGUMENTS, ());
#undef ARGUMENTS
    const int all = (int)a.rows;
    require_pencil(s, b, w, &all);
}

static int64_t sygvdx(struct solver *s, int64_t itype, char jobz, struct spectrum part, char uplo,
                      struct array a, struct array b, struct array w)
{
    int found = 0;
    if (!fits_int(s, a.rows, a.at.ld))
        return 0;
    found = (int)a.rows;
#define ARGUMENTS                                                                                  \
    ((cusolverEigType_t)itype, vectors(jobz == 'V'), range_of(part.range), fill(uplo),             \
     (int)a.rows, TYPED(a), TYPED(b), (R)part.vl, (R)part.vu, (int)part.il, (int)part.iu, &found,  \
     REALS(w))
    BY_TYPE(LEGACY_WITH, sygvdx, hegvdx, ARGUMENTS, ARGUMENTS, ());
#undef ARGUMENTS
    require_pencil(s, b, w, &found);
    return found;
}

static bool has_geev(void)
{
    return CUDA(cusolverDnXgeev) != NULL;
}

static void geev(struct solver *s, char jobvr, struct array a, struct array w, struct array vr)
{
    GENERIC(cusolverDnXgeev, PARAMS, CUSOLVER_EIG_MODE_NOVECTOR, vectors(jobvr == 'V'), a.rows,
            TYPE, MATRIX(a), TYPE, AT(w), TYPE, NULL, a.rows, TYPE, MATRIX(vr), TYPE);
}

/* ---- Singular values: after the cuSOLVER API reference, cusolverDnXgesvdp() and
 * cusolverDn<t>gesvdj() ---- */

static void gesvd(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
                  struct array u, struct array vt)
{
    GENERIC(cusolverDnXgesvd, PARAMS, (signed char)jobu, (signed char)jobvt, a.rows, a.cols, TYPE,
            MATRIX(a), REAL, AT(values), TYPE, MATRIX(u), TYPE, MATRIX(vt), TYPE);
}

static bool gesvdp(struct solver *s, bool wanted, bool economy, struct array a, struct array values,
                   struct array u, struct array v, double *perturbation)
{
#define ARGUMENTS                                                                                  \
    (PARAMS, vectors(wanted), economy, a.rows, a.cols, TYPE, MATRIX(a), REAL, AT(values), TYPE,    \
     MATRIX(u), TYPE, MATRIX(v), TYPE)
    GENERIC_WITH(cusolverDnXgesvdp, ARGUMENTS, ARGUMENTS, (, perturbation));
#undef ARGUMENTS
    return solver_has_succeeded(s);
}

static bool gesvdj(struct solver *s, bool wanted, bool economy, struct array a, struct array values,
                   struct array u, struct array v)
{
    gesvdjInfo_t settings = NULL; /* the defaults: the type's own precision, 100 sweeps */
    if (!CUDA(cusolverDnCreateGesvdjInfo) || !CUDA(cusolverDnDestroyGesvdjInfo))
        solver_note(s, GPU_UNSUPPORTED);
    if (!fits_int(s, a.rows, accel_max(a.at.ld, u.at.ld)) ||
        !solver_note(s, GPU_CHECK_CUSOLVER(cusolverDnCreateGesvdjInfo, &settings)))
        return false;
#define ARGUMENTS                                                                                  \
    (vectors(wanted), economy, (int)a.rows, (int)a.cols, TYPED(a), REALS(values), TYPED(u),        \
     TYPED(v))
    BY_TYPE(LEGACY_WITH, gesvdj, gesvdj, ARGUMENTS, ARGUMENTS, (, settings));
#undef ARGUMENTS
    bool succeeded = solver_has_succeeded(s);
    CUDA(cusolverDnDestroyGesvdjInfo)(settings); /* host memory alone: a failure does no harm */
    return succeeded;
}

const struct solver_library cuda_solver = {.potrf = potrf,
                                           .potrs = potrs,
                                           .potri = potri,
                                           .lauum = lauum,
                                           .sytrf = sytrf,
                                           .sytrs = sytrs,
                                           .has_hetrf = has_hetrf,
                                           .hetrf = hetrf,
                                           .hetrs = hetrs,
                                           .trtri = trtri,
                                           .getrf = getrf,
                                           .getrs = getrs,
                                           .laswp = laswp,
                                           .geqrf = geqrf,
                                           .orgqr = orgqr,
                                           .ormqr = ormqr,
                                           .sytrd = sytrd,
                                           .syevd = syevd,
                                           .syevdx = syevdx,
                                           .sygvd = sygvd,
                                           .sygvdx = sygvdx,
                                           .has_geev = has_geev,
                                           .geev = geev,
                                           .gesvd = gesvd,
                                           .gesvdp = gesvdp,
                                           .gesvdj = gesvdj};
