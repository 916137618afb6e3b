/* Factorizations, solutions, inverses: LU, Cholesky, Bunch-Kaufman, triangular; and moving rows. */
#include "cases.h"

#include <stdlib.h>

#include "cpu_ref/judge.h"

/* ---- What they share ---- */

static int64_t *pivots_of(const struct array *ipiv)
{
    int64_t *pivots = calloc((size_t)ipiv->rows + 1, sizeof *pivots);
    if (!pivots)
        abort();
    for (int64_t i = 0; i < ipiv->rows; i++)
        pivots[i] = *array_integer(ipiv, i);
    return pivots;
}

/* Right sides, of the matrix's scale or not; a spoilt case may have its NaN here. */
static struct array right_sides(struct test *test, int64_t rows, int64_t cols, bool spoilt)
{
    long double scale = one_of(test, 2) ? kind_scale(test->kind, test->dtype) : 1;
    struct source b = source_uniform(test->dtype, rows, cols, scale, &test->random);
    if (spoilt)
        source_spoil(&b, test->kind, test->dtype, 'A', &test->random);
    struct array x = stored(test, &b, 'A');
    source_free(&b);
    return x;
}

/* Whether the NaN goes into the right sides rather than into the matrix. */
static bool spoils_right_sides(struct test *test)
{
    return is_spoilt(test->kind) && one_of(test, 3);
}

static enum kind kind_without(enum kind kind, bool spoilt_elsewhere)
{
    return spoilt_elsewhere ? KIND_WELL : kind;
}

static struct view whole(const struct array *x)
{
    return array_view(x, x->rows, x->cols);
}

static struct view whole_before(const struct array *x)
{
    return array_view_before(x, x->rows, x->cols);
}

/* ---- LU ---- */

static enum kind pick_general(struct test *test)
{
    return PICK_KIND(test, KIND_UNIFORM, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
                     KIND_LARGE, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
}

/* info: what getrf must say. */
static struct source general(struct test *test, enum kind kind, int64_t m, int64_t n, int64_t *info)
{
    struct source x = source_of_kind(kind, test->dtype, m, n, &test->random);
    *info = is_spoilt(test->kind) ? ANY_INFO : 0;
    if (kind == KIND_ZERO && least(m, n) > 0)
        *info = 1;
    if (kind != KIND_SINGULAR || least(m, n) == 0)
        return x;
    if (one_of(test, 2)) {
        *info = 1 + random_below(&test->random, least(m, n));
        clear_column(&x, *info);
    } else {
        /* It is never a pivot, so it ends up last. */
        clear_row(&x, 1 + random_below(&test->random, m));
        *info = m <= n ? m : 0;
    }
    return x;
}

static int64_t factorize(struct test *test, struct array *a, struct array *ipiv, int64_t expected)
{
    int64_t info = call(test, "getrf", "iiMV", a->rows, a->cols, a, WHOLE, ipiv, WHOLE);
    int64_t *pivots = pivots_of(ipiv);
    struct view before = whole_before(a), after = whole(a);
    expect(test, expected);
    judge(test, is_spoilt(test->kind) ? 0 : residual_lu(&before, &after, pivots));
    free(pivots);
    return info;
}

static void getrf(struct test *test)
{
    int64_t m = pick_size(test), n = one_of(test, 3) ? m : pick_size(test), info;
    struct source source = general(test, pick_general(test), m, n, &info);
    struct array a = stored(test, &source, 'A'), ipiv = array_integers(least(m, n), &test->random);
    factorize(test, &a, &ipiv, info);
    source_free(&source);
    array_free(&a);
    array_free(&ipiv);
}

static void getrs(struct test *test)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test), info;
    enum kind kind = pick_general(test);
    bool elsewhere = spoils_right_sides(test);
    struct source source = general(test, kind_without(kind, elsewhere), n, n, &info);
    struct array a = stored(test, &source, 'A'), original = array_clone(&a),
                 ipiv = array_integers(n, &test->random);
    /* The second time, the factors have been on the way through the program. */
    int64_t got = factorize(test, &a, &ipiv, info);
    for (int i = 0; got == 0 && i < 2; i++) {
        char trans = letter_of(test, "NTC");
        struct array b = right_sides(test, n, nrhs, elsewhere);
        call(test, "getrs", "ciiMVM", trans, n, nrhs, &a, UNTOUCHED, &ipiv, UNTOUCHED, &b, WHOLE);
        expect(test, 0);
        struct view matrix = whole(&original), x = whole(&b), before = whole_before(&b);
        judge(test, is_spoilt(kind) ? 0 : residual_solution(&matrix, trans, &x, &before));
        array_free(&b);
    }
    source_free(&source);
    array_free(&a);
    array_free(&original);
    array_free(&ipiv);
}

static void gesv(struct test *test)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test), info;
    enum kind kind = pick_general(test);
    bool elsewhere = spoils_right_sides(test);
    struct source source = general(test, kind_without(kind, elsewhere), n, n, &info);
    struct array a = stored(test, &source, 'A'), ipiv = array_integers(n, &test->random),
                 b = right_sides(test, n, nrhs, elsewhere);
    int64_t got = call(test, "gesv", "iiMVM", n, nrhs, &a, WHOLE, &ipiv, WHOLE, &b, WHOLE);
    /* Without right sides, some do nothing and some factorize. */
    expect(test, nrhs == 0 ? ANY_INFO : info);
    struct view matrix = whole_before(&a), factors = whole(&a), x = whole(&b),
                before = whole_before(&b);
    int64_t *pivots = pivots_of(&ipiv);
    double r = is_spoilt(kind) || nrhs == 0 ? 0 : residual_lu(&matrix, &factors, pivots);
    if (got == 0 && !is_spoilt(kind))
        r = worse(r, residual_solution(&matrix, 'N', &x, &before));
    judge(test, r);
    free(pivots);
    source_free(&source);
    array_free(&a);
    array_free(&ipiv);
    array_free(&b);
}

static void getri(struct test *test)
{
    int64_t n = pick_size(test), info;
    enum kind kind = pick_general(test);
    struct source source = general(test, kind, n, n, &info);
    struct array a = stored(test, &source, 'A'), original = array_clone(&a),
                 ipiv = array_integers(n, &test->random);
    factorize(test, &a, &ipiv, info);
    call(test, "getri", "iMVW", n, &a, WHOLE, &ipiv, UNTOUCHED, most(n, 1));
    expect(test, info);
    struct view matrix = whole(&original), inverse = whole(&a);
    judge(test, is_spoilt(kind) || info > 0 ? 0 : residual_inverse(&matrix, &inverse));
    source_free(&source);
    array_free(&a);
    array_free(&original);
    array_free(&ipiv);
}

/* ---- Cholesky ---- */

static enum kind pick_definite(struct test *test)
{
    return PICK_KIND(test, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_INDEFINITE, KIND_SMALL, KIND_LARGE,
                     KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
}

/* info: what potrf must say. */
static struct source definite(struct test *test, enum kind kind, int64_t n, char uplo,
                              int64_t *info)
{
    long double *values = calloc((size_t)n + 1, sizeof *values);
    if (!values)
        abort();
    kind_values(kind, test->dtype, n, values, &test->random);
    /* Rounding alone must not make it indefinite. */
    for (int64_t i = 0; i < n && kind == KIND_WORSE; i++)
        values[i] = fmaxl(values[i], 1e4L * cpu_ref_epsilon(test->dtype));
    struct source x = source_hermitian(test->dtype, n, values, false, &test->random);
    free(values);
    source_spoil(&x, kind, test->dtype, uplo, &test->random);
    *info = is_spoilt(test->kind) ? ANY_INFO : kind == KIND_ZERO && n > 0 ? 1 : 0;
    if (kind != KIND_INDEFINITE || n == 0)
        return x;
    *info = 1 + random_below(&test->random, n);
    value *diagonal = source_at(&x, *info - 1, *info - 1);
    *diagonal = one_of(test, 2) ? 0 : -*diagonal;
    return x;
}

static int64_t factorize_definite(struct test *test, char uplo, struct array *a, int64_t expected)
{
    int64_t info = call(test, "potrf", "ciM", uplo, a->rows, a, uplo);
    struct view before = with_structure(whole_before(a), HERMITIAN, uplo),
                after = with_structure(whole(a), TRIANGULAR, uplo);
    expect(test, expected);
    judge(test, is_spoilt(test->kind) || info > 0 ? 0 : residual_cholesky(&before, &after));
    return info;
}

static void potrf(struct test *test)
{
    int64_t n = pick_size(test), info;
    char uplo = letter_of(test, "UL");
    struct source source = definite(test, pick_definite(test), n, uplo, &info);
    struct array a = stored(test, &source, uplo);
    factorize_definite(test, uplo, &a, info);
    source_free(&source);
    array_free(&a);
}

static void potrs(struct test *test)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test), info;
    char uplo = letter_of(test, "UL");
    enum kind kind = pick_definite(test);
    bool elsewhere = spoils_right_sides(test);
    struct source source = definite(test, kind_without(kind, elsewhere), n, uplo, &info);
    struct array a = stored(test, &source, uplo), original = array_clone(&a),
                 b = right_sides(test, n, nrhs, elsewhere);
    if (factorize_definite(test, uplo, &a, info) == 0) {
        call(test, "potrs", "ciiMM", uplo, n, nrhs, &a, UNTOUCHED, &b, WHOLE);
        expect(test, 0);
        struct view matrix = with_structure(whole(&original), HERMITIAN, uplo), x = whole(&b),
                    before = whole_before(&b);
        judge(test, is_spoilt(kind) ? 0 : residual_solution(&matrix, 'N', &x, &before));
    }
    source_free(&source);
    array_free(&a);
    array_free(&original);
    array_free(&b);
}

static void posv(struct test *test)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test), info;
    char uplo = letter_of(test, "UL");
    enum kind kind = pick_definite(test);
    bool elsewhere = spoils_right_sides(test);
    struct source source = definite(test, kind_without(kind, elsewhere), n, uplo, &info);
    struct array a = stored(test, &source, uplo), b = right_sides(test, n, nrhs, elsewhere);
    int64_t got = call(test, "posv", "ciiMM", uplo, n, nrhs, &a, uplo, &b, WHOLE);
    expect(test, info);
    struct view matrix = with_structure(whole_before(&a), HERMITIAN, uplo),
                factor = with_structure(whole(&a), TRIANGULAR, uplo), x = whole(&b),
                before = whole_before(&b);
    judge(test, is_spoilt(kind) || got != 0 ? 0
                                            : worse(residual_cholesky(&matrix, &factor),
                                                    residual_solution(&matrix, 'N', &x, &before)));
    source_free(&source);
    array_free(&a);
    array_free(&b);
}

/* ---- Triangular ---- */

/* Random, the diagonal as large as the rest together. */
static struct source triangular(struct test *test, enum kind kind, int64_t n)
{
    struct source x = source_uniform(test->dtype, n, n, 1, &test->random);
    long double scale = kind_scale(kind, test->dtype);
    int64_t small = random_below(&test->random, n);
    for (int64_t col = 0; col < n; col++)
        for (int64_t row = 0; row < n; row++) {
            value *z = source_at(&x, row, col);
            *z = scale * (row == col ? *z + copysignl(1, creall(*z)) : *z / (long double)n);
            if (row == col && row == small && (kind == KIND_BAD || kind == KIND_WORSE))
                *z *= kind == KIND_BAD ? 1e-3L : cpu_ref_epsilon(test->dtype);
            if (kind == KIND_ZERO || (kind == KIND_IDENTITY && row != col))
                *z = 0;
            if (kind == KIND_IDENTITY && row == col)
                *z = 1;
        }
    return x;
}

struct triangle {
    char uplo, diag;
    int64_t info;
    enum structure structure;
    enum region region;
    struct array a;
};

static struct triangle make_triangle(struct test *test, int64_t n, bool spoilt_elsewhere)
{
    struct triangle t = {.uplo = letter_of(test, "UL"), .diag = letter_of(test, "NNU")};
    enum kind kind = kind_without(test->kind, spoilt_elsewhere);
    bool unit = t.diag == 'U';
    /* A unit diagonal has no scale, and nothing that is zero. */
    bool scaled = kind == KIND_SMALL || kind == KIND_LARGE;
    struct source x = triangular(test, unit && scaled ? KIND_WELL : kind, n);
    t.info = is_spoilt(test->kind) ? ANY_INFO : 0;
    if (n > 0 && !unit && kind == KIND_ZERO)
        t.info = 1;
    if (n > 0 && !unit && kind == KIND_SINGULAR) {
        t.info = 1 + random_below(&test->random, n);
        *source_at(&x, t.info - 1, t.info - 1) = 0;
    }
    source_spoil(&x, kind, test->dtype, t.uplo, &test->random);
    t.structure = unit ? UNIT_TRIANGULAR : TRIANGULAR;
    t.region = (enum region)(unit ? t.uplo | 32 : t.uplo);
    t.a = stored(test, &x, (char)t.region);
    source_free(&x);
    return t;
}

static enum kind pick_triangular(struct test *test)
{
    return PICK_KIND(test, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL, KIND_LARGE,
                     KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
}

static void trtrs(struct test *test)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test);
    char trans = letter_of(test, "NTC");
    enum kind kind = pick_triangular(test);
    bool elsewhere = spoils_right_sides(test);
    struct triangle t = make_triangle(test, n, elsewhere);
    struct array b = right_sides(test, n, nrhs, elsewhere);
    int64_t got = call(test, "trtrs", "ccciiMM", t.uplo, trans, t.diag, n, nrhs, &t.a, UNTOUCHED,
                       &b, t.info > 0 ? UNTOUCHED : WHOLE);
    expect(test, t.info);
    struct view matrix = with_structure(whole(&t.a), t.structure, t.uplo), x = whole(&b),
                before = whole_before(&b);
    judge(test, is_spoilt(kind) || got != 0 ? 0 : residual_solution(&matrix, trans, &x, &before));
    array_free(&t.a);
    array_free(&b);
}

static void trtri(struct test *test)
{
    int64_t n = pick_size(test);
    enum kind kind = pick_triangular(test);
    struct triangle t = make_triangle(test, n, false);
    int64_t got = call(test, "trtri", "cciM", t.uplo, t.diag, n, &t.a, t.region);
    expect(test, t.info);
    struct view before = with_structure(whole_before(&t.a), t.structure, t.uplo),
                after = with_structure(whole(&t.a), t.structure, t.uplo);
    judge(test, is_spoilt(kind) || got != 0 ? 0 : residual_inverse(&before, &after));
    array_free(&t.a);
}

static void potri(struct test *test)
{
    int64_t n = pick_size(test), info;
    char uplo = letter_of(test, "UL");
    enum kind kind = PICK_KIND(test, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
                               KIND_LARGE, KIND_IDENTITY, KIND_NAN, KIND_INF);
    struct source source = definite(test, kind, n, uplo, &info);
    struct array a = stored(test, &source, uplo), original = array_clone(&a);
    if (factorize_definite(test, uplo, &a, info) == 0) {
        int64_t zero = kind == KIND_SINGULAR ? random_below(&test->random, n) : -1;
        if (zero >= 0 && n > 0)
            array_put(&a, zero, zero, 0);
        int64_t got = call(test, "potri", "ciM", uplo, n, &a, uplo);
        expect(test, is_spoilt(kind) ? ANY_INFO : n > 0 ? zero + 1 : 0);
        struct view before = with_structure(whole(&original), HERMITIAN, uplo),
                    after = with_structure(whole(&a), HERMITIAN, uplo);
        judge(test, is_spoilt(kind) || got != 0 ? 0 : residual_inverse(&before, &after));
    }
    source_free(&source);
    array_free(&a);
    array_free(&original);
}

static void lauum(struct test *test)
{
    int64_t n = pick_size(test);
    char uplo = letter_of(test, "UL");
    enum kind kind = PICK_KIND(test, KIND_UNIFORM, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    struct source source = source_of_kind(kind, test->dtype, n, n, &test->random);
    /* A Cholesky factor's diagonal is real. */
    for (int64_t i = 0; i < n; i++)
        *source_at(&source, i, i) = creall(*source_at(&source, i, i));
    struct array a = stored(test, &source, uplo);
    call(test, "lauum", "ciM", uplo, n, &a, uplo);
    expect(test, 0);
    struct view before = with_structure(whole_before(&a), TRIANGULAR, uplo),
                after = with_structure(whole(&a), HERMITIAN, uplo);
    judge(test, is_spoilt(kind) ? 0 : residual_triangle_square(&before, &after));
    source_free(&source);
    array_free(&a);
}

/* ---- Bunch-Kaufman ---- */

struct indefinite {
    char uplo;
    bool hermitian;
    int64_t info;
    struct array a;
};

static struct indefinite make_indefinite(struct test *test, bool hermitian, int64_t n,
                                         bool spoilt_elsewhere)
{
    struct indefinite s = {.uplo = letter_of(test, "UL"), .hermitian = hermitian};
    enum kind kind = kind_without(test->kind, spoilt_elsewhere);
    struct source x;
    if (kind == KIND_UNIFORM) {
        x = source_uniform(test->dtype, n, n, 1, &test->random);
        for (int64_t i = 0; i < n && hermitian; i++)
            *source_at(&x, i, i) = creall(*source_at(&x, i, i));
    } else {
        long double *values = calloc((size_t)n + 1, sizeof *values);
        if (!values)
            abort();
        kind_values(kind, test->dtype, n, values, &test->random);
        for (int64_t i = 0; i < n && kind != KIND_IDENTITY; i++)
            if (one_of(test, 2))
                values[i] = -values[i];
        x = source_hermitian(test->dtype, n, values, !hermitian, &test->random);
        free(values);
    }
    s.info = is_spoilt(test->kind) ? ANY_INFO : kind == KIND_ZERO && n > 0 ? POSITIVE_INFO : 0;
    if (kind == KIND_SINGULAR && n > 0) {
        int64_t zero = 1 + random_below(&test->random, n);
        clear_row(&x, zero);
        clear_column(&x, zero);
        s.info = POSITIVE_INFO;
    }
    source_spoil(&x, kind, test->dtype, s.uplo, &test->random);
    s.a = stored(test, &x, s.uplo);
    source_free(&x);
    return s;
}

static struct view symmetric(struct view x, const struct indefinite *s)
{
    return with_structure(x, s->hermitian ? HERMITIAN : SYMMETRIC, s->uplo);
}

static double ldl_ratio(const struct test *test, const struct indefinite *s,
                        const struct array *ipiv)
{
    struct view before = symmetric(whole_before(&s->a), s),
                after = with_structure(whole(&s->a), GENERAL, s->uplo);
    int64_t *pivots = pivots_of(ipiv);
    double r = is_spoilt(test->kind) ? 0 : residual_ldl(&before, &after, pivots);
    free(pivots);
    return r;
}

static void factorize_and_solve(struct test *test, bool hermitian, bool solve)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test);
    enum kind kind = pick_general(test);
    bool elsewhere = solve && spoils_right_sides(test);
    struct indefinite s = make_indefinite(test, hermitian, n, elsewhere);
    struct array ipiv = array_integers(n, &test->random), original = array_clone(&s.a);
    int64_t got = call(test, hermitian ? "hetrf" : "sytrf", "ciMVW", s.uplo, n, &s.a, s.uplo, &ipiv,
                       WHOLE, (int64_t)1);
    expect(test, s.info);
    judge(test, ldl_ratio(test, &s, &ipiv));
    if (solve && got == 0) {
        struct array b = right_sides(test, n, nrhs, elsewhere);
        call(test, hermitian ? "hetrs" : "sytrs", "ciiMVM", s.uplo, n, nrhs, &s.a, UNTOUCHED, &ipiv,
             UNTOUCHED, &b, WHOLE);
        expect(test, 0);
        struct view matrix = symmetric(whole(&original), &s), x = whole(&b),
                    before = whole_before(&b);
        judge(test, is_spoilt(kind) ? 0 : residual_solution(&matrix, 'N', &x, &before));
        array_free(&b);
    }
    array_free(&s.a);
    array_free(&ipiv);
    array_free(&original);
}

static void sytrf(struct test *test)
{
    factorize_and_solve(test, false, false);
}

static void hetrf(struct test *test)
{
    factorize_and_solve(test, true, false);
}

static void sytrs(struct test *test)
{
    factorize_and_solve(test, false, true);
}

static void hetrs(struct test *test)
{
    factorize_and_solve(test, true, true);
}

static void solve_indefinite(struct test *test, bool hermitian)
{
    int64_t n = pick_size(test), nrhs = pick_sides(test);
    enum kind kind = pick_general(test);
    bool elsewhere = spoils_right_sides(test);
    struct indefinite s = make_indefinite(test, hermitian, n, elsewhere);
    struct array ipiv = array_integers(n, &test->random), b = right_sides(test, n, nrhs, elsewhere);
    int64_t got = call(test, hermitian ? "hesv" : "sysv", "ciiMVMW", s.uplo, n, nrhs, &s.a, s.uplo,
                       &ipiv, WHOLE, &b, WHOLE, (int64_t)1);
    expect(test, s.info);
    struct view matrix = symmetric(whole_before(&s.a), &s), x = whole(&b),
                before = whole_before(&b);
    double r = ldl_ratio(test, &s, &ipiv);
    if (!is_spoilt(kind) && got == 0)
        r = worse(r, residual_solution(&matrix, 'N', &x, &before));
    judge(test, r);
    array_free(&s.a);
    array_free(&ipiv);
    array_free(&b);
}

static void sysv(struct test *test)
{
    solve_indefinite(test, false);
}

static void hesv(struct test *test)
{
    solve_indefinite(test, true);
}

/* ---- Rows and copies ---- */

static bool same_element(const struct array *x, const struct array *y, int64_t row, int64_t col)
{
    return memcmp(array_at(x, row, col), array_at(y, row, col), x->size) == 0;
}

static void laswp(struct test *test)
{
    int64_t m = 1 + pick_size(test), n = pick_size(test);
    int64_t k1 = 1 + random_below(&test->random, m),
            k2 = k1 + random_below(&test->random, m - k1 + 1);
    static const int64_t steps[] = {1, 1, 1, -1, -1, 2, -2, 0};
    int64_t step = steps[random_below(&test->random, 8)], gap = llabs(step);
    PICK_KIND(test, KIND_UNIFORM, KIND_UNIFORM, KIND_UNIFORM, KIND_NAN, KIND_INF);
    struct source source = source_of_kind(test->kind, test->dtype, m, n, &test->random);
    struct array a = stored(test, &source, 'A'), expected = array_clone(&a),
                 ipiv = array_integers(k1 + (k2 - k1) * most(gap, 1), &test->random);
    for (int64_t i = 0; i < ipiv.rows; i++)
        *array_integer(&ipiv, i) = (lapack_int)(1 + random_below(&test->random, m));
    for (int64_t i = 0; i <= k2 - k1 && step != 0; i++) {
        int64_t k = step > 0 ? k1 + i : k2 - i;
        int64_t other = *array_integer(&ipiv, k1 + (k - k1) * gap - 1);
        for (int64_t col = 0; col < n && other != k; col++) {
            value one = array_get(&expected, k - 1, col);
            array_put(&expected, k - 1, col, array_get(&expected, other - 1, col));
            array_put(&expected, other - 1, col, one);
        }
    }
    call(test, "laswp", "iMiiVi.", n, &a, WHOLE, k1, k2, &ipiv, UNTOUCHED, step);
    bool same = true;
    for (int64_t col = 0; col < n; col++)
        for (int64_t row = 0; row < m; row++)
            same = same && same_element(&a, &expected, row, col);
    judge(test, same ? 0 : INFINITY);
    source_free(&source);
    array_free(&a);
    array_free(&expected);
    array_free(&ipiv);
}

static void lacpy(struct test *test)
{
    int64_t m = pick_size(test), n = pick_size(test);
    char uplo = letter_of(test, "ULAG");
    PICK_KIND(test, KIND_UNIFORM, KIND_NAN, KIND_INF);
    struct source source = source_of_kind(test->kind, test->dtype, m, n, &test->random);
    bool part = uplo == 'U' || uplo == 'L';
    struct array a = stored(test, &source, part ? uplo : 'A'),
                 b = array_new(test->dtype, m, n, &test->random);
    call(test, "lacpy", "ciiMM.", uplo, m, n, &a, UNTOUCHED, &b, part ? uplo : WHOLE);
    bool same = true;
    for (int64_t col = 0; col < n; col++)
        for (int64_t row = 0; row < m; row++)
            if (!part || in_triangle(uplo, row, col))
                same = same && same_element(&a, &b, row, col);
    judge(test, same ? 0 : INFINITY);
    source_free(&source);
    array_free(&a);
    array_free(&b);
}

const struct lapack_case linear_cases[] = {
    {"getrf", false, getrf}, {"getrs", false, getrs}, {"gesv", false, gesv},
    {"getri", false, getri}, {"potrf", false, potrf}, {"potrs", false, potrs},
    {"posv", false, posv},   {"potri", false, potri}, {"lauum", false, lauum},
    {"trtrs", false, trtrs}, {"trtri", false, trtri}, {"sytrf", false, sytrf},
    {"sytrs", false, sytrs}, {"sysv", false, sysv},   {"hetrf", true, hetrf},
    {"hetrs", true, hetrs},  {"hesv", true, hesv},    {"laswp", false, laswp},
    {"lacpy", false, lacpy}, {NULL, false, NULL},
};
