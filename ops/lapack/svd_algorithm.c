/*
 * The device's three algorithms for singular values; gpu_svd_choose() sets which of them a matrix
 * gets. The polar decomposition perturbs singular values close to zero; Jacobi rotations may not
 * converge. Both then fall back to QR iteration, on a copy of the matrix.
 */
#include "svd_algorithm.h"

#include <float.h>

#include "gpu/device/failure.h"

struct svd {
    char jobu, jobvt;
    struct array a, values, u, vt;
};

static bool wants_vectors(const struct svd *x)
{
    return x->jobu != 'N' || x->jobvt != 'N';
}

/* Returns whether LAPACK's own test would not see the perturbation: it allows 30 n eps |A|, and no
 * norm is less than the largest element. */
static bool is_accurate(const struct solver *s, const struct svd *x, double perturbation)
{
    double eps = accel_is_double(s->dtype) ? DBL_EPSILON : FLT_EPSILON;
    return perturbation <= (double)x->a.cols * eps * s->largest;
}

/* Runs one of the other two algorithms, which write the job's columns of U, and all of V. */
static bool run_other_algorithm(struct solver *s, const struct svd *x, enum gpu_svd algorithm,
                                struct array u, struct array v)
{
    const bool wanted = wants_vectors(x), economy = x->jobu != 'A';
    double perturbation = 0;
    if (algorithm == GPU_SVD_GESVDJ)
        return solver_library(s)->gesvdj(s, wanted, economy, x->a, x->values, u, v);
    return solver_library(s)->gesvdp(s, wanted, economy, x->a, x->values, u, v, &perturbation) &&
           is_accurate(s, x, perturbation);
}

/* Returns whether QR iteration can still run: only the algorithm has failed, and the stream works.
 * After a failure of the library, later matrices of this size get QR iteration at once; not after a
 * lack of memory, or of a function. */
static bool can_go_on(struct solver *s, const struct svd *x)
{
    if (s->status == GPU_OK || s->status == GPU_NO_MEMORY || s->status == GPU_UNSUPPORTED)
        return true;
    if (failure_noted()->kind != FAILURE_LIBRARY ||
        gpu_copies(s->work)->wait(s->work->ctx) != GPU_OK)
        return false;
    gpu_svd_choose(s->work->device, s->dtype, wants_vectors(x), gpu_svd_octave(x->a.cols),
                   GPU_SVD_GESVD);
    return true;
}

/* Returns whether the results are there. If not, the matrix is as it was, unless the device has
 * failed. */
static bool by_another(struct solver *s, const struct svd *x, enum gpu_svd algorithm)
{
    struct failure outer, own;
    failure_begin(&outer);
    struct array kept = solver_array(s, x->a.rows, x->a.cols);
    struct array u = x->jobu == 'N' ? solver_array(s, x->a.rows, x->a.cols) : x->u;
    struct array v = solver_array(s, x->a.cols, x->a.cols);
    solver_copy(s, kept, x->a);
    const bool saved = solver_is_well(s);
    bool done = saved && run_other_algorithm(s, x, algorithm, u, v);
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
        solver_library(s)->gesvd(s, jobu, jobvt, a, values, u, vt);
}
