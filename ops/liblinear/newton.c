/*
 * L. Galli and C.-J. Lin: Truncated Newton methods for linear classification (2022).
 */
#include "solve.h"
#include "base/math/vectors.h"

/* Sets s to a step and r to the residual after it. Returns the iterations. */
static int conjugate_gradients(struct linear_solve *s)
{
    const int64_t longest = accel_max(s->n, 5);
    double before = 0, zr = linear_cg_begin(s);
    const double root = __builtin_sqrt(__builtin_sqrt(zr)), enough = root < 0.5 ? root : 0.5;
    int iteration = 0;
    while (iteration < longest) {
        iteration++;
        const double dhd = linear_cg_bend(s);
        if (s->loss->failure != GPU_OK || dhd <= 1e-16)
            break;
        const double alpha = zr / dhd;
        vector_add(s->n, alpha, s->d, s->s);
        vector_add(s->n, -alpha, s->hd, s->r);
        const double quadratic =
            -0.5 * (vector_dot(s->n, s->s, s->r) - vector_dot(s->n, s->s, s->g));
        const double gained = quadratic - before;
        if (!(quadratic <= 0 && gained <= 0)) {
            linear_line(s, "WARNING: quadratic approximation > 0 or increasing in CG\n");
            break;
        }
        if (iteration * gained >= enough * quadratic)
            break;
        before = quadratic;
        zr = linear_cg_turn(s, zr);
    }
    if (iteration == longest)
        linear_line(s, "WARNING: reaching maximal number of CG steps\n");
    return iteration;
}

/* Goes from w along s. *f: the objective; *ww: |w|^2. Returns the step's size; 0: none is good
 * enough. */
static double search(struct linear_solve *s, double *f, double *ww)
{
    enum { TRIALS = 20 };
    const double before = *f, ss = linear_square(s, s->s, s->s), ws = linear_square(s, s->s, s->w);
    const double gs = vector_dot(s->n, s->s, s->g);
    double alpha = 1;
    linear_loss_aim(s->loss, s->s);
    for (int trial = 0; trial < TRIALS; trial++, alpha *= 0.5) {
        *f = linear_loss_ahead(s->loss, alpha) + (alpha * alpha * ss + *ww) / 2 + alpha * ws;
        if (!(*f - before <= 0.01 * alpha * gs))
            continue;
        linear_loss_advance(s->loss, alpha);
        vector_add(s->n, alpha, s->s, s->w);
        *ww += alpha * alpha * ss + 2 * alpha * ws;
        return alpha;
    }
    *f = before;
    return 0;
}

int linear_newton(struct linear_solve *s)
{
    const int most = s->training->max_iterations;
    int iteration = 1;
    double f;
    const double enough = s->eps * linear_start(s, &f);
    double ww = linear_square(s, s->w, s->w), norm = vector_norm(s->n, s->g);
    linear_line(s, "init f %5.3e |g| %5.3e\n", f, norm);
    while (iteration <= most && norm > enough && s->loss->failure == GPU_OK) {
        linear_precondition(s);
        const int inner = conjugate_gradients(s);
        const double before = f, size = search(s, &f, &ww);
        if (size == 0) {
            linear_line(s, "WARNING: line search fails\n");
            break;
        }
        linear_gradient(s, s->w);
        norm = vector_norm(s->n, s->g);
        linear_line(s, "iter %2d f %5.3e |g| %5.3e CG %3d step_size %4.2e \n", iteration, f, norm,
                    inner, size);
        if (norm <= enough)
            break;
        if (f < -1e32) {
            linear_line(s, "WARNING: f < -1.0e+32\n");
            break;
        }
        if (__builtin_fabs(before - f) <= 1e-12 * __builtin_fabs(f)) {
            linear_line(s, "WARNING: actred too small\n");
            break;
        }
        iteration++;
    }
    if (iteration >= most)
        linear_line(s, "\nWARNING: reaching max number of Newton iterations\n");
    linear_end(s, f, norm, enough);
    return iteration;
}
