/* Orthogonal factors and least squares. */
#include "cases.h"

#include <stdlib.h>

/* ---- QR ---- */

static int64_t factorize(struct test *test, struct array *a, struct array *tau)
{
    int64_t info =
        call(test, "geqrf", "iiMVW", a->rows, a->cols, a, WHOLE, tau, WHOLE, most(a->cols, 1));
    struct view before = array_view_before(a, a->rows, a->cols),
                after = array_view(a, a->rows, a->cols);
    expect(test, is_spoilt(test->kind) ? ANY_INFO : 0);
    judge(test, is_spoilt(test->kind) ? 0 : residual_qr(&before, &after, array_data(tau)));
    return info;
}

/* Of any kind; SINGULAR: a zero column. */
static struct array general(struct test *test, int64_t m, int64_t n)
{
    PICK_KIND(test, KIND_UNIFORM, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
              KIND_LARGE, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    struct source source = source_of_kind(test->kind, test->dtype, m, n, &test->random);
    if (test->kind == KIND_SINGULAR && n > 0)
        clear_column(&source, 1 + random_below(&test->random, n));
    struct array a = stored(test, &source, 'A');
    source_free(&source);
    return a;
}

static void geqrf(struct test *test)
{
    int64_t m = pick_size(test), n = one_of(test, 3) ? m : pick_size(test);
    struct array a = general(test, m, n),
                 tau = array_vector(test->dtype, least(m, n), &test->random);
    factorize(test, &a, &tau);
    array_free(&a);
    array_free(&tau);
}

/* k reflectors of length m, in the first columns of a matrix with `room` more. */
static struct array reflectors(struct test *test, int64_t m, int64_t k, int64_t room,
                               struct array *tau)
{
    struct array a = general(test, m, k), x = array_new(test->dtype, m, k + room, &test->random);
    *tau = array_vector(test->dtype, k, &test->random);
    factorize(test, &a, tau);
    for (int64_t col = 0; col < k; col++)
        memcpy(array_at(&x, 0, col), array_at(&a, 0, col), (size_t)m * a.size);
    array_free(&a);
    return x;
}

static void orgqr(struct test *test)
{
    int64_t m = pick_size(test), n = one_of(test, 3) ? m : least(pick_size(test), m),
            k = one_of(test, 3) ? n : least(pick_size(test), n);
    struct array tau, a = reflectors(test, m, k, n - k, &tau);
    call(test, "orgqr", "iiiMVW", m, n, k, &a, WHOLE, &tau, UNTOUCHED, most(n, 1));
    expect(test, 0);
    struct view before = array_view_before(&a, m, k), after = array_view(&a, m, n);
    judge(test, is_spoilt(test->kind) ? 0 : residual_generated(&before, array_data(&tau), &after));
    array_free(&a);
    array_free(&tau);
}

static void ormqr(struct test *test)
{
    int64_t m = pick_size(test), n = pick_sides(test);
    char side = letter_of(test, "LR"), trans = one_of(test, 2) ? 'N' : adjoint_letter(test);
    if (side == 'R') {
        int64_t old = m;
        m = n;
        n = old;
    }
    int64_t order = side == 'L' ? m : n,
            k = one_of(test, 3) ? order : least(pick_size(test), order);
    struct array tau, a = reflectors(test, order, k, 0, &tau);
    struct source source = source_uniform(test->dtype, m, n, 1, &test->random);
    struct array c = stored(test, &source, 'A');
    call(test, "ormqr", "cciiiMVMW", side, trans, m, n, k, &a, UNTOUCHED, &tau, UNTOUCHED, &c,
         WHOLE, most(side == 'L' ? n : m, 1));
    expect(test, 0);
    struct view qr = array_view(&a, order, k), before = array_view_before(&c, m, n),
                after = array_view(&c, m, n);
    judge(test, is_spoilt(test->kind)
                    ? 0
                    : residual_applied(side, trans, &qr, array_data(&tau), &before, &after));
    source_free(&source);
    array_free(&a);
    array_free(&tau);
    array_free(&c);
}

/* ---- Least squares ---- */

enum method { FULL_RANK, BY_VALUES, BY_COLUMNS }; /* gels; gelsd and gelss; gelsy */

struct problem {
    int64_t m, n, nrhs, rank;
    char trans;
    struct array a, b;
    long double *values; /* A's singular values; NULL: not known */
    bool well;           /* conditioned, but for columns that are there twice */
};

/* Twice the same columns: a rank that rounding does not blur. */
static void repeat_columns(struct test *test, struct source *x, int64_t rank)
{
    for (int64_t col = rank; col < x->cols; col++) {
        int64_t from = random_below(&test->random, rank);
        memcpy(source_at(x, 0, col), source_at(x, 0, from), (size_t)x->rows * sizeof(value));
    }
}

/* Singular, gels gets a zero row or column, the others a lower rank. */
static struct problem make_problem(struct test *test, enum method method)
{
    int64_t m = pick_size(test), n = one_of(test, 3) ? m : pick_size(test), inner = least(m, n);
    struct problem p = {.m = m, .n = n, .nrhs = pick_sides(test), .rank = inner, .trans = 'N'};
    enum kind kind = PICK_KIND(test, KIND_WELL, KIND_BAD, KIND_SINGULAR, KIND_SMALL, KIND_LARGE,
                               KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    if (method == BY_VALUES && has_fault(test, FAULT_NO_SIDES))
        p.nrhs = most(p.nrhs, 1);
    if (method == BY_VALUES && is_spoilt(kind) && has_fault(test, FAULT_ENDLESS))
        kind = test->kind = KIND_WELL;
    if (kind == KIND_SINGULAR && inner == 1)
        kind = test->kind = KIND_ZERO;
    bool elsewhere = is_spoilt(kind) && one_of(test, 3);
    p.values = calloc((size_t)inner + 1, sizeof *p.values);
    if (!p.values)
        abort();
    kind_values(kind, test->dtype, inner, p.values, &test->random);
    /* Single precision has less room between a small singular value and none. */
    for (int64_t i = 0; kind == KIND_BAD && !accel_is_double(test->dtype) && i < inner; i++)
        p.values[i] = sqrtl(p.values[i]);
    struct source a = source_of_kind(kind == KIND_BAD || elsewhere ? KIND_WELL : kind, test->dtype,
                                     m, n, &test->random),
                  b = source_uniform(test->dtype, most(m, n), p.nrhs,
                                     one_of(test, 2) ? kind_scale(kind, test->dtype) : 1,
                                     &test->random);
    bool known = kind != KIND_SINGULAR && !is_spoilt(kind);
    if (known && kind != KIND_ZERO && kind != KIND_IDENTITY) {
        source_free(&a);
        a = source_with_values(test->dtype, m, n, p.values, &test->random);
    }
    if (kind == KIND_ZERO)
        p.rank = 0;
    if (kind == KIND_SINGULAR && inner > 0 && method != FULL_RANK) {
        p.rank = 1 + random_below(&test->random, inner);
        repeat_columns(test, &a, p.rank);
    } else if (kind == KIND_SINGULAR && inner > 0) {
        p.rank = random_below(&test->random, inner); /* the zero one, from 0 */
        if (m >= n)
            clear_column(&a, p.rank + 1);
        else
            clear_row(&a, p.rank + 1);
    }
    if (elsewhere)
        source_spoil(&b, kind, test->dtype, 'A', &test->random);
    p.well = kind != KIND_BAD;
    p.a = stored(test, &a, 'A');
    p.b = stored(test, &b, 'A');
    if (!known) {
        free(p.values);
        p.values = NULL;
    }
    source_free(&a);
    source_free(&b);
    return p;
}

static void release_problem(struct problem *p)
{
    free(p->values);
    array_free(&p->a);
    array_free(&p->b);
}

/* What stands in B below the right sides is not read. */
static void spoil_rest(struct problem *p, int64_t rows)
{
    for (int64_t col = 0; col < p->b.cols; col++)
        for (int64_t row = rows; row < p->b.rows; row++)
            array_put(&p->b, row, col, NAN);
}

static double solution_ratio(const struct problem *p)
{
    bool turned = p->trans != 'N';
    struct view a = array_view_before(&p->a, p->m, p->n),
                x = array_view(&p->b, turned ? p->m : p->n, p->nrhs),
                b = array_view_before(&p->b, turned ? p->n : p->m, p->nrhs);
    double r = residual_least_squares(&a, p->trans, &x, &b);
    if (p->well)
        r = worse(r, residual_minimum_norm(&a, p->trans, p->rank, &x));
    return r;
}

static void gels(struct test *test)
{
    struct problem p = make_problem(test, FULL_RANK);
    int64_t inner = least(p.m, p.n), info = 0;
    if (one_of(test, 2))
        p.trans = adjoint_letter(test);
    spoil_rest(&p, p.trans == 'N' ? p.m : p.n);
    if (is_spoilt(test->kind))
        info = ANY_INFO;
    if (test->kind == KIND_SINGULAR && inner > 0 && p.nrhs > 0)
        info = p.rank + 1;
    int64_t got = call(test, "gels", "ciiiMMW", p.trans, p.m, p.n, p.nrhs, &p.a, WHOLE, &p.b, WHOLE,
                       most(1, inner + most(inner, p.nrhs)));
    expect(test, info);
    judge(test, is_spoilt(test->kind) || got != 0 || test->kind == KIND_SINGULAR
                    ? 0
                    : solution_ratio(&p));
    release_problem(&p);
}

/* By singular values, or for gelsy by exchanging columns. */
static void by_rank(struct test *test, const char *routine)
{
    bool pivoting = strcmp(routine, "gelsy") == 0, is_pair = is_complex(test);
    struct problem p = make_problem(test, pivoting ? BY_COLUMNS : BY_VALUES);
    int64_t m = p.m, n = p.n, inner = least(m, n), outer = most(m, n), k = p.nrhs, got;
    double rcond = accel_is_double(test->dtype) ? 1e-9 : 1e-4;
    /* The machine's precision. */
    if (p.values && one_of(test, 3))
        rcond = pivoting ? 0 : -1;
    struct array s = array_vector(accel_is_double(test->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32,
                                  inner, &test->random),
                 rank = array_integers(1, &test->random), jpvt = array_integers(n, &test->random);
    bool fixed = p.well && p.values && m >= n && one_of(test, 3);
    for (int64_t i = 0; i < n; i++)
        *array_integer(&jpvt, i) = fixed && one_of(test, 3) ? 1 : 0;
    spoil_rest(&p, m);
    if (pivoting)
        got = call(test, routine, is_pair ? "iiiMMVrVWq" : "iiiMMVrVW", m, n, k, &p.a, WHOLE, &p.b,
                   WHOLE, &jpvt, WHOLE, rcond, &rank, WHOLE,
                   is_pair ? most(1, inner + most(2 * inner, most(n + 1, inner + k)))
                           : most(1, most(inner + 3 * n + 1, 2 * inner + k)),
                   2 * n);
    else if (strcmp(routine, "gelss") == 0)
        got = call(test, routine, is_pair ? "iiiMMVrVWq" : "iiiMMVrVW", m, n, k, &p.a, WHOLE, &p.b,
                   WHOLE, &s, WHOLE, rcond, &rank, WHOLE,
                   is_pair ? most(1, 2 * inner + most(outer, k))
                           : most(1, 3 * inner + most(most(2 * inner, outer), k)),
                   5 * inner);
    else {
        /* The documented least is a formula of the library's own block size: the best alone. */
        got =
            call(test, routine, is_pair ? "iiiMMVrVWqj" : "iiiMMVrVWj", m, n, k, &p.a, WHOLE, &p.b,
                 WHOLE, &s, WHOLE, rcond, &rank, WHOLE, (int64_t)-1, (int64_t)-1, (int64_t)-1);
    }
    expect(test, is_spoilt(test->kind) ? ANY_INFO : 0);
    double r = 0;
    /* Where nothing is there to be done, nothing is said of X; nor of the rank by gelsy. */
    if (!is_spoilt(test->kind) && got == 0 && inner > 0 && (k > 0 || !pivoting)) {
        r = *array_integer(&rank, 0) == p.rank ? solution_ratio(&p) : INFINITY;
        if (!pivoting && p.values)
            r = worse(r, residual_values(test->dtype, inner, array_data(&s), p.values,
                                         inner > 0 ? p.values[0] : 1));
    }
    judge(test, r);
    release_problem(&p);
    array_free(&s);
    array_free(&rank);
    array_free(&jpvt);
}

static void gelsd(struct test *test)
{
    by_rank(test, "gelsd");
}

static void gelss(struct test *test)
{
    by_rank(test, "gelss");
}

static void gelsy(struct test *test)
{
    by_rank(test, "gelsy");
}

const struct lapack_case orthogonal_cases[] = {
    {"geqrf", false, geqrf}, {"orgqr", false, orgqr}, {"ormqr", false, ormqr},
    {"gels", false, gels},   {"gelsd", false, gelsd}, {"gelss", false, gelss},
    {"gelsy", false, gelsy}, {NULL, false, NULL},
};
