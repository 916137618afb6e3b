/*
 * The conditions of Karush, Kuhn and Tucker for solutions, with kernel values in double from the
 * matrix itself: a kernel sums them over the support vectors, for each row of a problem.
 */
#include <math.h>
#include <stdlib.h>

#include "smo_steps.h"

/* By how much a float differs from its kernel value, relatively, and half of that again, for sums
 * in another order. */
#define ROUNDING (1.5 / (1 << 24))

struct check {
    struct smo *s;
    const struct smo_problem *problem;
    const struct smo_columns *columns;
    int64_t count;
    struct svm_sum *sum;
    double *sums;   /* coefficients and masses of columns, before; the sums, after */
    int64_t *first; /* of each problem, its first column */
    int64_t all;
};

/* Of each column, what its variables are together: the factor of its kernel values in the gradient,
 * and the sum of alphas. */
static void add_columns(const struct check *check, int64_t i)
{
    const struct smo_problem *p = &check->problem[i];
    for (int64_t v = 0; v < p->n; v++) {
        double *at = &check->sums[2 * (check->first[i] + check->columns[i].of[v])];
        at[0] += p->y[v] * p->alpha[v];
        at[1] += p->alpha[v];
    }
}

/* Lists the support vectors of a problem: their rows, factors and masses. */
static int64_t list_support(const struct check *check, int64_t i, double *factor, double *mass,
                            int32_t *row)
{
    const struct smo_problem *p = &check->problem[i];
    int64_t count = 0;
    for (int64_t v = 0; v < p->n; v++) {
        double *at = &check->sums[2 * (check->first[i] + check->columns[i].of[v])];
        if (at[1] != 0) {
            factor[count] = at[0];
            mass[count] = at[1];
            row[count++] = p->row[v];
            at[1] = 0; /* another variable of this column finds it listed */
        }
    }
    return count;
}

/* Puts the support vectors on the device; fills in the tasks, which follow them there. Returns the
 * tasks' address. */
static gpu_address put_support(struct check *check)
{
    const int64_t all = check->all;
    double *factor = smo_allocate(check->s, all, 2 * 8 + 4);
    double *mass = factor ? factor + all : NULL;
    int32_t *row = mass ? (int32_t *)(mass + all) : NULL;
    const gpu_address there = smo_take(check->s, all * 20), sums = smo_take(check->s, all * 16);
    const gpu_address tasks = smo_take(check->s, check->count * (int64_t)sizeof *check->sum);
    for (int64_t i = 0; i < check->count && factor; i++) {
        const int64_t first = check->first[i];
        add_columns(check, i);
        check->sum[i] = (struct svm_sum){.columns = check->columns[i].count,
                                         .row = check->columns[i].row,
                                         .coefficient = there + (gpu_address)(first * 8),
                                         .mass = there + (gpu_address)((all + first) * 8),
                                         .vector = there + (gpu_address)(all * 16 + first * 4),
                                         .sums = sums + (gpu_address)(first * 16)};
        check->sum[i].support = list_support(check, i, factor + first, mass + first, row + first);
    }
    if (factor)
        smo_write(check->s, there, factor, all * 20);
    smo_write(check->s, tasks, check->sum, check->count * (int64_t)sizeof *check->sum);
    free(factor);
    return tasks;
}

static void launch_sums(struct check *check, const struct svm_rows *x)
{
    struct smo *s = check->s;
    struct svm_rows rows = *x;
    int64_t most = 1;
    gpu_address tasks = put_support(check);
    struct gpu_grid grid = {1, (unsigned)accel_min(check->count, SMO_GRID_MOST),
                            smo_threads(s, "svm_sums", 256), 0, false};
    for (int64_t i = 0; i < check->count; i++)
        most = accel_max(most, check->columns[i].count);
    grid.blocks_x = (unsigned)((most + grid.threads - 1) / grid.threads);
    smo_launch(s, "svm_sums", grid, (void *[]){&s->kernel, &rows, &tasks, &check->count});
    if (check->sum)
        smo_read(s, check->sums, check->sum[0].sums, check->all * 16);
}

/* The largest violations by the variables of one sign or both (0), on both sides. slack: what
 * rounding to float may add to them. */
static double gap_of(const struct smo_problem *p, const struct smo_columns *columns,
                     const double *sums, int sign, double *slack)
{
    double up = -INFINITY, low = -INFINITY, up_mass = 0, low_mass = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double *at = &sums[2 * columns->of[i]];
        const double value = -(p->y[i] * p->p[i] + at[0]); /* -y G */
        const bool at_c = p->alpha[i] >= p->c[i], at_0 = !at_c && p->alpha[i] <= 0;
        if (sign != 0 && p->y[i] != sign)
            continue;
        if (!(p->y[i] > 0 ? at_c : at_0) && !(value <= up)) {
            up = value;
            up_mass = at[1];
        }
        if (!(p->y[i] > 0 ? at_0 : at_c) && !(-value <= low)) {
            low = -value;
            low_mass = at[1];
        }
    }
    *slack = ROUNDING * (up_mass + low_mass);
    return up + low;
}

/* Returns whether eps and rounding explain the gap. A NaN is explained by nothing. */
static bool is_solved(struct smo_problem *p, const struct smo_columns *columns, const double *sums)
{
    double slack, other_slack = 0, other = -INFINITY;
    p->gap = gap_of(p, columns, sums, p->nu ? 1 : 0, &slack);
    bool solved = p->gap < p->eps + slack;
    if (p->nu) {
        other = gap_of(p, columns, sums, -1, &other_slack);
        solved = solved && other < p->eps + other_slack;
        p->gap = other <= p->gap ? p->gap : other;
    }
    return solved;
}

/* Of a problem that a cap has ended: returns whether its objective is that of its variables, within
 * what rounding to float may add. */
static bool is_consistent(const struct smo_problem *p, const struct smo_columns *columns,
                          const double *sums)
{
    double objective = 0, slack = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double *at = &sums[2 * columns->of[i]];
        objective += p->alpha[i] * (2 * p->p[i] + p->y[i] * at[0]) / 2;
        slack += ROUNDING * p->alpha[i] * (at[1] + fabs(p->p[i]));
    }
    return fabs(objective - p->objective) <= slack;
}

void smo_check(struct smo *s, const struct svm_rows *x, struct smo_problem *problems,
               const struct smo_columns *columns, int64_t count)
{
    struct check check = {.s = s, .problem = problems, .columns = columns, .count = count};
    check.first = smo_allocate(s, count, sizeof *check.first);
    for (int64_t i = 0; i < count && check.first; i++) {
        check.first[i] = check.all;
        check.all += columns[i].count;
    }
    check.sum = smo_allocate(s, count, sizeof *check.sum);
    check.sums = smo_allocate(s, check.all, 2 * sizeof *check.sums);
    if (s->status == GPU_OK)
        launch_sums(&check, x);
    for (int64_t i = 0; i < count && s->status == GPU_OK; i++)
        if (!is_solved(&problems[i], &columns[i], check.sums + 2 * check.first[i]) &&
            (problems[i].converged ||
             !is_consistent(&problems[i], &columns[i], check.sums + 2 * check.first[i])))
            smo_note(s, GPU_UNSUPPORTED);
    free(check.first);
    free(check.sum);
    free(check.sums);
}
