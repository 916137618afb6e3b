#include "verify.h"

#include "clean.h"
#include "judge.h"
#include "substitute.h"
#include "vectors.h"

/* ---- Products ---- */

/* x := s x */
static void scale(double *x, int64_t n, enum accel_dtype dtype, value s)
{
    double re = (double)creall(s), im = (double)cimagl(s);
    if (parts_of(dtype) == 1) {
        for (int64_t i = 0; i < n; i++)
            x[i] *= re;
        return;
    }
    for (int64_t i = 0; i < 2 * n; i += 2) {
        double xr = x[i], xi = x[i + 1];
        x[i] = re * xr - im * xi;
        x[i + 1] = re * xi + im * xr;
    }
}

static double length(value z)
{
    return hypotenuse((double)creall(z), (double)cimagl(z));
}

/* How large anything may get on the way to a product: libraries differ in the order of the factors.
 * All arguments are squares but alpha. */
static double product_reach(value alpha, double norm_x, double norm_y)
{
    return greater_of(length(alpha), 1) * sqrt(greater_of(norm_x, 1)) * sqrt(greater_of(norm_y, 1));
}

/* A result of this reach is within the range of its type: nothing overflows. */
static bool is_in_range(enum accel_dtype dtype, double reach)
{
    return reach < most_of(dtype) / 4;
}

/* An equation times a random vector, and the allowed distance of its sides. */
struct blas_test {
    enum accel_dtype dtype;
    double input_error; /* see cpu_ref_verify() */
    struct vectors vectors;
    double *r;     /* random, one element for each column of the result */
    double *sides; /* the result's side minus the other one */
    double *bound; /* by row: the root of the sum of the squares of the norms */
    double inputs; /* the sum of the squares of all inputs */
    double reach;  /* product_reach() of all */
    double *doubt; /* by row: what the bound may be too low by, because squares underflow */
    bool open;     /* a row is not judged for that */
    const struct clean *clean; /* the equation is its; NULL: that of the call */
};

/* Squares of norms below this one may have lost bits, or are 0. */
#define FAINT 1e-300

/* What a norm may be too low by. */
static double doubt_of(double square)
{
    return square < FAINT ? sqrt(FAINT) : 0;
}

static double length_at(const double *x, int64_t i, int64_t parts)
{
    return hypotenuse(x[i * parts], parts == 2 ? x[i * parts + 1] : 0);
}

/* Subtracts a row of a term, whose bound may be too low by `doubt`, from the sides. */
static void subtract_row(struct blas_test *test, int64_t row, const double *term, double bound,
                         double doubt)
{
    const int64_t parts = parts_of(test->dtype);
    if (length_at(term, row, parts) != 0)
        test->doubt[row] += doubt;
    for (int64_t i = row * parts; i < (row + 1) * parts; i++)
        test->sides[i] -= term[i];
    test->bound[row] = hypotenuse(test->bound[row], bound);
}

static void subtract_product(struct blas_test *test, const struct equation *e, int i)
{
    const struct product *p = &e->product[i];
    const struct view *const x = &p->x.view, *const y = &p->y.view;
    const int64_t parts = parts_of(test->dtype), used = test->vectors.used;
    double *inner = vector_zero(&test->vectors, e->inner * parts),
           *outer = vector_zero(&test->vectors, e->rows * parts),
           *rows = vector_zero(&test->vectors, e->rows);
    apply(y, p->y.op, test->r, inner);
    apply(x, p->x.op, inner, outer);
    scale(outer, e->rows, test->dtype, p->alpha);
    const double norm_x = add_squares(x, p->x.op, rows), norm_y = sum_of_squares(y),
                 least = least_precise(test->dtype);
    /* Each element of a solution may be that far off. */
    const double of_x = e->solve && !equation_is_left(e) ? least : 0,
                 of_y = e->solve && equation_is_left(e) ? least : 0;
    for (int64_t row = 0; row < e->rows; row++) {
        const double norm = (sqrt(rows[row]) + of_x) * (sqrt(norm_y) + of_y);
        const double doubt = doubt_of(rows[row]) * (sqrt(norm_y) + doubt_of(norm_y)) +
                             sqrt(rows[row]) * doubt_of(norm_y);
        subtract_row(test, row, outer, length(p->alpha) * (norm + least), length(p->alpha) * doubt);
    }
    test->inputs += norm_x + norm_y;
    test->reach += product_reach(p->alpha, norm_x, norm_y);
    test->vectors.used = used;
}

static void subtract_before(struct blas_test *test, const struct equation *e)
{
    const struct view *const old = &e->before.view;
    const int64_t parts = parts_of(test->dtype), used = test->vectors.used;
    double *outer = vector_zero(&test->vectors, e->rows * parts),
           *rows = vector_zero(&test->vectors, e->rows);
    apply(old, 'N', test->r, outer);
    scale(outer, e->rows, test->dtype, e->beta);
    const double norm = add_squares(old, 'N', rows);
    test->inputs += norm;
    test->reach += length(e->beta) * sqrt(norm);
    for (int64_t row = 0; row < e->rows; row++)
        subtract_row(test, row, outer, length(e->beta) * sqrt(rows[row]),
                     length(e->beta) * doubt_of(rows[row]));
    test->vectors.used = used;
}

/* The rounding error for each unit of the bound's norms: an element has at most k roundings, and
 * the errors of a row enter the result with random signs. The test's own rounding in double
 * precision comes on top. */
static double tolerance(const struct blas_test *test, int64_t inner, int64_t cols)
{
    const double deviations = 6, k = (double)inner + 16, n = (double)cols + 1;
    return RANDOM_MOST * (deviations * (k * unit_roundoff(test->dtype) + 2 * test->input_error) +
                          (k + n) * 0x1p-53 * sqrt(n));
}

/* The worst row. The rows of a solution depend on each other, so they count together. */
static double worst_of(struct blas_test *test, const struct equation *e)
{
    const double t = tolerance(test, e->inner, e->cols);
    const int64_t parts = parts_of(test->dtype);
    double worst = 0, errors = 0, bounds = 0;
    for (int64_t row = 0; row < e->rows; row++) {
        const double error = length_at(test->sides, row, parts), bound = t * test->bound[row];
        if (test->clean && test->clean->row[row])
            continue;
        if (100 * test->doubt[row] < test->bound[row] || !is_number(error))
            note_error(&worst, error, bound);
        else
            test->open = true;
        errors += error * error;
        bounds += bound * bound;
    }
    return e->solve ? ratio_of_squares(errors, bounds) : worst;
}

/* About the scale that is due to a solution: its matrix solves the right-hand sides times a random
 * vector, which is about as long as all of it. */
static double due_scale(struct vectors *vectors, const struct equation *e)
{
    const bool left = equation_is_left(e);
    const struct factor *const factor = equation_matrix(e);
    const struct view *const triangle = &factor->view;
    const enum accel_dtype dtype = triangle->dtype;
    const int64_t used = vectors->used, count = e->inner * parts_of(dtype);
    const double *r = vector_random(vectors, left ? e->cols : e->rows, dtype);
    double *x = vector_zero(vectors, count);
    apply(&e->before.view, left ? 'N' : 'T', r, x);
    scale(x, e->inner, dtype, e->beta);
    substitute(triangle, left ? factor->op : op_transposed(factor->op), x);
    vectors->used = used;
    return (1 + sqrt(sum_of_squares(triangle))) * sqrt(dot_self(x, count)) +
           largest_reciprocal(triangle);
}

/* Judges a solution if its matrix and right-hand sides are of moderate size. */
static double judge_solution(struct blas_test *test, const struct equation *e, double worst)
{
    if (!is_moderate(test->dtype, sqrt(sum_of_squares(&e->before.view))) ||
        !is_moderate(test->dtype, sqrt(sum_of_squares(&equation_matrix(e)->view))))
        return CPU_REF_NOT_JUDGED;
    if (is_huge(test->dtype, sqrt(sum_of_squares(&e->out.view))))
        return judge_huge(test->dtype, due_scale(&test->vectors, e));
    return worst;
}

/* The random vector is 0 where a column is not judged. */
static double *random_of(struct blas_test *test, const struct equation *e)
{
    const int64_t parts = parts_of(test->dtype);
    double *const r = vector_random(&test->vectors, e->cols, test->dtype);
    for (int64_t i = 0; test->clean && i < e->cols * parts; i++)
        r[i] = test->clean->col[i / parts] ? 0 : r[i];
    return r;
}

static double judge_whole(struct blas_test *test, const struct equation *e)
{
    const int64_t used = test->vectors.used;
    test->r = random_of(test, e);
    test->sides = vector_zero(&test->vectors, e->rows * parts_of(test->dtype));
    test->bound = vector_zero(&test->vectors, e->rows);
    test->doubt = vector_zero(&test->vectors, e->rows);
    test->inputs = test->reach = 0;
    test->open = false;
    for (int64_t row = 0; row < e->rows; row++)
        test->bound[row] = least_precise(test->dtype);
    for (int i = 0; i < e->products; i++)
        subtract_product(test, e, i);
    if (e->beta != 0)
        subtract_before(test, e);
    if (!e->solve)
        apply(&e->out.view, 'N', test->r, test->sides);
    double worst = worst_of(test, e);
    test->vectors.used = used;
    if (e->solve)
        return judge_solution(test, e, worst);
    if (!is_number(test->inputs) || (worst > 1 && !is_in_range(test->dtype, test->reach)))
        return CPU_REF_NOT_JUDGED;
    return cpu_ref_worse_of(worst, test->open ? CPU_REF_NOT_JUDGED : 0);
}

/* Judges what no NaN and no infinity of the inputs reaches: it may be wrong, never all right. */
static double judge_rest(struct blas_test *test, const struct equation *e)
{
    struct clean clean;
    if (!clean_make(&clean, e))
        return CPU_REF_NOT_JUDGED;
    test->clean = &clean;
    const double ratio = judge_whole(test, &clean.equation);
    test->clean = NULL;
    clean_free(&clean);
    return cpu_ref_worse_of(ratio, CPU_REF_NOT_JUDGED);
}

static double judge_equation(struct blas_test *test, const struct equation *e)
{
    const double ratio = judge_whole(test, e);
    return ratio < 0 ? judge_rest(test, e) : ratio;
}

/* ---- A triangle of a product that is no symmetric matrix ---- */

/* Lines [first, first + count) of op(X), rows or columns. */
static void take_lines(struct factor *x, bool are_rows, int64_t first, int64_t count)
{
    x->view = are_rows != op_is_across(x->op) ? view_part(&x->view, first, count, 0, x->view.cols)
                                              : view_part(&x->view, 0, x->view.rows, first, count);
}

static struct equation block_of(const struct equation *e, int64_t row, int64_t rows, int64_t col,
                                int64_t cols)
{
    struct equation block = *e;
    take_lines(&block.product[0].x, true, row, rows);
    take_lines(&block.product[0].y, false, col, cols);
    block.out.view = view_part(&e->out.view, row, rows, col, cols);
    if (e->before.view.ptr)
        block.before.view = view_part(&e->before.view, row, rows, col, cols);
    block.rows = rows;
    block.cols = cols;
    block.uplo = 0;
    return block;
}

/* Splits a triangle into a square beside the diagonal and two smaller triangles, down to single
 * elements. */
static double judge_triangle(struct blas_test *test, const struct equation *e, int64_t from,
                             int64_t n)
{
    if (n <= 1) {
        const struct equation one = block_of(e, from, n, from, n);
        return n < 1 ? 0 : judge_equation(test, &one);
    }
    int64_t half = n / 2, rest = n - half;
    const struct equation square = e->uplo == 'U' ? block_of(e, from, half, from + half, rest)
                                                  : block_of(e, from + half, rest, from, half);
    double worst = judge_equation(test, &square);
    worst = cpu_ref_worse_of(worst, judge_triangle(test, e, from, half));
    return cpu_ref_worse_of(worst, judge_triangle(test, e, from + half, rest));
}

/* ---- A call ---- */

static double judge_products(const struct accel_call *call, const void *before, uint64_t seed,
                             double input_error)
{
    struct blas_test test = {.dtype = call->routine->dtype, .input_error = input_error};
    const bool batch = call->op->traits.group == ACCEL_BATCH;
    double worst = 0;
    int64_t longest = accel_max(accel_max(call->blas.size[ACCEL_m], call->blas.size[ACCEL_n]),
                                call->blas.size[ACCEL_k]);
    if (!vectors_open(&test.vectors, 8, longest, seed))
        return CPU_REF_NOT_JUDGED;
    for (int64_t i = 0; i < (batch ? call->batch : 1); i++) {
        const struct equation e = equation_of(call, ACCEL_COLUMN_MAJOR, before, i);
        worst =
            cpu_ref_worse_of(worst, e.uplo && !e.symmetric ? judge_triangle(&test, &e, 0, e.rows)
                                                           : judge_equation(&test, &e));
    }
    vectors_close(&test.vectors);
    return worst;
}

/* A solution with elements that are no numbers. */
static double judge_broken_solution(const struct equation *e, enum accel_dtype dtype, uint64_t seed)
{
    struct vectors vectors;
    if (!vectors_open(&vectors, 2, accel_max(e->inner, accel_max(e->rows, e->cols)), seed))
        return CPU_REF_NOT_JUDGED;
    const double ratio = judge_huge(dtype, due_scale(&vectors, e));
    vectors_close(&vectors);
    return ratio;
}

/* The largest ratio that rounding explains. A sum of k products has at most about k roundings of
 * half an epsilon each, and all of them may err to the same side. */
static double most_of_ratio(const struct equation *e)
{
    return greater_of(CPU_REF_THRESHOLD, ((double)e->inner + 16) / 2);
}

/* A Level 2 call costs as much as its test: check every element. */
static double judge_all(const struct accel_call *call, const void *before, uint64_t seed)
{
    const enum accel_dtype dtype = call->routine->dtype;
    const struct equation e = equation_of(call, ACCEL_COLUMN_MAJOR, before, 0);
    double inputs = 0, reach = 0;
    for (int i = 0; i < e.products; i++) {
        const double norm_x = e.solve ? 0 : sum_of_squares(&e.product[i].x.view),
                     norm_y = sum_of_squares(&e.product[i].y.view);
        inputs += norm_x + norm_y;
        reach += product_reach(e.product[i].alpha, norm_x, norm_y);
    }
    if (e.beta != 0) {
        const double norm = sum_of_squares(&e.before.view);
        inputs += norm;
        reach += length(e.beta) * sqrt(norm);
    }
    if (!is_number(inputs))
        return judge_products(call, before, seed, 0);
    const double ratio = cpu_ref_ratio(call, ACCEL_COLUMN_MAJOR, before) / most_of_ratio(&e);
    if (is_number(ratio))
        return ratio;
    if (e.solve)
        return judge_broken_solution(&e, dtype, seed);
    return is_in_range(dtype, reach) ? INFINITY : CPU_REF_NOT_JUDGED;
}

double cpu_ref_verify(const struct accel_call *call, const void *const before[ACCEL_SPANS],
                      uint64_t seed, double input_error)
{
    const struct accel_op *op = call->op;
    if (op->foreign && op->foreign->judge)
        return op->foreign->judge(call);
    if (!accel_rules_of(op)->equation)
        return cpu_ref_verify_lapack(call, before, seed);
    const void *old = before[equation_output(call->routine)];
    if (op->traits.group == ACCEL_LEVEL_2)
        return judge_all(call, old, seed);
    return judge_products(call, old, seed, input_error);
}
