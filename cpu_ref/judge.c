#include "judge.h"

#include <float.h>

#include "equation.h"

double cpu_ref_epsilon(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? 0x1p-52 : 0x1p-23;
}

/* The right-hand side for one element. */
struct sum {
    value value;
    long double scale; /* the sum of magnitudes */
    bool left_open;    /* a zero of the other triangle is multiplied with NaN or Inf */
};

static void add_product(struct sum *sum, const struct product *product, int64_t inner, int64_t row,
                        int64_t col)
{
    value part = 0;
    long double scale = 0;
    for (int64_t p = 0; p < inner; p++) {
        value x = factor_element(&product->x, row, p), y = factor_element(&product->y, p, col);
        if (factor_is_empty(&product->x, row, p) || factor_is_empty(&product->y, p, col)) {
            sum->left_open = sum->left_open || !is_finite(x) || !is_finite(y);
            continue;
        }
        part += x * y;
        scale += magnitude(x) * magnitude(y);
    }
    sum->value += product->alpha * part;
    sum->scale += magnitude(product->alpha) * scale;
}

/* A product below the smallest normal number has an absolute error of up to eps times that number (the distance of two subnormal
 * numbers). The multiplications with alpha and beta have the same. */
static long double underflow_of(const struct equation *e)
{
    long double smallest = accel_is_double(e->out.dtype) ? DBL_MIN : FLT_MIN, steps = 2;
    for (int i = 0; i < e->products; i++)
        steps += (long double)e->inner * (1 + magnitude(e->product[i].alpha));
    return steps * smallest;
}

static struct sum right_hand_side(const struct equation *e, value before, int64_t row, int64_t col)
{
    struct sum sum = {e->beta * before, magnitude(e->beta) * magnitude(before), false};
    for (int i = 0; i < e->products; i++)
        add_product(&sum, &e->product[i], e->inner, row, col);
    sum.scale += underflow_of(e);
    return sum;
}

static double ratio_of(value got, const struct sum *expected, enum accel_dtype dtype)
{
    long double error = magnitude(got - expected->value);
    return error == 0 ? 0 : (double)(error / (cpu_ref_epsilon(dtype) * expected->scale));
}

/* Whether all elements of B that this element of the solution may depend on are finite. */
static bool is_line_finite(const struct equation *e, int64_t row, int64_t col)
{
    bool left = e->product[0].x.structure != GENERAL;
    for (int64_t i = 0; i < (left ? e->rows : e->cols); i++)
        if (!is_finite(stored_element(&e->before, left ? i : row, left ? col : i)))
            return false;
    return true;
}

/* A NaN or Inf of B reaches the elements that depend on it, or all of its line. */
static double solution_ratio(const struct equation *e, int64_t row, int64_t col)
{
    value got = stored_element(&e->out, row, col);
    struct sum rest = right_hand_side(e, stored_element(&e->before, row, col), row, col);
    if (is_finite(rest.value))
        return ratio_of(0, &rest, e->out.dtype);
    return is_finite(got) || is_line_finite(e, row, col) ? INFINITY : 0;
}

static double element_ratio(const struct equation *e, int64_t row, int64_t col)
{
    bool real = e->real_diagonal && row == col;
    bool nothing_to_do = (e->products == 0 || e->inner == 0) && e->beta == 1;
    value old = e->beta == 0 ? 0 : stored_element(&e->before, row, col);
    value got = stored_element(&e->out, row, col);
    if (real && isfinite(creall(got)) && !nothing_to_do && cimagl(got) != 0)
        return INFINITY;
    if (real) {
        got = creall(got);
        old = creall(old);
    }
    struct sum expected = right_hand_side(e, old, row, col);
    if (real)
        expected.value = creall(expected.value);
    if (is_finite(got) && is_finite(expected.value))
        return ratio_of(got, &expected, e->out.dtype);
    bool as_expected = is_finite(got) == is_finite(expected.value);
    return as_expected || (expected.left_open && !is_finite(got)) ? 0 : INFINITY;
}

static double product_ratio(const struct equation *e)
{
    double worst = 0;
    for (int64_t col = 0; col < e->cols; col++)
        for (int64_t row = 0; row < e->rows; row++) {
            if (e->uplo && !in_triangle(e->uplo, row, col))
                continue;
            double ratio = e->solve ? solution_ratio(e, row, col) : element_ratio(e, row, col);
            if (!(ratio <= worst))
                worst = ratio;
        }
    return worst;
}

double cpu_ref_ratio(const struct accel_call *call, enum accel_layout layout, const void *before)
{
    double worst = 0;
    int64_t products = accel_is_batch(call->routine) ? call->batch : 1;
    for (int64_t i = 0; i < products; i++) {
        struct equation e = equation_of(call, layout, before, i);
        double ratio = product_ratio(&e);
        if (!(ratio <= worst))
            worst = ratio;
    }
    return worst;
}
