#include "apply.h"

/* Doubles of a piece: columns are widened piece by piece, within the first-level cache. */
enum { PIECE = 512 };

/* Widens elements from (row, col) on to doubles. */
static void widen(const struct view *x, int64_t row, int64_t col, int64_t elements, double *to)
{
    const int64_t parts = parts_of(x->dtype), first = view_place(x, row, col) * parts,
                  count = elements * parts;
    if (x->dtype == ACCEL_BFLOAT16) {
        for (int64_t i = 0; i < count; i++)
            to[i] = (double)bfloat16(((const uint16_t *)x->ptr)[first + i]);
    } else if (accel_is_double(x->dtype)) {
        memcpy(to, (const double *)x->ptr + first, (size_t)count * sizeof *to);
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = (double)((const float *)x->ptr)[first + i];
    }
}

/* y := y + s x, x conjugated where sign is -1 */
static void add_column(int64_t parts, int64_t n, const double *x, double sign, const double *s,
                       double *y)
{
    if (parts == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] += x[i] * s[0];
        return;
    }
    for (int64_t i = 0; i < 2 * n; i += 2) {
        double re = x[i], im = sign * x[i + 1];
        y[i] += re * s[0] - im * s[1];
        y[i + 1] += re * s[1] + im * s[0];
    }
}

/* sum := sum + x' y, x conjugated where sign is -1 */
static void add_dot(int64_t parts, int64_t n, const double *x, double sign, const double *y,
                    double *sum)
{
    double re = 0, im = 0;
    if (parts == 1) {
        for (int64_t i = 0; i < n; i++)
            re += x[i] * y[i];
        sum[0] += re;
        return;
    }
    for (int64_t i = 0; i < 2 * n; i += 2) {
        re += x[i] * y[i] - sign * x[i + 1] * y[i + 1];
        im += x[i] * y[i + 1] + sign * x[i + 1] * y[i];
    }
    sum[0] += re;
    sum[1] += im;
}

/* The stored rows of a column; without the diagonal, unless the matrix is general. */
static void stored_rows(const struct view *x, int64_t col, int64_t *from, int64_t *to)
{
    bool general = x->structure == GENERAL;
    *from = general || x->uplo == 'U' ? 0 : accel_min(col + 1, x->rows);
    *to = general || x->uplo != 'U' ? x->rows : accel_min(col, x->rows);
}

/* A diagonal element of a matrix that is not general; conjugated if sign is -1. */
static void diagonal_element(const struct view *x, int64_t i, double sign, double *to)
{
    to[0] = 1;
    to[1] = 0;
    if (x->structure == UNIT_TRIANGULAR)
        return;
    widen(x, i, i, 1, to);
    to[1] = parts_of(x->dtype) == 1 || x->structure == HERMITIAN ? 0 : sign * to[1];
}

void apply(const struct view *x, char op, const double *in, double *out)
{
    const int64_t parts = parts_of(x->dtype);
    const double sign = op == 'C' || op == 'R' ? -1 : 1;
    const bool mirrored = view_is_mirrored(x), across = op_is_across(op);
    /* Element (i, j) is also (j, i), conjugated if Hermitian; op(X) may exchange the two. */
    const double other = x->structure == HERMITIAN ? -sign : sign;
    const double here = mirrored && across ? other : sign, there = across ? sign : other;
    double piece[PIECE];
    for (int64_t col = 0; col < x->cols; col++) {
        int64_t from, to;
        stored_rows(x, col, &from, &to);
        for (int64_t row = from; row < to; row += PIECE / 2) {
            int64_t n = accel_min(PIECE / 2, to - row);
            widen(x, row, col, n, piece);
            if (!across || mirrored)
                add_column(parts, n, piece, here, in + col * parts, out + row * parts);
            if (across || mirrored)
                add_dot(parts, n, piece, there, in + row * parts, out + col * parts);
        }
        if (x->structure != GENERAL && col < x->rows) {
            double d[2];
            diagonal_element(x, col, sign, d);
            add_column(parts, 1, d, 1, in + col * parts, out + col * parts);
        }
    }
}

double add_squares(const struct view *x, char op, double *out)
{
    const int64_t parts = parts_of(x->dtype);
    const bool mirrored = view_is_mirrored(x), across = op_is_across(op);
    double piece[PIECE], sum = 0;
    for (int64_t col = 0; col < x->cols; col++) {
        int64_t from, to;
        stored_rows(x, col, &from, &to);
        for (int64_t row = from; row < to; row += PIECE / 2) {
            int64_t n = accel_min(PIECE / 2, to - row);
            widen(x, row, col, n, piece);
            for (int64_t i = 0; i < n; i++) {
                double square = piece[parts * i] * piece[parts * i];
                if (parts == 2)
                    square += piece[2 * i + 1] * piece[2 * i + 1];
                sum += mirrored ? 2 * square : square;
                if (!out)
                    continue;
                if (!across || mirrored)
                    out[row + i] += square;
                if (across || mirrored)
                    out[col] += square;
            }
        }
        if (x->structure != GENERAL && col < x->rows) {
            double d[2];
            diagonal_element(x, col, 1, d);
            double square = d[0] * d[0] + d[1] * d[1];
            sum += square;
            if (out)
                out[col] += square;
        }
    }
    return sum;
}

double sum_of_squares(const struct view *x)
{
    return add_squares(x, 'N', NULL);
}
