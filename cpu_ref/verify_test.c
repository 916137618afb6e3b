#include "verify_test.h"

#include "call/operation.h"

/* ---- Operands ---- */

struct view test_result(const struct test *t, enum accel_matrix which)
{
    const struct accel_span *x = &t->call->span[which];
    return (struct view){x->ptr, x->rows, x->cols, x->ld, x->dtype, GENERAL, 0};
}

struct view test_input(const struct test *t, enum accel_matrix which)
{
    struct view x = test_result(t, which);
    if (t->before[which]) {
        x.ptr = t->before[which];
        x.ld = accel_max(x.rows, 1);
    }
    return x;
}

struct view test_mirrored(const struct test *t, struct view x)
{
    bool hermitian = t->call->op->traits.hermitian && accel_is_complex(x.dtype);
    return view_shaped(x, hermitian ? HERMITIAN : SYMMETRIC, t->call->blas.flag[ACCEL_uplo]);
}

double view_norm(const struct view *x)
{
    return sqrt(sum_of_squares(x));
}

/* ---- Vectors ---- */

double *test_new_vector(struct test *t, int64_t n)
{
    return vector_zero(&t->vectors, n * t->parts);
}

double *test_random_vector(struct test *t, int64_t n)
{
    return vector_random(&t->vectors, n, t->dtype);
}

double *test_times(struct test *t, const struct view *x, char op, const double *in)
{
    double *out = test_new_vector(t, op_is_across(op) ? x->cols : x->rows);
    apply(x, op, in, out);
    return out;
}

double *test_times_values(struct test *t, const struct accel_span *values, const double *in,
                          int64_t n, int power)
{
    double *out = test_new_vector(t, n);
    for (int64_t i = 0; i < n * t->parts; i++) {
        double value = operand_real(values, i / t->parts);
        out[i] = in[i] * (power == 2 ? value * value : value);
    }
    return out;
}

void test_subtract(const struct test *t, double *x, const double *y, int64_t n)
{
    for (int64_t i = 0; i < n * t->parts; i++)
        x[i] -= y[i];
}

/* ---- Judging ---- */

bool test_takes(const struct test *t, const struct view *x)
{
    return view_norm(x) < 1 / least_moderate(t->dtype);
}

void test_note(struct test *t, double ratio)
{
    t->open = t->open || ratio < 0;
    t->worst = ratio > t->worst || isnan(ratio) ? ratio : t->worst;
}

double test_tolerance(const struct test *t)
{
    const double threshold = 30, n = (double)t->order + 1; /* the threshold of LAPACK's tests */
    return RANDOM_MOST *
           (threshold * n * unit_roundoff(t->dtype) + 2 * (n + 16) * 0x1p-53 * sqrt(n));
}

static bool is_all_zero(const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] != 0)
            return false;
    return true;
}

double test_ratio_of(const struct test *t, const double *residual, int64_t n, double scale)
{
    const double least = test_tolerance(t) * least_moderate(t->dtype),
                 bound = test_tolerance(t) * scale, error = dot_self(residual, n * t->parts);
    if (scale == 0 && error == 0) /* or their squares underflow */
        return is_all_zero(residual, n * t->parts) ? 0 : CPU_REF_NOT_JUDGED;
    if (is_moderate(t->dtype, scale))
        return ratio_of_squares(error, bound * bound);
    bool far = scale < 1 && error > least * least; /* underflow alone may cause it */
    return far || (isnan(scale) && isnan(error)) ? INFINITY : CPU_REF_NOT_JUDGED;
}

void test_judge(struct test *t, const double *residual, int64_t n, double scale)
{
    test_note(t, test_ratio_of(t, residual, n, scale));
}

double test_root(double square)
{
    return sqrt(square);
}

void test_judge_number(struct test *t, double error, double scale)
{
    double bound = test_tolerance(t) * scale;
    test_note(t, ratio_of_squares(error * error, bound * bound));
}

void test_judge_ascent(struct test *t, double lower, double upper, double scale)
{
    test_judge_number(t, lower <= upper ? 0 : lower - upper, scale);
}

void test_judge_columns(struct test *t, const struct view *q)
{
    const double *r = test_random_vector(t, q->cols), *y = test_times(t, q, 'N', r);
    double *z = test_times(t, q, 'C', y);
    test_subtract(t, z, r, q->cols);
    test_judge(t, z, q->cols, 1);
}

void test_judge_rows(struct test *t, const struct view *q)
{
    const double *r = test_random_vector(t, q->rows), *y = test_times(t, q, 'C', r);
    double *z = test_times(t, q, 'N', y);
    test_subtract(t, z, r, q->rows);
    test_judge(t, z, q->rows, 1);
}
