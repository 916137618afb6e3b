/*
 * libsvm's sigmoid_train(): Platt's probabilities by Newton's method with backtracking (Lin, Lin,
 * Weng, Machine Learning 68, 2007).
 */
#include <math.h>
#include <stdlib.h>

#include "libsvm.h"
#include "base/math/series.h"

/* What Newton's method minimizes, of one value: t is its target. */
static double loss(double f, double t)
{
    return f >= 0 ? t * f + series_log(1 + series_exp(-f))
                  : (t - 1) * f + series_log(1 + series_exp(f));
}

struct fit {
    int count;
    const double *decisions;
    double *targets;
    double a, b;
};

static double loss_of(const struct fit *fit, double a, double b)
{
    double sum = 0;
    for (int i = 0; i < fit->count; i++)
        sum += loss(fit->decisions[i] * a + b, fit->targets[i]);
    return sum;
}

/* The gradient, and the step of Newton's method. */
struct newton_step {
    double g1, g2, a, b;
};

static struct newton_step direction_of(const struct fit *fit)
{
    double h11 = 1e-12, h22 = 1e-12, h21 = 0; /* so that the matrix is positive definite */
    struct newton_step d = {0, 0, 0, 0};
    for (int i = 0; i < fit->count; i++) {
        const double x = fit->decisions[i], f = x * fit->a + fit->b;
        const double e = series_exp(f >= 0 ? -f : f);
        const double p = (f >= 0 ? e : 1) / (1 + e), q = (f >= 0 ? 1 : e) / (1 + e);
        const double weight = p * q, difference = fit->targets[i] - p;
        h11 += x * x * weight;
        h22 += weight;
        h21 += x * weight;
        d.g1 += x * difference;
        d.g2 += difference;
    }
    const double determinant = h11 * h22 - h21 * h21;
    d.a = -(h22 * d.g1 - h21 * d.g2) / determinant;
    d.b = -(-h21 * d.g1 + h11 * d.g2) / determinant;
    return d;
}

/* Halves the step until the loss decreases. Returns false if that does not help. */
static bool take_step(struct fit *fit, const struct newton_step *d, double *loss_so_far)
{
    const double slope = d->g1 * d->a + d->g2 * d->b;
    for (double step = 1; step >= 1e-10; step /= 2) {
        const double a = fit->a + step * d->a, b = fit->b + step * d->b;
        const double loss_there = loss_of(fit, a, b);
        if (loss_there < *loss_so_far + 0.0001 * step * slope) {
            fit->a = a;
            fit->b = b;
            *loss_so_far = loss_there;
            return true;
        }
    }
    return false;
}

static const char *minimize(struct fit *fit)
{
    double loss_so_far = loss_of(fit, fit->a, fit->b);
    for (int i = 0; i < 100; i++) {
        const struct newton_step d = direction_of(fit);
        if (fabs(d.g1) < 1e-5 && fabs(d.g2) < 1e-5)
            return "";
        if (!take_step(fit, &d, &loss_so_far))
            return "Line search fails in two-class probability estimates\n";
    }
    return "Reaching maximal iterations in two-class probability estimates\n";
}

const char *libsvm_sigmoid(int count, const double *decisions, const double *labels, double *a,
                           double *b)
{
    struct fit fit = {count, decisions, malloc((size_t)count * sizeof(double) + 1), 0, 0};
    double positive = 0;
    if (!fit.targets)
        return NULL;
    for (int i = 0; i < count; i++)
        positive += labels[i] > 0;
    const double negative = count - positive;
    for (int i = 0; i < count; i++)
        fit.targets[i] = labels[i] > 0 ? (positive + 1) / (positive + 2) : 1 / (negative + 2);
    fit.b = series_log((negative + 1) / (positive + 1));
    const char *message = minimize(&fit);
    free(fit.targets);
    *a = fit.a;
    *b = fit.b;
    return message;
}
