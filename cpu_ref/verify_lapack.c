#include "vectors.h"

/* The call under test. Vectors are as long as the longer of its sizes. */
struct test {
    const struct accel_call *call;
    const void *const *before;
    enum accel_dtype dtype;
    int64_t parts, order; /* the largest size, by which rounding grows */
    struct vectors vectors;
    double worst; /* of the ratios so far; CPU_REF_NOT_JUDGED: none */
    bool open;    /* there was one that could not be told */
};

/* ---- Operands ---- */

static struct view result(const struct test *t, enum accel_matrix which)
{
    const struct accel_operand *x = &t->call->operand[which];
    return (struct view){x->ptr, x->rows, x->cols, x->ld, x->dtype, GENERAL, 0};
}

/* As it was before the call. */
static struct view input(const struct test *t, enum accel_matrix which)
{
    struct view x = result(t, which);
    if (t->before[which]) {
        x.ptr = t->before[which];
        x.ld = accel_max(x.rows, 1);
    }
    return x;
}

static struct view shaped(struct view x, enum structure structure, char uplo)
{
    x.structure = structure;
    x.uplo = uplo;
    return x;
}

/* Symmetric, or Hermitian where the type or the routine is. */
static struct view mirrored(const struct test *t, struct view x)
{
    enum accel_family family = t->call->routine->family;
    bool symmetric = family == ACCEL_SYTRF || family == ACCEL_SYTRS || family == ACCEL_SYSV;
    return shaped(x, symmetric || !accel_is_complex(x.dtype) ? SYMMETRIC : HERMITIAN,
                  t->call->flag[ACCEL_uplo]);
}

static struct view triangle(const struct test *t, struct view x)
{
    return shaped(x, t->call->flag[ACCEL_diag] == 'U' ? UNIT_TRIANGULAR : TRIANGULAR,
                  t->call->flag[ACCEL_uplo]);
}

static struct view part(const struct view *x, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    struct view y = *x;
    y.ptr = (const char *)x->ptr + (row + col * x->ld) * (int64_t)accel_dtype_size(x->dtype);
    y.rows = rows;
    y.cols = cols;
    return y;
}

static double real_at(const struct accel_operand *x, int64_t i)
{
    return accel_is_double(x->dtype) ? ((const double *)x->ptr)[i]
                                     : (double)((const float *)x->ptr)[i];
}

static int64_t integer_at(const struct accel_operand *x, int64_t i)
{
    return x->dtype == ACCEL_INT64 ? ((const int64_t *)x->ptr)[i]
                                   : (int64_t)((const int32_t *)x->ptr)[i];
}

static double norm(const struct view *x)
{
    return sqrt(sum_of_squares(x));
}

/* ---- Vectors ---- */

static double *new_vector(struct test *t, int64_t n)
{
    return vector_zero(&t->vectors, n * t->parts);
}

static double *random_vector(struct test *t, int64_t n)
{
    return vector_random(&t->vectors, n, t->dtype);
}

/* op(X) in */
static double *times(struct test *t, const struct view *x, char op, const double *in)
{
    bool across = op == 'T' || op == 'C';
    double *out = new_vector(t, across ? x->cols : x->rows);
    apply(x, op, in, out);
    return out;
}

static void subtract(const struct test *t, double *x, const double *y, int64_t n)
{
    for (int64_t i = 0; i < n * t->parts; i++)
        x[i] -= y[i];
}

static void exchange(const struct test *t, double *x, int64_t i, int64_t j)
{
    for (int64_t part = 0; part < t->parts; part++) {
        double old = x[i * t->parts + part];
        x[i * t->parts + part] = x[j * t->parts + part];
        x[j * t->parts + part] = old;
    }
}

/* The elements times those of a real vector of the call. */
static double *times_values(struct test *t, const struct accel_operand *values, const double *in,
                            int64_t n, int power)
{
    double *out = new_vector(t, n);
    for (int64_t i = 0; i < n * t->parts; i++) {
        double value = real_at(values, i / t->parts);
        out[i] = in[i] * (power == 2 ? value * value : value);
    }
    return out;
}

/* ---- Judging ---- */

/* What cannot be judged in part is not judged, unless another part of it is wrong. */
static void note(struct test *t, double ratio)
{
    t->open = t->open || ratio < 0;
    t->worst = ratio > t->worst || isnan(ratio) ? ratio : t->worst;
}

static double tolerance(const struct test *t)
{
    const double threshold = 30, n = (double)t->order + 1; /* the threshold of LAPACK's tests */
    return RANDOM_MOST *
           (threshold * n * unit_roundoff(t->dtype) + 2 * (n + 16) * 0x1p-53 * sqrt(n));
}

/* The length of a residual against a scale. A result so large that its norm is beyond what can be told is not judged; a NaN in
 * one is wrong, since there was none in what it was made of. */
static double ratio_of(const struct test *t, const double *residual, int64_t n, double scale)
{
    const double least = tolerance(t) * least_moderate(t->dtype), bound = tolerance(t) * scale,
                 error = dot_self(residual, n * t->parts);
    if (is_moderate(t->dtype, scale))
        return ratio_of_squares(error, bound * bound);
    bool far = scale < 1 && error > least * least; /* whatever is lost in so small numbers */
    return far || (isnan(scale) && isnan(error)) ? INFINITY : CPU_REF_NOT_JUDGED;
}

static void judge(struct test *t, const double *residual, int64_t n, double scale)
{
    note(t, ratio_of(t, residual, n, scale));
}

/* One number against another. */
static void judge_number(struct test *t, double error, double scale)
{
    double bound = tolerance(t) * scale;
    note(t, ratio_of_squares(error * error, bound * bound));
}

/* Q^H Q r = r for the columns of Q. */
static void judge_columns(struct test *t, const struct view *q)
{
    const double *r = random_vector(t, q->cols), *y = times(t, q, 'N', r);
    double *z = times(t, q, 'C', y);
    subtract(t, z, r, q->cols);
    judge(t, z, q->cols, 1);
}

static void judge_rows(struct test *t, const struct view *q)
{
    const double *r = random_vector(t, q->rows), *y = times(t, q, 'C', r);
    double *z = times(t, q, 'N', y);
    subtract(t, z, r, q->rows);
    judge(t, z, q->rows, 1);
}

/* ---- Factorizations, as operators ---- */

/* Whatever stands for a square or rectangular matrix as its factors do. */
struct factored {
    struct view lu;                        /* L and U, U or L, U and D */
    const struct accel_operand *exchanges; /* LU, LDL */
    double *(*times)(struct test *t, const struct factored *f, char op, const double *in);
    double norm;
};

static struct view lower_of(const struct view *lu)
{
    struct view l = part(lu, 0, lu->rows, 0, accel_min(lu->rows, lu->cols));
    return shaped(l, UNIT_TRIANGULAR, 'L');
}

static struct view upper_of(const struct view *lu)
{
    struct view u = part(lu, 0, accel_min(lu->rows, lu->cols), 0, lu->cols);
    return shaped(u, TRIANGULAR, 'U');
}

/* A = P' L U: the exchanges one after the other make P A. */
static double *lu_times(struct test *t, const struct factored *f, char op, const double *in)
{
    const struct view l = lower_of(&f->lu), u = upper_of(&f->lu);
    const int64_t swaps = accel_min(f->lu.rows, f->lu.cols);
    if (op == 'N') {
        double *y = times(t, &l, 'N', times(t, &u, 'N', in));
        for (int64_t i = swaps; i-- > 0;)
            exchange(t, y, i, integer_at(f->exchanges, i) - 1);
        return y;
    }
    double *x = new_vector(t, f->lu.rows);
    memcpy(x, in, (size_t)(f->lu.rows * t->parts) * sizeof *x);
    for (int64_t i = 0; i < swaps; i++)
        exchange(t, x, i, integer_at(f->exchanges, i) - 1);
    return times(t, &u, op, times(t, &l, op, x));
}

/* False, and the result wrong, where the exchanges name no rows. */
static bool open_lu(struct test *t, struct factored *f, struct view lu)
{
    const struct view l = lower_of(&lu), u = upper_of(&lu);
    *f = (struct factored){lu, &t->call->operand[ACCEL_x], lu_times, norm(&l) * norm(&u)};
    for (int64_t i = 0; i < accel_min(lu.rows, lu.cols); i++)
        if (integer_at(f->exchanges, i) <= i || integer_at(f->exchanges, i) > lu.rows) {
            note(t, INFINITY);
            return false;
        }
    return true;
}

/* A = U^H U or L L^H; Hermitian, so op says nothing but in its conjugate. */
static double *cholesky_times(struct test *t, const struct factored *f, char op, const double *in)
{
    bool upper = f->lu.uplo == 'U';
    (void)op;
    return times(t, &f->lu, upper ? 'C' : 'N', times(t, &f->lu, upper ? 'N' : 'C', in));
}

static void open_cholesky(struct test *t, struct factored *f, struct view factor)
{
    factor = shaped(factor, TRIANGULAR, t->call->flag[ACCEL_uplo]);
    double square = sum_of_squares(&factor);
    *f = (struct factored){factor, NULL, cholesky_times, square};
}

/* The blocks of D, of one or two columns, in the order in which they were eliminated (back: in the other one). From column k on;
 * returns the next block's, or one beyond the matrix. */
struct block {
    int64_t first, size, exchange;
};

static bool next_block(const struct factored *f, bool upwards, int64_t *k, struct block *block)
{
    int64_t n = f->lu.rows;
    if (*k < 0 || *k >= n)
        return false;
    int64_t pivot = integer_at(f->exchanges, *k), size = pivot > 0 ? 1 : 2;
    *block = (struct block){upwards ? *k : *k - size + 1, size, (pivot > 0 ? pivot : -pivot) - 1};
    *k += upwards ? size : -size;
    return true;
}

static bool are_blocks_right(const struct factored *f)
{
    int64_t k = 0, n = f->lu.rows;
    struct block block;
    while (next_block(f, true, &k, &block)) {
        if (block.exchange < 0 || block.exchange >= n || block.first + block.size > n)
            return false;
        if (block.size == 2 &&
            integer_at(f->exchanges, block.first + 1) != integer_at(f->exchanges, block.first))
            return false;
    }
    return true;
}

/* The rows and columns of a block's multipliers. */
static struct view multipliers(const struct factored *f, const struct block *block)
{
    int64_t behind = block->first + block->size;
    struct view x = shaped(f->lu, GENERAL, 0);
    return f->lu.uplo == 'U' ? part(&x, 0, block->first, block->first, block->size)
                             : part(&x, behind, f->lu.rows - behind, block->first, block->size);
}

static int64_t pivot_of(const struct factored *f, const struct block *block)
{
    return f->lu.uplo == 'U' ? block->first : block->first + block->size - 1;
}

/* A = U D U' or U D U^H, U a product of exchanges and columns. */
static double *ldl_times(struct test *t, const struct factored *f, char op, const double *in)
{
    const bool upper = f->lu.uplo == 'U', hermitian = f->lu.structure == HERMITIAN;
    const int64_t n = f->lu.rows, parts = t->parts;
    double *y = new_vector(t, n), *z = new_vector(t, n);
    struct block block;
    (void)op;
    memcpy(y, in, (size_t)(n * parts) * sizeof *y);
    for (int64_t k = upper ? n - 1 : 0; next_block(f, !upper, &k, &block);) {
        const struct view x = multipliers(f, &block);
        exchange(t, y, pivot_of(f, &block), block.exchange);
        apply(&x, hermitian ? 'C' : 'T', y + (upper ? 0 : block.first + block.size) * parts,
              y + block.first * parts);
    }
    for (int64_t k = 0; next_block(f, true, &k, &block);) {
        const struct view d = part(&f->lu, block.first, block.size, block.first, block.size);
        apply(&d, 'N', y + block.first * parts, z + block.first * parts);
    }
    for (int64_t k = upper ? 0 : n - 1; next_block(f, upper, &k, &block);) {
        const struct view x = multipliers(f, &block);
        apply(&x, 'N', z + block.first * parts, z + (upper ? 0 : block.first + block.size) * parts);
        exchange(t, z, pivot_of(f, &block), block.exchange);
    }
    return z;
}

static bool open_ldl(struct test *t, struct factored *f, struct view factor)
{
    factor = mirrored(t, factor);
    *f = (struct factored){factor, &t->call->operand[ACCEL_x], ldl_times, 0};
    if (!are_blocks_right(f)) {
        note(t, INFINITY);
        return false;
    }
    /* Of U D U', which is nowhere as a matrix: about |A| times the length of a random element. */
    const int64_t used = t->vectors.used;
    const double *y = ldl_times(t, f, 'N', random_vector(t, factor.cols));
    f->norm = norm(&factor) + sqrt(dot_self(y, factor.rows * t->parts));
    t->vectors.used = used;
    return true;
}

/* A matrix as it is stored. */
static double *plain_times(struct test *t, const struct factored *f, char op, const double *in)
{
    return times(t, &f->lu, op, in);
}

static struct factored plain(struct view a)
{
    return (struct factored){a, NULL, plain_times, norm(&a)};
}

/* ---- What holds of them ---- */

/* Both are the same matrix, whose norm is that of the one that was given. */
static void judge_same(struct test *t, const struct factored *given, const struct factored *made)
{
    const int64_t used = t->vectors.used;
    const double *r = random_vector(t, given->lu.cols);
    double *y = given->times(t, given, 'N', r);
    subtract(t, y, made->times(t, made, 'N', r), given->lu.rows);
    judge(t, y, given->lu.rows, given->norm);
    t->vectors.used = used;
}

/* op(A) X = B */
static void judge_solution(struct test *t, const struct factored *a, char op)
{
    const int64_t used = t->vectors.used;
    const struct view x = result(t, ACCEL_b), b = input(t, ACCEL_b);
    const double *r = random_vector(t, x.cols);
    double *y = a->times(t, a, op, times(t, &x, 'N', r));
    subtract(t, y, times(t, &b, 'N', r), x.rows);
    judge(t, y, x.rows, a->norm * norm(&x) + norm(&b));
    t->vectors.used = used;
}

/* A X = 1 or X A = 1: implementations differ in the side that they solve from. */
static void judge_inverse(struct test *t, const struct factored *a, const struct view *x)
{
    const int64_t used = t->vectors.used, n = x->rows;
    const double scale = a->norm * norm(x), *r = random_vector(t, n);
    double *right = a->times(t, a, 'N', times(t, x, 'N', r)),
           *left = times(t, x, 'N', a->times(t, a, 'N', r));
    subtract(t, right, r, n);
    subtract(t, left, r, n);
    double one = ratio_of(t, right, n, scale), other = ratio_of(t, left, n, scale);
    note(t, one < other ? one : other);
    t->vectors.used = used;
}

/* ---- Orthogonal factors ---- */

/* x := op(Q) x, Q = H(1) ... H(k), each 1 - tau v v^H with v in the columns of qr. */
static void reflect(struct test *t, const struct view *qr, int64_t k, char op, double *x)
{
    const struct accel_operand *tau = &t->call->operand[ACCEL_x];
    for (int64_t step = 0; step < k; step++) {
        int64_t i = op == 'N' ? k - 1 - step : step;
        const struct view v = part(qr, i + 1, qr->rows - i - 1, i, 1);
        const value factor = load(tau->ptr, i, t->dtype);
        double *head = x + i * t->parts, *tail = head + t->parts, sum[2] = {head[0], 0};
        if (t->parts == 2)
            sum[1] = head[1];
        apply(&v, 'C', tail, sum);
        value s = -(op == 'N' ? factor : conjl(factor)) * (sum[0] + sum[1] * (value)_Complex_I);
        sum[0] = (double)creall(s);
        sum[1] = (double)cimagl(s);
        for (int64_t p = 0; p < t->parts; p++)
            head[p] += sum[p];
        apply(&v, 'N', sum, tail);
    }
}

static void judge_qr(struct test *t)
{
    const struct view a = input(t, ACCEL_a), qr = result(t, ACCEL_a), r = upper_of(&qr);
    const int64_t inner = accel_min(a.rows, a.cols);
    const double *x = random_vector(t, a.cols);
    double *y = times(t, &a, 'N', x), *z = new_vector(t, a.rows);
    apply(&r, 'N', x, z);
    reflect(t, &qr, inner, 'N', z);
    subtract(t, y, z, a.rows);
    judge(t, y, a.rows, norm(&a));
}

static void judge_generated(struct test *t)
{
    const struct view qr = input(t, ACCEL_a), q = result(t, ACCEL_a);
    const double *x = random_vector(t, q.cols);
    double *y = times(t, &q, 'N', x), *z = new_vector(t, q.rows);
    memcpy(z, x, (size_t)(q.cols * t->parts) * sizeof *z);
    reflect(t, &qr, t->call->size[ACCEL_k], 'N', z);
    subtract(t, y, z, q.rows);
    judge(t, y, q.rows, 1);
}

static void judge_applied(struct test *t)
{
    const struct view qr = input(t, ACCEL_a), c = input(t, ACCEL_c), got = result(t, ACCEL_c);
    const bool left = t->call->flag[ACCEL_side] == 'L';
    const char op = t->call->flag[ACCEL_trans];
    double *x = random_vector(t, c.cols), *y = times(t, &got, 'N', x);
    if (!left)
        reflect(t, &qr, qr.cols, op, x);
    double *z = times(t, &c, 'N', x);
    if (left)
        reflect(t, &qr, qr.cols, op, z);
    subtract(t, y, z, c.rows);
    judge(t, y, c.rows, norm(&c));
}

/* ---- Least squares ---- */

/* op(A)^H (b - op(A) x) = 0; where the system has a solution, b - op(A) x itself. Singular values that count as zero leave
 * what belongs to them: rcond |A| |b|. */
static void judge_least_squares(struct test *t)
{
    const struct view a = input(t, ACCEL_a), all_b = input(t, ACCEL_b), all_x = result(t, ACCEL_b);
    const char op = t->call->flag[ACCEL_trans] ? t->call->flag[ACCEL_trans] : 'N';
    const int64_t rows = op == 'N' ? a.rows : a.cols, cols = op == 'N' ? a.cols : a.rows;
    const struct view b = part(&all_b, 0, rows, 0, all_b.cols),
                      x = part(&all_x, 0, cols, 0, all_x.cols);
    const double size = norm(&a), *r = random_vector(t, b.cols);
    double *y = times(t, &b, 'N', r), scale = size * norm(&x) + norm(&b);
    subtract(t, y, times(t, &a, op, times(t, &x, 'N', r)), rows);
    bool by_values = t->call->operand[ACCEL_found].ptr;
    bool full =
        !by_values || integer_at(&t->call->operand[ACCEL_found], 0) == accel_min(rows, cols);
    if (rows <= cols && full) {
        judge(t, y, rows, scale);
    } else {
        double rest = full ? 0 : greater_of(t->call->scalar[ACCEL_rcond].re, 0) / tolerance(t);
        judge(t, times(t, &a, op == 'N' ? 'C' : 'N', y), cols, size * scale * (1 + rest));
    }
}

/* The squares of the singular values add up to that of the matrix. */
static void judge_values(struct test *t, const struct view *a)
{
    const struct accel_operand *s = &t->call->operand[ACCEL_x];
    double sum = 0, square = sum_of_squares(a);
    for (int64_t i = 0; i < accel_min(a->rows, a->cols); i++)
        sum += real_at(s, i) * real_at(s, i);
    judge_number(t, sum - square, square);
}

/* ---- Eigenvalues ---- */

static int64_t found(const struct test *t)
{
    const struct accel_operand *m = &t->call->operand[ACCEL_found];
    int64_t n = t->call->size[ACCEL_n];
    return m->ptr && t->call->flag[ACCEL_range] ? accel_min(accel_max(integer_at(m, 0), 0), n) : n;
}

static double trace_of(const struct view *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        sum += (double)creall(load(a->ptr, i * (a->ld + 1), a->dtype));
    return sum;
}

/* All of them, without vectors: their sum, and that of their squares. */
static void judge_spectrum(struct test *t, const struct view *a)
{
    const struct accel_operand *w = &t->call->operand[ACCEL_x];
    const double square = sum_of_squares(a);
    double sum = 0, squares = 0;
    if (found(t) < a->rows)
        return;
    for (int64_t i = 0; i < a->rows; i++) {
        sum += real_at(w, i);
        squares += real_at(w, i) * real_at(w, i);
    }
    judge_number(t, sum - trace_of(a), sqrt(square));
    judge_number(t, squares - square, square);
}

/* The vectors: in a matrix of their own, or in A's place. */
static struct view vectors_of(const struct test *t)
{
    struct view z = result(t, t->call->flag[ACCEL_range] ? ACCEL_c : ACCEL_a);
    z.cols = found(t);
    return z;
}

/* A Z = Z W */
static void judge_eigen(struct test *t)
{
    const struct view a = mirrored(t, input(t, ACCEL_a));
    if (t->call->flag[ACCEL_jobz] != 'V') {
        judge_spectrum(t, &a);
        return;
    }
    const struct view z = vectors_of(t);
    const double *r = random_vector(t, z.cols);
    double *y = times(t, &a, 'N', times(t, &z, 'N', r));
    subtract(t, y, times(t, &z, 'N', times_values(t, &t->call->operand[ACCEL_x], r, z.cols, 1)),
             z.rows);
    judge(t, y, z.rows, norm(&a));
    judge_columns(t, &z);
}

/* A Z = B Z W, A B Z = Z W, B A Z = Z W; Z^H B Z = 1, or Z Z^H = B. The values alone are not judged, but for B's factor. */
static void judge_generalized(struct test *t)
{
    const struct view a = mirrored(t, input(t, ACCEL_a)), b = mirrored(t, input(t, ACCEL_b));
    const struct factored given = plain(b);
    const int64_t itype = t->call->size[ACCEL_itype];
    const double worst = t->worst;
    struct factored factor;
    open_cholesky(t, &factor, result(t, ACCEL_b));
    judge_same(t, &given, &factor);
    if (t->call->flag[ACCEL_jobz] != 'V') {
        if (t->worst <= 1)
            t->worst = worst;
        return;
    }
    const struct view z = vectors_of(t);
    const struct accel_operand *w = &t->call->operand[ACCEL_x];
    const double size = norm(&z), *r = random_vector(t, z.cols), *zr = times(t, &z, 'N', r),
                 *zw = times(t, &z, 'N', times_values(t, w, r, z.cols, 1));
    double *y, largest = 0;
    for (int64_t i = 0; i < z.cols; i++)
        largest = greater_of(largest, fabs(real_at(w, i)));
    if (itype == 1) {
        y = times(t, &a, 'N', zr);
        subtract(t, y, times(t, &b, 'N', zw), z.rows);
        judge(t, y, z.rows, (norm(&a) + norm(&b) * largest) * size);
    } else {
        const struct view *first = itype == 2 ? &b : &a, *second = itype == 2 ? &a : &b;
        y = times(t, second, 'N', times(t, first, 'N', zr));
        subtract(t, y, zw, z.rows);
        judge(t, y, z.rows, (norm(&a) * norm(&b) + largest) * size);
    }
    if (itype != 3) {
        double *one = times(t, &z, 'C', times(t, &b, 'N', zr));
        subtract(t, one, r, z.cols);
        judge(t, one, z.cols, norm(&b) * size * size);
    } else if (z.cols == z.rows) {
        double *bz = times(t, &z, 'N', times(t, &z, 'C', r));
        subtract(t, bz, times(t, &b, 'N', r), z.rows);
        judge(t, bz, z.rows, norm(&b) + size * size);
    }
}

/* V W r: of the real types, a pair of conjugates stands in two columns, as its real and its imaginary part. */
static double *times_eigenvalues(struct test *t, const double *r, int64_t n)
{
    const struct accel_operand *w = &t->call->operand[ACCEL_x], *wi = &t->call->operand[ACCEL_y];
    double *out = new_vector(t, n);
    for (int64_t i = 0; i < n; i++) {
        if (t->parts == 2) {
            value z = load(w->ptr, i, t->dtype) * (r[2 * i] + r[2 * i + 1] * (value)_Complex_I);
            out[2 * i] = (double)creall(z);
            out[2 * i + 1] = (double)cimagl(z);
        } else if (real_at(wi, i) == 0 || i + 1 == n) {
            out[i] = real_at(w, i) * r[i];
        } else {
            double re = real_at(w, i), im = real_at(wi, i);
            out[i] = re * r[i] + im * r[i + 1];
            out[i + 1] = re * r[i + 1] - im * r[i];
            i++;
        }
    }
    return out;
}

/* The vectors have unit length; a pair of columns together. */
static void judge_lengths(struct test *t, const struct view *v)
{
    const struct accel_operand *wi = &t->call->operand[ACCEL_y];
    for (int64_t i = 0; i < v->cols; i++) {
        bool pair = t->parts == 1 && real_at(wi, i) != 0 && i + 1 < v->cols;
        const struct view column = part(v, 0, v->rows, i, pair ? 2 : 1);
        judge_number(t, sum_of_squares(&column) - 1, 1);
        i += pair;
    }
}

/* The sum of the eigenvalues and of their squares: the traces of A and of its square. */
static void judge_traces(struct test *t, const struct view *a)
{
    const struct accel_operand *w = &t->call->operand[ACCEL_x], *wi = &t->call->operand[ACCEL_y];
    const double square = sum_of_squares(a);
    value sums[2] = {0, 0};
    for (int64_t i = 0; i < a->rows; i++) {
        value z = load(w->ptr, i, t->dtype);
        if (t->parts == 1)
            z += real_at(wi, i) * (value)_Complex_I;
        sums[0] += z - load(a->ptr, i * (a->ld + 1), a->dtype);
        sums[1] += z * z;
        for (int64_t j = 0; j < a->rows; j++)
            sums[1] -=
                load(a->ptr, i + j * a->ld, a->dtype) * load(a->ptr, j + i * a->ld, a->dtype);
    }
    judge_number(t, (double)magnitude(sums[0]), sqrt(square));
    judge_number(t, (double)magnitude(sums[1]), square);
}

/* A V = V W */
static void judge_nonsymmetric(struct test *t)
{
    const struct view a = input(t, ACCEL_a), v = result(t, ACCEL_c);
    judge_traces(t, &a);
    if (t->call->flag[ACCEL_jobvr] != 'V')
        return;
    const double *r = random_vector(t, v.cols);
    double *y = times(t, &a, 'N', times(t, &v, 'N', r));
    subtract(t, y, times(t, &v, 'N', times_eigenvalues(t, r, v.cols)), v.rows);
    judge(t, y, v.rows, norm(&a) * norm(&v));
    judge_lengths(t, &v);
}

/* ---- Singular values ---- */

/* The left or right vectors that a job has asked for: in their own matrix, or in A's place; no rows where it has not. */
static struct view singular_vectors(const struct test *t, enum accel_flag job,
                                    enum accel_matrix own, int64_t values)
{
    char wanted = accel_job_of(t->call, job);
    struct view none = {NULL, 0, 0, 1, t->dtype, GENERAL, 0};
    if (wanted == 'A' || wanted == 'S')
        return result(t, own);
    if (wanted != 'O')
        return none;
    struct view a = result(t, ACCEL_a);
    return own == ACCEL_b ? part(&a, 0, a.rows, 0, values) : part(&a, 0, values, 0, a.cols);
}

/* A V = U S; with one side alone A A^H U = U S^2 or A^H A V = V S^2 */
static void judge_svd(struct test *t)
{
    const struct view a = input(t, ACCEL_a);
    const struct accel_operand *s = &t->call->operand[ACCEL_x];
    const int64_t k = accel_min(a.rows, a.cols);
    const struct view u = singular_vectors(t, ACCEL_jobu, ACCEL_b, k),
                      vt = singular_vectors(t, ACCEL_jobvt, ACCEL_c, k);
    const double size = norm(&a), *r = random_vector(t, k);
    const double *left = NULL, *right = NULL;
    judge_values(t, &a);
    if (u.rows > 0) {
        const struct view first = part(&u, 0, u.rows, 0, k);
        left = times(t, &first, 'N', times_values(t, s, r, k, vt.rows > 0 ? 1 : 2));
        judge_columns(t, &u);
    }
    if (vt.rows > 0) {
        const struct view first = part(&vt, 0, k, 0, vt.cols);
        right = times(t, &first, 'C', u.rows > 0 ? r : times_values(t, s, r, k, 2));
        judge_rows(t, &vt);
    }
    if (left && right) {
        double *y = times(t, &a, 'N', right);
        subtract(t, y, left, a.rows);
        judge(t, y, a.rows, size);
    } else if (left) {
        const struct view first = part(&u, 0, u.rows, 0, k);
        double *y = times(t, &a, 'N', times(t, &a, 'C', times(t, &first, 'N', r)));
        subtract(t, y, left, a.rows);
        judge(t, y, a.rows, size * size);
    } else if (right) {
        const struct view first = part(&vt, 0, k, 0, vt.cols);
        double *y = times(t, &a, 'C', times(t, &a, 'N', times(t, &first, 'C', r)));
        subtract(t, y, right, a.cols);
        judge(t, y, a.cols, size * size);
    }
}

/* ---- Copies ---- */

static void judge_copy(struct test *t)
{
    const struct view a = input(t, ACCEL_a), b = result(t, ACCEL_b);
    const char uplo = t->call->flag[ACCEL_uplo];
    const size_t size = accel_dtype_size(t->dtype);
    bool same = true;
    for (int64_t col = 0; col < a.cols && same; col++) {
        int64_t from = uplo == 'L' ? accel_min(col, a.rows) : 0,
                to = uplo == 'U' ? accel_min(col + 1, a.rows) : a.rows;
        same = memcmp((const char *)a.ptr + (size_t)(from + col * a.ld) * size,
                      (const char *)b.ptr + (size_t)(from + col * b.ld) * size,
                      (size_t)(to - from) * size) == 0;
    }
    note(t, same ? 0 : INFINITY);
}

/* ---- The families ---- */

static void judge_linear(struct test *t)
{
    const struct view a = input(t, ACCEL_a), made = result(t, ACCEL_a);
    struct factored f, given;
    switch (t->call->routine->family) {
    case ACCEL_GETRF:
    case ACCEL_GESV:
        given = plain(a);
        if (!open_lu(t, &f, made))
            return;
        judge_same(t, &given, &f);
        if (t->call->routine->family == ACCEL_GESV)
            judge_solution(t, &given, 'N');
        return;
    case ACCEL_GETRS:
        if (open_lu(t, &f, a))
            judge_solution(t, &f, t->call->flag[ACCEL_trans]);
        return;
    case ACCEL_GETRI:
        if (open_lu(t, &f, a))
            judge_inverse(t, &f, &made);
        return;
    case ACCEL_POTRF:
    case ACCEL_POSV:
        given = plain(mirrored(t, a));
        open_cholesky(t, &f, made);
        judge_same(t, &given, &f);
        if (t->call->routine->family == ACCEL_POSV)
            judge_solution(t, &given, 'N');
        return;
    case ACCEL_POTRS:
        open_cholesky(t, &f, a);
        judge_solution(t, &f, 'N');
        return;
    case ACCEL_POTRI: {
        const struct view inverse = mirrored(t, made);
        open_cholesky(t, &f, a);
        judge_inverse(t, &f, &inverse);
        return;
    }
    default:
        return;
    }
}

static void judge_triangular(struct test *t)
{
    const struct view a = triangle(t, input(t, ACCEL_a)), made = triangle(t, result(t, ACCEL_a));
    const struct factored given = plain(a);
    switch (t->call->routine->family) {
    case ACCEL_TRTRS:
        judge_solution(t, &given, t->call->flag[ACCEL_trans]);
        return;
    case ACCEL_TRTRI:
        judge_inverse(t, &given, &made);
        return;
    default: { /* lauum: U U^H, L^H L */
        const struct view square = mirrored(t, made);
        const bool upper = a.uplo == 'U';
        const double *r = random_vector(t, a.cols);
        double *y = times(t, &square, 'N', r);
        subtract(t, y, times(t, &a, upper ? 'N' : 'C', times(t, &a, upper ? 'C' : 'N', r)), a.rows);
        judge(t, y, a.rows, given.norm * given.norm);
    }
    }
}

static void judge_indefinite(struct test *t)
{
    const struct view a = input(t, ACCEL_a);
    const struct factored given = plain(mirrored(t, a));
    const enum accel_family family = t->call->routine->family;
    struct factored f;
    const bool solves = family == ACCEL_SYTRS || family == ACCEL_HETRS;
    if (!open_ldl(t, &f, solves ? a : result(t, ACCEL_a)))
        return;
    if (solves) {
        judge_solution(t, &f, 'N');
        return;
    }
    judge_same(t, &given, &f);
    if (family == ACCEL_SYSV || family == ACCEL_HESV)
        judge_solution(t, &given, 'N');
}

static void judge_call(struct test *t)
{
    switch (t->call->routine->family) {
    case ACCEL_SYTRF:
    case ACCEL_SYTRS:
    case ACCEL_SYSV:
    case ACCEL_HETRF:
    case ACCEL_HETRS:
    case ACCEL_HESV:
        judge_indefinite(t);
        return;
    case ACCEL_TRTRS:
    case ACCEL_TRTRI:
    case ACCEL_LAUUM:
        judge_triangular(t);
        return;
    case ACCEL_GEQRF:
        judge_qr(t);
        return;
    case ACCEL_ORGQR:
        judge_generated(t);
        return;
    case ACCEL_ORMQR:
        judge_applied(t);
        return;
    case ACCEL_GELSS:
    case ACCEL_GELSD: {
        const struct view a = input(t, ACCEL_a);
        judge_values(t, &a);
        judge_least_squares(t);
        return;
    }
    case ACCEL_GELS:
    case ACCEL_GELSY:
        judge_least_squares(t);
        return;
    case ACCEL_SYEV:
    case ACCEL_SYEVD:
    case ACCEL_SYEVR:
    case ACCEL_SYEVX:
        judge_eigen(t);
        return;
    case ACCEL_SYGV:
    case ACCEL_SYGVD:
    case ACCEL_SYGVX:
        judge_generalized(t);
        return;
    case ACCEL_GESVD:
    case ACCEL_GESDD:
        judge_svd(t);
        return;
    case ACCEL_GEEV:
        judge_nonsymmetric(t);
        return;
    case ACCEL_LACPY:
        judge_copy(t);
        return;
    case ACCEL_LASWP: /* it does not say how many rows there are */
        return;
    default:
        judge_linear(t);
    }
}

/* Inputs that are no numbers, or very large, are the original's business. */
static bool are_inputs_numbers(const struct test *t)
{
    for (int i = ACCEL_a; i <= ACCEL_c; i++) {
        const struct accel_operand *x = &t->call->operand[i];
        if (!x->ptr || x->access == ACCEL_WRITE || x->dtype > ACCEL_BFLOAT16)
            continue;
        struct view view = input(t, (enum accel_matrix)i);
        const char uplo = i == ACCEL_a ? t->call->flag[ACCEL_uplo] : accel_triangle_of(t->call, i);
        if (uplo == 'U' || uplo == 'L')
            view = shaped(view, SYMMETRIC, uplo);
        if (!(norm(&view) < 1 / least_moderate(t->dtype)))
            return false;
    }
    return true;
}

double cpu_ref_verify_lapack(const struct accel_call *call,
                             const void *const before[ACCEL_MATRICES], uint64_t seed)
{
    struct test t = {.call = call,
                     .before = before,
                     .dtype = call->routine->dtype,
                     .parts = parts_of(call->routine->dtype),
                     .worst = CPU_REF_NOT_JUDGED};
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        t.order = accel_max(t.order, call->size[i]);
    if (!are_inputs_numbers(&t) || !vectors_open(&t.vectors, 24, t.order, seed))
        return CPU_REF_NOT_JUDGED;
    judge_call(&t);
    vectors_close(&t.vectors);
    if (isnan(t.worst))
        return INFINITY;
    return t.open && t.worst <= 1 ? CPU_REF_NOT_JUDGED : t.worst;
}
