/* Platt's sigmoid, beside a plain version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "ops/svm/sklearn.h"

static double number(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

/* Appendix C of Lin, Lin, Weng, "A note on Platt's probabilistic outputs", line by line. */
static const char *plain_sigmoid(int count, const double *dec, const double *label, double *a,
                                 double *b)
{
    double t[200], prior1 = 0, prior0 = 0;
    for (int i = 0; i < count; i++)
        *(label[i] > 0 ? &prior1 : &prior0) += 1;
    for (int i = 0; i < count; i++)
        t[i] = label[i] > 0 ? (prior1 + 1) / (prior1 + 2) : 1 / (prior0 + 2);
    *a = 0;
    *b = log((prior0 + 1) / (prior1 + 1));
    double value = 0;
    for (int i = 0; i < count; i++) {
        const double f = dec[i] * *a + *b;
        value += f >= 0 ? t[i] * f + log(1 + exp(-f)) : (t[i] - 1) * f + log(1 + exp(f));
    }
    for (int it = 0; it < 100; it++) {
        double h11 = 1e-12, h22 = 1e-12, h21 = 0, g1 = 0, g2 = 0;
        for (int i = 0; i < count; i++) {
            const double f = dec[i] * *a + *b;
            const double p = f >= 0 ? exp(-f) / (1 + exp(-f)) : 1 / (1 + exp(f));
            const double q = f >= 0 ? 1 / (1 + exp(-f)) : exp(f) / (1 + exp(f));
            h11 += dec[i] * dec[i] * p * q;
            h22 += p * q;
            h21 += dec[i] * p * q;
            g1 += dec[i] * (t[i] - p);
            g2 += t[i] - p;
        }
        if (fabs(g1) < 1e-5 && fabs(g2) < 1e-5)
            return "";
        const double det = h11 * h22 - h21 * h21;
        const double da = -(h22 * g1 - h21 * g2) / det, db = -(-h21 * g1 + h11 * g2) / det;
        const double gd = g1 * da + g2 * db;
        double step = 1;
        for (; step >= 1e-10; step /= 2) {
            const double new_a = *a + step * da, new_b = *b + step * db;
            double there = 0;
            for (int i = 0; i < count; i++) {
                const double f = dec[i] * new_a + new_b;
                there += f >= 0 ? t[i] * f + log(1 + exp(-f)) : (t[i] - 1) * f + log(1 + exp(f));
            }
            if (there < value + 0.0001 * step * gd) {
                *a = new_a;
                *b = new_b;
                value = there;
                break;
            }
        }
        if (step < 1e-10)
            return "Line search fails in two-class probability estimates\n";
    }
    return "Reaching maximal iterations in two-class probability estimates\n";
}

static void assert_same_sigmoid(int count, const double *decisions, const double *labels)
{
    double a, b, plain_a, plain_b;
    const char *said = libsvm_sigmoid(count, decisions, labels, &a, &b);
    assert_string_equal(said, plain_sigmoid(count, decisions, labels, &plain_a, &plain_b));
    assert_true(fabs(a - plain_a) <= 1e-6 * (1 + fabs(plain_a)));
    assert_true(fabs(b - plain_b) <= 1e-6 * (1 + fabs(plain_b)));
}

static void a_sigmoid_is_platts(void **state)
{
    double decisions[200], labels[200];
    (void)state;
    srand(1);
    for (int n = 0; n < 300; n++) {
        const int count = 1 + rand() % 200;
        const double size = pow(10, number(-2, 2)), shift = number(-2, 2), noise = number(0, 3);
        for (int i = 0; i < count; i++) {
            labels[i] = rand() % 3 ? 1 : -1;
            decisions[i] = size * (labels[i] + shift + noise * number(-1, 1));
        }
        assert_same_sigmoid(count, decisions, labels);
    }
    /* One class alone, and values that say nothing */
    for (int i = 0; i < 9; i++) {
        labels[i] = 1;
        decisions[i] = 0;
    }
    assert_same_sigmoid(9, decisions, labels);
    labels[0] = -1;
    assert_same_sigmoid(9, decisions, labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sigmoid_is_platts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
