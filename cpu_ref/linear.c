#include "linear.h"

#include <math.h>
#include <stdlib.h>

#include "base/math/vectors.h"
#include "base/math/series.h"
#include "vectors.h"

#define ROUNDOFF 0x1p-53

/* At one w. */
struct objective_point {
    double objective, norm; /* of the gradient */
    double objective_rounding, norm_rounding;
};

/* A row's loss at the decision value z, its derivative, and the most that its second one can be. */
struct row_loss {
    double value, slope, curvature;
};

static struct row_loss loss_of(const struct cpu_ref_linear *q, double y, double z)
{
    if (q->solver == LINEAR_LR) {
        const double margin = y * z, tail = series_log(1 + series_exp(-fabs(margin)));
        return (struct row_loss){margin < 0 ? tail - margin : tail, -y / (1 + series_exp(margin)),
                                 0.25};
    }
    const double far = q->solver == LINEAR_L2_SVR ? fabs(z - y) - q->p : 1 - y * z;
    const double sign = q->solver == LINEAR_L2_SVR ? (z > y ? 1 : -1) : -y;
    return (struct row_loss){far > 0 ? far * far : 0, far > 0 ? 2 * far * sign : 0, 2};
}

/* Adds a row to the place, to the gradient and to what rounding may change each element of it.
 * roundings: of each product of the method's, in units of ROUNDOFF. */
static void add_row(const struct cpu_ref_linear *q, int64_t i, const double *w, double roundings,
                    struct objective_point *place, double *gradient, double *rounding)
{
    double z = 0, magnitude = 0;
    for (const struct linear_node *node = q->x[i]; node->index != -1; node++) {
        const double product = w ? w[node->index - 1] * node->value : 0;
        z += product;
        magnitude += fabs(product);
    }
    const struct row_loss loss = loss_of(q, q->y[i], z);
    const double z_rounding = roundings * ROUNDOFF * magnitude, c = q->c[i], slope = c * loss.slope,
                 slope_rounding =
                     c * loss.curvature * z_rounding + roundings * ROUNDOFF * fabs(slope);
    place->objective += c * loss.value;
    place->objective_rounding += (fabs(slope) + c * loss.curvature * z_rounding) * z_rounding +
                                 roundings * ROUNDOFF * c * (1 + loss.value);
    for (const struct linear_node *node = q->x[i]; node->index != -1; node++) {
        gradient[node->index - 1] += slope * node->value;
        rounding[node->index - 1] += slope_rounding * fabs(node->value);
    }
}

/* w = NULL: all zeros. False without memory. */
static bool evaluate_objective(const struct cpu_ref_linear *q, const double *w,
                               struct objective_point *place)
{
    const size_t columns = (size_t)q->columns, regularized = columns - q->free_bias;
    /* The method adds up rows, columns, and one step after the other. */
    const double roundings = (double)(q->rows + q->columns + 2 * (int64_t)q->iterations + 16);
    double *gradient = calloc(2 * columns, sizeof *gradient);
    *place = (struct objective_point){.objective = 0};
    if (!gradient)
        return false;
    double *rounding = gradient + columns;
    for (int64_t i = 0; i < q->rows; i++)
        add_row(q, i, w, roundings, place, gradient, rounding);
    for (size_t j = 0; w && j < regularized; j++) {
        gradient[j] += w[j];
        rounding[j] += roundings * ROUNDOFF * fabs(w[j]);
        place->objective += w[j] * w[j] / 2;
        place->objective_rounding += roundings * ROUNDOFF * w[j] * w[j];
    }
    place->norm = vector_norm(q->columns, gradient);
    place->norm_rounding = vector_norm(q->columns, rounding);
    free(gradient);
    return true;
}

static bool is_weight(const struct cpu_ref_linear *q)
{
    for (int64_t j = 0; j < q->columns; j++)
        if (!is_number(q->w[j]))
            return false;
    return true;
}

double cpu_ref_linear(const struct cpu_ref_linear *q)
{
    struct objective_point at_zero, here;
    double worst = 0;
    if (!is_weight(q))
        return INFINITY;
    if (!evaluate_objective(q, NULL, &at_zero) || !evaluate_objective(q, q->w, &here) ||
        !is_number(here.objective_rounding + here.norm_rounding + here.norm + at_zero.norm +
                   at_zero.norm_rounding))
        return CPU_REF_NOT_JUDGED;
    note_error(&worst, fabs(q->objective - here.objective),
               1e-6 * here.objective + here.objective_rounding);
    note_error(&worst, fabs(q->norm - here.norm), 1e-6 * at_zero.norm + here.norm_rounding);
    if (q->enough)
        note_error(&worst, here.norm,
                   (q->eps + 1e-6) * at_zero.norm + here.norm_rounding + at_zero.norm_rounding);
    return worst > 1 || q->enough ? worst : CPU_REF_NOT_JUDGED;
}
