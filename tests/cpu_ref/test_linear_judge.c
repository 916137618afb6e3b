/* cpu_ref/linear.h: models of a plain method pass, for each loss, and those with an error do
 * not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cpu_ref/linear.h"
#include "cpu_ref/verify.h"

enum { ROWS = 50, FEATURES = 6, COLUMNS = FEATURES + 1 };

static struct linear_node nodes[ROWS][COLUMNS + 1], *x[ROWS];
static double y[ROWS], c[ROWS], w[COLUMNS];

static double random_number(void)
{
    return (double)rand() / RAND_MAX * 2 - 1;
}

/* A third of the elements are 0; the last column is the bias. */
static void make_problem(struct cpu_ref_linear *q, int solver, bool free_bias)
{
    for (int i = 0; i < ROWS; i++) {
        int at = 0;
        y[i] = solver == LINEAR_L2_SVR ? sin(i) : i % 2 ? 1 : -1;
        c[i] = 1 + i % 3;
        for (int j = 1; j <= FEATURES; j++)
            if (rand() % 3)
                nodes[i][at++] = (struct linear_node){j, random_number() + (i % 2 ? 0.5 : -0.5)};
        nodes[i][at++] = (struct linear_node){COLUMNS, 1};
        nodes[i][at] = (struct linear_node){-1, 0};
        x[i] = nodes[i];
    }
    memset(w, 0, sizeof w);
    *q = (struct cpu_ref_linear){.rows = ROWS,
                                 .columns = COLUMNS,
                                 .x = x,
                                 .y = y,
                                 .c = c,
                                 .solver = solver,
                                 .p = 0.1,
                                 .free_bias = free_bias,
                                 .w = w,
                                 .eps = 1e-4,
                                 .enough = true};
}

/* Sets the objective, and the gradient's norm, at w. */
static void look(struct cpu_ref_linear *q, double gradient[COLUMNS])
{
    memset(gradient, 0, COLUMNS * sizeof *gradient);
    q->objective = 0;
    for (int i = 0; i < ROWS; i++) {
        double z = 0, slope = 0;
        for (const struct linear_node *node = x[i]; node->index != -1; node++)
            z += w[node->index - 1] * node->value;
        if (q->solver == LINEAR_LR) {
            q->objective += c[i] * log1p(exp(-y[i] * z));
            slope = -y[i] / (1 + exp(y[i] * z));
        } else if (q->solver == LINEAR_L2_SVC) {
            const double far = fmax(1 - y[i] * z, 0);
            q->objective += c[i] * far * far;
            slope = -2 * y[i] * far;
        } else {
            const double far = fmax(fabs(z - y[i]) - q->p, 0);
            q->objective += c[i] * far * far;
            slope = 2 * far * (z > y[i] ? 1 : -1);
        }
        for (const struct linear_node *node = x[i]; node->index != -1; node++)
            gradient[node->index - 1] += c[i] * slope * node->value;
    }
    for (int j = 0; j < COLUMNS - q->free_bias; j++) {
        gradient[j] += w[j];
        q->objective += w[j] * w[j] / 2;
    }
    q->norm = 0;
    for (int j = 0; j < COLUMNS; j++)
        q->norm += gradient[j] * gradient[j];
    q->norm = sqrt(q->norm);
}

/* Goes down the gradient. */
static void solve(struct cpu_ref_linear *q)
{
    double gradient[COLUMNS];
    look(q, gradient);
    for (const double enough = q->eps * q->norm; q->norm > enough; look(q, gradient))
        for (int j = 0; j < COLUMNS; j++)
            w[j] -= gradient[j] / 1000;
}

static void assert_wrong(struct cpu_ref_linear *q)
{
    assert_true(cpu_ref_linear(q) > 1);
    q->enough = false;
    assert_true(cpu_ref_linear(q) > 1);
    q->enough = true;
}

static void judge(int solver, bool free_bias)
{
    struct cpu_ref_linear q;
    make_problem(&q, solver, free_bias);
    solve(&q);
    const struct cpu_ref_linear right = q;
    const double ratio = cpu_ref_linear(&q);
    if (!(ratio > 0 && ratio <= 1))
        fail_msg("solver %d: %g", solver, ratio);
    q.enough = false; /* nobody says how near it is */
    assert_true(cpu_ref_linear(&q) == CPU_REF_NOT_JUDGED);
    q = right;
    q.objective *= 1 + 1e-5;
    assert_wrong(&q);
    q = right;
    q.norm *= 1.05;
    assert_wrong(&q);
    q = right;
    for (int j = 0; j < COLUMNS; j++) {
        const double was = w[j];
        w[j] += 1e-2;
        assert_wrong(&q);
        w[j] = NAN;
        assert_wrong(&q);
        w[j] = was;
    }
    q.eps /= 2; /* it was not solved to this */
    assert_true(cpu_ref_linear(&q) > 1);
    q = right;
    for (int i = 0; i < ROWS; i++) /* another problem's model */
        c[i] *= 1.01;
    assert_wrong(&q);
}

static void models_are_told_from_others(void **state)
{
    static const int solvers[] = {LINEAR_LR, LINEAR_L2_SVC, LINEAR_L2_SVR};
    (void)state;
    srand(7);
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        for (int free_bias = 0; free_bias < 2; free_bias++)
            judge(solvers[i], free_bias);
}

/* Decision values up to 10^4, of both signs, in a model that is right. */
static void values_may_be_large(void **state)
{
    struct cpu_ref_linear q;
    double gradient[COLUMNS];
    (void)state;
    make_problem(&q, LINEAR_LR, false);
    for (int j = 0; j < COLUMNS; j++)
        w[j] = 3000 * random_number();
    look(&q, gradient);
    if (isfinite(q.objective)) /* log1p(exp()) above overflows from 710 on */
        fail_msg("the decision values are not large: %g", q.objective);
    q.enough = false;
    q.objective = 0;
    for (int i = 0; i < ROWS; i++) {
        double z = 0;
        for (const struct linear_node *node = x[i]; node->index != -1; node++)
            z += w[node->index - 1] * node->value;
        q.objective += c[i] * (fmax(-y[i] * z, 0) + log1p(exp(-fabs(z))));
    }
    for (int j = 0; j < COLUMNS; j++)
        q.objective += w[j] * w[j] / 2;
    assert_true(cpu_ref_linear(&q) == CPU_REF_NOT_JUDGED);
    q.objective *= 1 + 1e-5;
    assert_true(cpu_ref_linear(&q) > 1);
}

static void numbers_beyond_the_range_are_not_judged(void **state)
{
    struct cpu_ref_linear q;
    (void)state;
    make_problem(&q, LINEAR_L2_SVC, false);
    w[0] = 1e200;
    assert_true(cpu_ref_linear(&q) == CPU_REF_NOT_JUDGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_are_told_from_others),
                                       cmocka_unit_test(values_may_be_large),
                                       cmocka_unit_test(numbers_beyond_the_range_are_not_judged)};
    return cmocka_run_group_tests_name("cpu_ref/linear", tests, NULL, NULL);
}
