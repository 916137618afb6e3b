/*
 * C.-J. Lin, R. C. Weng and S. S. Keerthi: Trust region Newton method for large-scale logistic
 * regression (2008). 2.30 measures lengths by a preconditioner, M: C.-Y. Hsia, W.-L. Chiang and
 * C.-J. Lin: Preconditioned conjugate gradient methods in truncated Newton frameworks (2018).
 * scikit-learn's is without: M = 1.
 */
#include <string.h>

#include "solve.h"
#include "base/math/vectors.h"

struct region {
    double radius;
    bool reached; /* the step ends at the region's boundary */
};

static double length(const struct linear_solve *s, const double *v)
{
    return __builtin_sqrt(vector_dot_by(s->n, v, s->m, v));
}

/* From inside the region along d as far as its boundary. */
static double to_boundary(const struct linear_solve *s, const struct region *t)
{
    const double sd = vector_dot_by(s->n, s->s, s->m, s->d);
    const double ss = vector_dot_by(s->n, s->s, s->m, s->s);
    const double dd = vector_dot_by(s->n, s->d, s->m, s->d);
    const double room = t->radius * t->radius - ss;
    const double root = __builtin_sqrt(sd * sd + dd * room);
    return sd >= 0 ? room / (sd + root) : (root - sd) / dd;
}

/* Sets s to a step and r to the residual after it. Returns the iterations. */
static int conjugate_gradients(struct linear_solve *s, struct region *t)
{
    const double share =
        s->training->init_sol && s->training->parameter->solver != LINEAR_L2_SVR ? 0.5 : 0.1;
    double zr = linear_cg_begin(s);
    const double enough = share * __builtin_sqrt(zr);
    const int64_t longest =
        s->training->library->layout == LINEAR_230 ? accel_max(s->n, 5) : INT64_MAX;
    int iterations = 0;
    t->reached = false;
    while (iterations < longest && __builtin_sqrt(zr) > enough) {
        iterations++;
        double alpha = zr / linear_cg_bend(s);
        if (s->loss->failure != GPU_OK)
            break;
        vector_add(s->n, alpha, s->d, s->s);
        t->reached = length(s, s->s) > t->radius;
        if (t->reached) {
            linear_line(s, "cg reaches trust region boundary\n");
            vector_add(s->n, -alpha, s->d, s->s);
            alpha = to_boundary(s, t);
            vector_add(s->n, alpha, s->d, s->s);
        }
        vector_add(s->n, -alpha, s->hd, s->r);
        if (t->reached)
            break;
        zr = linear_cg_turn(s, zr);
    }
    if (iterations == longest)
        linear_line(s, "WARNING: reaching maximal number of CG steps\n");
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

int linear_trust_region(struct linear_solve *s)
{
    const bool preconditions = s->training->library->layout == LINEAR_230;
    struct region t;
    double f;
    const double enough = s->eps * linear_start(s, &f);
    double norm = vector_norm(s->n, s->g);
    int iteration = 1;
    for (int64_t i = 0; i < s->n; i++)
        s->m[i] = 1;
    if (preconditions)
        linear_precondition(s);
    t.radius = length(s, s->g);
    while (norm > enough && iteration <= s->training->max_iterations) {
        const int inner = conjugate_gradients(s, &t);
        memcpy(s->w_new, s->w, (size_t)s->n * sizeof(double));
        vector_add(s->n, 1, s->s, s->w_new);
        const double gs = vector_dot(s->n, s->g, s->s);
        const double predicted = -0.5 * (gs - vector_dot(s->n, s->s, s->r));
        const double f_new = linear_objective(s, s->w_new), gained = f - f_new,
                     size = length(s, s->s);
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
            memcpy(s->w, s->w_new, (size_t)s->n * sizeof(double));
            f = f_new;
            linear_gradient(s, s->w);
            norm = vector_norm(s->n, s->g);
            if (norm <= enough)
                break;
            if (preconditions)
                linear_precondition(s);
        }
        if (is_stuck(s, f, gained, predicted))
            break;
    }
    linear_end(s, f, norm, enough);
    return iteration - 1;
}
