#include "verify_test.h"

#include "call/lapack_shape.h"

void singular_judge_order(struct test *t, int64_t count, double size)
{
    const struct accel_span *s = &t->call->span[ACCEL_x];
    for (int64_t i = 0; i < count; i++)
        test_judge_ascent(t, i + 1 < count ? operand_real(s, i + 1) : 0, operand_real(s, i), size);
}

void singular_judge_values(struct test *t, const struct view *a)
{
    const struct accel_span *s = &t->call->span[ACCEL_x];
    const int64_t count = accel_min(a->rows, a->cols);
    double sum = 0, square = sum_of_squares(a);
    for (int64_t i = 0; i < count; i++)
        sum += operand_real(s, i) * operand_real(s, i);
    test_judge_number(t, sum - square, square);
    singular_judge_order(t, count, sqrt(square));
}

/* The left or right vectors of a job: in their own matrix, or in A's place; no rows if the job asks
 * for none. */
static struct view singular_vectors(const struct test *t, enum accel_flag job,
                                    enum accel_matrix own, int64_t values)
{
    char wanted = lapack_job_of(t->call, job);
    struct view none = {NULL, 0, 0, 1, t->dtype, GENERAL, 0};
    if (wanted == 'A' || wanted == 'S')
        return test_result(t, own);
    if (wanted != 'O')
        return none;
    struct view a = test_result(t, ACCEL_a);
    return own == ACCEL_b ? view_part(&a, 0, a.rows, 0, values)
                          : view_part(&a, 0, values, 0, a.cols);
}

void check_gesvd(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a);
    const struct accel_span *s = &t->call->span[ACCEL_x];
    const int64_t k = accel_min(a.rows, a.cols);
    const struct view u = singular_vectors(t, ACCEL_jobu, ACCEL_b, k),
                      vt = singular_vectors(t, ACCEL_jobvt, ACCEL_c, k);
    const double size = view_norm(&a), *r = test_random_vector(t, k);
    const double *left = NULL, *right = NULL;
    singular_judge_values(t, &a);
    if (u.rows > 0) {
        const struct view first = view_part(&u, 0, u.rows, 0, k);
        left = test_times(t, &first, 'N', test_times_values(t, s, r, k, vt.rows > 0 ? 1 : 2));
        test_judge_columns(t, &u);
    }
    if (vt.rows > 0) {
        const struct view first = view_part(&vt, 0, k, 0, vt.cols);
        right = test_times(t, &first, 'C', u.rows > 0 ? r : test_times_values(t, s, r, k, 2));
        test_judge_rows(t, &vt);
    }
    if (left && right) {
        double *y = test_times(t, &a, 'N', right);
        test_subtract(t, y, left, a.rows);
        test_judge(t, y, a.rows, size);
    } else if (left) {
        const struct view first = view_part(&u, 0, u.rows, 0, k);
        double *y = test_times(t, &a, 'N', test_times(t, &a, 'C', test_times(t, &first, 'N', r)));
        test_subtract(t, y, left, a.rows);
        test_judge(t, y, a.rows, size * size);
    } else if (right) {
        const struct view first = view_part(&vt, 0, k, 0, vt.cols);
        double *y = test_times(t, &a, 'C', test_times(t, &a, 'N', test_times(t, &first, 'C', r)));
        test_subtract(t, y, right, a.cols);
        test_judge(t, y, a.cols, size * size);
    }
}
