#include "verify_test.h"

/* ---- Symmetric and Hermitian matrices ---- */

static int64_t found(const struct test *t)
{
    const struct accel_span *m = &t->call->span[ACCEL_found];
    int64_t n = t->call->blas.size[ACCEL_n];
    return m->ptr && t->call->blas.flag[ACCEL_range]
               ? accel_min(accel_max(accel_integer(m, 0), 0), n)
               : n;
}

/* All have been found, or those whose numbers the call names. How many are in an interval is not
 * known. */
static void judge_number_found(struct test *t)
{
    const struct accel_span *m = &t->call->span[ACCEL_found];
    const struct blas_arguments *arguments = &t->call->blas;
    const char range = arguments->flag[ACCEL_range];
    const int64_t due = range == 'I' ? arguments->size[ACCEL_iu] - arguments->size[ACCEL_il] + 1
                                     : arguments->size[ACCEL_n];
    if (!m->ptr || (range != 'I' && range != 'A'))
        return;
    if (accel_integer(m, 0) != due)
        test_note(t, INFINITY);
}

/* They ascend, and are in (vl, vu] if the call asks for those. Rounding may break both by a
 * little. */
static void judge_values(struct test *t, double size)
{
    const struct accel_span *w = &t->call->span[ACCEL_x];
    const struct blas_arguments *arguments = &t->call->blas;
    const int64_t n = found(t);
    judge_number_found(t);
    for (int64_t i = 1; i < n; i++)
        test_judge_ascent(t, operand_real(w, i - 1), operand_real(w, i), size);
    if (arguments->flag[ACCEL_range] != 'V' || n == 0)
        return;
    test_judge_ascent(t, arguments->scalar[ACCEL_vl].re, operand_real(w, 0), size);
    test_judge_ascent(t, operand_real(w, n - 1), arguments->scalar[ACCEL_vu].re, size);
}

static double trace_of(const struct view *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        sum += (double)creall(view_element(a, i, i));
    return sum;
}

/* All eigenvalues, without vectors: checks their sum and the sum of their squares. */
static void judge_spectrum(struct test *t, const struct view *a)
{
    const struct accel_span *w = &t->call->span[ACCEL_x];
    const double square = sum_of_squares(a);
    double sum = 0, squares = 0;
    if (found(t) < a->rows) {
        test_note(t, CPU_REF_NOT_JUDGED);
        return;
    }
    for (int64_t i = 0; i < a->rows; i++) {
        sum += operand_real(w, i);
        squares += operand_real(w, i) * operand_real(w, i);
    }
    test_judge_number(t, sum - trace_of(a), sqrt(square));
    test_judge_number(t, squares - square, square);
}

/* The vectors: in Z, or in A's place. */
static struct view vectors_of(const struct test *t)
{
    struct view z = test_result(t, t->call->blas.flag[ACCEL_range] ? ACCEL_c : ACCEL_a);
    z.cols = found(t);
    return z;
}

void check_syev(struct test *t)
{
    const struct view a = test_mirrored(t, test_input(t, ACCEL_a));
    judge_values(t, view_norm(&a));
    if (t->call->blas.flag[ACCEL_jobz] != 'V') {
        judge_spectrum(t, &a);
        return;
    }
    const struct view z = vectors_of(t);
    const double *r = test_random_vector(t, z.cols);
    double *y = test_times(t, &a, 'N', test_times(t, &z, 'N', r));
    test_subtract(
        t, y, test_times(t, &z, 'N', test_times_values(t, &t->call->span[ACCEL_x], r, z.cols, 1)),
        z.rows);
    test_judge(t, y, z.rows, view_norm(&a));
    test_judge_columns(t, &z);
}

/* Two matrices, and what their eigenvalues and vectors are made of. */
struct pencil {
    struct view a, b;
    double norm_a, norm_b, inverse; /* |B^-1|, about */
    int64_t itype;
};

static struct pencil pencil_of(struct test *t, const struct factored *factor)
{
    struct pencil p = {.a = test_mirrored(t, test_input(t, ACCEL_a)),
                       .b = test_mirrored(t, test_input(t, ACCEL_b)),
                       .itype = t->call->blas.size[ACCEL_itype]};
    p.norm_a = view_norm(&p.a);
    p.norm_b = view_norm(&p.b);
    p.inverse = factored_inverse_norm(t, factor);
    return p;
}

/* Of results that are huge. */
static void judge_huge_results(struct test *t, const struct pencil *p)
{
    const double values = (1 + p->norm_a) * (1 + p->norm_b * (1 + p->inverse)),
                 vectors = 1 + p->norm_b + p->inverse; /* their squares */
    test_note(t, judge_huge(t->dtype, values * vectors));
}

static void judge_residual(struct test *t, const struct pencil *p, const double *y, int64_t n,
                           double scale)
{
    if (is_huge(t->dtype, scale))
        judge_huge_results(t, p);
    else
        test_judge(t, y, n, scale);
}

static double largest_value(const struct test *t)
{
    double largest = 0;
    for (int64_t i = 0; i < found(t); i++)
        note_error(&largest, fabs(operand_real(&t->call->span[ACCEL_x], i)), 1);
    return largest;
}

/* A Z = B Z W, A B Z = Z W or B A Z = Z W */
static void judge_pairs(struct test *t, const struct pencil *p, const struct view *z,
                        const double *r, const double *zr)
{
    /* Of a part of the spectrum, rounding counts by all of it: the method reduces the whole pencil
     * to one matrix. */
    const bool part = z->cols < z->rows;
    const double of_all = p->norm_a * (p->itype == 1 ? p->inverse : p->norm_b),
                 of_columns = sqrt((double)z->cols * (p->itype == 3 ? p->norm_b : p->inverse)),
                 size = greater_of(view_norm(z), part ? of_columns : 0),
                 largest = greater_of(largest_value(t), part ? of_all : 0),
                 *zw = test_times(t, z, 'N',
                                  test_times_values(t, &t->call->span[ACCEL_x], r, z->cols, 1));
    double *y;
    if (p->itype == 1) {
        y = test_times(t, &p->a, 'N', zr);
        test_subtract(t, y, test_times(t, &p->b, 'N', zw), z->rows);
        judge_residual(t, p, y, z->rows, (p->norm_a + p->norm_b * largest) * size);
    } else {
        const struct view *first = p->itype == 2 ? &p->b : &p->a,
                          *second = p->itype == 2 ? &p->a : &p->b;
        y = test_times(t, second, 'N', test_times(t, first, 'N', zr));
        test_subtract(t, y, zw, z->rows);
        judge_residual(t, p, y, z->rows, (p->norm_a * p->norm_b + largest) * size);
    }
}

/* Z^H B Z = 1, or Z Z^H = B */
static void judge_normalisation(struct test *t, const struct pencil *p, const struct view *z,
                                const double *r, const double *zr)
{
    const double size = view_norm(z);
    if (p->itype != 3) {
        double *one = test_times(t, z, 'C', test_times(t, &p->b, 'N', zr));
        test_subtract(t, one, r, z->cols);
        judge_residual(t, p, one, z->cols, p->norm_b * size * size);
    } else if (z->cols == z->rows) {
        double *bz = test_times(t, z, 'N', test_times(t, z, 'C', r));
        test_subtract(t, bz, test_times(t, &p->b, 'N', r), z->rows);
        judge_residual(t, p, bz, z->rows, p->norm_b + size * size);
    }
}

void check_sygv(struct test *t)
{
    struct factored factor;
    factored_open_cholesky(t, &factor, test_result(t, ACCEL_b));
    const struct pencil p = pencil_of(t, &factor);
    const struct factored given = factored_plain(p.b);
    if (p.norm_b < least_moderate(t->dtype)) { /* its squares underflow */
        test_note(t, CPU_REF_NOT_JUDGED);
        return;
    }
    factored_judge_same(t, &given, &factor);
    if (is_number(largest_value(t)))
        judge_values(t, p.norm_a * (p.itype == 1 ? p.inverse : p.norm_b));
    else
        judge_huge_results(t, &p);
    if (t->call->blas.flag[ACCEL_jobz] != 'V') {
        test_note(t, CPU_REF_NOT_JUDGED);
        return;
    }
    const struct view z = vectors_of(t);
    const double *r = test_random_vector(t, z.cols), *zr = test_times(t, &z, 'N', r);
    judge_pairs(t, &p, &z, r, zr);
    judge_normalisation(t, &p, &z, r, zr);
}

/* L, or the adjoint of U, as a factor of B. */
struct reducing {
    struct view factor;
    char op, adjoint;
    double norm;
};

/* L x, or L^H x */
static double *factor_times(struct test *t, const struct reducing *l, bool adjoint, const double *x)
{
    return test_times(t, &l->factor, adjoint ? l->adjoint : l->op, x);
}

/* left = L right L^H (adjoint: L^H right L). due: about the size of what has been computed. */
static void judge_product(struct test *t, const struct reducing *l, bool adjoint,
                          const struct view *left, const struct view *right, double due)
{
    const double scale = l->norm * l->norm * view_norm(right) + view_norm(left);
    if (is_huge(t->dtype, scale)) {
        test_note(t, judge_huge(t->dtype, due));
        return;
    }
    const double *r = test_random_vector(t, left->cols),
                 *inner = test_times(t, right, 'N', factor_times(t, l, !adjoint, r));
    double *y = factor_times(t, l, adjoint, inner);
    test_subtract(t, y, test_times(t, left, 'N', r), left->rows);
    test_judge(t, y, left->rows, scale);
}

void check_sygst(struct test *t)
{
    const struct view a = test_mirrored(t, test_input(t, ACCEL_a)),
                      c = test_mirrored(t, test_result(t, ACCEL_a));
    const bool upper = t->call->blas.flag[ACCEL_uplo] == 'U',
               divides = t->call->blas.size[ACCEL_itype] == 1;
    const struct view b =
        view_shaped(test_input(t, ACCEL_b), TRIANGULAR, t->call->blas.flag[ACCEL_uplo]);
    const struct reducing l = {b, upper ? 'C' : 'N', upper ? 'N' : 'C', view_norm(&b)};
    const struct factored factor = factored_plain(b);
    const double norm = view_norm(&a);
    if (l.norm < least_moderate(t->dtype)) { /* its squares underflow */
        test_note(t, CPU_REF_NOT_JUDGED);
        return;
    }
    if (divides) {
        const double inverse = factored_inverse_norm(t, &factor);
        judge_product(t, &l, false, &a, &c, (1 + norm) * (1 + inverse * inverse));
    } else {
        judge_product(t, &l, true, &c, &a, (1 + norm) * (1 + l.norm * l.norm));
    }
}
