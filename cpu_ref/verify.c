#include "verify.h"

#include "judge.h"
#include "vectors.h"

/* ---- Products ---- */

/* op(X) is rows x cols; X is stored by columns. */
static struct view view_of(const struct factor *x, int64_t rows, int64_t cols)
{
    bool across = x->op == 'T' || x->op == 'C';
    return (struct view){
        x->stored.ptr,   across ? cols : rows, across ? rows : cols,      x->stored.col_step,
        x->stored.dtype, x->structure,         x->structure ? x->uplo : 0};
}

static struct view view_of_stored(const struct stored *x, int64_t rows, int64_t cols)
{
    return (struct view){x->ptr, rows, cols, x->col_step, x->dtype, GENERAL, 0};
}

/* If the routine writes a triangle of a symmetric or Hermitian result, the triangle stands for the whole. */
static struct view result_view(const struct equation *e, const struct stored *x)
{
    struct view view = view_of_stored(x, e->rows, e->cols);
    if (e->uplo) {
        view.structure = e->real_diagonal ? HERMITIAN : SYMMETRIC;
        view.uplo = e->uplo;
    }
    return view;
}

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

static double square_of(value z)
{
    return (double)(creall(z) * creall(z) + cimagl(z) * cimagl(z));
}

/* An equation times a random vector, and the allowed distance of its sides. */
struct test {
    enum accel_dtype dtype;
    double input_error; /* see cpu_ref_verify() */
    struct vectors vectors;
    double *r;     /* random, one element for each column of the result */
    double *sides; /* the result's side minus the other one */
    double *bound; /* by row: the sum of the squares of the norms */
    double inputs; /* the sum of the squares of all inputs */
};

static void subtract_product(struct test *test, const struct equation *e, int i)
{
    const struct product *p = &e->product[i];
    const struct view x = view_of(&p->x, e->rows, e->inner), y = view_of(&p->y, e->inner, e->cols);
    const int64_t parts = parts_of(test->dtype), used = test->vectors.used;
    double *inner = vector_zero(&test->vectors, e->inner * parts),
           *outer = vector_zero(&test->vectors, e->rows * parts),
           *rows = vector_zero(&test->vectors, e->rows);
    apply(&y, p->y.op, test->r, inner);
    apply(&x, p->x.op, inner, outer);
    scale(outer, e->rows, test->dtype, p->alpha);
    double norm_x = add_squares(&x, p->x.op, rows), norm_y = sum_of_squares(&y);
    for (int64_t row = 0; row < e->rows * parts; row++)
        test->sides[row] -= outer[row];
    for (int64_t row = 0; row < e->rows; row++)
        test->bound[row] += square_of(p->alpha) * rows[row] * norm_y;
    test->inputs += norm_x + norm_y;
    test->vectors.used = used;
}

static void subtract_before(struct test *test, const struct equation *e)
{
    const struct view old = result_view(e, &e->before);
    const int64_t parts = parts_of(test->dtype), used = test->vectors.used;
    double *outer = vector_zero(&test->vectors, e->rows * parts),
           *rows = vector_zero(&test->vectors, e->rows);
    apply(&old, 'N', test->r, outer);
    scale(outer, e->rows, test->dtype, e->beta);
    test->inputs += add_squares(&old, 'N', rows);
    for (int64_t row = 0; row < e->rows * parts; row++)
        test->sides[row] -= outer[row];
    for (int64_t row = 0; row < e->rows; row++)
        test->bound[row] += square_of(e->beta) * rows[row];
    test->vectors.used = used;
}

/* The rounding error for each unit of the bound's norms: an element has at most k roundings, and the errors of a row enter the
 * result with random signs. The test's own rounding in double precision comes on top. */
static double tolerance(const struct test *test, int64_t inner, int64_t cols)
{
    const double deviations = 6, k = (double)inner + 16, n = (double)cols + 1;
    return RANDOM_MOST * (deviations * (k * unit_roundoff(test->dtype) + 2 * test->input_error) +
                          (k + n) * 0x1p-53 * sqrt(n));
}

/* The worst row. The rows of a solution depend on each other, so they count together. */
static double worst_of(const struct test *test, const struct equation *e)
{
    const double t = tolerance(test, e->inner, e->cols);
    const int64_t parts = parts_of(test->dtype);
    double worst = 0, errors = 0, bounds = 0;
    for (int64_t row = 0; row < e->rows; row++) {
        double error = dot_self(test->sides + row * parts, parts);
        double ratio = ratio_of_squares(error, t * t * test->bound[row]);
        worst = ratio > worst ? ratio : worst;
        errors += error;
        bounds += test->bound[row];
    }
    return e->solve ? ratio_of_squares(errors, t * t * bounds) : worst;
}

/* Results beyond the type's range are not judged: they are Inf on both sides. */
static bool is_in_range(const struct test *test, const struct equation *e)
{
    for (int64_t row = 0; row < e->rows; row++)
        if (!(sqrt(test->bound[row]) < most_of(test->dtype) / 4))
            return false;
    return is_number(test->inputs);
}

/* Judges a solution if its matrix and right-hand sides are of moderate size. Then a NaN in it is wrong. */
static double judge_solution(const struct test *test, const struct equation *e, double worst)
{
    const struct product *p = &e->product[0];
    const bool left = p->x.structure != GENERAL;
    const struct view out = result_view(e, &e->out), old = result_view(e, &e->before),
                      a = left ? view_of(&p->x, e->rows, e->inner)
                               : view_of(&p->y, e->inner, e->cols);
    const double size = sqrt(sum_of_squares(&out));
    if (!is_moderate(test->dtype, sqrt(sum_of_squares(&old))) ||
        !is_moderate(test->dtype, sqrt(sum_of_squares(&a))))
        return CPU_REF_NOT_JUDGED;
    if (isnan(size))
        return equation_is_singular(e) ? CPU_REF_NOT_JUDGED : INFINITY;
    return is_moderate(test->dtype, size) ? worst : CPU_REF_NOT_JUDGED;
}

static double judge_equation(struct test *test, const struct equation *e)
{
    const int64_t used = test->vectors.used;
    const struct view out = result_view(e, &e->out);
    const double least = (accel_is_double(test->dtype) ? DBL_MIN : (double)FLT_MIN) /
                         unit_roundoff(test->dtype); /* below it, rounding is no longer relative */
    test->r = vector_random(&test->vectors, e->cols, test->dtype);
    test->sides = vector_zero(&test->vectors, e->rows * parts_of(test->dtype));
    test->bound = vector_zero(&test->vectors, e->rows);
    test->inputs = 0;
    for (int64_t row = 0; row < e->rows; row++)
        test->bound[row] = least * least;
    for (int i = 0; i < e->products; i++)
        subtract_product(test, e, i);
    if (e->beta != 0)
        subtract_before(test, e);
    bool in_range = is_in_range(test, e);
    if (!e->solve)
        apply(&out, 'N', test->r, test->sides);
    double worst = worst_of(test, e);
    test->vectors.used = used;
    if (e->solve)
        return judge_solution(test, e, worst);
    return in_range ? worst : CPU_REF_NOT_JUDGED;
}

/* ---- A triangle of a product that is no symmetric matrix ---- */

static struct equation block_of(const struct equation *e, int64_t row, int64_t rows, int64_t col,
                                int64_t cols)
{
    struct equation block = *e;
    struct factor *x = &block.product[0].x, *y = &block.product[0].y;
    const char *names = "TC";
    bool x_across = strchr(names, x->op) && x->op, y_across = strchr(names, y->op) && y->op;
    const int64_t size = (int64_t)accel_dtype_size(e->out.dtype);
    const int64_t narrow = (int64_t)accel_dtype_size(x->stored.dtype);
    x->stored.ptr =
        (const char *)x->stored.ptr + row * (x_across ? x->stored.col_step : 1) * narrow;
    y->stored.ptr =
        (const char *)y->stored.ptr + col * (y_across ? 1 : y->stored.col_step) * narrow;
    block.out.ptr = (const char *)e->out.ptr + (row + col * e->out.col_step) * size;
    if (e->before.ptr)
        block.before.ptr = (const char *)e->before.ptr + (row + col * e->before.col_step) * size;
    block.rows = rows;
    block.cols = cols;
    block.uplo = 0;
    return block;
}

static double worse_of(double a, double b)
{
    if (a == CPU_REF_NOT_JUDGED || b == CPU_REF_NOT_JUDGED)
        return CPU_REF_NOT_JUDGED;
    return a > b ? a : b;
}

/* Splits a triangle into a square beside the diagonal and two smaller triangles, down to single elements. */
static double judge_triangle(struct test *test, const struct equation *e, int64_t from, int64_t n)
{
    if (n <= 1) {
        const struct equation one = block_of(e, from, n, from, n);
        return n < 1 ? 0 : judge_equation(test, &one);
    }
    int64_t half = n / 2, rest = n - half;
    const struct equation square = e->uplo == 'U' ? block_of(e, from, half, from + half, rest)
                                                  : block_of(e, from + half, rest, from, half);
    double worst = judge_equation(test, &square);
    worst = worse_of(worst, judge_triangle(test, e, from, half));
    return worse_of(worst, judge_triangle(test, e, from + half, rest));
}

/* ---- A call ---- */

static double judge_products(const struct accel_call *call, const void *before, uint64_t seed,
                             double input_error)
{
    struct test test = {.dtype = call->routine->dtype, .input_error = input_error};
    const bool batch = accel_is_batch(call->routine);
    double worst = 0;
    int64_t longest = accel_max(accel_max(call->blas.size[ACCEL_m], call->blas.size[ACCEL_n]),
                                call->blas.size[ACCEL_k]);
    if (!vectors_open(&test.vectors, 8, longest, seed))
        return CPU_REF_NOT_JUDGED;
    for (int64_t i = 0; i < (batch ? call->batch : 1) && worst >= 0; i++) {
        const struct equation e = equation_of(call, ACCEL_COLUMN_MAJOR, before, i);
        worst = worse_of(worst, e.uplo && !e.symmetric ? judge_triangle(&test, &e, 0, e.rows)
                                                       : judge_equation(&test, &e));
    }
    vectors_close(&test.vectors);
    return worst;
}

/* A Level 2 call costs as much as its test: check every element. */
static double judge_all(const struct accel_call *call, const void *before)
{
    const struct equation e = equation_of(call, ACCEL_COLUMN_MAJOR, before, 0);
    double inputs = 0;
    for (int i = 0; i < e.products; i++) {
        const struct view x = view_of(&e.product[i].x, e.rows, e.inner),
                          y = view_of(&e.product[i].y, e.inner, e.cols);
        inputs += (e.solve ? 0 : sum_of_squares(&x)) + sum_of_squares(&y);
    }
    if (e.beta != 0) {
        const struct view old = result_view(&e, &e.before);
        inputs += sum_of_squares(&old);
    }
    if (!is_number(inputs))
        return CPU_REF_NOT_JUDGED;
    return cpu_ref_ratio(call, ACCEL_COLUMN_MAJOR, before) / CPU_REF_THRESHOLD;
}

double cpu_ref_verify(const struct accel_call *call, const void *const before[ACCEL_SPANS],
                      uint64_t seed, double input_error)
{
    const struct accel_op *op = accel_op_of(call->routine);
    if (op->judge)
        return op->judge(call);
    if (!op->equation)
        return cpu_ref_verify_lapack(call, before, seed);
    const void *old = before[equation_output(call->routine)];
    if (accel_is_level2(call->routine))
        return judge_all(call, old);
    return judge_products(call, old, seed, input_error);
}
