#include "tests/lib/smo_reference.h"

#include <math.h>
#include <stdlib.h>

double reference_kernel(const struct smo_kernel *kernel, const struct reference_vectors *x,
                        int64_t i, int64_t j)
{
    const double *u = x->values + i * x->features, *v = x->values + j * x->features;
    double product = 0, distance = 0;
    if (kernel->type == SMO_PRECOMPUTED)
        return u[j];
    for (int64_t f = 0; f < x->features; f++) {
        product += u[f] * v[f];
        distance += (u[f] - v[f]) * (u[f] - v[f]);
    }
    switch (kernel->type) {
    case SMO_POLY:
        return pow(kernel->gamma * product + kernel->coef0, kernel->degree);
    case SMO_RBF:
        return exp(-kernel->gamma * distance);
    case SMO_SIGMOID:
        return tanh(kernel->gamma * product + kernel->coef0);
    default:
        return product;
    }
}

struct state {
    const struct smo_problem *p;
    double *gradient, *diagonal;
    float *q; /* n x n */
};

static bool at_c(const struct smo_problem *p, int64_t i)
{
    return p->alpha[i] >= p->c[i];
}

static bool at_0(const struct smo_problem *p, int64_t i)
{
    return !at_c(p, i) && p->alpha[i] <= 0;
}

/* Whether -y G may grow, or shrink. */
static bool is_up(const struct smo_problem *p, int64_t i)
{
    return p->y[i] > 0 ? !at_c(p, i) : !at_0(p, i);
}

static bool is_low(const struct smo_problem *p, int64_t i)
{
    return p->y[i] > 0 ? !at_0(p, i) : !at_c(p, i);
}

/* The best of the first variables; sign 0: any. Later ones win ties. */
static int64_t first_of(const struct state *s, int sign, double *most)
{
    int64_t best = -1;
    *most = -INFINITY;
    for (int64_t i = 0; i < s->p->n; i++) {
        const double value = -s->p->y[i] * s->gradient[i];
        if ((sign == 0 || s->p->y[i] == sign) && is_up(s->p, i) && value >= *most) {
            *most = value;
            best = i;
        }
    }
    return best;
}

/* Returns whether a pair is found that is worth a step. */
static bool select_pair(const struct state *s, int64_t *i, int64_t *j)
{
    const struct smo_problem *p = s->p;
    double most[2], violation = -INFINITY, best = INFINITY;
    const int64_t first[2] = {first_of(s, p->nu ? 1 : 0, &most[0]),
                              first_of(s, p->nu ? -1 : 0, &most[1])};
    *j = -1;
    for (int64_t t = 0; t < p->n; t++) {
        const int side = p->y[t] > 0 ? 0 : 1;
        const double difference = most[side] + p->y[t] * s->gradient[t];
        if (!is_low(p, t))
            continue;
        violation = fmax(violation, difference);
        if (!(difference > 0))
            continue;
        const int64_t other = first[side];
        const double k = s->q[other * p->n + t] * p->y[other] * p->y[t];
        const double curve = s->diagonal[other] + s->diagonal[t] - 2 * k;
        const double gain = -(difference * difference) / (curve > 0 ? curve : 1e-12);
        if (gain <= best) {
            best = gain;
            *j = t;
            *i = other;
        }
    }
    return !(violation < p->eps || *j < 0);
}

/* Moves along the line on which y'a stays the same, as far as the bounds allow. */
static void step(const struct state *s, int64_t i, int64_t j)
{
    const struct smo_problem *p = s->p;
    const double y_i = p->y[i], y_j = p->y[j];
    double curve = s->diagonal[i] + s->diagonal[j] - 2 * y_i * y_j * s->q[i * p->n + j];
    if (curve <= 0)
        curve = 1e-12;
    /* a_i += y_i d, a_j -= y_j d */
    double d = (-y_i * s->gradient[i] + y_j * s->gradient[j]) / curve;
    const double room_i = y_i > 0 ? p->c[i] - p->alpha[i] : p->alpha[i];
    const double room_j = y_j > 0 ? p->alpha[j] : p->c[j] - p->alpha[j];
    const double before_i = p->alpha[i], before_j = p->alpha[j];
    d = fmin(d, fmin(room_i, room_j));
    p->alpha[i] += y_i * d;
    p->alpha[j] -= y_j * d;
    if (d == room_i)
        p->alpha[i] = y_i > 0 ? p->c[i] : 0;
    if (d == room_j)
        p->alpha[j] = y_j > 0 ? 0 : p->c[j];
    for (int64_t t = 0; t < p->n; t++)
        s->gradient[t] += s->q[i * p->n + t] * (p->alpha[i] - before_i) +
                          s->q[j * p->n + t] * (p->alpha[j] - before_j);
}

static double offset(const struct state *s, int sign)
{
    const struct smo_problem *p = s->p;
    double upper = INFINITY, lower = -INFINITY, sum = 0;
    int64_t free_ones = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double value = p->y[i] * s->gradient[i];
        if (sign != 0 && p->y[i] != sign)
            continue;
        if (!at_c(p, i) && !at_0(p, i)) {
            free_ones++;
            sum += value;
        } else if (is_up(p, i)) { /* -y G of it is below the offset's negative */
            upper = fmin(upper, value);
        } else {
            lower = fmax(lower, value);
        }
    }
    return free_ones ? sum / (double)free_ones : (upper + lower) / 2;
}

static void begin(struct state *s, const struct smo_kernel *kernel,
                  const struct reference_vectors *x, const struct smo_problem *p)
{
    const size_t n = (size_t)p->n;
    *s = (struct state){.p = p,
                        .gradient = malloc(n * sizeof(double)),
                        .diagonal = malloc(n * sizeof(double)),
                        .q = malloc(n * n * sizeof(float))};
    for (int64_t i = 0; i < p->n; i++) {
        s->gradient[i] = p->p[i];
        s->diagonal[i] = reference_kernel(kernel, x, p->row[i], p->row[i]);
        for (int64_t j = 0; j < p->n; j++)
            s->q[i * p->n + j] =
                (float)(p->y[i] * p->y[j] * reference_kernel(kernel, x, p->row[i], p->row[j]));
    }
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t j = 0; j < p->n && p->alpha[i] != 0; j++)
            s->gradient[j] += p->alpha[i] * s->q[i * p->n + j];
}

static void end(struct state *s)
{
    free(s->gradient);
    free(s->diagonal);
    free(s->q);
}

void reference_solve(const struct smo_kernel *kernel, const struct reference_vectors *x,
                     struct smo_problem *p)
{
    const int64_t most = p->max_iterations >= 0 ? p->max_iterations : 10000000;
    struct state s;
    int64_t i, j;
    begin(&s, kernel, x, p);
    p->converged = false;
    for (p->iterations = 0; p->iterations < most && !p->converged;) {
        if (select_pair(&s, &i, &j)) {
            step(&s, i, j);
            p->iterations++;
        } else {
            p->converged = true;
        }
    }
    if (p->nu) { /* the offsets are of G, that is -y times those of -y G */
        p->r = (offset(&s, 1) - offset(&s, -1)) / 2;
        p->rho = (offset(&s, 1) + offset(&s, -1)) / 2;
    } else {
        p->rho = offset(&s, 0);
    }
    p->objective = 0;
    for (int64_t t = 0; t < p->n; t++)
        p->objective += p->alpha[t] * (s.gradient[t] + p->p[t]) / 2;
    end(&s);
}

static double *exact_gradient(const struct smo_kernel *kernel, const struct reference_vectors *x,
                              const struct smo_problem *p)
{
    double *gradient = malloc((size_t)p->n * sizeof *gradient);
    for (int64_t t = 0; t < p->n; t++)
        gradient[t] = p->p[t];
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t t = 0; t < p->n && p->alpha[i] != 0; t++)
            gradient[t] +=
                p->alpha[i] * p->y[i] * p->y[t] * reference_kernel(kernel, x, p->row[i], p->row[t]);
    return gradient;
}

double reference_gap(const struct smo_kernel *kernel, const struct reference_vectors *x,
                     const struct smo_problem *p)
{
    double *gradient = exact_gradient(kernel, x, p), gap = -INFINITY;
    const int first = p->nu ? -1 : 0, last = p->nu ? 1 : 0;
    for (int sign = first; sign <= last; sign += 2) {
        double up = -INFINITY, low = -INFINITY;
        for (int64_t t = 0; t < p->n; t++) {
            if (sign != 0 && p->y[t] != sign)
                continue;
            if (is_up(p, t))
                up = fmax(up, -p->y[t] * gradient[t]);
            if (is_low(p, t))
                low = fmax(low, p->y[t] * gradient[t]);
        }
        gap = fmax(gap, up + low);
    }
    free(gradient);
    return gap;
}

double reference_objective(const struct smo_kernel *kernel, const struct reference_vectors *x,
                           const struct smo_problem *p)
{
    double *gradient = exact_gradient(kernel, x, p), sum = 0;
    for (int64_t t = 0; t < p->n; t++)
        sum += p->alpha[t] * (gradient[t] + p->p[t]) / 2;
    free(gradient);
    return sum;
}
