#include "judge.h"

#include "equation.h"

double cpu_ref_epsilon(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? 0x1p-52 : 0x1p-23;
}

/* The right-hand side for one element. */
struct element_sum {
    value value;
    long double scale;  /* the sum of magnitudes */
    long double beside; /* the sum of the magnitudes of all elements that are multiplied */
    bool left_open;     /* a zero of the other triangle is multiplied with NaN or Inf */
};

/* Elements are judged in tiles: what a tile needs of a factor is read once, a piece of its lines
 * (rows of X, columns of Y) at a time. */
enum { TILE = 8, PIECE = 16 };

struct element_row {
    double re[PIECE], im[PIECE]; /* exact: no type has more digits */
    bool is_empty[PIECE], has_empty;
    long double size; /* the sum of magnitudes */
};

struct tile {
    int64_t row, col, rows, cols;
    struct element_sum sum[TILE][TILE];
};

static void read_line(struct element_row *line, const struct factor *x, bool is_row, int64_t number,
                      int64_t from, int64_t count)
{
    const bool general = x->view.structure == GENERAL,
               plain = general && (x->op == 'N' || x->op == 'T');
    line->has_empty = false;
    line->size = 0;
    for (int64_t p = 0; p < count; p++) {
        const int64_t row = is_row ? number : from + p, col = is_row ? from + p : number;
        const value element = plain ? output_element(x, row, col) : factor_element(x, row, col);
        line->re[p] = (double)creall(element);
        line->im[p] = (double)cimagl(element);
        line->is_empty[p] = !general && factor_is_empty(x, row, col);
        line->has_empty = line->has_empty || line->is_empty[p];
        line->size += magnitude(element);
    }
    if (count < PIECE)
        line->re[count] = 0;
}

/* CMPLXL(), which clang does not have with every C library; neither part touches the other one. */
static value complex_of(long double re, long double im)
{
    value z;
    __real__ z = re;
    __imag__ z = im;
    return z;
}

/* Adds the products of two lines of real numbers without empty elements: by two sums, which do not
 * wait for each other. */
static void add_real(struct element_sum *sum, const struct element_row *x,
                     const struct element_row *y, int64_t count)
{
    long double even = creall(sum->value), odd = 0, scale = sum->scale, other = 0;
    for (int64_t p = 0; p < count; p += 2) {
        const long double one = (long double)x->re[p] * y->re[p],
                          next = (long double)x->re[p + 1] * y->re[p + 1];
        even += one;
        odd += next;
        scale += fabsl(one);
        other += fabsl(next);
    }
    sum->value = even + odd;
    sum->scale = scale + other;
    sum->beside += x->size + y->size;
}

/* Adds the products of two lines of complex numbers without empty elements. A product with NaN or
 * Inf makes the sum NaN or Inf, as in C's own multiplication. */
static void add_complex(struct element_sum *sum, const struct element_row *x,
                        const struct element_row *y, int64_t count)
{
    long double re = creall(sum->value), im = cimagl(sum->value), scale = sum->scale;
    for (int64_t p = 0; p < count; p++) {
        const long double a = x->re[p], b = x->im[p], c = y->re[p], d = y->im[p];
        re += a * c - b * d;
        im += a * d + b * c;
        scale += (fabsl(a) + fabsl(b)) * (fabsl(c) + fabsl(d));
    }
    sum->value = complex_of(re, im);
    sum->scale = scale;
    sum->beside += x->size + y->size;
}

static void add_lines(struct element_sum *sum, const struct element_row *x,
                      const struct element_row *y, int64_t count)
{
    for (int64_t p = 0; p < count; p++) {
        const value a = complex_of(x->re[p], x->im[p]), b = complex_of(y->re[p], y->im[p]);
        if (x->is_empty[p] || y->is_empty[p]) {
            sum->left_open = sum->left_open || !is_finite(a) || !is_finite(b);
            continue;
        }
        sum->value += a * b;
        sum->scale += magnitude(a) * magnitude(b);
        sum->beside += magnitude(a) + magnitude(b);
    }
}

/* rounded: by how much an element may be wrong before it is multiplied, over eps. */
static void add_product(struct tile *tile, const struct product *product, int64_t inner,
                        long double rounded)
{
    const bool real =
        !accel_is_complex(product->x.view.dtype) && !accel_is_complex(product->y.view.dtype);
    struct element_sum part[TILE][TILE] = {{{0}}};
    struct element_row x[TILE], y[TILE];
    for (int64_t from = 0; from < inner; from += PIECE) {
        const int64_t count = inner - from < PIECE ? inner - from : PIECE;
        for (int64_t i = 0; i < tile->rows; i++)
            read_line(&x[i], &product->x, true, tile->row + i, from, count);
        for (int64_t j = 0; j < tile->cols; j++)
            read_line(&y[j], &product->y, false, tile->col + j, from, count);
        for (int64_t i = 0; i < tile->rows; i++)
            for (int64_t j = 0; j < tile->cols; j++)
                if (x[i].has_empty || y[j].has_empty)
                    add_lines(&part[i][j], &x[i], &y[j], count);
                else if (real)
                    add_real(&part[i][j], &x[i], &y[j], count);
                else
                    add_complex(&part[i][j], &x[i], &y[j], count);
    }
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->cols; j++) {
            struct element_sum *sum = &tile->sum[i][j];
            sum->value += product->alpha * part[i][j].value;
            sum->scale +=
                magnitude(product->alpha) * part[i][j].scale + rounded * part[i][j].beside;
            sum->left_open = sum->left_open || part[i][j].left_open;
        }
}

/* A product below the smallest normal number has an absolute error of up to eps times that number
 * (the distance of two subnormal numbers). The multiplications with alpha and beta have the
 * same. */
static long double underflow_of(const struct equation *e)
{
    long double steps = 2;
    for (int i = 0; i < e->products; i++)
        steps += (long double)e->inner * (1 + magnitude(e->product[i].alpha));
    return steps * smallest_normal(e->out.view.dtype);
}

/* The same holds for alpha X or alpha Y, and for a solution, which are rounded before they are
 * multiplied. */
static long double rounded_before(const struct equation *e, const struct product *product)
{
    return e->solve || product->alpha != 1 ? smallest_normal(e->out.view.dtype) : 0;
}

static bool is_judged(const struct equation *e, int64_t row, int64_t col)
{
    return !e->uplo || in_triangle(e->uplo, row, col);
}

/* What the element was, as far as it enters the result. */
static value old_element(const struct equation *e, int64_t row, int64_t col)
{
    if (!e->solve && e->beta == 0)
        return 0;
    const value old = output_element(&e->before, row, col);
    return !e->solve && e->real_diagonal && row == col ? creall(old) : old;
}

/* Computes the right-hand sides of a tile's elements that are judged. */
static void compute_tile(struct tile *tile, const struct equation *e)
{
    const long double underflow = underflow_of(e);
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->cols; j++) {
            if (!is_judged(e, tile->row + i, tile->col + j))
                continue;
            const value old = old_element(e, tile->row + i, tile->col + j);
            tile->sum[i][j] = (struct element_sum){
                .value = e->beta * old, .scale = magnitude(e->beta) * magnitude(old) + underflow};
        }
    for (int i = 0; i < e->products; i++)
        add_product(tile, &e->product[i], e->inner, rounded_before(e, &e->product[i]));
}

static double ratio_of(value got, const struct element_sum *expected, enum accel_dtype dtype)
{
    long double error = magnitude(got - expected->value);
    return error == 0 ? 0 : (double)(error / (cpu_ref_epsilon(dtype) * expected->scale));
}

/* Whether all elements of B that this element of the solution may depend on are finite. */
static bool is_line_finite(const struct equation *e, int64_t row, int64_t col)
{
    const bool left = equation_is_left(e);
    for (int64_t i = 0; i < (left ? e->rows : e->cols); i++)
        if (!is_finite(output_element(&e->before, left ? i : row, left ? col : i)))
            return false;
    return true;
}

/* A NaN or Inf of B reaches the elements that depend on it, or all of its line. */
static double solution_ratio(const struct equation *e, int64_t row, int64_t col,
                             const struct element_sum *rest)
{
    value got = output_element(&e->out, row, col);
    if (is_finite(rest->value))
        return ratio_of(0, rest, e->out.view.dtype);
    if (equation_is_singular(e))
        return 0;
    return is_finite(got) || is_line_finite(e, row, col) ? INFINITY : 0;
}

static double element_ratio(const struct equation *e, int64_t row, int64_t col,
                            const struct element_sum *sum)
{
    bool real = e->real_diagonal && row == col;
    bool nothing_to_do = (e->products == 0 || e->inner == 0) && e->beta == 1;
    value got = output_element(&e->out, row, col);
    struct element_sum expected = *sum;
    if (real && isfinite(creall(got)) && !nothing_to_do && cimagl(got) != 0)
        return INFINITY;
    if (real) {
        got = creall(got);
        expected.value = creall(expected.value);
    }
    if (is_finite(got) && is_finite(expected.value))
        return ratio_of(got, &expected, e->out.view.dtype);
    bool as_expected = is_finite(got) == is_finite(expected.value);
    return as_expected || (expected.left_open && !is_finite(got)) ? 0 : INFINITY;
}

static double tile_ratio(const struct equation *e, struct tile *tile)
{
    double worst = 0;
    compute_tile(tile, e);
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->cols; j++) {
            const int64_t row = tile->row + i, col = tile->col + j;
            if (!is_judged(e, row, col))
                continue;
            double ratio = e->solve ? solution_ratio(e, row, col, &tile->sum[i][j])
                                    : element_ratio(e, row, col, &tile->sum[i][j]);
            if (!(ratio <= worst))
                worst = ratio;
        }
    return worst;
}

/* A triangle's tiles that have nothing of it are passed over. */
static bool is_beside(const struct equation *e, const struct tile *tile)
{
    return e->uplo == 'U'   ? tile->row >= tile->col + tile->cols
           : e->uplo == 'L' ? tile->col >= tile->row + tile->rows
                            : false;
}

static double product_ratio(const struct equation *e)
{
    double worst = 0;
    for (int64_t col = 0; col < e->cols; col += TILE)
        for (int64_t row = 0; row < e->rows; row += TILE) {
            struct tile tile = {.row = row,
                                .col = col,
                                .rows = e->rows - row < TILE ? e->rows - row : TILE,
                                .cols = e->cols - col < TILE ? e->cols - col : TILE};
            double ratio = is_beside(e, &tile) ? 0 : tile_ratio(e, &tile);
            if (!(ratio <= worst))
                worst = ratio;
        }
    return worst;
}

double cpu_ref_ratio(const struct accel_call *call, enum accel_layout layout, const void *before)
{
    double worst = 0;
    int64_t products = call->op->traits.group == ACCEL_BATCH ? call->batch : 1;
    for (int64_t i = 0; i < products; i++) {
        struct equation e = equation_of(call, layout, before, i);
        double ratio = product_ratio(&e);
        if (!(ratio <= worst))
            worst = ratio;
    }
    return worst;
}
