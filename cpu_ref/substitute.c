#include "substitute.h"

/* x := x / the diagonal's element i; conjugated for op C and R. */
static void divide_by_diagonal(const struct view *triangle, char op, int64_t i, double *x)
{
    if (triangle->structure == UNIT_TRIANGULAR)
        return;
    const value stored = view_element(triangle, i, i);
    if (parts_of(triangle->dtype) == 1) {
        x[0] /= (double)creall(stored);
        return;
    }
    const value z =
        (x[0] + x[1] * (value)_Complex_I) / (op == 'C' || op == 'R' ? conjl(stored) : stored);
    x[0] = (double)creall(z);
    x[1] = (double)cimagl(z);
}

double largest_reciprocal(const struct view *triangle)
{
    const int64_t count =
        triangle->structure == UNIT_TRIANGULAR ? 0 : accel_min(triangle->rows, triangle->cols);
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double one = 1 / (double)magnitude(view_element(triangle, i, i));
        largest = one > largest ? one : largest;
    }
    return largest;
}

void substitute(const struct view *triangle, char op, double *x)
{
    const bool across = op_is_across(op), upper = triangle->uplo == 'U';
    const int64_t parts = parts_of(triangle->dtype), n = triangle->cols;
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = upper == across ? step : n - 1 - step, from = upper ? 0 : i + 1;
        const struct view beside =
            view_shaped(view_part(triangle, from, upper ? i : n - 1 - i, i, 1), GENERAL, 0);
        double *own = x + i * parts, sum[2] = {0, 0};
        if (across)
            apply(&beside, op, x + from * parts, sum);
        for (int64_t part = 0; part < parts; part++)
            own[part] -= sum[part];
        divide_by_diagonal(triangle, op, i, own);
        for (int64_t part = 0; part < parts; part++)
            sum[part] = -own[part];
        if (!across)
            apply(&beside, op, sum, x + from * parts);
    }
}
