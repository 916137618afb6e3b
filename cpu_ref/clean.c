#include "clean.h"

#include <stdlib.h>

/* Whether the element as it is stored belongs to the matrix; a unit diagonal does not. */
static bool is_read(const struct view *x, int64_t row, int64_t col)
{
    if (x->structure == GENERAL)
        return true;
    return in_triangle(x->uplo, row, col) && !(x->structure == UNIT_TRIANGULAR && row == col);
}

static bool is_spoilt(const struct view *x, int64_t row, int64_t col)
{
    const value z = view_element(x, row, col);
    return x->structure == HERMITIAN && row == col ? !isfinite(creall(z)) : !is_finite(z);
}

/* Calls note() for each element that is read and no number. */
static void find_spoilt(struct clean *clean, const struct factor *x,
                        void (*note)(struct clean *clean, int64_t row, int64_t col, bool across))
{
    const struct view *const view = &x->view;
    const bool across = op_is_across(x->op);
    for (int64_t col = 0; col < view->cols; col++)
        for (int64_t row = 0; row < view->rows; row++)
            if (is_read(view, row, col) && is_spoilt(view, row, col)) {
                note(clean, row, col, across);
                if (view_is_mirrored(view))
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

static void find_in_products(struct clean *clean, const struct equation *e)
{
    const bool left = equation_is_left(e);
    for (int i = 0; i < e->products; i++) {
        /* The other factor is the solution, which they reach if they are in what is solved. */
        if (!e->solve || left)
            find_spoilt(clean, &e->product[i].x, reaches_row);
        if (!e->solve || !left)
            find_spoilt(clean, &e->product[i].y, reaches_col);
    }
}

/* Of a solution, a line of the matrix reaches its own and all that are solved after it. */
static void spread(struct clean *clean, const struct equation *e)
{
    const bool left = equation_is_left(e);
    const struct factor *const a = equation_matrix(e);
    const bool is_lower = (a->view.uplo == 'L') != op_is_across(a->op), forward = left == is_lower;
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
    find_in_products(clean, e);
    if (e->solve)
        spread(clean, e);
    if (e->beta != 0)
        find_spoilt(clean, &e->before,
                    e->solve && !equation_is_left(e) ? reaches_row : reaches_col);
    count_left(clean, e);
    return clean->rows_left > 0 && clean->cols_left > 0 &&
           (clean->rows_left < e->rows || clean->cols_left < e->cols);
}

/* ---- The copies ---- */

/* Makes x a packed copy with zeros where an element is no number, and in rows and columns that are
 * reached (NULL: none). keeps: what is not reached stays as it is. */
static bool copy(struct clean *clean, struct view *x, const bool *row_of, const bool *col_of,
                 bool keeps)
{
    const size_t size = accel_dtype_size(x->dtype);
    const int64_t ld = accel_max(x->rows, 1);
    char *const to = calloc((size_t)(ld * x->cols) + 1, size);
    if (!to)
        return false;
    clean->copy[clean->copies++] = to;
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            if (is_read(x, row, col) && !(row_of && row_of[row]) && !(col_of && col_of[col]) &&
                (keeps || !is_spoilt(x, row, col)))
                memcpy(to + (size_t)(row + col * ld) * size,
                       (const char *)x->ptr + (row + col * x->ld) * (int64_t)size, size);
    x->ptr = to;
    x->ld = ld;
    return true;
}

/* On the diagonal, ones take the place of what is no number: the matrix stays one that solves. */
static bool copy_matrix(struct clean *clean, struct view *x)
{
    const struct view old = *x;
    if (!copy(clean, x, NULL, NULL, false))
        return false;
    for (int64_t i = 0; i < x->cols; i++)
        if (is_read(&old, i, i) && is_spoilt(&old, i, i))
            store_element(clean->copy[clean->copies - 1], x->dtype, i * (x->ld + 1), 1);
    return true;
}

/* The result: what is reached is left out, and nothing else may be no number. */
static bool copy_result(struct clean *clean, struct view *x)
{
    return copy(clean, x, clean->row, clean->col, true);
}

static bool copy_all(struct clean *clean)
{
    struct equation *e = &clean->equation;
    const bool left = equation_is_left(e);
    bool there = true;
    for (int i = 0; there && i < e->products; i++) {
        struct view *x = &e->product[i].x.view, *y = &e->product[i].y.view;
        /* The solution is the result. */
        there = e->solve ? copy_matrix(clean, left ? x : y) && copy_result(clean, left ? y : x)
                         : copy(clean, x, NULL, NULL, false) && copy(clean, y, NULL, NULL, false);
    }
    if (there && e->beta != 0)
        there = copy(clean, &e->before.view, clean->row, clean->col, false);
    return there && copy_result(clean, &e->out.view);
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
