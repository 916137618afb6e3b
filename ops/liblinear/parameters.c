/*
 * find_parameters() of the builds whose own call of train() nobody sees: PyPI's. It doubles C, and
 * in regression goes through values of p; each fold begins with its weights of the C before.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/work.h"
#include "base/math/series.h"
#include "validate.h"

enum { BEST_C, BEST_P, BEST_SCORE, OUTPUTS };
enum { P_VALUES = 20, UNCHANGED_MOST = 5 };

static bool is_regression(const struct linear_training *t)
{
    return t->parameter->solver == LINEAR_L2_SVR;
}

static double most_c(const struct linear_training *t)
{
    return is_regression(t) ? 1048576 : 1024;
}

/* ---- Where the search begins ---- */

/* Returns the largest sum of a row's squares. */
static double largest_square(const struct linear_problem *problem)
{
    double largest = 0;
    for (int i = 0; i < problem->rows; i++) {
        double sum = 0;
        for (const struct linear_node *node = problem->x[i]; node->index != -1; node++)
            sum += node->value * node->value;
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

static double largest_target(const struct linear_problem *problem)
{
    double largest = 0;
    for (int i = 0; i < problem->rows; i++)
        largest = fabs(problem->target[i]) > largest ? fabs(problem->target[i]) : largest;
    return largest;
}

/* Of regression: below this C the solution is 0, nearly. */
static double least_c(const struct linear_problem *problem, double square, double p)
{
    double sum = 0, loss = 0;
    for (int i = 0; i < problem->rows; i++) {
        const double size = fabs(problem->target[i]), beyond = size > p ? size - p : 0;
        sum += size;
        loss += beyond * beyond;
    }
    return loss > 0 ? 0.1 * 0.1 * loss / (8 * sum * sum * square) : INFINITY;
}

/* Returns 2^k <= c. c: positive and normal, or infinite. */
static double power_below(double c)
{
    double power = 1;
    if (isinf(c))
        return c;
    const double place = series_log(c) / series_log(2);
    for (int k = (int)place - (place < (int)place); k != 0; k += k < 0 ? 1 : -1)
        power *= k < 0 ? 0.5 : 2;
    return power;
}

/* Returns the first C; a number that is not normal if the library must find it. given: the
 * caller's, if above 0. */
static double first_c(const struct linear_training *t, double square, double p, double given)
{
    const struct linear_problem *problem = t->problem;
    const double rows = problem->rows * (t->parameter->solver == LINEAR_LR ? 1. : 2.);
    const double least = is_regression(t) ? least_c(problem, square, p) : 1 / (rows * square);
    const double c = !(given <= 0)                     ? given
                     : isnormal(least) || isinf(least) ? power_below(least)
                                                       : 0;
    return c < most_c(t) ? c : most_c(t);
}

/* Returns the number of the first p, which are counted down to 0; negative: the library must find
 * it. */
static int first_p(const struct linear_training *t, double given)
{
    if (!is_regression(t))
        return 0;
    const double place = given > 0 ? given / (largest_target(t->problem) / P_VALUES) : P_VALUES;
    return !(place < INT32_MAX) ? -1 : place < P_VALUES ? (int)place : P_VALUES - 1;
}

/* ---- The call ---- */

static bool parse_linear_search(struct accel_call *call, const struct accel_passed *passed)
{
    double *const *outputs = (double *const *)&call->own.pointer[LINEAR_OUTPUT];
    for (int i = 0; i < OUTPUTS; i++)
        call->own.integer[LINEAR_OUTPUT + i] = (int64_t)passed->gpr[3 + i];
    call->own.number[LINEAR_START_C] = passed->fpr[0][0];
    call->own.number[LINEAR_START_P] = passed->fpr[1][0];
    if (!outputs[BEST_C] || !outputs[BEST_P] || !outputs[BEST_SCORE] ||
        !linear_validates(call, passed))
        return false;
    const struct linear_training t = linear_training_in(call);
    const int p = first_p(&t, call->own.number[LINEAR_START_P]);
    double c = first_c(&t, largest_square(t.problem), 0, call->own.number[LINEAR_START_C]);
    if (p < 0 || !isnormal(c))
        return false;
    for (; c <= most_c(&t); c *= 2)
        call->own.integer[LINEAR_VALUES] += p + 1;
    return true;
}

static double trainings_of(const struct accel_call *call)
{
    return (double)call->own.integer[LINEAR_VALUES] * linear_folds_of(call);
}

/* A training that begins with the weights of half the C tries few directions. */
static double flops_of_linear_search(const struct accel_call *call)
{
    return linear_effort(call, false, trainings_of(call), 10, 0).operations;
}

/* The CPU's training may need no more than its start; and the search may end early. The host
 * predicts each row for each value. */
static struct accel_effort effort_of_linear_search(const struct accel_call *call, bool device)
{
    const double predicted =
        (double)call->own.integer[LINEAR_VALUES] * (double)call->own.integer[LINEAR_ELEMENTS];
    return linear_effort(call, device, trainings_of(call), device ? 25 : 4,
                         LINEAR_PREDICT_STEPS * predicted);
}

/* ---- The search ---- */

struct parameter_search {
    struct linear_validation *v;
    double *before; /* a fold's weights of the C before */
    int unchanged; /* values of C beside each other that have changed no weights; negative: this one
                      has */
};

__attribute__((format(printf, 2, 3))) static void say(struct linear_validation *v,
                                                      const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    v->lines++;
    (*v->training.library->print)(line);
}

static double distance(int64_t count, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return __builtin_sqrt(sum);
}

static enum gpu_status train_fold(struct parameter_search *s, int fold, bool first)
{
    const struct linear_fit *t = &s->v->fold[fold].fit;
    const int64_t weights = t->solve.n * t->problems;
    memcpy(s->before, t->common->w, (size_t)weights * sizeof *s->before);
    const enum gpu_status status = linear_validation_train(s->v, fold, first ? NULL : s->before);
    if (!first && s->unchanged >= 0 && distance(weights, t->common->w, s->before) > 1e-15)
        s->unchanged = -1;
    return status;
}

/* Says what the folds have predicted with this C. Returns the share of rows that are right; of
 * regression, the mean squared error. */
static double score(struct linear_validation *v)
{
    const struct linear_problem *problem = v->training.problem;
    const double c = v->parameter.common.c, log2c = series_log(c) / series_log(2);
    double errors = 0;
    int right = 0;
    for (int i = 0; i < problem->rows; i++) {
        const double error = v->target[i] - problem->target[i];
        right += v->target[i] == problem->target[i];
        errors += error * error;
    }
    const double mean = errors / problem->rows, rate = (double)right / problem->rows;
    if (is_regression(&v->training))
        say(v, "log2c=%7.2f\tp=%7.2f\tMean squared error=%g\n", log2c, v->parameter.p, mean);
    else
        say(v, "log2c=%7.2f\trate=%g\n", log2c, 100.0 * rate);
    return is_regression(&v->training) ? mean : rate;
}

/* Doubles C while it is at most `most`. best: C and score. */
static enum gpu_status search_c(struct parameter_search *s, double c, double best[OUTPUTS])
{
    struct linear_validation *v = s->v;
    const bool regression = is_regression(&v->training);
    const double most = most_c(&v->training);
    enum gpu_status status = GPU_OK;
    best[BEST_C] = c;
    best[BEST_SCORE] = regression ? INFINITY : 0;
    s->unchanged = 0;
    for (bool first = true; c <= most && s->unchanged < UNCHANGED_MOST; first = false) {
        v->parameter.common.c = c;
        for (int fold = 0; status == GPU_OK && fold < v->count; fold++)
            status = train_fold(s, fold, first);
        if (status != GPU_OK)
            return status;
        const double now = score(v);
        if (regression ? now < best[BEST_SCORE] : now > best[BEST_SCORE]) {
            best[BEST_C] = c;
            best[BEST_SCORE] = now;
        }
        s->unchanged++;
        c = s->unchanged < UNCHANGED_MOST ? c * 2 : c;
    }
    if (c > most)
        say(v, "WARNING: maximum C reached.\n");
    return status;
}

static enum gpu_status search_p(struct parameter_search *s, const struct accel_call *call,
                                double square)
{
    struct linear_validation *v = s->v;
    const struct linear_training *t = &v->training;
    const double given = call->own.number[LINEAR_START_C], most = largest_target(t->problem);
    enum gpu_status status = GPU_OK;
    for (int i = first_p(t, call->own.number[LINEAR_START_P]); status == GPU_OK && i >= 0; i--) {
        double best[OUTPUTS];
        v->parameter.p = i * most / P_VALUES;
        const double c = first_c(t, square, v->parameter.p, given);
        status = isnormal(c) ? search_c(s, c, best) : GPU_UNSUPPORTED;
        if (status == GPU_OK && best[BEST_SCORE] < v->best[BEST_SCORE]) {
            memcpy(v->best, best, sizeof best);
            v->best[BEST_P] = v->parameter.p;
        }
    }
    return status;
}

static enum gpu_status search(struct linear_validation *v, const struct accel_call *call)
{
    const double square = largest_square(v->training.problem);
    struct parameter_search s = {.v = v};
    int64_t weights = 0;
    for (int i = 0; i < v->count; i++) {
        v->fold[i].fit.solve.silent = true;
        weights = accel_max(weights, v->fold[i].fit.solve.n * v->fold[i].fit.problems);
    }
    s.before = malloc((size_t)weights * sizeof *s.before);
    if (!s.before)
        return GPU_NO_MEMORY;
    v->best[BEST_C] = NAN;
    v->best[BEST_P] = -1;
    v->best[BEST_SCORE] = INFINITY;
    const enum gpu_status status =
        is_regression(&v->training)
            ? search_p(&s, call, square)
            : search_c(&s, first_c(&v->training, square, 0, call->own.number[LINEAR_START_C]),
                       v->best);
    free(s.before);
    return status;
}

static enum gpu_status run_linear_search(struct gpu_work *work)
{
    struct linear_validation *v = malloc(sizeof *v);
    if (!v)
        return GPU_NO_MEMORY;
    enum gpu_status status = linear_validation_begin(v, work);
    if (status == GPU_OK)
        status = search(v, work->call);
    return linear_validation_end(v, work, status);
}

/* Without any score that is a number there is no C. */
static void complete_linear_search(const struct accel_call *call, struct accel_result *result)
{
    struct linear_validation *v = linear_validation_of(call);
    (void)result;
    for (int i = 0; i < OUTPUTS; i++)
        if (!isnan(v->best[i]))
            *(double *)(uintptr_t)call->own.pointer[LINEAR_OUTPUT + i] = v->best[i];
    linear_validation_free(v);
}

const struct accel_op op_liblinear_find_parameters =
    LINEAR_VALIDATION(parse_linear_search, flops_of_linear_search, effort_of_linear_search,
                      run_linear_search, complete_linear_search);
