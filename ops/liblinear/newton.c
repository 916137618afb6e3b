/*
 * L. Galli and C.-J. Lin: Truncated Newton methods for linear classification (2022).
 */
#include <string.h>

#include "solve.h"
#include "vectors.h"

struct newton {
    double *g, *m, *s, *r, *d, *hd, *z, *zero;
    double f;
    double ww; /* |w|^2 */
};

/* Sets s to a step and r to the residual after it. Returns the iterations. */
static int conjugate_gradients(struct linear_solve *s, struct newton *t)
{
    const int64_t longest = s->n > 5 ? s->n : 5;
    double before = 0;
    int iteration = 0;
    for (int64_t i = 0; i < s->n; i++) {
        t->s[i] = 0;
        t->r[i] = -t->g[i];
        t->d[i] = t->z[i] = t->r[i] / t->m[i];
    }
    double zr = vector_dot(s->n, t->z, t->r);
    const double root = __builtin_sqrt(__builtin_sqrt(zr)), enough = root < 0.5 ? root : 0.5;
    while (iteration < longest) {
        iteration++;
        linear_hessian(s, t->d, t->hd);
        const double dhd = vector_dot(s->n, t->d, t->hd);
        if (s->loss->failure != GPU_OK || dhd <= 1e-16)
            break;
        const double alpha = zr / dhd;
        vector_add(s->n, alpha, t->d, t->s);
        vector_add(s->n, -alpha, t->hd, t->r);
        const double quadratic =
            -0.5 * (vector_dot(s->n, t->s, t->r) - vector_dot(s->n, t->s, t->g));
        const double gained = quadratic - before;
        if (!(quadratic <= 0 && gained <= 0)) {
            linear_line(s, "WARNING: quadratic approximation > 0 or increasing in CG\n");
            break;
        }
        if (iteration * gained >= enough * quadratic)
            break;
        before = quadratic;
        for (int64_t i = 0; i < s->n; i++)
            t->z[i] = t->r[i] / t->m[i];
        const double next = vector_dot(s->n, t->z, t->r), beta = next / zr;
        for (int64_t i = 0; i < s->n; i++)
            t->d[i] = t->z[i] + beta * t->d[i];
        zr = next;
    }
    if (iteration == longest)
        linear_line(s, "WARNING: reaching maximal number of CG steps\n");
    return iteration;
}

/* Goes from w along s. Returns the step's size; 0: none is good enough. */
static double search(struct linear_solve *s, struct newton *t)
{
    enum { TRIALS = 20 };
    const double before = t->f, ss = linear_square(s, t->s, t->s),
                 ws = linear_square(s, t->s, s->w);
    const double gs = vector_dot(s->n, t->s, t->g);
    double alpha = 1;
    linear_loss_aim(s->loss, t->s);
    for (int trial = 0; trial < TRIALS; trial++, alpha *= 0.5) {
        t->f = linear_loss_ahead(s->loss, alpha) + (alpha * alpha * ss + t->ww) / 2 + alpha * ws;
        if (!(t->f - before <= 0.01 * alpha * gs))
            continue;
        linear_loss_advance(s->loss, alpha);
        vector_add(s->n, alpha, t->s, s->w);
        t->ww += alpha * alpha * ss + 2 * alpha * ws;
        return alpha;
    }
    t->f = before;
    return 0;
}

static void set_to(struct linear_solve *s, struct newton *t, const double *w)
{
    t->ww = linear_square(s, w, w);
    t->f = linear_loss_at(s->loss, w) + 0.5 * t->ww;
    linear_gradient(s, w, t->g);
}

int linear_newton(struct linear_solve *s)
{
    double *const v = s->memory;
    const int64_t n = s->n;
    struct newton t = {.g = v,
                       .m = v + n,
                       .s = v + 2 * n,
                       .r = v + 3 * n,
                       .d = v + 4 * n,
                       .hd = v + 5 * n,
                       .z = v + 6 * n,
                       .zero = v + 7 * n};
    const int most = s->training->max_iterations;
    int iteration = 1;
    memset(t.zero, 0, (size_t)n * sizeof(double));
    set_to(s, &t, t.zero);
    const double enough = s->eps * vector_norm(n, t.g);
    if (s->training->init_sol)
        set_to(s, &t, s->w);
    double norm = vector_norm(n, t.g);
    linear_line(s, "init f %5.3e |g| %5.3e\n", t.f, norm);
    while (iteration <= most && norm > enough && s->loss->failure == GPU_OK) {
        linear_precondition(s, t.m);
        const int inner = conjugate_gradients(s, &t);
        const double before = t.f, size = search(s, &t);
        if (size == 0) {
            linear_line(s, "WARNING: line search fails\n");
            break;
        }
        linear_gradient(s, s->w, t.g);
        norm = vector_norm(n, t.g);
        linear_line(s, "iter %2d f %5.3e |g| %5.3e CG %3d step_size %4.2e \n", iteration, t.f, norm,
                    inner, size);
        if (norm <= enough)
            break;
        if (t.f < -1e32) {
            linear_line(s, "WARNING: f < -1.0e+32\n");
            break;
        }
        if (__builtin_fabs(before - t.f) <= 1e-12 * __builtin_fabs(t.f)) {
            linear_line(s, "WARNING: actred too small\n");
            break;
        }
        iteration++;
    }
    if (iteration >= most)
        linear_line(s, "\nWARNING: reaching max number of Newton iterations\n");
    return iteration;
}
