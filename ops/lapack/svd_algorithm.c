/*
 * The device's three algorithms for singular values; gpu_svd_choose() says which of them a matrix gets.
 *
 * The polar decomposition perturbs singular values close to zero; Jacobi rotations may not converge. Both then fall back to QR
 * iteration, on a copy of the matrix.
 */
#include "svd_algorithm.h"

#include <float.h>

#include "gpu/failure.h"

struct svd {
    char jobu, jobvt;
    struct array a, values, u, vt;
};

static bool wants_vectors(const struct svd *x)
{
    return x->jobu != 'N' || x->jobvt != 'N';
}

/* A perturbation that LAPACK's own test would not see: 30 n eps |A| is what it allows, and no norm is less than the largest
 * element. */
static bool is_accurate(const struct solver *s, const struct svd *x, double perturbation)
{
    double eps = accel_is_double(s->dtype) ? DBL_EPSILON : FLT_EPSILON;
    return perturbation <= (double)x->a.cols * eps * s->largest;
}

/* What the other two write: as many columns of U as the job says, all of V. */
static bool compute(struct solver *s, const struct svd *x, enum gpu_svd algorithm, struct array u,
                    struct array v)
{
    const bool wanted = wants_vectors(x), economy = x->jobu != 'A';
    double perturbation = 0;
    if (algorithm == GPU_SVD_GESVDJ)
        return solver_gesvdj(s, wanted, economy, x->a, x->values, u, v);
    return solver_gesvdp(s, wanted, economy, x->a, x->values, u, v, &perturbation) &&
           is_accurate(s, x, perturbation);
}

/* A failure of the algorithm alone, with the stream still in order: there is QR iteration yet. No memory for the copy or the workspace,
 * or a function that the library lacks, may be otherwise another time; what it fails at is not tried again. */
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
    struct array u = x->jobu == 'N' ? solver_array(s, x->a.rows, x->a.cols) : x->u;
    struct array v = solver_array(s, x->a.cols, x->a.cols);
    solver_copy(s, kept, x->a);
    const bool saved = solver_is_well(s);
    bool done = saved && compute(s, x, algorithm, u, v);
    if (done && x->jobvt != 'N')
        solver_transpose(s, x->vt, v);
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

void svd_of(struct solver *s, char jobu, char jobvt, struct array a, struct array values,
            struct array u, struct array vt)
{
    const struct svd x = {jobu, jobvt, a, values, u, vt};
    enum gpu_svd algorithm = gpu_svd_chosen(s->work->device, s->dtype, wants_vectors(&x), a.cols);
    if (solver_is_well(s) && (algorithm == GPU_SVD_GESVD || !by_another(s, &x, algorithm)))
        solver_gesvd(s, jobu, jobvt, a, values, u, vt);
}
