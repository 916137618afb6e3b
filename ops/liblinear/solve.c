#include "solve.h"

#include <stdarg.h>
#include <stdio.h>

#include "vectors.h"

void linear_line(struct linear_solve *s, const char *format, ...)
{
    char line[256];
    va_list arguments;
    if (s->loss->failure != GPU_OK)
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

void linear_gradient(struct linear_solve *s, const double *w, double *g)
{
    linear_loss_gradient(s->loss, g);
    vector_add(s->n - s->training->free_bias, 1, w, g);
}

void linear_hessian(struct linear_solve *s, const double *v, double *hv)
{
    linear_loss_hessian(s->loss, v, hv);
    vector_add(s->n - s->training->free_bias, 1, v, hv);
}

void linear_precondition(struct linear_solve *s, double *m)
{
    const double share = 0.01; /* of the Hessian's diagonal; the rest is 1 */
    linear_loss_diagonal(s->loss, m);
    for (int64_t i = 0; i < s->n; i++)
        m[i] = 1 - share + share * (m[i] + (i < s->n - s->training->free_bias));
}
