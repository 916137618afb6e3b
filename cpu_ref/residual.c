#include "residual.h"

#include <stdlib.h>

#include "judge.h"

/* ---- Matrices in long double ---- */

struct dense {
    int64_t rows, cols;
    value *at;
};

static value *at(const struct dense *x, int64_t row, int64_t col)
{
    return &x->at[col * x->rows + row];
}

static struct dense dense_new(int64_t rows, int64_t cols)
{
    struct dense x = {rows, cols, calloc((size_t)(rows * cols + 1), sizeof(value))};
    if (!x.at)
        abort();
    return x;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static value element(const struct view *x, int64_t row, int64_t col)
{
    return load(x->ptr, col * x->ld + row, x->dtype);
}

/* op(x), the structure filled in. */
static struct dense dense_op(const struct view *x, char op)
{
    const struct factor factor = {{x->ptr, 1, x->ld, x->dtype}, op, x->structure, x->uplo};
    struct dense y = op == 'N' ? dense_new(x->rows, x->cols) : dense_new(x->cols, x->rows);
    for (int64_t col = 0; col < y.cols; col++)
        for (int64_t row = 0; row < y.rows; row++)
            *at(&y, row, col) = factor_element(&factor, row, col);
    return y;
}

static struct dense dense_of(const struct view *x)
{
    return dense_op(x, 'N');
}

static struct dense identity(int64_t rows, int64_t cols)
{
    struct dense x = dense_new(rows, cols);
    for (int64_t i = 0; i < least(rows, cols); i++)
        *at(&x, i, i) = 1;
    return x;
}

static struct dense adjoint(const struct dense *x)
{
    struct dense y = dense_new(x->cols, x->rows);
    for (int64_t col = 0; col < y.cols; col++)
        for (int64_t row = 0; row < y.rows; row++)
            *at(&y, row, col) = conjl(*at(x, col, row));
    return y;
}

static struct dense multiply(const struct dense *x, const struct dense *y)
{
    struct dense z = dense_new(x->rows, y->cols);
    for (int64_t col = 0; col < z.cols; col++)
        for (int64_t p = 0; p < x->cols; p++) {
            value factor = *at(y, p, col);
            if (factor == 0)
                continue;
            for (int64_t row = 0; row < z.rows; row++)
                *at(&z, row, col) += *at(x, row, p) * factor;
        }
    return z;
}

/* x := x - y */
static void subtract(struct dense *x, const struct dense *y)
{
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        x->at[i] -= y->at[i];
}

static struct dense first_columns(const struct dense *x, int64_t cols)
{
    struct dense y = dense_new(x->rows, cols);
    memcpy(y.at, x->at, (size_t)(x->rows * cols) * sizeof(value));
    return y;
}

static void swap_rows(struct dense *x, int64_t one, int64_t other)
{
    for (int64_t col = 0; col < x->cols; col++) {
        value old = *at(x, one, col);
        *at(x, one, col) = *at(x, other, col);
        *at(x, other, col) = old;
    }
}

/* ---- Norms and ratios ---- */

/* No overflow: the squares of doubles are well within a long double's range. */
static long double length(value z)
{
    return sqrtl(creall(z) * creall(z) + cimagl(z) * cimagl(z));
}

static long double column_norm(const struct dense *x, int64_t col)
{
    long double sum = 0;
    for (int64_t row = 0; row < x->rows; row++)
        sum += length(*at(x, row, col));
    return sum;
}

/* NaN is greater than all else. */
static long double greater(long double x, long double y)
{
    return x > y || isnan(x) ? x : y;
}

static long double norm(const struct dense *x)
{
    long double worst = 0;
    for (int64_t col = 0; col < x->cols; col++)
        worst = greater(worst, column_norm(x, col));
    return worst;
}

static double ratio(long double error, long double scale, enum accel_dtype dtype)
{
    if (error == 0)
        return 0;
    double r = (double)(error / (cpu_ref_epsilon(dtype) / 2 * scale));
    return isnan(r) ? INFINITY : r;
}

static double worse(double x, double y)
{
    return x > y ? x : y;
}

/* |x - y| / (eps scale); x is overwritten. */
static double distance(struct dense *x, const struct dense *y, long double scale,
                       enum accel_dtype dtype)
{
    subtract(x, y);
    return ratio(norm(x), scale, dtype);
}

static long double count(int64_t n)
{
    return (long double)most(n, 1);
}

/* ---- Factorizations ---- */

/* The triangle of a factorization in place, a unit diagonal where asked. */
static struct dense triangle_of(const struct view *x, char uplo, bool unit, int64_t rows,
                                int64_t cols)
{
    struct dense y = dense_new(rows, cols);
    for (int64_t col = 0; col < cols; col++)
        for (int64_t row = 0; row < rows; row++)
            if (row == col && unit)
                *at(&y, row, col) = 1;
            else if (in_triangle(uplo, row, col))
                *at(&y, row, col) = element(x, row, col);
    return y;
}

double residual_lu(const struct view *a, const struct view *lu, const int64_t *ipiv)
{
    int64_t inner = least(a->rows, a->cols);
    for (int64_t i = 0; i < inner; i++)
        if (ipiv[i] <= i || ipiv[i] > a->rows)
            return INFINITY;
    struct dense x = dense_of(a), l = triangle_of(lu, 'L', true, a->rows, inner),
                 u = triangle_of(lu, 'U', false, inner, a->cols), product = multiply(&l, &u);
    long double scale = count(a->cols) * norm(&x);
    for (int64_t i = 0; i < inner; i++)
        swap_rows(&x, i, ipiv[i] - 1);
    double r = distance(&product, &x, scale, a->dtype);
    free(x.at);
    free(l.at);
    free(u.at);
    free(product.at);
    return r;
}

double residual_cholesky(const struct view *a, const struct view *factor)
{
    struct dense x = dense_of(a), l = dense_op(factor, factor->uplo == 'U' ? 'C' : 'N'),
                 u = adjoint(&l), product = multiply(&l, &u);
    double r = distance(&product, &x, count(a->cols) * norm(&x), a->dtype);
    free(x.at);
    free(l.at);
    free(u.at);
    free(product.at);
    return r;
}

double residual_triangle_square(const struct view *before, const struct view *after)
{
    struct dense u = dense_op(before, before->uplo == 'U' ? 'N' : 'C'), l = adjoint(&u),
                 x = dense_of(after), product = multiply(&u, &l);
    double r = distance(&product, &x, count(before->cols) * norm(&u) * norm(&l), before->dtype);
    free(u.at);
    free(l.at);
    free(x.at);
    free(product.at);
    return r;
}

/* The diagonal blocks of D, from where the factorization ended to where it began: for uplo = 'U'
 * from the first column on, for 'L' from the last. */
struct block {
    int64_t first, size; /* its columns */
    int64_t exchange;    /* the row that went with the pivot's */
};

/* Returns how many there are, -1 where the pivots make no sense. */
static int64_t find_blocks(struct block *blocks, char uplo, int64_t n, const int64_t *ipiv)
{
    int64_t found = 0;
    bool upper = uplo == 'U';
    for (int64_t k = upper ? n - 1 : 0; upper ? k >= 0 : k < n;) {
        int64_t size = ipiv[k] > 0 ? 1 : 2, other = upper ? k - 1 : k + 1;
        int64_t row = (ipiv[k] > 0 ? ipiv[k] : -ipiv[k]) - 1;
        if (row < 0 || row >= n ||
            (size == 2 && (other < 0 || other >= n || ipiv[other] != ipiv[k])))
            return -1;
        blocks[found++] = (struct block){upper ? k - size + 1 : k, size, row};
        k += upper ? -size : size;
    }
    for (int64_t i = 0; i < found / 2; i++) {
        struct block old = blocks[i];
        blocks[i] = blocks[found - 1 - i];
        blocks[found - 1 - i] = old;
    }
    return found;
}

/* y := P(k) U(k) y */
static void apply_block(struct dense *y, const struct view *factor, const struct block *block)
{
    bool upper = factor->uplo == 'U';
    int64_t behind = block->first + block->size;
    int64_t from = upper ? 0 : behind, to = upper ? block->first : factor->rows;
    for (int64_t col = 0; col < y->cols; col++)
        for (int64_t p = block->first; p < behind; p++)
            for (int64_t row = from; row < to; row++)
                *at(y, row, col) += element(factor, row, p) * *at(y, p, col);
    swap_rows(y, upper ? block->first : behind - 1, block->exchange);
}

static void put_diagonal_block(struct dense *d, const struct view *a, const struct view *factor,
                               const struct block *block)
{
    struct view stored = *factor;
    stored.structure = a->structure;
    const struct factor symmetric = {
        {stored.ptr, 1, stored.ld, stored.dtype}, 'N', stored.structure, stored.uplo};
    for (int64_t col = block->first; col < block->first + block->size; col++)
        for (int64_t row = block->first; row < block->first + block->size; row++)
            *at(d, row, col) = factor_element(&symmetric, row, col);
}

double residual_ldl(const struct view *a, const struct view *factor, const int64_t *ipiv)
{
    int64_t n = a->rows;
    struct block *blocks = calloc((size_t)n + 1, sizeof *blocks);
    if (!blocks)
        abort();
    int64_t found = find_blocks(blocks, factor->uplo, n, ipiv);
    struct dense x = dense_of(a), d = dense_new(n, n), u = identity(n, n);
    for (int64_t i = 0; i < found; i++) {
        put_diagonal_block(&d, a, factor, &blocks[i]);
        apply_block(&u, factor, &blocks[i]);
    }
    struct dense left = multiply(&u, &d), right = adjoint(&u);
    if (a->structure == SYMMETRIC)
        for (int64_t i = 0; i < n * n; i++)
            right.at[i] = conjl(right.at[i]);
    struct dense product = multiply(&left, &right);
    double r = found < 0 ? INFINITY : distance(&product, &x, count(n) * norm(&x), a->dtype);
    free(blocks);
    free(x.at);
    free(d.at);
    free(u.at);
    free(left.at);
    free(right.at);
    free(product.at);
    return r;
}

/* ---- Solutions and inverses ---- */

double residual_solution(const struct view *a, char op, const struct view *x, const struct view *b)
{
    struct dense m = dense_op(a, op), y = dense_of(x), right = dense_of(b),
                 product = multiply(&m, &y);
    long double scale = norm(&m);
    double r = 0;
    subtract(&product, &right);
    for (int64_t col = 0; col < y.cols; col++)
        r = worse(r, ratio(column_norm(&product, col), scale * column_norm(&y, col), a->dtype));
    free(m.at);
    free(y.at);
    free(right.at);
    free(product.at);
    return r;
}

double residual_inverse(const struct view *a, const struct view *inverse)
{
    struct dense x = dense_of(a), y = dense_of(inverse), one = identity(a->rows, a->rows),
                 right = multiply(&x, &y), left = multiply(&y, &x);
    long double scale = count(a->rows) * norm(&x) * norm(&y);
    double r = distance(&right, &one, scale, a->dtype),
           other = distance(&left, &one, scale, a->dtype);
    free(x.at);
    free(y.at);
    free(one.at);
    free(right.at);
    free(left.at);
    return r < other ? r : other;
}

/* ---- Orthogonal factors ---- */

static double orthogonality(const struct dense *q, enum accel_dtype dtype)
{
    struct dense h = adjoint(q), product = multiply(&h, q), one = identity(q->cols, q->cols);
    double r = distance(&product, &one, count(q->rows), dtype);
    free(h.at);
    free(product.at);
    free(one.at);
    return r;
}

double residual_orthogonal(const struct view *q, bool by_rows)
{
    struct dense x = dense_op(q, by_rows ? 'C' : 'N');
    double r = orthogonality(&x, q->dtype);
    free(x.at);
    return r;
}

/* x := H x, or H^H x, for reflector number i of qr. */
static void reflect(struct dense *x, const struct view *qr, const void *tau, int64_t i,
                    bool adjoined)
{
    value t = load(tau, i, qr->dtype);
    if (adjoined)
        t = conjl(t);
    for (int64_t col = 0; col < x->cols; col++) {
        value sum = *at(x, i, col);
        for (int64_t row = i + 1; row < x->rows; row++)
            sum += conjl(element(qr, row, i)) * *at(x, row, col);
        sum *= t;
        *at(x, i, col) -= sum;
        for (int64_t row = i + 1; row < x->rows; row++)
            *at(x, row, col) -= element(qr, row, i) * sum;
    }
}

/* x := op(Q) x, Q = H(1) ... H(k) */
static void apply(struct dense *x, const struct view *qr, int64_t k, const void *tau, char op)
{
    for (int64_t i = 0; i < k; i++)
        reflect(x, qr, tau, op == 'N' ? k - 1 - i : i, op != 'N');
}

double residual_qr(const struct view *a, const struct view *qr, const void *tau)
{
    int64_t inner = least(a->rows, a->cols);
    struct dense x = dense_of(a), product = triangle_of(qr, 'U', false, a->rows, a->cols),
                 q = identity(a->rows, inner);
    apply(&product, qr, inner, tau, 'N');
    apply(&q, qr, inner, tau, 'N');
    double r = worse(distance(&product, &x, count(a->rows) * norm(&x), a->dtype),
                     orthogonality(&q, a->dtype));
    free(x.at);
    free(product.at);
    free(q.at);
    return r;
}

double residual_generated(const struct view *qr, const void *tau, const struct view *q)
{
    struct dense expected = identity(q->rows, q->cols), got = dense_of(q);
    apply(&expected, qr, qr->cols, tau, 'N');
    double r =
        worse(distance(&expected, &got, count(q->rows), q->dtype), orthogonality(&got, q->dtype));
    free(expected.at);
    free(got.at);
    return r;
}

double residual_applied(char side, char op, const struct view *qr, const void *tau,
                        const struct view *before, const struct view *after)
{
    bool left = side == 'L';
    /* C Q = (Q^H C^H)^H */
    struct dense c = dense_op(before, left ? 'N' : 'C'), got = dense_op(after, left ? 'N' : 'C');
    long double scale = count(most(before->rows, before->cols)) * norm(&c);
    apply(&c, qr, qr->cols, tau, (op == 'N') == left ? 'N' : 'C');
    double r = distance(&c, &got, scale, before->dtype);
    free(c.at);
    free(got.at);
    return r;
}

/* ---- Eigenvalues and singular values ---- */

static enum accel_dtype real_type(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
}

static long double real_at(const void *x, int64_t i, enum accel_dtype dtype)
{
    return creall(load(x, i, real_type(dtype)));
}

/* Whether sign * w never becomes less. */
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

/* Z as the eigenvectors' normalisation has it. */
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

/* |Q^H A A^H Q - S^2| */
static double one_side(const struct dense *a, const struct dense *q, const void *s,
                       long double scale, enum accel_dtype dtype)
{
    struct dense h = adjoint(a), part = multiply(&h, q), other = adjoint(&part),
                 product = multiply(&other, &part);
    for (int64_t i = 0; i < least(least(a->rows, a->cols), q->cols); i++)
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
    int64_t inner = least(a->rows, a->cols), size = most(a->rows, a->cols);
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

/* The eigenvalues as geev returns them; false where pairs are not as documented. */
static bool collect_values(struct dense *w, const void *wr, const void *wi, enum accel_dtype dtype)
{
    for (int64_t i = 0; i < w->rows; i++)
        w->at[i] = wi ? real_at(wr, i, dtype) + real_at(wi, i, dtype) * (value)_Complex_I
                      : load(wr, i, dtype);
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

/* How far a column is from length 1 with its largest element real. Elements that are nearly as
 * large as the largest may stand for it. */
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

/* The eigenvalues of a matrix eps |A| away have traces so near: sums of their powers. */
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
        r = worse(r, ratio(column_norm(&error, col), count(most(a->rows, a->cols)) * scale * size,
                           a->dtype));
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

/* Column col of x less its part along a column of unit length. */
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
        r = worse(r, ratio(two_norm(&y, col), count(most(a->rows, a->cols)) * before, a->dtype));
    }
    free(m.at);
    free(basis.at);
    free(y.at);
    return r;
}
