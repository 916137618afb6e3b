/*
 * cuSOLVER's three algorithms for singular values; gpu_svd_choose() says which of them a matrix gets.
 *
 * Xgesvdp (polar decomposition) shifts singular values close to zero by a perturbation, whose size it returns
 * (h_err_sigma); gesvdj (Jacobi rotations) may not converge. Both then fall back to Xgesvd, on a copy of the matrix.
 * Source: the cuSOLVER API reference, cusolverDnXgesvdp() and cusolverDn<t>gesvdj(). Both return V, not its adjoint; gesvdj
 * wants memory for U and V also where no vectors are asked for.
 */
#include <float.h>

#include "gpu/cuda/cusolver_call.h"

/* Of a matrix with rows >= columns, which is destroyed. */

struct svd {
    char jobu, jobvt;
    struct array a, values, u, vt;
};

static bool wants_vectors(const struct svd *x)
{
    return x->jobu != 'N' || x->jobvt != 'N';
}

static cusolverEigMode_t mode_of(const struct svd *x)
{
    return wants_vectors(x) ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

static void by_gesvd(struct solver *s, const struct svd *x)
{
    GENERIC(s, cusolverDnXgesvd, SOLVER_PARAMS(s), (signed char)x->jobu, (signed char)x->jobvt,
            x->a.rows, x->a.cols, s->type, MATRIX(x->a), s->real_type, AT(x->values), s->type,
            MATRIX(x->u), s->type, MATRIX(x->vt), s->type);
    solver_require_success(s);
}

/* What the other two write: as many columns of U as the job says, all of V. */
struct both {
    struct array u, v;
    int economy; /* U has as many columns as the matrix */
};

static struct both make_both(struct solver *s, const struct svd *x)
{
    struct array u = x->jobu == 'N' ? solver_array(s, x->a.rows, x->a.cols) : x->u;
    return (struct both){u, solver_array(s, x->a.cols, x->a.cols), x->jobu != 'A'};
}

/* Waits. Whether LAPACK's INFO would be 0. */
static bool has_succeeded(struct solver *s)
{
    int32_t info = -1;
    solver_get(s, &info, (struct array){s->info, 1, 1, 1, ACCEL_INT32});
    return solver_is_well(s) && info == 0;
}

/* A perturbation that LAPACK's own test would not see: 30 n eps |A| is what it allows, and no norm is less than the largest
 * element. */
static bool is_accurate(const struct solver *s, const struct svd *x, double perturbation)
{
    double eps = accel_is_double(s->dtype) ? DBL_EPSILON : FLT_EPSILON;
    return perturbation <= (double)x->a.cols * eps * s->largest;
}

static bool by_gesvdp(struct solver *s, const struct svd *x, struct both out)
{
    size_t on_device = 0, on_host = 0;
    double perturbation = 0;
#define GESVDP                                                                                     \
    SOLVER_PARAMS(s), mode_of(x), out.economy, x->a.rows, x->a.cols, s->type, MATRIX(x->a),        \
        s->real_type, AT(x->values), s->type, MATRIX(out.u), s->type, MATRIX(out.v), s->type
    SOLVE(s, cusolverDnXgesvdp_bufferSize, GESVDP, &on_device, &on_host);
    struct array device_work = solver_work(s, on_device);
    void *host_work = solver_host_work(s, on_host);
    SOLVE(s, cusolverDnXgesvdp, GESVDP, AT(device_work), on_device, host_work, on_host,
          SOLVER_INFO(s), &perturbation);
    return has_succeeded(s) && is_accurate(s, x, perturbation);
}

static bool by_gesvdj(struct solver *s, const struct svd *x, struct both out)
{
    gesvdjInfo_t settings = NULL; /* the defaults: the type's own precision, 100 sweeps */
    if (!CUDA(cusolverDnCreateGesvdjInfo) || !CUDA(cusolverDnDestroyGesvdjInfo) ||
        !solver_fits_int(s, x->a.rows, accel_max(x->a.ld, out.u.ld)))
        return false;
    if (!solver_note(s, GPU_CHECK_CUSOLVER(cusolverDnCreateGesvdjInfo, &settings)))
        return false;
#define GESVDJ                                                                                     \
    mode_of(x), out.economy, (int)x->a.rows, (int)x->a.cols, TYPED(x->a), REALS(x->values),        \
        TYPED(out.u), TYPED(out.v)
#define GESVDJ_CASE(dtype, function, type, real)                                                   \
    case dtype: {                                                                                  \
        typedef type T;                                                                            \
        typedef real R;                                                                            \
        int lwork = 0;                                                                             \
        SOLVE(s, function##_bufferSize, GESVDJ, &lwork, settings);                                 \
        struct array device_work = solver_work(s, (size_t)lwork * sizeof(T));                      \
        SOLVE(s, function, GESVDJ, VALUES(device_work), lwork, SOLVER_INFO(s), settings);          \
        break;                                                                                     \
    }
    switch (s->dtype) {
        GESVDJ_CASE(ACCEL_FLOAT32, cusolverDnSgesvdj, float, float)
        GESVDJ_CASE(ACCEL_FLOAT64, cusolverDnDgesvdj, double, double)
        GESVDJ_CASE(ACCEL_COMPLEX64, cusolverDnCgesvdj, cuComplex, float)
        GESVDJ_CASE(ACCEL_COMPLEX128, cusolverDnZgesvdj, cuDoubleComplex, double)
    default:
        break;
    }
    bool succeeded = has_succeeded(s);
    CUDA(cusolverDnDestroyGesvdjInfo)(settings); /* host memory: nothing to do where that fails */
    return succeeded;
}

/* A failure of the algorithm alone, with the stream still in order: there is Xgesvd yet. No memory for the copy or the workspace,
 * or a function that this cuSOLVER lacks, may be otherwise another time; what cuSOLVER fails at is not tried again. */
static bool can_go_on(struct solver *s, const struct svd *x)
{
    if (s->status == GPU_OK || s->status == GPU_NO_MEMORY || s->status == GPU_UNSUPPORTED)
        return true;
    if (failure_noted()->kind != FAILURE_LIBRARY || lane_wait(s->work->lane) != GPU_OK)
        return false;
    gpu_svd_choose(s->work->device, s->dtype, wants_vectors(x), gpu_svd_octave(x->a.cols),
                   GPU_SVD_GESVD);
    return true;
}

/* True where the results are there; else the matrix is as it was, unless the device has failed. */
static bool by_another(struct solver *s, const struct svd *x, enum gpu_svd algorithm)
{
    struct failure outer, own;
    failure_begin(&outer);
    struct array kept = solver_array(s, x->a.rows, x->a.cols);
    const struct both out = make_both(s, x);
    solver_copy(s, kept, x->a);
    const bool saved = solver_is_well(s);
    bool done =
        saved && (algorithm == GPU_SVD_GESVDP ? by_gesvdp(s, x, out) : by_gesvdj(s, x, out));
    if (done && x->jobvt != 'N')
        solver_transpose(s, x->vt, out.v);
    done = done && solver_is_well(s);
    if (!done && can_go_on(s, x)) {
        s->status = GPU_OK;
        if (saved)
            solver_copy(s, x->a, kept);
        own = outer;
    } else {
        own = *failure_noted();
    }
    failure_end(done ? &outer : &own);
    return done;
}

void solver_gesvd(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
                  struct array u, struct array vt)
{
    const struct svd x = {jobu, jobvt, a, values, u, vt};
    enum gpu_svd algorithm = gpu_svd_chosen(s->work->device, s->dtype, wants_vectors(&x), a.cols);
    if (!solver_is_well(s) || (algorithm != GPU_SVD_GESVD && by_another(s, &x, algorithm)))
        return;
    by_gesvd(s, &x);
}
