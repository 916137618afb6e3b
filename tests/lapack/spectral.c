/* Eigenvalues and eigenvectors. */
#include "cases.h"

#include <stdlib.h>

/* ---- What a program asks for ---- */

struct query {
    char jobz, range, uplo;
    int64_t n, il, iu;
    double vl, vu, abstol;
    /* What must be found: so many, from `first` on; -1: not known. */
    int64_t first, count;
    /* All there are, in ascending order; NULL: not known. */
    long double *values;
    long double scale; /* what their error goes with */
};

struct answer {
    struct array w, z, found;
};

static int ascending(const void *x, const void *y)
{
    long double a = *(const long double *)x, b = *(const long double *)y;
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Eigenvalues of either sign, as the kind has them. */
static long double *make_values(struct test *test, int64_t n)
{
    long double *values = calloc((size_t)n + 1, sizeof *values);
    if (!values)
        abort();
    kind_values(test->kind, test->dtype, n, values, &test->random);
    for (int64_t i = 0; i < n && test->kind != KIND_IDENTITY; i++)
        if (one_of(test, 2))
            values[i] = -values[i];
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values;
}

/* A place between two eigenvalues that rounding does not move across either; below all for 0, above
 * all for n. Returns the number of those below. */
static int64_t pick_gap(const struct query *q, int64_t i, double *place)
{
    long double wide = 1e-3L * q->scale / (long double)q->n;
    while (i > 0 && i < q->n && !(q->values[i] - q->values[i - 1] > wide))
        i++;
    if (i > 0 && i < q->n)
        *place = (double)((q->values[i] + q->values[i - 1]) / 2);
    else
        *place = (double)((i == 0 ? -2 : 2) * (q->scale > 0 ? q->scale : 1));

    return i;
}

static void pick_range(struct test *test, struct query *q)
{
    /* The last is what LAPACK says to be most accurate: twice the underflow threshold. */
    const double tolerances[] = {0, -1, accel_is_double(test->dtype) ? 0x1p-1021 : 0x1p-125};
    int64_t n = q->n, one = random_below(&test->random, n + 1),
            other = random_below(&test->random, n + 1);
    q->range = letter_of(test, "AVI");
    q->abstol = tolerances[random_below(&test->random, 3)];
    q->vl = q->vu = 0;
    q->il = q->iu = 0;
    q->first = 0;
    q->count = n;
    if (q->range == 'I') {
        q->il = n == 0 ? 1 : 1 + least(least(one, other), n - 1);
        q->iu = n == 0 ? 0 : most(q->il, most(one, other));
        q->first = q->il - 1;
        q->count = q->iu - q->il + 1;
    }
    if (q->range != 'V')
        return;
    if (!q->values || n == 0) {
        q->vl = -1e3 * (double)kind_scale(test->kind, test->dtype);
        q->vu = -q->vl;
        return;
    }
    q->first = pick_gap(q, least(one, other), &q->vl);
    q->count = pick_gap(q, most(one, other), &q->vu) - q->first;
    if (!(q->vl < q->vu)) {
        q->vl = -2 * (double)(q->scale > 0 ? q->scale : 1);
        q->vu = -q->vl;
        q->first = 0;
        q->count = n;
    }
}

static enum accel_dtype real_dtype(const struct test *test)
{
    return accel_is_double(test->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
}

static struct answer make_answer(struct test *test, const struct query *q)
{
    struct answer x = {.w = array_vector(real_dtype(test), q->n, &test->random),
                       .found = array_integers(1, &test->random)};
    int64_t columns = q->range == 'I' ? q->count : q->n;
    x.z = q->jobz == 'V' ? array_new(test->dtype, q->n, columns, &test->random)
                         : array_new(test->dtype, 1, 1, &test->random);
    return x;
}

static void release_answer(struct answer *x)
{
    array_free(&x->w);
    array_free(&x->z);
    array_free(&x->found);
}

static double values_ratio(const struct test *test, const struct query *q, const struct array *w)
{
    return q->values ? residual_values(test->dtype, q->count, array_data(w), q->values + q->first,
                                       q->scale)
                     : 0;
}

/* Whether the eigenvectors that did not converge are none. LAPACK sets none for n = 1. */
static bool has_converged(const struct array *ifail, int64_t count)
{
    for (int64_t i = 0; i < count && ifail->rows > 1; i++)
        if (*array_integer(ifail, i) != 0)
            return false;
    return true;
}

/* ---- Symmetric and Hermitian ---- */

static char pick_triangle(struct test *test)
{
    char uplo = letter_of(test, "UL");
    return test->dtype == ACCEL_FLOAT32 && has_fault(test, FAULT_SSYMV) ? 'U' : uplo;
}

/* fault: of the library, with NaN and Inf. */
static struct array make_hermitian(struct test *test, struct query *q, enum fault fault)
{
    PICK_KIND(test, KIND_WELL, KIND_UNIFORM, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
              KIND_LARGE, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    if (is_spoilt(test->kind) && has_fault(test, fault))
        test->kind = KIND_WELL;
    q->jobz = letter_of(test, "NV");
    q->range = 'A';
    q->uplo = pick_triangle(test);
    q->n = q->count = pick_size(test);
    q->first = 0;
    q->values = make_values(test, q->n);
    q->scale = 0;
    for (int64_t i = 0; i < q->n; i++)
        q->scale = fmaxl(q->scale, fabsl(q->values[i]));
    struct source x = test->kind == KIND_UNIFORM
                          ? source_uniform(test->dtype, q->n, q->n, 1, &test->random)
                          : source_hermitian(test->dtype, q->n, q->values, false, &test->random);
    for (int64_t i = 0; i < q->n; i++)
        *source_at(&x, i, i) = creall(*source_at(&x, i, i));
    if (test->kind == KIND_SINGULAR && q->n > 0) {
        int64_t zero = 1 + random_below(&test->random, q->n);
        clear_row(&x, zero);
        clear_column(&x, zero);
    }
    source_spoil(&x, test->kind, test->dtype, q->uplo, &test->random);
    if (test->kind == KIND_UNIFORM || test->kind == KIND_SINGULAR || is_spoilt(test->kind)) {
        free(q->values);
        q->values = NULL;
    }
    struct array a = stored(test, &x, q->uplo);
    source_free(&x);
    return a;
}

/* z: where the eigenvectors are, with jobz = 'V'; allowance: how much worse they may be. */
static void judge_hermitian(struct test *test, const struct query *q, const struct array *a,
                            const struct array *w, const struct array *z, int64_t info, bool right,
                            double allowance)
{
    struct view before = with_structure(array_view_before(a, q->n, q->n), HERMITIAN, q->uplo),
                vectors = array_view(z, q->n, q->count);
    double r = right ? values_ratio(test, q, w) : INFINITY;
    expect(test, is_spoilt(test->kind) ? ANY_INFO : 0);
    if (q->jobz == 'V' && right && !is_spoilt(test->kind) && info == 0)
        r = worse(r, residual_eigen(&before, &vectors, array_data(w)) / allowance);
    judge(test, is_spoilt(test->kind) || info != 0 ? 0 : r);
}

static enum region triangle(const struct query *q)
{
    return (enum region)q->uplo;
}

static void syev(struct test *test)
{
    struct query q;
    struct array a = make_hermitian(test, &q, FAULT_NONE),
                 w = array_vector(real_dtype(test), q.n, &test->random);
    bool is_pair = is_complex(test);
    int64_t info = call(test, "syev", is_pair ? "cciMVWq" : "cciMVW", q.jobz, q.uplo, q.n, &a,
                        q.jobz == 'V' ? WHOLE : triangle(&q), &w, WHOLE,
                        most(1, (is_pair ? 2 : 3) * q.n - 1), most(1, 3 * q.n - 2));
    judge_hermitian(test, &q, &a, &w, &a, info, true, 1);
    free(q.values);
    array_free(&a);
    array_free(&w);
}

/* The least workspace of divide and conquer: of the type, real, INTEGER. */
struct space {
    int64_t work, real, integers;
};

static struct space divide_space(bool is_pair, char jobz, int64_t n)
{
    struct space s = {1, 1, 1};
    bool vectors = jobz == 'V';
    if (n <= 1)
        return s;
    s.real = vectors ? 1 + 5 * n + 2 * n * n : n;
    s.integers = vectors ? 3 + 5 * n : 1;
    if (is_pair)
        s.work = vectors ? 2 * n + n * n : n + 1;
    else
        s.work = vectors ? 1 + 6 * n + 2 * n * n : 2 * n + 1;
    return s;
}

static void syevd(struct test *test)
{
    struct query q;
    struct array a = make_hermitian(test, &q, FAULT_NONE),
                 w = array_vector(real_dtype(test), q.n, &test->random);
    struct space s = divide_space(is_complex(test), q.jobz, q.n);
    enum region region = q.jobz == 'V' ? WHOLE : triangle(&q);
    int64_t info;
    if (is_complex(test))
        info = call(test, "syevd", "cciMVWRJ", q.jobz, q.uplo, q.n, &a, region, &w, WHOLE, s.work,
                    s.real, s.integers);
    else
        info = call(test, "syevd", "cciMVWJ", q.jobz, q.uplo, q.n, &a, region, &w, WHOLE, s.work,
                    s.integers);
    judge_hermitian(test, &q, &a, &w, &a, info, true, 1);
    free(q.values);
    array_free(&a);
    array_free(&w);
}

static void syevr(struct test *test)
{
    struct query q;
    struct array a = make_hermitian(test, &q, FAULT_ENDLESS);
    pick_range(test, &q);
    struct answer x = make_answer(test, &q);
    struct array isuppz =
        array_integers(2 * most(1, q.range == 'V' ? q.n : q.count), &test->random);
    enum region region = q.jobz == 'V' ? WHOLE : UNTOUCHED;
    int64_t n = q.n, info;
    if (is_complex(test))
        info = call(test, "syevr", "ccciMrriirVVMVWRJ", q.jobz, q.range, q.uplo, n, &a,
                    triangle(&q), q.vl, q.vu, q.il, q.iu, q.abstol, &x.found, WHOLE, &x.w, WHOLE,
                    &x.z, region, &isuppz, WHOLE, most(1, 2 * n), most(1, 24 * n), most(1, 10 * n));
    else
        info = call(test, "syevr", "ccciMrriirVVMVWJ", q.jobz, q.range, q.uplo, n, &a, triangle(&q),
                    q.vl, q.vu, q.il, q.iu, q.abstol, &x.found, WHOLE, &x.w, WHOLE, &x.z, region,
                    &isuppz, WHOLE, most(1, 26 * n), most(1, 10 * n));
    judge_hermitian(test, &q, &a, &x.w, &x.z, info, *array_integer(&x.found, 0) == q.count,
                    has_fault(test, FAULT_SYEVR) ? 100 : 1);
    free(q.values);
    array_free(&a);
    array_free(&isuppz);
    release_answer(&x);
}

static void syevx(struct test *test)
{
    struct query q;
    struct array a = make_hermitian(test, &q, FAULT_STOPS);
    pick_range(test, &q);
    struct answer x = make_answer(test, &q);
    struct array ifail = array_integers(q.n, &test->random);
    enum region region = q.jobz == 'V' ? WHOLE : UNTOUCHED;
    int64_t n = q.n, info;
    if (is_complex(test))
        info = call(test, "syevx", "ccciMrriirVVMWqjV", q.jobz, q.range, q.uplo, n, &a,
                    triangle(&q), q.vl, q.vu, q.il, q.iu, q.abstol, &x.found, WHOLE, &x.w, WHOLE,
                    &x.z, region, most(1, 2 * n), 7 * n, 5 * n, &ifail, region);
    else
        info = call(test, "syevx", "ccciMrriirVVMWjV", q.jobz, q.range, q.uplo, n, &a, triangle(&q),
                    q.vl, q.vu, q.il, q.iu, q.abstol, &x.found, WHOLE, &x.w, WHOLE, &x.z, region,
                    n <= 1 ? (int64_t)1 : 8 * n, 5 * n, &ifail, region);
    bool right = *array_integer(&x.found, 0) == q.count;
    if (q.jobz == 'V' && right && info == 0)
        right = has_converged(&ifail, q.count);
    judge_hermitian(test, &q, &a, &x.w, &x.z, info, right, 1);
    free(q.values);
    array_free(&a);
    array_free(&ifail);
    release_answer(&x);
}

/* ---- Generalized ---- */

struct pair {
    struct query query;
    int64_t itype, info;
    struct array a, b;
};

static struct source scaled_rows(const struct source *x, const long double *values)
{
    struct source y = source_new(x->rows, x->cols);
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            *source_at(&y, row, col) = values[row] * *source_at(x, row, col);
    return y;
}

/* A = T^H W T, and B = T^H T, or for itype 2 and 3 its inverse: the eigenvalues are W. */
static struct pair make_pair(struct test *test, enum fault fault)
{
    struct pair p = {.itype = 1 + random_below(&test->random, 3)};
    struct query *q = &p.query;
    enum kind kind = PICK_KIND(test, KIND_WELL, KIND_BAD, KIND_INDEFINITE, KIND_SMALL, KIND_LARGE,
                               KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    if (is_spoilt(kind) && has_fault(test, fault))
        kind = test->kind = KIND_WELL;
    *q = (struct query){.jobz = letter_of(test, "NV"), .range = 'A', .uplo = pick_triangle(test)};
    int64_t n = q->n = q->count = pick_size(test);
    q->values = make_values(test, n);
    long double *s = calloc((size_t)n + 1, sizeof *s), largest = 0, condition;
    if (!s)
        abort();
    for (int64_t i = 0; i < n; i++) {
        long double low = kind == KIND_BAD ? 0.05L : 0.5L;
        s[i] = kind == KIND_IDENTITY ? 1 : low + (1 - low) * fabsl(random_uniform(&test->random));
        largest = fmaxl(largest, fabsl(q->values[i]));
    }
    condition = kind == KIND_BAD ? 400 : 4;
    q->scale = largest * condition;
    /* The same random orthogonal factors twice. */
    struct random again = test->random;
    struct source t = source_with_values(test->dtype, n, n, s, &test->random);
    for (int64_t i = 0; i < n; i++)
        s[i] = 1 / s[i];
    struct source inverse = source_with_values(test->dtype, n, n, s, &again);
    free(s);
    struct source part = scaled_rows(&t, q->values), a = source_adjoint_product(&t, &part),
                  b = p.itype == 1 ? source_adjoint_product(&t, &t)
                                   : source_adjoint_product(&inverse, &inverse);
    for (int64_t i = 0; i < n; i++) {
        *source_at(&a, i, i) = creall(*source_at(&a, i, i));
        *source_at(&b, i, i) = creall(*source_at(&b, i, i));
    }
    if (kind == KIND_INDEFINITE && n > 0) {
        int64_t k = 1 + random_below(&test->random, n);
        *source_at(&b, k - 1, k - 1) = one_of(test, 2) ? 0 : -*source_at(&b, k - 1, k - 1);
        p.info = n + k;
    }
    if (is_spoilt(kind))
        p.info = ANY_INFO;
    source_spoil(one_of(test, 2) ? &a : &b, kind, test->dtype, q->uplo, &test->random);
    p.a = stored(test, &a, q->uplo);
    p.b = stored(test, &b, q->uplo);
    source_free(&t);
    source_free(&inverse);
    source_free(&part);
    source_free(&a);
    source_free(&b);
    return p;
}

static void finish_pair(struct test *test, struct pair *p, const struct array *w,
                        const struct array *z, int64_t info, bool right)
{
    const struct query *q = &p->query;
    struct view a = with_structure(array_view_before(&p->a, q->n, q->n), HERMITIAN, q->uplo),
                b = with_structure(array_view_before(&p->b, q->n, q->n), HERMITIAN, q->uplo),
                vectors = array_view(z, q->n, q->count);
    expect(test, p->info);
    bool judged = !is_spoilt(test->kind) && info == 0;
    double r = right ? 0 : INFINITY;
    if (judged && right)
        r = values_ratio(test, q, w);
    if (judged && right && q->jobz == 'V')
        r = worse(r, residual_generalized((int)p->itype, &a, &b, &vectors, array_data(w)));
    judge(test, judged ? r : 0);
    free(p->query.values);
    array_free(&p->a);
    array_free(&p->b);
}

static void sygv(struct test *test)
{
    struct pair p = make_pair(test, FAULT_NONE);
    const struct query *q = &p.query;
    struct array w = array_vector(real_dtype(test), q->n, &test->random);
    bool is_pair = is_complex(test);
    int64_t info = call(test, "sygv", is_pair ? "icciMMVWq" : "icciMMVW", p.itype, q->jobz, q->uplo,
                        q->n, &p.a, q->jobz == 'V' ? WHOLE : triangle(q), &p.b, triangle(q), &w,
                        WHOLE, most(1, (is_pair ? 2 : 3) * q->n - 1), most(1, 3 * q->n - 2));
    finish_pair(test, &p, &w, &p.a, info, true);
    array_free(&w);
}

static void sygvd(struct test *test)
{
    struct pair p = make_pair(test, FAULT_NONE);
    const struct query *q = &p.query;
    struct array w = array_vector(real_dtype(test), q->n, &test->random);
    struct space s = divide_space(is_complex(test), q->jobz, q->n);
    enum region region = q->jobz == 'V' ? WHOLE : triangle(q);
    int64_t info;
    if (is_complex(test))
        info = call(test, "sygvd", "icciMMVWRJ", p.itype, q->jobz, q->uplo, q->n, &p.a, region,
                    &p.b, triangle(q), &w, WHOLE, s.work, s.real, s.integers);
    else
        info = call(test, "sygvd", "icciMMVWJ", p.itype, q->jobz, q->uplo, q->n, &p.a, region, &p.b,
                    triangle(q), &w, WHOLE, s.work, s.integers);
    finish_pair(test, &p, &w, &p.a, info, true);
    array_free(&w);
}

static void sygvx(struct test *test)
{
    struct pair p = make_pair(test, FAULT_STOPS);
    struct query *q = &p.query;
    pick_range(test, q);
    struct answer x = make_answer(test, q);
    struct array ifail = array_integers(q->n, &test->random);
    enum region region = q->jobz == 'V' ? WHOLE : UNTOUCHED;
    int64_t n = q->n, info;
    if (is_complex(test))
        info =
            call(test, "sygvx", "iccciMMrriirVVMWqjV", p.itype, q->jobz, q->range, q->uplo, n, &p.a,
                 triangle(q), &p.b, triangle(q), q->vl, q->vu, q->il, q->iu, q->abstol, &x.found,
                 WHOLE, &x.w, WHOLE, &x.z, region, most(1, 2 * n), 7 * n, 5 * n, &ifail, region);
    else
        info =
            call(test, "sygvx", "iccciMMrriirVVMWjV", p.itype, q->jobz, q->range, q->uplo, n, &p.a,
                 triangle(q), &p.b, triangle(q), q->vl, q->vu, q->il, q->iu, q->abstol, &x.found,
                 WHOLE, &x.w, WHOLE, &x.z, region, most(1, 8 * n), 5 * n, &ifail, region);
    bool right = *array_integer(&x.found, 0) == q->count;
    if (q->jobz == 'V' && right && info == 0)
        right = has_converged(&ifail, q->count);
    finish_pair(test, &p, &x.w, &x.z, info, right);
    array_free(&ifail);
    release_answer(&x);
}

/* ---- Nonsymmetric ---- */

static void geev(struct test *test)
{
    int64_t n = pick_size(test), info;
    char jobvl = letter_of(test, "NV"), jobvr = letter_of(test, "NVV");
    PICK_KIND(test, KIND_UNIFORM, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
              KIND_LARGE, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    if (test->kind == KIND_NAN && has_fault(test, FAULT_GEEV_NAN))
        test->kind = KIND_INF;
    if ((test->kind == KIND_SMALL || test->kind == KIND_LARGE) && has_fault(test, FAULT_GEEV_SCALE))
        test->kind = KIND_WELL;
    struct source source = source_of_kind(test->kind, test->dtype, n, n, &test->random);
    if (test->kind == KIND_SINGULAR && n > 0)
        clear_row(&source, 1 + random_below(&test->random, n));
    struct array a = stored(test, &source, 'A'), wr = array_vector(test->dtype, n, &test->random),
                 wi = array_vector(test->dtype, n, &test->random),
                 vl = array_new(test->dtype, jobvl == 'V' ? n : 1, jobvl == 'V' ? n : 1,
                                &test->random),
                 vr = array_new(test->dtype, jobvr == 'V' ? n : 1, jobvr == 'V' ? n : 1,
                                &test->random);
    enum region left = jobvl == 'V' ? WHOLE : UNTOUCHED, right = jobvr == 'V' ? WHOLE : UNTOUCHED;
    if (is_complex(test))
        info = call(test, "geev", "cciMVMMWq", jobvl, jobvr, n, &a, WHOLE, &wr, WHOLE, &vl, left,
                    &vr, right, most(1, 2 * n), 2 * n);
    else
        info = call(test, "geev", "cciMVVMMW", jobvl, jobvr, n, &a, WHOLE, &wr, WHOLE, &wi, WHOLE,
                    &vl, left, &vr, right, most(1, (jobvl == 'V' || jobvr == 'V' ? 4 : 3) * n));
    struct view before = array_view_before(&a, n, n), lefts = array_view(&vl, n, n),
                rights = array_view(&vr, n, n);
    expect(test, is_spoilt(test->kind) ? ANY_INFO : 0);
    judge(test,
          is_spoilt(test->kind) || info != 0
              ? 0
              : residual_geev(&before, array_data(&wr), is_complex(test) ? NULL : array_data(&wi),
                              jobvl == 'V' ? &lefts : NULL, jobvr == 'V' ? &rights : NULL));
    source_free(&source);
    array_free(&a);
    array_free(&wr);
    array_free(&wi);
    array_free(&vl);
    array_free(&vr);
}

const struct lapack_case spectral_cases[] = {
    {"syev", false, syev},   {"syevd", false, syevd}, {"syevr", false, syevr},
    {"syevx", false, syevx}, {"sygv", false, sygv},   {"sygvd", false, sygvd},
    {"sygvx", false, sygvx}, {"geev", false, geev},   {NULL, false, NULL},
};
