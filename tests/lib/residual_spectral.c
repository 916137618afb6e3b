/* The residuals of eigenvalues, singular values and least squares: see residual.h. */
#include "dense.h"

/* ---- Eigenvalues and singular values ---- */

static long double real_at(const void *x, int64_t i, enum accel_dtype dtype)
{
    return creall(load_value(x, i, accel_real_dtype(dtype)));
}

/* Whether sign * w is ascending. */
static bool is_ordered(const void *w, int64_t n, int sign, enum accel_dtype dtype)
{
    for (int64_t i = 1; i < n; i++)
        if (!(sign * real_at(w, i - 1, dtype) <= sign * real_at(w, i, dtype)))
            return false;
    return true;
}

/* Column i of x times w[i]. */
static void scale_columns(struct dense *x, const void *w, enum accel_dtype dtype)
{
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            *at(x, row, col) *= real_at(w, col, dtype);
}

double residual_eigen(const struct view *a, const struct view *z, const void *w)
{
    struct dense m = dense_of(a), x = dense_of(z), product = multiply(&m, &x);
    double r = orthogonality(&x, a->dtype);
    scale_columns(&x, w, a->dtype);
    r = worse(r, distance(&product, &x, count(a->rows) * norm(&m), a->dtype));
    free(m.at);
    free(x.at);
    free(product.at);
    return is_ordered(w, z->cols, 1, a->dtype) ? r : INFINITY;
}

/* Z, by the normalisation of the eigenvectors. */
static double normalisation(int itype, const struct dense *b, const struct dense *z,
                            enum accel_dtype dtype)
{
    if (itype == 3 && z->cols < z->rows)
        return 0;
    struct dense h = adjoint(z), part = itype == 3 ? identity(b->rows, b->rows) : multiply(b, z),
                 product = itype == 3 ? multiply(z, &h) : multiply(&h, &part),
                 one = identity(z->cols, z->cols);
    long double scale = count(b->rows) * norm(b);
    double r = distance(&product, itype == 3 ? b : &one,
                        itype == 3 ? scale : scale * norm(z) * norm(&h), dtype);
    free(h.at);
    free(part.at);
    free(product.at);
    free(one.at);
    return r;
}

double residual_generalized(int itype, const struct view *a, const struct view *b,
                            const struct view *z, const void *w)
{
    struct dense x = dense_of(a), y = dense_of(b), v = dense_of(z);
    struct dense first = multiply(itype == 2 ? &y : &x, &v);
    long double scale = count(a->rows) * norm(&x) * norm(&v) * (itype == 1 ? 1 : norm(&y));
    double r = normalisation(itype, &y, &v, a->dtype);
    scale_columns(&v, w, a->dtype);
    struct dense second = multiply(itype == 2 ? &x : &y, itype == 1 ? &v : &first);
    r = worse(r, distance(&second, itype == 1 ? &first : &v, scale, a->dtype));
    free(x.at);
    free(y.at);
    free(v.at);
    free(first.at);
    free(second.at);
    return is_ordered(w, z->cols, 1, a->dtype) ? r : INFINITY;
}

double residual_reduced(int itype, const struct view *a, const struct view *factor,
                        const struct view *reduced)
{
    struct dense x = dense_of(a), c = dense_of(reduced),
                 l = dense_op(factor, factor->uplo == 'U' ? 'C' : 'N'), h = adjoint(&l);
    struct dense part = itype == 1 ? multiply(&l, &c) : multiply(&h, &x),
                 product = multiply(&part, itype == 1 ? &h : &l);
    long double scale = count(a->rows) * norm(&l) * norm(&h) * norm(itype == 1 ? &c : &x);
    double r = distance(&product, itype == 1 ? &x : &c, scale, a->dtype);
    free(x.at);
    free(c.at);
    free(l.at);
    free(h.at);
    free(part.at);
    free(product.at);
    return r;
}

/* |Q^H A A^H Q - S^2| */
static double one_side(const struct dense *a, const struct dense *q, const void *s,
                       long double scale, enum accel_dtype dtype)
{
    struct dense h = adjoint(a), part = multiply(&h, q), other = adjoint(&part),
                 product = multiply(&other, &part);
    for (int64_t i = 0; i < accel_min(accel_min(a->rows, a->cols), q->cols); i++)
        *at(&product, i, i) -= real_at(s, i, dtype) * real_at(s, i, dtype);
    double r = ratio(norm(&product), scale, dtype);
    free(h.at);
    free(part.at);
    free(other.at);
    free(product.at);
    return r;
}

double residual_svd(const struct view *a, const struct view *u, const void *s,
                    const struct view *vt)
{
    int64_t inner = accel_min(a->rows, a->cols), size = accel_max(a->rows, a->cols);
    struct dense x = dense_of(a), y = adjoint(&x), left = {0}, right = {0};
    double r = 0;
    if (u)
        left = dense_of(u);
    if (vt)
        right = dense_op(vt, 'C');
    if (u)
        r = orthogonality(&left, a->dtype);
    if (vt)
        r = worse(r, orthogonality(&right, a->dtype));
    long double square = count(size) * norm(&x) * norm(&y);
    if (u && !vt)
        r = worse(r, one_side(&x, &left, s, square, a->dtype));
    if (vt && !u)
        r = worse(r, one_side(&y, &right, s, square, a->dtype));
    if (u && vt) {
        struct dense part = first_columns(&left, inner), v = first_columns(&right, inner),
                     h = adjoint(&v);
        scale_columns(&part, s, a->dtype);
        struct dense product = multiply(&part, &h);
        r = worse(r, distance(&product, &x, count(size) * norm(&x), a->dtype));
        free(part.at);
        free(v.at);
        free(h.at);
        free(product.at);
    }
    free(x.at);
    free(y.at);
    free(left.at);
    free(right.at);
    bool right_order =
        is_ordered(s, inner, -1, a->dtype) && (inner == 0 || real_at(s, inner - 1, a->dtype) >= 0);
    return right_order ? r : INFINITY;
}

double residual_values(enum accel_dtype dtype, int64_t n, const void *got,
                       const long double *expected, long double scale)
{
    long double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = greater(worst, fabsl(real_at(got, i, dtype) - expected[i]));
    return ratio(worst, count(n) * scale, dtype);
}

/* Reads eigenvalues as geev returns them; false if pairs are not as documented. */
static bool collect_values(struct dense *w, const void *wr, const void *wi, enum accel_dtype dtype)
{
    for (int64_t i = 0; i < w->rows; i++)
        w->at[i] = wi ? real_at(wr, i, dtype) + real_at(wi, i, dtype) * (value)_Complex_I
                      : load_value(wr, i, dtype);
    for (int64_t i = 0; wi && i < w->rows; i++) {
        if (cimagl(w->at[i]) == 0)
            continue;
        if (!(cimagl(w->at[i]) > 0) || i + 1 == w->rows || w->at[i + 1] != conjl(w->at[i]))
            return false;
        i++;
    }
    return true;
}

/* Eigenvectors as complex columns. */
static struct dense collect_vectors(const struct view *v, const struct dense *w)
{
    struct dense x = dense_of(v);
    for (int64_t col = 0; !accel_is_complex(v->dtype) && col + 1 < x.cols; col++) {
        if (cimagl(w->at[col]) == 0)
            continue;
        for (int64_t row = 0; row < x.rows; row++) {
            *at(&x, row, col) += *at(&x, row, col + 1) * (value)_Complex_I;
            *at(&x, row, col + 1) = conjl(*at(&x, row, col));
        }
        col++;
    }
    return x;
}

/* The distance of a column from length 1 with its largest element real. An element that is nearly
 * as large may be the real one. */
static long double away_from_unit(const struct dense *v, int64_t col)
{
    long double square = 0, largest = 0, imaginary = INFINITY;
    for (int64_t row = 0; row < v->rows; row++) {
        long double x = length(*at(v, row, col));
        square += x * x;
        largest = greater(largest, x);
    }
    for (int64_t row = 0; row < v->rows; row++)
        if (length(*at(v, row, col)) >= 0.999L * largest)
            imaginary = fminl(imaginary, fabsl(cimagl(*at(v, row, col))));
    return greater(fabsl(sqrtl(square) - 1), imaginary);
}

static double eigenvectors(const struct dense *a, const struct dense *w, const struct view *v,
                           bool left)
{
    struct dense x = collect_vectors(v, w), m = left ? adjoint(a) : first_columns(a, a->cols),
                 product = multiply(&m, &x);
    double r = 0;
    for (int64_t col = 0; col < x.cols; col++) {
        r = worse(r, ratio(away_from_unit(&x, col), count(a->rows), v->dtype));
        for (int64_t row = 0; row < x.rows; row++)
            *at(&x, row, col) *= left ? conjl(w->at[col]) : w->at[col];
    }
    r = worse(r, distance(&product, &x, count(a->rows) * norm(&m), v->dtype));
    free(x.at);
    free(m.at);
    free(product.at);
    return r;
}

/* How near the traces (sums of powers of the eigenvalues) of a matrix eps |A| away are. */
static double traces(const struct dense *a, const struct dense *w, enum accel_dtype dtype)
{
    struct dense power = identity(a->rows, a->cols);
    long double scale = 1;
    double r = 0;
    for (int exponent = 1; exponent <= 3; exponent++) {
        struct dense next = multiply(&power, a);
        value sum = 0;
        for (int64_t i = 0; i < a->rows; i++) {
            value product = w->at[i];
            for (int j = 1; j < exponent; j++)
                product *= w->at[i];
            sum += product - *at(&next, i, i);
        }
        scale *= norm(a);
        r = worse(r, ratio(length(sum), exponent * count(a->rows) * scale, dtype));
        free(power.at);
        power = next;
    }
    free(power.at);
    return r;
}

double residual_geev(const struct view *a, const void *wr, const void *wi, const struct view *vl,
                     const struct view *vr)
{
    struct dense x = dense_of(a), w = dense_new(a->rows, 1);
    double r = INFINITY;
    if (collect_values(&w, wr, wi, a->dtype)) {
        r = traces(&x, &w, a->dtype);
        if (vl)
            r = worse(r, eigenvectors(&x, &w, vl, true));
        if (vr)
            r = worse(r, eigenvectors(&x, &w, vr, false));
    }
    free(x.at);
    free(w.at);
    return r;
}

/* ---- Least squares ---- */

double residual_least_squares(const struct view *a, char op, const struct view *x,
                              const struct view *b)
{
    struct dense m = dense_op(a, op), h = adjoint(&m), y = dense_of(x), right = dense_of(b),
                 product = multiply(&m, &y);
    subtract(&product, &right);
    struct dense error = multiply(&h, &product);
    long double scale = norm(&m) + norm(&h);
    double r = 0;
    for (int64_t col = 0; col < y.cols; col++) {
        long double size = column_norm(&right, col) + scale * column_norm(&y, col);
        r = worse(r, ratio(column_norm(&error, col),
                           count(accel_max(a->rows, a->cols)) * scale * size, a->dtype));
    }
    free(m.at);
    free(h.at);
    free(y.at);
    free(right.at);
    free(product.at);
    free(error.at);
    return r;
}

static long double two_norm(const struct dense *x, int64_t col)
{
    long double sum = 0;
    for (int64_t row = 0; row < x->rows; row++)
        sum += length(*at(x, row, col)) * length(*at(x, row, col));
    return sqrtl(sum);
}

/* Column col of x minus its part along a column of unit length. */
static void remove_part(struct dense *x, int64_t col, const struct dense *unit, int64_t along)
{
    value sum = 0;
    for (int64_t row = 0; row < x->rows; row++)
        sum += conjl(*at(unit, row, along)) * *at(x, row, col);
    for (int64_t row = 0; row < x->rows; row++)
        *at(x, row, col) -= *at(unit, row, along) * sum;
}

/* The first `rank` columns become an orthonormal basis: Gram-Schmidt, the longest column first. */
static void make_basis(struct dense *x, int64_t rank)
{
    for (int64_t i = 0; i < rank; i++) {
        int64_t longest = i;
        for (int64_t col = i + 1; col < x->cols; col++)
            if (two_norm(x, col) > two_norm(x, longest))
                longest = col;
        for (int64_t row = 0; row < x->rows; row++) {
            value old = *at(x, row, i);
            *at(x, row, i) = *at(x, row, longest);
            *at(x, row, longest) = old;
        }
        for (int64_t done = 0; done < i; done++)
            remove_part(x, i, x, done);
        long double size = two_norm(x, i);
        for (int64_t row = 0; size > 0 && row < x->rows; row++)
            *at(x, row, i) /= size;
        for (int64_t col = i + 1; col < x->cols; col++)
            remove_part(x, col, x, i);
    }
}

double residual_minimum_norm(const struct view *a, char op, int64_t rank, const struct view *x)
{
    struct dense m = dense_op(a, op), basis = adjoint(&m), y = dense_of(x);
    double r = 0;
    make_basis(&basis, rank);
    for (int64_t col = 0; col < y.cols; col++) {
        long double before = two_norm(&y, col);
        for (int64_t i = 0; i < rank; i++)
            remove_part(&y, col, &basis, i);
        r = worse(r,
                  ratio(two_norm(&y, col), count(accel_max(a->rows, a->cols)) * before, a->dtype));
    }
    free(m.at);
    free(basis.at);
    free(y.at);
    return r;
}
