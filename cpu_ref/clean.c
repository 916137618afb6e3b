#include "clean.h"

#include <stdlib.h>

/* A matrix as it is stored, and which of its elements are read. */
struct stored_part {
    int64_t rows, cols;
    enum structure structure;
    char uplo;
};

static bool is_across(const struct factor *x)
{
    return x->op == 'T' || x->op == 'C';
}

/* op(X) is rows x cols. */
static struct stored_part part_of_factor(const struct factor *x, int64_t rows, int64_t cols)
{
    const bool across = is_across(x);
    return (struct stored_part){across ? cols : rows, across ? rows : cols, x->structure, x->uplo};
}

/* Of the result, or what it was: a triangle, if the routine writes one. */
static struct stored_part part_of_result(const struct equation *e)
{
    return (struct stored_part){e->rows, e->cols,
                                !e->uplo           ? GENERAL
                                : e->real_diagonal ? HERMITIAN
                                                   : SYMMETRIC,
                                e->uplo};
}

static bool is_read(const struct stored_part *part, int64_t row, int64_t col)
{
    if (part->structure == GENERAL)
        return true;
    return in_triangle(part->uplo, row, col) && !(part->structure == UNIT_TRIANGULAR && row == col);
}

static bool is_spoilt(const struct stored *x, const struct stored_part *part, int64_t row,
                      int64_t col)
{
    const value z = stored_element(x, row, col);
    return part->structure == HERMITIAN && row == col ? !isfinite(creall(z)) : !is_finite(z);
}

static bool is_mirrored(const struct stored_part *part)
{
    return part->structure == SYMMETRIC || part->structure == HERMITIAN;
}

/* Calls note() for each element that is read and no number. */
static void find_spoilt(struct clean *clean, const struct stored *x, const struct stored_part *part,
                        void (*note)(struct clean *clean, int64_t row, int64_t col, bool across),
                        bool across)
{
    for (int64_t col = 0; col < part->cols; col++)
        for (int64_t row = 0; row < part->rows; row++)
            if (is_read(part, row, col) && is_spoilt(x, part, row, col)) {
                note(clean, row, col, across);
                if (is_mirrored(part))
                    note(clean, col, row, across);
            }
}

/* An element of op(X) reaches its row of the result, one of op(Y) its column. */
static void reaches_row(struct clean *clean, int64_t row, int64_t col, bool across)
{
    clean->row[across ? col : row] = true;
}

static void reaches_col(struct clean *clean, int64_t row, int64_t col, bool across)
{
    clean->col[across ? row : col] = true;
}

static bool is_left(const struct equation *e)
{
    return e->product[0].x.structure != GENERAL;
}

static void find_in_products(struct clean *clean, const struct equation *e)
{
    for (int i = 0; i < e->products; i++) {
        const struct factor *x = &e->product[i].x, *y = &e->product[i].y;
        const struct stored_part of_x = part_of_factor(x, e->rows, e->inner),
                                 of_y = part_of_factor(y, e->inner, e->cols);
        /* The other factor is the solution, which they reach if they are in what is solved. */
        if (!e->solve || is_left(e))
            find_spoilt(clean, &x->stored, &of_x, reaches_row, is_across(x));
        if (!e->solve || !is_left(e))
            find_spoilt(clean, &y->stored, &of_y, reaches_col, is_across(y));
    }
}

/* Of a solution, a line of the matrix reaches its own and all that are solved after it. */
static void spread(struct clean *clean, const struct equation *e)
{
    const bool left = is_left(e);
    const struct factor *const a = left ? &e->product[0].x : &e->product[0].y;
    const bool is_lower = (a->uplo == 'L') != is_across(a), forward = left == is_lower;
    bool *const line = left ? clean->row : clean->col;
    bool reached = false;
    for (int64_t step = 0; step < e->inner; step++) {
        const int64_t i = forward ? step : e->inner - 1 - step;
        reached = reached || line[i];
        line[i] = reached;
    }
}

static void count_left(struct clean *clean, const struct equation *e)
{
    for (int64_t i = 0; e->symmetric && i < e->rows; i++)
        clean->row[i] = clean->col[i] = clean->row[i] || clean->col[i];
    for (int64_t i = 0; i < e->rows; i++)
        clean->rows_left += !clean->row[i];
    for (int64_t j = 0; j < e->cols; j++)
        clean->cols_left += !clean->col[j];
}

/* Finds what is reached. False: all of it, or nothing. */
static bool find_reached(struct clean *clean, const struct equation *e)
{
    const struct stored_part of_old = part_of_result(e);
    find_in_products(clean, e);
    if (e->solve)
        spread(clean, e);
    if (e->beta != 0)
        find_spoilt(clean, &e->before, &of_old, e->solve && !is_left(e) ? reaches_row : reaches_col,
                    false);
    count_left(clean, e);
    return clean->rows_left > 0 && clean->cols_left > 0 &&
           (clean->rows_left < e->rows || clean->cols_left < e->cols);
}

/* ---- The copies ---- */

/* Makes x a packed copy with zeros where an element is no number, and in rows and columns that are
 * reached (NULL: none). keeps: what is not reached stays as it is. */
static bool copy(struct clean *clean, struct stored *x, const struct stored_part *part,
                 const bool *row_of, const bool *col_of, bool keeps)
{
    const size_t size = accel_dtype_size(x->dtype);
    const int64_t ld = part->rows > 0 ? part->rows : 1;
    char *const to = calloc((size_t)(ld * part->cols) + 1, size);
    if (!to)
        return false;
    clean->copy[clean->copies++] = to;
    for (int64_t col = 0; col < part->cols; col++)
        for (int64_t row = 0; row < part->rows; row++) {
            const int64_t from = row * x->row_step + col * x->col_step;
            if (!is_read(part, row, col) || (row_of && row_of[row]) || (col_of && col_of[col]) ||
                (!keeps && is_spoilt(x, part, row, col)))
                continue;
            memcpy(to + (size_t)(row + col * ld) * size,
                   (const char *)x->ptr + from * (int64_t)size, size);
        }
    *x = (struct stored){to, 1, ld, x->dtype};
    return true;
}

static bool copy_factor(struct clean *clean, struct factor *x, int64_t rows, int64_t cols)
{
    const struct stored_part part = part_of_factor(x, rows, cols);
    return copy(clean, &x->stored, &part, NULL, NULL, false);
}

static void put_one(void *memory, int64_t index, enum accel_dtype dtype)
{
    char *const at = (char *)memory + (size_t)index * accel_dtype_size(dtype);
    const double wide = 1;
    const float narrow = 1;
    if (accel_is_double(dtype))
        memcpy(at, &wide, sizeof wide);
    else
        memcpy(at, &narrow, sizeof narrow);
}

/* On the diagonal, ones take the place of what is no number: the matrix stays one that solves. */
static bool copy_matrix(struct clean *clean, struct factor *x, int64_t n)
{
    const struct stored_part part = part_of_factor(x, n, n);
    const struct stored old = x->stored;
    if (!copy_factor(clean, x, n, n))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (is_read(&part, i, i) && is_spoilt(&old, &part, i, i))
            put_one(clean->copy[clean->copies - 1], i * (n + 1), x->stored.dtype);
    return true;
}

/* The solution is the result: what is reached is left out, and nothing else may be no number. */
static bool copy_solution(struct clean *clean, struct factor *x, const struct equation *e)
{
    const struct stored_part part = part_of_result(e);
    return copy(clean, &x->stored, &part, clean->row, clean->col, true);
}

static bool copy_all(struct clean *clean)
{
    struct equation *e = &clean->equation;
    const struct stored_part result = part_of_result(e);
    bool there = true;
    for (int i = 0; there && i < e->products; i++) {
        struct factor *x = &e->product[i].x, *y = &e->product[i].y;
        const bool left = is_left(e);
        there = e->solve ? copy_matrix(clean, left ? x : y, e->inner) &&
                               copy_solution(clean, left ? y : x, e)
                         : copy_factor(clean, x, e->rows, e->inner) &&
                               copy_factor(clean, y, e->inner, e->cols);
    }
    if (there && e->beta != 0)
        there = copy(clean, &e->before, &result, clean->row, clean->col, false);
    return there && copy(clean, &e->out, &result, clean->row, clean->col, true);
}

/* ---- The equation ---- */

bool clean_make(struct clean *clean, const struct equation *e)
{
    *clean = (struct clean){.equation = *e};
    if (!is_finite(e->beta) || e->rows < 1 || e->cols < 1)
        return false;
    for (int i = 0; i < e->products; i++)
        if (!is_finite(e->product[i].alpha))
            return false;
    clean->row = calloc((size_t)e->rows, sizeof *clean->row);
    clean->col = calloc((size_t)e->cols, sizeof *clean->col);
    if (clean->row && clean->col && find_reached(clean, e) && copy_all(clean))
        return true;
    clean_free(clean);
    return false;
}

void clean_free(struct clean *clean)
{
    for (int i = 0; i < clean->copies; i++)
        free(clean->copy[i]);
    free(clean->row);
    free(clean->col);
    *clean = (struct clean){.copies = 0};
}
