#include "verify_test.h"

#include "substitute.h"

/* ---- Orthogonal factors ---- */

/* The elements of reflector i's v behind the first one, which is 1. */
static struct view reflector(const struct reflectors *q, int64_t i)
{
    const int64_t first = i + q->shift + 1;
    return q->by_rows ? view_part(&q->stored, i, 1, first, q->stored.cols - first)
                      : view_part(&q->stored, first, q->stored.rows - first, i, 1);
}

void reflectors_apply(struct test *t, const struct reflectors *q, char op, double *x)
{
    const struct accel_span *tau = &t->call->span[ACCEL_x];
    for (int64_t step = 0; step < q->count; step++) {
        int64_t i = op == 'N' ? q->count - 1 - step : step;
        const struct view v = reflector(q, i);
        const value factor = load_value(tau->ptr, i, t->dtype);
        double *head = x + (i + q->shift) * t->parts, *tail = head + t->parts,
               sum[2] = {head[0], 0};
        if (t->parts == 2)
            sum[1] = head[1];
        apply(&v, q->by_rows ? 'R' : 'C', tail, sum);
        value s = -(op == 'N' ? factor : conjl(factor)) * (sum[0] + sum[1] * (value)_Complex_I);
        sum[0] = (double)creall(s);
        sum[1] = (double)cimagl(s);
        for (int64_t p = 0; p < t->parts; p++)
            head[p] += sum[p];
        apply(&v, q->by_rows ? 'T' : 'N', sum, tail);
    }
}

/* x := op(Q) x, Q made of k reflectors in the columns of qr. */
static void reflect(struct test *t, const struct view *qr, int64_t k, char op, double *x)
{
    const struct reflectors q = {.stored = *qr, .count = k};
    reflectors_apply(t, &q, op, x);
}

void check_geqrf(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), qr = test_result(t, ACCEL_a),
                      r = factored_upper(&qr);
    const int64_t inner = accel_min(a.rows, a.cols);
    const double *x = test_random_vector(t, a.cols);
    double *y = test_times(t, &a, 'N', x), *z = test_new_vector(t, a.rows);
    apply(&r, 'N', x, z);
    reflect(t, &qr, inner, 'N', z);
    test_subtract(t, y, z, a.rows);
    test_judge(t, y, a.rows, view_norm(&a));
}

void check_orgqr(struct test *t)
{
    const struct view qr = test_input(t, ACCEL_a), q = test_result(t, ACCEL_a);
    const double *x = test_random_vector(t, q.cols);
    double *y = test_times(t, &q, 'N', x), *z = test_new_vector(t, q.rows);
    memcpy(z, x, (size_t)(q.cols * t->parts) * sizeof *z);
    reflect(t, &qr, t->call->blas.size[ACCEL_k], 'N', z);
    test_subtract(t, y, z, q.rows);
    test_judge(t, y, q.rows, 1);
}

void check_ormqr(struct test *t)
{
    const struct view qr = test_input(t, ACCEL_a), c = test_input(t, ACCEL_c),
                      got = test_result(t, ACCEL_c);
    const bool left = t->call->blas.flag[ACCEL_side] == 'L';
    const char op = t->call->blas.flag[ACCEL_trans];
    double *x = test_random_vector(t, c.cols), *y = test_times(t, &got, 'N', x);
    if (!left)
        reflect(t, &qr, qr.cols, op, x);
    double *z = test_times(t, &c, 'N', x);
    if (left)
        reflect(t, &qr, qr.cols, op, z);
    test_subtract(t, y, z, c.rows);
    test_judge(t, y, c.rows, view_norm(&c));
}

/* ---- Least squares ---- */

/* A solution that is huge. Where the call returns singular values, that is because of the least one
 * that counts; else of R or L, in A's place, whose norm is A's. */
static void judge_huge_solution(struct test *t, const struct view *a, double size_of_b)
{
    const struct view factors = test_result(t, ACCEL_a);
    const struct accel_span *rank = &t->call->span[ACCEL_found];
    const int64_t inner = accel_min(a->rows, a->cols),
                  counted = rank->ptr ? accel_integer(rank, 0) : 0;
    const bool wide = a->rows < a->cols;
    const double size = view_norm(a);
    double inverse, reciprocal = 0;
    if (rank->ptr) {
        inverse = counted < 1 || counted > inner
                      ? 0
                      : 1 / operand_real(&t->call->span[ACCEL_x], counted - 1);
    } else {
        const struct view triangle =
            view_shaped(view_part(&factors, 0, inner, 0, inner), TRIANGULAR, wide ? 'L' : 'U');
        double *x = test_random_vector(t, inner);
        test_judge_number(t, view_norm(&triangle) - size, size);
        substitute(&triangle, 'N', x);
        inverse = sqrt(dot_self(x, inner * t->parts));
        reciprocal = largest_reciprocal(&triangle);
    }
    test_note(t, judge_huge(t->dtype, inverse * size_of_b * (1 + size) + reciprocal));
}

void check_gels(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), all_b = test_input(t, ACCEL_b),
                      all_x = test_result(t, ACCEL_b);
    const char op = t->call->blas.flag[ACCEL_trans] ? t->call->blas.flag[ACCEL_trans] : 'N';
    const int64_t rows = op == 'N' ? a.rows : a.cols, cols = op == 'N' ? a.cols : a.rows;
    const struct view b = view_part(&all_b, 0, rows, 0, all_b.cols),
                      x = view_part(&all_x, 0, cols, 0, all_x.cols);
    const double size = factored_size(t->dtype, view_norm(&a)), *r = test_random_vector(t, b.cols),
                 scale = solution_scale(t->dtype, size, view_norm(&x), view_norm(&b));
    if (is_huge(t->dtype, scale)) {
        judge_huge_solution(t, &a, view_norm(&b));
        return;
    }
    double *y = test_times(t, &b, 'N', r);
    test_subtract(t, y, test_times(t, &a, op, test_times(t, &x, 'N', r)), rows);
    bool by_values = t->call->span[ACCEL_found].ptr;
    bool full =
        !by_values || accel_integer(&t->call->span[ACCEL_found], 0) == accel_min(rows, cols);
    if (rows <= cols && full) {
        test_judge(t, y, rows, scale);
    } else {
        double rest =
            full ? 0 : greater_of(t->call->blas.scalar[ACCEL_rcond].re, 0) / test_tolerance(t);
        test_judge(t, test_times(t, &a, op == 'N' ? 'C' : 'N', y), cols, size * scale * (1 + rest));
    }
}

void check_gelss(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a);
    singular_judge_values(t, &a);
    check_gels(t);
}
