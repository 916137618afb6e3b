/*
 * C.-J. Lin, R. C. Weng and S. S. Keerthi: Trust region Newton method for large-scale logistic regression (2008). 2.30 measures lengths by
 * a preconditioner, M: C.-Y. Hsia, W.-L. Chiang and C.-J. Lin: Preconditioned conjugate gradient methods in truncated Newton frameworks
 * (2018). scikit-learn's is without: M = 1.
 */
#include <string.h>

#include "solve.h"
#include "vectors.h"

struct region {
    double *g, *m, *s, *r, *d, *hd, *z, *w_new;
    double radius;
    bool reached; /* the step ends at the region's boundary */
};

static double length(const struct linear_solve *s, const struct region *t, const double *v)
{
    return __builtin_sqrt(vector_dot_by(s->n, v, t->m, v));
}

/* From inside the region along d as far as its boundary. */
static double to_boundary(const struct linear_solve *s, const struct region *t)
{
    const double sd = vector_dot_by(s->n, t->s, t->m, t->d);
    const double ss = vector_dot_by(s->n, t->s, t->m, t->s);
    const double dd = vector_dot_by(s->n, t->d, t->m, t->d);
    const double room = t->radius * t->radius - ss;
    const double root = __builtin_sqrt(sd * sd + dd * room);
    return sd >= 0 ? room / (sd + root) : (root - sd) / dd;
}

/* Sets s to a step and r to the residual after it. Returns the iterations. */
static int conjugate_gradients(struct linear_solve *s, struct region *t)
{
    const double share =
        s->training->init_sol && s->training->parameter->solver != LINEAR_L2_SVR ? 0.5 : 0.1;
    int iterations = 0;
    t->reached = false;
    for (int64_t i = 0; i < s->n; i++) {
        t->s[i] = 0;
        t->r[i] = -t->g[i];
        t->d[i] = t->z[i] = t->r[i] / t->m[i];
    }
    double zr = vector_dot(s->n, t->z, t->r);
    const double enough = share * __builtin_sqrt(zr);
    while (__builtin_sqrt(zr) > enough) {
        iterations++;
        linear_hessian(s, t->d, t->hd);
        if (s->loss->failure != GPU_OK)
            break;
        double alpha = zr / vector_dot(s->n, t->d, t->hd);
        vector_add(s->n, alpha, t->d, t->s);
        t->reached = length(s, t, t->s) > t->radius;
        if (t->reached) {
            linear_line(s, "cg reaches trust region boundary\n");
            vector_add(s->n, -alpha, t->d, t->s);
            alpha = to_boundary(s, t);
            vector_add(s->n, alpha, t->d, t->s);
        }
        vector_add(s->n, -alpha, t->hd, t->r);
        if (t->reached)
            break;
        for (int64_t i = 0; i < s->n; i++)
            t->z[i] = t->r[i] / t->m[i];
        const double next = vector_dot(s->n, t->z, t->r), beta = next / zr;
        for (int64_t i = 0; i < s->n; i++)
            t->d[i] = t->z[i] + beta * t->d[i];
        zr = next;
    }
    return iterations;
}

static double least(double x, double y)
{
    return x < y ? x : y;
}

static double most(double x, double y)
{
    return x > y ? x : y;
}

/* The region for the next step, after one of a length that was to gain `predicted`. */
static double next_radius(const struct linear_solve *s, const struct region *t, double size,
                          double gained, double predicted, double alpha)
{
    const double eta0 = 1e-4, eta1 = 0.25, eta2 = 0.75, half = 0.5, quarter = 0.25, four = 4;
    if (gained < eta0 * predicted)
        return least(alpha * size, half * t->radius);
    if (gained < eta1 * predicted)
        return most(quarter * t->radius, least(alpha * size, half * t->radius));
    if (gained < eta2 * predicted)
        return most(quarter * t->radius, least(alpha * size, four * t->radius));
    if (t->reached && s->training->library->layout == LINEAR_230)
        return four * t->radius;
    return most(t->radius, least(alpha * size, four * t->radius));
}

/* Whether the method ends although the gradient is not small enough. */
static bool is_stuck(struct linear_solve *s, double f, double gained, double predicted)
{
    const bool old = s->training->library->layout == LINEAR_SKLEARN;
    const double tiny = 1e-12 * __builtin_fabs(f);
    if (f < -1e32)
        linear_line(s, "WARNING: f < -1.0e+32\n");
    else if (old && __builtin_fabs(gained) <= 0 && predicted <= 0)
        linear_line(s, "WARNING: actred and prered <= 0\n");
    else if (!old && predicted <= 0)
        linear_line(s, "WARNING: prered <= 0\n");
    else if (__builtin_fabs(gained) <= tiny && __builtin_fabs(predicted) <= tiny)
        linear_line(s, "WARNING: actred and prered too small\n");
    else
        return false;
    return true;
}

static double value(struct linear_solve *s, const double *w)
{
    const double losses = linear_loss_at(s->loss, w);
    return losses + linear_square(s, w, w) / 2;
}

/* Sets *f and g to those of w. Returns the norm of the gradient at 0. */
static double start(struct linear_solve *s, struct region *t, double *f)
{
    memset(t->w_new, 0, (size_t)s->n * sizeof(double));
    *f = value(s, t->w_new);
    linear_gradient(s, t->w_new, t->g);
    const double at_zero = vector_norm(s->n, t->g);
    if (s->training->init_sol) {
        *f = value(s, s->w);
        linear_gradient(s, s->w, t->g);
    }
    return at_zero;
}

int linear_trust_region(struct linear_solve *s)
{
    double *const v = s->memory;
    const int64_t n = s->n;
    struct region t = {.g = v,
                       .m = v + n,
                       .s = v + 2 * n,
                       .r = v + 3 * n,
                       .d = v + 4 * n,
                       .hd = v + 5 * n,
                       .z = v + 6 * n,
                       .w_new = v + 7 * n};
    const bool preconditions = s->training->library->layout == LINEAR_230;
    double f;
    const double enough = s->eps * start(s, &t, &f);
    double norm = vector_norm(n, t.g);
    int iteration = 1;
    for (int64_t i = 0; i < n; i++)
        t.m[i] = 1;
    t.radius = preconditions ? 0 : norm;
    while (norm > enough && iteration <= s->training->max_iterations) {
        if (preconditions)
            linear_precondition(s, t.m);
        if (t.radius == 0)
            t.radius = length(s, &t, t.g);
        const int inner = conjugate_gradients(s, &t);
        memcpy(t.w_new, s->w, (size_t)n * sizeof(double));
        vector_add(n, 1, t.s, t.w_new);
        const double gs = vector_dot(n, t.g, t.s);
        const double predicted = -0.5 * (gs - vector_dot(n, t.s, t.r));
        const double f_new = value(s, t.w_new), gained = f - f_new, size = length(s, &t, t.s);
        const double bend = f_new - f - gs;
        if (s->loss->failure != GPU_OK)
            break;
        if (iteration == 1)
            t.radius = least(t.radius, size);
        t.radius = next_radius(s, &t, size, gained, predicted,
                               bend <= 0 ? 4 : most(0.25, -0.5 * (gs / bend)));
        linear_line(s, "iter %2d act %5.3e pre %5.3e delta %5.3e f %5.3e |g| %5.3e CG %3d\n",
                    iteration, gained, predicted, t.radius, f, norm, inner);
        if (gained > 1e-4 * predicted) {
            iteration++;
            memcpy(s->w, t.w_new, (size_t)n * sizeof(double));
            f = f_new;
            linear_gradient(s, s->w, t.g);
            norm = vector_norm(n, t.g);
            if (norm <= enough)
                break;
        }
        if (is_stuck(s, f, gained, predicted))
            break;
    }
    return iteration - 1;
}
