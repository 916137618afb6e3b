#include "solve.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/vectors.h"

bool linear_solve_make(struct linear_solve *s, int64_t n)
{
    double **const vectors[] = {&s->w, &s->w_new, &s->g, &s->m, &s->s, &s->r, &s->d, &s->hd, &s->z};
    const size_t count = sizeof vectors / sizeof *vectors;
    s->n = n;
    s->memory = malloc(count * (size_t)n * sizeof(double));
    for (size_t i = 0; s->memory && i < count; i++)
        *vectors[i] = s->memory + i * (size_t)n;
    return s->memory;
}

void linear_line(struct linear_solve *s, const char *format, ...)
{
    char line[256];
    va_list arguments;
    if (s->silent || s->loss->failure != GPU_OK)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    s->lines++;
    (*s->training->library->print)(line);
}

double linear_square(const struct linear_solve *s, const double *v, const double *w)
{
    return vector_dot(s->n - s->training->free_bias, v, w);
}

double linear_objective(struct linear_solve *s, const double *w)
{
    return linear_loss_at(s->loss, w) + linear_square(s, w, w) / 2;
}

void linear_gradient(struct linear_solve *s, const double *w)
{
    linear_loss_gradient(s->loss, s->g);
    vector_add(s->n - s->training->free_bias, 1, w, s->g);
}

void linear_precondition(struct linear_solve *s)
{
    const double share = 0.01; /* of the Hessian's diagonal; the rest is 1 */
    linear_loss_diagonal(s->loss, s->m);
    for (int64_t i = 0; i < s->n; i++)
        s->m[i] = 1 - share + share * (s->m[i] + (i < s->n - s->training->free_bias));
}

double linear_start(struct linear_solve *s, double *f)
{
    memset(s->w_new, 0, (size_t)s->n * sizeof(double));
    *f = linear_objective(s, s->w_new);
    linear_gradient(s, s->w_new);
    const double at_zero = vector_norm(s->n, s->g);
    if (s->training->init_sol) {
        *f = linear_objective(s, s->w);
        linear_gradient(s, s->w);
    }
    return at_zero;
}

void linear_end(struct linear_solve *s, double objective, double norm, double enough)
{
    s->objective = objective;
    s->norm = norm;
    s->enough = norm <= enough;
}

double linear_cg_begin(struct linear_solve *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->s[i] = 0;
        s->r[i] = -s->g[i];
        s->d[i] = s->z[i] = s->r[i] / s->m[i];
    }
    return vector_dot(s->n, s->z, s->r);
}

double linear_cg_bend(struct linear_solve *s)
{
    linear_loss_hessian(s->loss, s->d, s->hd);
    vector_add(s->n - s->training->free_bias, 1, s->d, s->hd);
    return vector_dot(s->n, s->d, s->hd);
}

double linear_cg_turn(struct linear_solve *s, double zr)
{
    for (int64_t i = 0; i < s->n; i++)
        s->z[i] = s->r[i] / s->m[i];
    const double next = vector_dot(s->n, s->z, s->r), beta = next / zr;
    for (int64_t i = 0; i < s->n; i++)
        s->d[i] = s->z[i] + beta * s->d[i];
    return next;
}
