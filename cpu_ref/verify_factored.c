#include "verify_test.h"

#include "equation.h"
#include "substitute.h"

/* ---- Factorizations, as operators ---- */

static void exchange(const struct test *t, double *x, int64_t i, int64_t j)
{
    for (int64_t part = 0; part < t->parts; part++) {
        double old = x[i * t->parts + part];
        x[i * t->parts + part] = x[j * t->parts + part];
        x[j * t->parts + part] = old;
    }
}

static struct view lower_of(const struct view *lu)
{
    struct view l = view_part(lu, 0, lu->rows, 0, accel_min(lu->rows, lu->cols));
    return view_shaped(l, UNIT_TRIANGULAR, 'L');
}

struct view factored_upper(const struct view *lu)
{
    struct view u = view_part(lu, 0, accel_min(lu->rows, lu->cols), 0, lu->cols);
    return view_shaped(u, TRIANGULAR, 'U');
}

/* A = P' L U: the exchanges one after the other make P A. */
static double *lu_times(struct test *t, const struct factored *f, char op, const double *in)
{
    const struct view l = lower_of(&f->lu), u = factored_upper(&f->lu);
    const int64_t swaps = accel_min(f->lu.rows, f->lu.cols);
    if (op == 'N') {
        double *y = test_times(t, &l, 'N', test_times(t, &u, 'N', in));
        for (int64_t i = swaps; i-- > 0;)
            exchange(t, y, i, accel_integer(f->exchanges, i) - 1);
        return y;
    }
    double *x = test_new_vector(t, f->lu.rows);
    memcpy(x, in, (size_t)(f->lu.rows * t->parts) * sizeof *x);
    for (int64_t i = 0; i < swaps; i++)
        exchange(t, x, i, accel_integer(f->exchanges, i) - 1);
    return test_times(t, &u, op, test_times(t, &l, op, x));
}

static void lu_solve(struct test *t, const struct factored *f, char op, double *x)
{
    const struct view l = lower_of(&f->lu), u = factored_upper(&f->lu);
    const bool plain = op == 'N';
    for (int64_t i = 0; plain && i < f->lu.rows; i++)
        exchange(t, x, i, accel_integer(f->exchanges, i) - 1);
    substitute(plain ? &l : &u, op, x);
    substitute(plain ? &u : &l, op, x);
}

static double lu_reciprocal(const struct factored *f)
{
    const struct view u = factored_upper(&f->lu);
    return largest_reciprocal(&u);
}

/* Returns false, and marks the result wrong, if an exchange names no row. */
static bool open_lu(struct test *t, struct factored *f, struct view lu)
{
    const struct view l = lower_of(&lu), u = factored_upper(&lu);
    *f = (struct factored){lu,       &t->call->span[ACCEL_x], lu_times,
                           lu_solve, lu_reciprocal,           view_norm(&l) * view_norm(&u)};
    for (int64_t i = 0; i < accel_min(lu.rows, lu.cols); i++)
        if (accel_integer(f->exchanges, i) <= i || accel_integer(f->exchanges, i) > lu.rows) {
            test_note(t, INFINITY);
            return false;
        }
    return true;
}

/* A = U^H U or L L^H. A is Hermitian, so op matters only for conjugation. */
static double *cholesky_times(struct test *t, const struct factored *f, char op, const double *in)
{
    bool upper = f->lu.uplo == 'U';
    (void)op;
    return test_times(t, &f->lu, upper ? 'C' : 'N', test_times(t, &f->lu, upper ? 'N' : 'C', in));
}

static double plain_reciprocal(const struct factored *f)
{
    return largest_reciprocal(&f->lu);
}

static void cholesky_solve(struct test *t, const struct factored *f, char op, double *x)
{
    const bool upper = f->lu.uplo == 'U';
    (void)t;
    (void)op;
    substitute(&f->lu, upper ? 'C' : 'N', x);
    substitute(&f->lu, upper ? 'N' : 'C', x);
}

void factored_open_cholesky(struct test *t, struct factored *f, struct view factor)
{
    factor = view_shaped(factor, TRIANGULAR, t->call->blas.flag[ACCEL_uplo]);
    double square = sum_of_squares(&factor);
    *f = (struct factored){factor, NULL, cholesky_times, cholesky_solve, plain_reciprocal, square};
}

/* Visits the blocks of D, of one or two columns, in the order of elimination (back: in reverse).
 * Takes the block at column k; returns the column of the next block, or one beyond the matrix. */
struct pivot_block {
    int64_t first, size, exchange;
};

static bool next_block(const struct factored *f, bool upwards, int64_t *k,
                       struct pivot_block *block)
{
    int64_t n = f->lu.rows;
    if (*k < 0 || *k >= n)
        return false;
    int64_t pivot = accel_integer(f->exchanges, *k), size = pivot > 0 ? 1 : 2;
    *block =
        (struct pivot_block){upwards ? *k : *k - size + 1, size, (pivot > 0 ? pivot : -pivot) - 1};
    *k += upwards ? size : -size;
    return true;
}

static bool are_blocks_right(const struct factored *f)
{
    int64_t k = 0, n = f->lu.rows;
    struct pivot_block block;
    while (next_block(f, true, &k, &block)) {
        if (block.exchange < 0 || block.exchange >= n || block.first + block.size > n)
            return false;
        if (block.size == 2 && accel_integer(f->exchanges, block.first + 1) !=
                                   accel_integer(f->exchanges, block.first))
            return false;
    }
    return true;
}

/* The rows and columns of a block's multipliers. */
static struct view multipliers(const struct factored *f, const struct pivot_block *block)
{
    int64_t behind = block->first + block->size;
    struct view x = view_shaped(f->lu, GENERAL, 0);
    return f->lu.uplo == 'U'
               ? view_part(&x, 0, block->first, block->first, block->size)
               : view_part(&x, behind, f->lu.rows - behind, block->first, block->size);
}

static int64_t pivot_of(const struct factored *f, const struct pivot_block *block)
{
    return f->lu.uplo == 'U' ? block->first : block->first + block->size - 1;
}

/* A = U D U' or U D U^H, U a product of exchanges and columns. */
static double *ldl_times(struct test *t, const struct factored *f, char op, const double *in)
{
    const bool upper = f->lu.uplo == 'U', hermitian = f->lu.structure == HERMITIAN;
    const int64_t n = f->lu.rows, parts = t->parts;
    double *y = test_new_vector(t, n), *z = test_new_vector(t, n);
    struct pivot_block block;
    (void)op;
    memcpy(y, in, (size_t)(n * parts) * sizeof *y);
    for (int64_t k = upper ? n - 1 : 0; next_block(f, !upper, &k, &block);) {
        const struct view x = multipliers(f, &block);
        exchange(t, y, pivot_of(f, &block), block.exchange);
        apply(&x, hermitian ? 'C' : 'T', y + (upper ? 0 : block.first + block.size) * parts,
              y + block.first * parts);
    }
    for (int64_t k = 0; next_block(f, true, &k, &block);) {
        const struct view d = view_part(&f->lu, block.first, block.size, block.first, block.size);
        apply(&d, 'N', y + block.first * parts, z + block.first * parts);
    }
    for (int64_t k = upper ? 0 : n - 1; next_block(f, upper, &k, &block);) {
        const struct view x = multipliers(f, &block);
        apply(&x, 'N', z + block.first * parts, z + (upper ? 0 : block.first + block.size) * parts);
        exchange(t, z, pivot_of(f, &block), block.exchange);
    }
    return z;
}

/* x := D^-1 x for one block of D. */
static void block_solve(const struct view *d, int64_t parts, double *x)
{
    const struct factor element = {*d, 'N'};
    value in[2] = {0}, out[2];
    for (int64_t i = 0; i < d->rows; i++)
        in[i] = x[i * parts] + (parts == 2 ? x[i * parts + 1] : 0) * (value)_Complex_I;
    if (d->rows == 1) {
        out[0] = in[0] / factor_element(&element, 0, 0);
    } else {
        const value a = factor_element(&element, 0, 0), b = factor_element(&element, 0, 1),
                    c = factor_element(&element, 1, 0), e = factor_element(&element, 1, 1);
        out[0] = (e * in[0] - b * in[1]) / (a * e - b * c);
        out[1] = (a * in[1] - c * in[0]) / (a * e - b * c);
    }
    for (int64_t i = 0; i < d->rows * parts; i++)
        x[i] = (double)(parts == 2 && i % 2 == 1 ? cimagl(out[i / parts]) : creall(out[i / parts]));
}

/* The steps of ldl_times() undone, from the last one on. */
static void ldl_solve(struct test *t, const struct factored *f, char op, double *x)
{
    const bool upper = f->lu.uplo == 'U', hermitian = f->lu.structure == HERMITIAN;
    const int64_t n = f->lu.rows, parts = t->parts;
    struct pivot_block block;
    (void)op;
    for (int64_t k = upper ? n - 1 : 0; next_block(f, !upper, &k, &block);) {
        const struct view m = multipliers(f, &block);
        double minus[4];
        exchange(t, x, pivot_of(f, &block), block.exchange);
        for (int64_t i = 0; i < block.size * parts; i++)
            minus[i] = -x[block.first * parts + i];
        apply(&m, 'N', minus, x + (upper ? 0 : block.first + block.size) * parts);
    }
    for (int64_t k = 0; next_block(f, true, &k, &block);) {
        const struct view d = view_part(&f->lu, block.first, block.size, block.first, block.size);
        block_solve(&d, parts, x + block.first * parts);
    }
    for (int64_t k = upper ? 0 : n - 1; next_block(f, upper, &k, &block);) {
        const struct view m = multipliers(f, &block);
        double sum[4] = {0};
        apply(&m, hermitian ? 'C' : 'T', x + (upper ? 0 : block.first + block.size) * parts, sum);
        for (int64_t i = 0; i < block.size * parts; i++)
            x[block.first * parts + i] -= sum[i];
        exchange(t, x, pivot_of(f, &block), block.exchange);
    }
}

/* The pivots of blocks of two columns are no smaller than what is beside them. */
static double ldl_reciprocal(const struct factored *f)
{
    double largest = 0;
    struct pivot_block block;
    for (int64_t k = 0; next_block(f, true, &k, &block);) {
        const struct view d = view_part(&f->lu, block.first, block.size, block.first, block.size);
        largest = block.size == 1 ? greater_of(largest_reciprocal(&d), largest) : largest;
    }
    return largest;
}

static double norm_of_blocks(const struct factored *f)
{
    double square = 0;
    struct pivot_block block;
    for (int64_t k = 0; next_block(f, true, &k, &block);) {
        const struct view d = view_part(&f->lu, block.first, block.size, block.first, block.size);
        square += sum_of_squares(&d);
    }
    return sqrt(square);
}

static bool open_ldl(struct test *t, struct factored *f, struct view factor)
{
    factor = test_mirrored(t, factor);
    *f =
        (struct factored){factor, &t->call->span[ACCEL_x], ldl_times, ldl_solve, ldl_reciprocal, 0};
    if (!are_blocks_right(f)) {
        test_note(t, INFINITY);
        return false;
    }
    /* The norm of U D U', which is not stored as a matrix: about |A| times the length of a random
     * element. U's elements, which are near 1 however small A is, do not count. */
    const int64_t used = t->vectors.used;
    const double *y = ldl_times(t, f, 'N', test_random_vector(t, factor.cols));
    f->norm = norm_of_blocks(f) + sqrt(dot_self(y, factor.rows * t->parts));
    t->vectors.used = used;
    return true;
}

/* A matrix as it is stored. */
static double *plain_times(struct test *t, const struct factored *f, char op, const double *in)
{
    return test_times(t, &f->lu, op, in);
}

static void triangle_solve(struct test *t, const struct factored *f, char op, double *x)
{
    (void)t;
    substitute(&f->lu, op, x);
}

struct factored factored_plain(struct view a)
{
    const bool triangle = a.structure == TRIANGULAR || a.structure == UNIT_TRIANGULAR;
    return (struct factored){
        a, NULL, plain_times, triangle ? triangle_solve : NULL, plain_reciprocal, view_norm(&a)};
}

double factored_inverse_norm(struct test *t, const struct factored *f)
{
    const int64_t used = t->vectors.used;
    double *x = test_random_vector(t, f->lu.rows);
    f->solve(t, f, 'N', x);
    const double size = sqrt(dot_self(x, f->lu.rows * t->parts));
    t->vectors.used = used;
    return size;
}

/* ---- Equations ---- */

/* The size by which the rounding of an elimination counts: that of the matrix, or of its factors
 * where these have grown far beyond it, as Wilkinson's matrices let those of LU grow. Of other
 * matrices, |L| |U| is below 4 n |A|. */
static double eliminated_size(const struct factored *given, const struct factored *made)
{
    return greater_of(given->norm, made->norm / (4 * ((double)given->lu.rows + 1)));
}

void factored_judge_same(struct test *t, const struct factored *given, const struct factored *made)
{
    const int64_t used = t->vectors.used;
    const double *r = test_random_vector(t, given->lu.cols);
    double *y = given->times(t, given, 'N', r);
    test_subtract(t, y, made->times(t, made, 'N', r), given->lu.rows);
    if (is_number(made->norm))
        test_judge(t, y, given->lu.rows, eliminated_size(given, made));
    else /* the factors of numbers near the least ones overflow */
        test_note(t, given->norm > least_moderate(t->dtype)
                         ? judge_huge(t->dtype, made->reciprocal(made))
                         : CPU_REF_NOT_JUDGED);
    t->vectors.used = used;
}

/* op(A) X = B, which the factors solve: their X r is about as long as X. The call has made the
 * factors, unless they are all that it has of A. */
static void judge_solution(struct test *t, const struct factored *a, const struct factored *factors,
                           char op)
{
    const int64_t used = t->vectors.used;
    const struct view x = test_result(t, ACCEL_b), b = test_input(t, ACCEL_b);
    const double *r = test_random_vector(t, x.cols),
                 size =
                     factors == a ? a->norm : factored_size(t->dtype, eliminated_size(a, factors)),
                 scale = solution_scale(t->dtype, size, view_norm(&x), view_norm(&b));
    double *right = test_times(t, &b, 'N', r);
    if (is_huge(t->dtype, scale)) {
        factors->solve(t, factors, op, right);
        const double due = (1 + factors->norm) * sqrt(dot_self(right, x.rows * t->parts));
        test_note(t, judge_huge(t->dtype, due + factors->reciprocal(factors)));
    } else {
        double *y = a->times(t, a, op, test_times(t, &x, 'N', r));
        test_subtract(t, y, right, x.rows);
        test_judge(t, y, x.rows, scale);
    }
    t->vectors.used = used;
}

/* A X = 1 or X A = 1: implementations differ in the side that they solve from. */
static void judge_inverse(struct test *t, const struct factored *a, const struct view *x)
{
    const int64_t used = t->vectors.used, n = x->rows;
    const double scale = a->norm * (view_norm(x) + least_precise(t->dtype)),
                 *r = test_random_vector(t, n);
    if (is_huge(t->dtype, scale)) {
        test_note(t, judge_huge(t->dtype,
                                (1 + a->norm) * factored_inverse_norm(t, a) + a->reciprocal(a)));
        t->vectors.used = used;
        return;
    }
    double *right = a->times(t, a, 'N', test_times(t, x, 'N', r)),
           *left = test_times(t, x, 'N', a->times(t, a, 'N', r));
    test_subtract(t, right, r, n);
    test_subtract(t, left, r, n);
    double one = test_ratio_of(t, right, n, scale), other = test_ratio_of(t, left, n, scale);
    test_note(t, one < other ? one : other);
    t->vectors.used = used;
}

/* ---- LU ---- */

/* A before the call equals the product of its factors. */
static void judge_lu(struct test *t, bool solves)
{
    const struct factored given = factored_plain(test_input(t, ACCEL_a));
    struct factored f;
    if (!open_lu(t, &f, test_result(t, ACCEL_a)))
        return;
    factored_judge_same(t, &given, &f);
    if (solves)
        judge_solution(t, &given, &f, 'N');
}

void check_getrf(struct test *t)
{
    judge_lu(t, false);
}

void check_gesv(struct test *t)
{
    judge_lu(t, true);
}

void check_getrs(struct test *t)
{
    struct factored f;
    if (open_lu(t, &f, test_input(t, ACCEL_a)))
        judge_solution(t, &f, &f, t->call->blas.flag[ACCEL_trans]);
}

void check_getri(struct test *t)
{
    const struct view inverse = test_result(t, ACCEL_a);
    struct factored f;
    if (open_lu(t, &f, test_input(t, ACCEL_a)))
        judge_inverse(t, &f, &inverse);
}

/* ---- Cholesky ---- */

/* As every factor has. Of another triangle's diagonal, ?lauum takes the real parts alone (?lauu2)
 * or not, as its blocks lie. */
static bool has_real_diagonal(const struct view *factor)
{
    for (int64_t i = 0; i < factor->cols; i++)
        if (cimagl(view_element(factor, i, i)) != 0)
            return false;
    return true;
}

static void judge_cholesky(struct test *t, struct view before, struct view after, bool solves)
{
    const struct factored given = factored_plain(test_mirrored(t, before));
    struct factored f;
    factored_open_cholesky(t, &f, after);
    factored_judge_same(t, &given, &f);
    if (solves)
        judge_solution(t, &given, &f, 'N');
}

static void judge_cholesky_solution(struct test *t, struct view factor)
{
    struct factored f;
    factored_open_cholesky(t, &f, factor);
    judge_solution(t, &f, &f, 'N');
}

void check_potrf(struct test *t)
{
    judge_cholesky(t, test_input(t, ACCEL_a), test_result(t, ACCEL_a), false);
}

void check_posv(struct test *t)
{
    judge_cholesky(t, test_input(t, ACCEL_a), test_result(t, ACCEL_a), true);
}

void check_potrs(struct test *t)
{
    judge_cholesky_solution(t, test_input(t, ACCEL_a));
}

/* The square whose triangle is packed in A. */
static struct view unpacked(const struct test *t, struct view a)
{
    a.rows = a.cols = t->call->blas.size[ACCEL_n];
    a.ld = 0;
    return a;
}

void check_pptrf(struct test *t)
{
    judge_cholesky(t, unpacked(t, test_input(t, ACCEL_a)), unpacked(t, test_result(t, ACCEL_a)),
                   false);
}

void check_ppsv(struct test *t)
{
    judge_cholesky(t, unpacked(t, test_input(t, ACCEL_a)), unpacked(t, test_result(t, ACCEL_a)),
                   true);
}

void check_pptrs(struct test *t)
{
    judge_cholesky_solution(t, unpacked(t, test_input(t, ACCEL_a)));
}

static void judge_cholesky_inverse(struct test *t, struct view factor, struct view result)
{
    const struct view inverse = test_mirrored(t, result);
    struct factored f;
    factored_open_cholesky(t, &f, factor);
    if (has_real_diagonal(&f.lu))
        judge_inverse(t, &f, &inverse);
    else
        test_note(t, CPU_REF_NOT_JUDGED);
}

void check_potri(struct test *t)
{
    judge_cholesky_inverse(t, test_input(t, ACCEL_a), test_result(t, ACCEL_a));
}

void check_pptri(struct test *t)
{
    judge_cholesky_inverse(t, unpacked(t, test_input(t, ACCEL_a)),
                           unpacked(t, test_result(t, ACCEL_a)));
}

/* ---- Triangles ---- */

static struct view triangle(const struct test *t, struct view x)
{
    return view_shaped(x, t->call->blas.flag[ACCEL_diag] == 'U' ? UNIT_TRIANGULAR : TRIANGULAR,
                       t->call->blas.flag[ACCEL_uplo]);
}

void check_trtrs(struct test *t)
{
    const struct factored given = factored_plain(triangle(t, test_input(t, ACCEL_a)));
    judge_solution(t, &given, &given, t->call->blas.flag[ACCEL_trans]);
}

void check_trtri(struct test *t)
{
    const struct view inverse = triangle(t, test_result(t, ACCEL_a));
    const struct factored given = factored_plain(triangle(t, test_input(t, ACCEL_a)));
    judge_inverse(t, &given, &inverse);
}

void check_lauum(struct test *t)
{
    const struct view a = triangle(t, test_input(t, ACCEL_a)),
                      square = test_mirrored(t, triangle(t, test_result(t, ACCEL_a)));
    const bool upper = a.uplo == 'U';
    if (!has_real_diagonal(&a)) {
        test_note(t, CPU_REF_NOT_JUDGED);
        return;
    }
    const double norm = view_norm(&a), *r = test_random_vector(t, a.cols);
    double *y = test_times(t, &square, 'N', r);
    test_subtract(t, y,
                  test_times(t, &a, upper ? 'N' : 'C', test_times(t, &a, upper ? 'C' : 'N', r)),
                  a.rows);
    test_judge(t, y, a.rows, norm * norm);
}

/* ---- LDL ---- */

static void judge_ldl(struct test *t, bool solves)
{
    const struct factored given = factored_plain(test_mirrored(t, test_input(t, ACCEL_a)));
    struct factored f;
    if (!open_ldl(t, &f, test_result(t, ACCEL_a)))
        return;
    factored_judge_same(t, &given, &f);
    if (solves)
        judge_solution(t, &given, &f, 'N');
}

void check_sytrf(struct test *t)
{
    judge_ldl(t, false);
}

void check_sysv(struct test *t)
{
    judge_ldl(t, true);
}

void check_sytrs(struct test *t)
{
    struct factored f;
    if (open_ldl(t, &f, test_input(t, ACCEL_a)))
        judge_solution(t, &f, &f, 'N');
}

void check_sytri(struct test *t)
{
    const struct view inverse = test_mirrored(t, test_result(t, ACCEL_a));
    struct factored f;
    if (open_ldl(t, &f, test_input(t, ACCEL_a)))
        judge_inverse(t, &f, &inverse);
}
