#include "dense.h"

/* ---- Factorizations ---- */

/* The triangle of an in-place factorization; with a unit diagonal if asked. */
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
    int64_t inner = accel_min(a->rows, a->cols);
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

/* The diagonal blocks of D, in reverse order of the factorization: for uplo = 'U' from the first
 * column on, for 'L' from the last. */
struct block {
    int64_t first, size; /* its columns */
    int64_t exchange;    /* the row that was exchanged with the pivot's */
};

/* Returns the number of blocks, or -1 if the pivots are not valid. */
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
    const struct factor symmetric = {stored, 'N'};
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
    value t = load_value(tau, i, qr->dtype);
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
static void apply_q(struct dense *x, const struct view *qr, int64_t k, const void *tau, char op)
{
    for (int64_t i = 0; i < k; i++)
        reflect(x, qr, tau, op == 'N' ? k - 1 - i : i, op != 'N');
}

double residual_qr(const struct view *a, const struct view *qr, const void *tau)
{
    int64_t inner = accel_min(a->rows, a->cols);
    struct dense x = dense_of(a), product = triangle_of(qr, 'U', false, a->rows, a->cols),
                 q = identity(a->rows, inner);
    apply_q(&product, qr, inner, tau, 'N');
    apply_q(&q, qr, inner, tau, 'N');
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
    apply_q(&expected, qr, qr->cols, tau, 'N');
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
    long double scale = count(accel_max(before->rows, before->cols)) * norm(&c);
    apply_q(&c, qr, qr->cols, tau, (op == 'N') == left ? 'N' : 'C');
    double r = distance(&c, &got, scale, before->dtype);
    free(c.at);
    free(got.at);
    return r;
}
