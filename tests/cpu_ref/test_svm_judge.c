/* cpu_ref/svm.h: solutions of a plain solver pass, for each kernel and kind of problem, and those
 * with an error do not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cpu_ref/svm.h"

enum { ROWS = 40, FEATURES = 6, MOST = 2 * ROWS };

static double dense[ROWS * FEATURES], gram[ROWS * ROWS], sparse[ROWS * FEATURES];
static int64_t start[ROWS + 1];
static int32_t column[ROWS * FEATURES];

static const struct svm_kernel kernels[] = {{SVM_LINEAR, 0, 0, 0},
                                            {SVM_POLY, 3, 0.2, 1},
                                            {SVM_RBF, 0, 0.3, 0},
                                            {SVM_SIGMOID, 0, 0.05, 0.1},
                                            {SVM_PRECOMPUTED, 0, 0, 0}};

static double random_number(void)
{
    return (double)rand() / RAND_MAX * 2 - 1;
}

/* A third of the elements are 0, so that the sparse form has gaps. */
static void make_vectors(void)
{
    int64_t stored = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FEATURES; k++) {
            const double value = rand() % 3 ? random_number() + (i % 2 ? 0.5 : -0.5) : 0;
            dense[i * FEATURES + k] = value;
            if (value == 0)
                continue;
            column[stored] = k;
            sparse[stored++] = value;
        }
        start[i + 1] = stored;
    }
}

static double kernel_of(const struct svm_kernel *kernel, int i, int j)
{
    double product = 0, distance = 0;
    for (int k = 0; k < FEATURES; k++) {
        const double x = dense[i * FEATURES + k], y = dense[j * FEATURES + k];
        product += x * y;
        distance += (x - y) * (x - y);
    }
    if (kernel->type == SVM_POLY)
        return pow(kernel->gamma * product + kernel->coef0, kernel->degree);
    if (kernel->type == SVM_SIGMOID)
        return tanh(kernel->gamma * product + kernel->coef0);
    return kernel->type == SVM_RBF ? exp(-kernel->gamma * distance) : product;
}

/* ---- A plain solver: the pair that violates the conditions most ---- */

struct solved {
    int32_t row[MOST];
    signed char y[MOST];
    double p[MOST], c[MOST], alpha[MOST], gradient[MOST];
    struct cpu_ref_svm q;
};

static double value_of(const struct solved *s, int i)
{
    return s->q.nu ? -s->gradient[i] : -s->y[i] * s->gradient[i];
}

static bool may(const struct solved *s, int i, bool grow)
{
    return (grow == (s->q.nu || s->y[i] > 0)) ? s->alpha[i] < s->c[i] : s->alpha[i] > 0;
}

/* Finds the pair; of a nu problem, of one sign. Returns by how much it violates the conditions. */
static double worst_pair(const struct solved *s, int sign, int *i, int *j)
{
    *i = *j = -1;
    for (int t = 0; t < s->q.n; t++) {
        if (s->q.nu && s->y[t] != sign)
            continue;
        if (may(s, t, true) && (*i < 0 || value_of(s, t) > value_of(s, *i)))
            *i = t;
        if (may(s, t, false) && (*j < 0 || value_of(s, t) < value_of(s, *j)))
            *j = t;
    }
    return *i < 0 || *j < 0 ? 0 : value_of(s, *i) - value_of(s, *j);
}

static void add(struct solved *s, int i, double change)
{
    s->alpha[i] += change;
    if (s->alpha[i] < 1e-15)
        s->alpha[i] = 0;
    if (s->alpha[i] > s->c[i] * (1 - 1e-15))
        s->alpha[i] = s->c[i];
    for (int t = 0; t < s->q.n; t++)
        s->gradient[t] += s->y[t] * s->y[i] * change * gram[s->row[t] * ROWS + s->row[i]];
}

static void step(struct solved *s, int i, int j, double violation)
{
    const double curvature = gram[s->row[i] * (ROWS + 1)] + gram[s->row[j] * (ROWS + 1)] -
                             2 * gram[s->row[i] * ROWS + s->row[j]];
    double length = violation / fmax(curvature, 1e-9);
    const int up = s->q.nu ? 1 : s->y[i], down = s->q.nu ? -1 : -s->y[j];
    length = fmin(length, up > 0 ? s->c[i] - s->alpha[i] : s->alpha[i]);
    length = fmin(length, down > 0 ? s->c[j] - s->alpha[j] : s->alpha[j]);
    add(s, i, up * length);
    add(s, j, down * length);
}

static double middle(const struct solved *s, int sign)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    int count = 0;
    for (int t = 0; t < s->q.n; t++) {
        if (s->q.nu && s->y[t] != sign)
            continue;
        const double value = -value_of(s, t);
        if (may(s, t, true) && may(s, t, false)) {
            sum += value;
            count++;
        } else if (may(s, t, true)) {
            low = fmin(low, value);
        } else {
            high = fmax(high, value);
        }
    }
    return count ? sum / count : (low + high) / 2;
}

static void solve(struct solved *s, int most)
{
    int i, j, other_i, other_j;
    for (int t = 0; t < s->q.n; t++) {
        s->gradient[t] = s->p[t];
        s->q.sum += s->alpha[t];
        s->q.sum_y += s->y[t] * s->alpha[t];
    }
    for (int t = 0; t < s->q.n; t++)
        for (int u = 0; u < s->q.n; u++)
            s->gradient[t] += s->y[t] * s->y[u] * s->alpha[u] * gram[s->row[t] * ROWS + s->row[u]];
    for (int steps = 0; steps < most; steps++) {
        double violation = worst_pair(s, 1, &i, &j);
        const double other = s->q.nu ? worst_pair(s, -1, &other_i, &other_j) : 0;
        if (other > violation) {
            i = other_i;
            j = other_j;
            violation = other;
        }
        if (violation < s->q.eps / 10)
            break;
        step(s, i, j, violation);
    }
    for (int t = 0; t < s->q.n; t++)
        s->q.objective += s->alpha[t] * (s->gradient[t] + s->p[t]) / 2;
    s->q.rho = middle(s, 1);
    if (s->q.nu) {
        const double one = s->q.rho, other = middle(s, -1);
        s->q.rho = (one - other) / 2;
        s->q.r = (one + other) / 2;
    }
}

/* ---- Problems, as libsvm makes them ---- */

static void make(struct solved *s, int type, double eps)
{
    const bool regression = type == SVM_EPSILON_SVR || type == SVM_NU_SVR;
    const double nu = 0.4;
    memset(s, 0, sizeof *s);
    s->q = (struct cpu_ref_svm){.n = regression ? MOST : ROWS,
                                .row = s->row,
                                .y = s->y,
                                .p = s->p,
                                .c = s->c,
                                .alpha = s->alpha,
                                .nu = type == SVM_NU_SVC || type == SVM_NU_SVR,
                                .eps = eps};
    for (int i = 0; i < s->q.n; i++) {
        const double target = sin(i % ROWS);
        s->row[i] = i % ROWS;
        s->y[i] = regression ? (i < ROWS ? 1 : -1) : type == SVM_ONE_CLASS || i % 2 ? 1 : -1;
        s->c[i] = type == SVM_C_SVC ? 1 + i % 3 : 1;
        s->p[i] = type == SVM_C_SVC ? -1
                  : regression      ? (type == SVM_EPSILON_SVR ? 0.1 : 0) - s->y[i] * target
                                    : 0;
        if (type == SVM_ONE_CLASS || s->q.nu)
            s->alpha[i] = nu;
    }
}

static struct svm_matrix vectors_of(const struct svm_kernel *kernel, bool in_csr)
{
    const struct svm_matrix x = {ROWS, FEATURES, dense, NULL, NULL, NULL},
                            csr = {ROWS, FEATURES, NULL, start, column, sparse},
                            precomputed = {ROWS, ROWS, gram, NULL, NULL, NULL};
    return kernel->type == SVM_PRECOMPUTED ? precomputed : in_csr ? csr : x;
}

/* The judge finds wrong offsets and a wrong objective of a right solution. */
static void errors_are_found(const struct svm_matrix *x, const struct svm_kernel *kernel,
                             struct cpu_ref_svm right)
{
    const double ratio = cpu_ref_svm(x, kernel, &right);
    if (!(ratio >= 0 && ratio <= 1))
        fail_msg("kernel %d, %d variables: %g", kernel->type, (int)right.n, ratio);
    struct cpu_ref_svm wrong = right;
    wrong.rho += 100 * right.eps;
    wrong.r += 100 * right.eps;
    assert_true(cpu_ref_svm(x, kernel, &wrong) > 1);
    wrong = right;
    wrong.objective += 1e-3 * (1 + fabs(right.objective));
    assert_true(cpu_ref_svm(x, kernel, &wrong) > 1);
}

static void judge_all(const struct svm_kernel *kernel, int type, bool in_csr)
{
    static struct solved s;
    const struct svm_matrix x = vectors_of(kernel, in_csr);
    make_vectors();
    for (int i = 0; i < ROWS * ROWS; i++)
        gram[i] = kernel_of(kernel, i / ROWS, i % ROWS);
    make(&s, type, 1e-3);
    solve(&s, 200000);
    errors_are_found(&x, kernel, s.q);
    for (int i = 0; i < s.q.n; i++) { /* one variable after the other is wrong */
        const double was = s.alpha[i];
        s.alpha[i] = was > s.c[i] / 2 ? was - s.c[i] / 4 : was + s.c[i] / 4;
        assert_true(cpu_ref_svm(&x, kernel, &s.q) > 1);
        s.alpha[i] = i % 3 ? -0.01 : NAN;
        assert_true(cpu_ref_svm(&x, kernel, &s.q) > 1);
        s.alpha[i] = was;
    }
    s.q.eps = 1e-9; /* it was not solved to this */
    if (type == SVM_C_SVC && kernel->type == SVM_RBF)
        assert_true(cpu_ref_svm(&x, kernel, &s.q) > 1);
}

/* A solver that has been stopped: all but the gap is right, and an error is found as in a
 * solution. */
static void judge_stopped(const struct svm_kernel *kernel, int type)
{
    static struct solved s;
    const struct svm_matrix x = vectors_of(kernel, false);
    make_vectors();
    for (int i = 0; i < ROWS * ROWS; i++)
        gram[i] = kernel_of(kernel, i / ROWS, i % ROWS);
    make(&s, type, 1e-3);
    solve(&s, 9);
    assert_true(cpu_ref_svm(&x, kernel, &s.q) > 1);
    s.q.capped = true;
    errors_are_found(&x, kernel, s.q);
    s.alpha[3] += s.alpha[3] > s.c[3] / 2 ? -s.c[3] / 4 : s.c[3] / 4;
    assert_true(cpu_ref_svm(&x, kernel, &s.q) > 1);
}

static void ends_by_a_cap_are_judged(void **state)
{
    (void)state;
    srand(8);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (int type = SVM_C_SVC; type <= SVM_NU_SVR; type++)
            judge_stopped(&kernels[k], type);
}

static void solutions_are_told_from_others(void **state)
{
    (void)state;
    srand(7);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (int type = SVM_C_SVC; type <= SVM_NU_SVR; type++)
            for (int csr = 0; csr < 2; csr++)
                if (kernels[k].type != SVM_SIGMOID || type != SVM_NU_SVC) /* has no optimum */
                    judge_all(&kernels[k], type, csr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(solutions_are_told_from_others),
                                       cmocka_unit_test(ends_by_a_cap_are_judged)};
    return cmocka_run_group_tests_name("cpu_ref/svm", tests, NULL, NULL);
}
