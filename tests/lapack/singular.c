/* Singular values. */
#include "cases.h"

#include <stdlib.h>

struct decomposition {
    int64_t m, n;
    char jobu, jobvt;
    struct array a, s, u, vt;
    long double *values; /* NULL: not known */
};

/* Where the vectors are, or NULL: in a matrix of their own, or in A. */
static const struct view *vectors(struct view *view, char job, const struct array *own,
                                  const struct array *a, int64_t rows, int64_t cols)
{
    if (job == 'N')
        return NULL;
    *view = job == 'O' ? array_view(a, rows, cols) : array_view(own, own->rows, own->cols);
    return view;
}

static double decomposition_ratio(const struct test *test, const struct decomposition *d)
{
    int64_t inner = least(d->m, d->n);
    struct view a = array_view_before(&d->a, d->m, d->n), left, right;
    double r =
        residual_svd(&a, vectors(&left, d->jobu, &d->u, &d->a, d->m, inner), array_data(&d->s),
                     vectors(&right, d->jobvt, &d->vt, &d->a, inner, d->n));
    if (d->values)
        r = worse(r, residual_values(test->dtype, inner, array_data(&d->s), d->values,
                                     inner > 0 ? d->values[0] : 1));
    return r;
}

/* As many vectors as a job asks for in a matrix of their own; else a small array. */
static struct array make_vectors(struct test *test, char job, bool right, int64_t all,
                                 int64_t values)
{
    int64_t count = job == 'A' ? all : values;
    if (job == 'N' || job == 'O')
        return array_new(test->dtype, 1, 1, &test->random);
    return array_new(test->dtype, right ? count : all, right ? all : count, &test->random);
}

static struct decomposition make(struct test *test)
{
    struct decomposition d = {.m = pick_size(test)};
    d.n = one_of(test, 3) ? d.m : pick_size(test);
    /* Much longer than wide has its own way. */
    if (one_of(test, 4))
        d.n = most(d.m / 3, 1);
    if (one_of(test, 2)) {
        int64_t old = d.m;
        d.m = d.n;
        d.n = old;
    }
    int64_t inner = least(d.m, d.n);
    enum kind kind = test->kind;
    d.values = calloc((size_t)inner + 1, sizeof *d.values);
    if (!d.values)
        abort();
    kind_values(kind, test->dtype, inner, d.values, &test->random);
    bool known = kind != KIND_UNIFORM && kind != KIND_SINGULAR && !is_spoilt(kind);
    bool plain = kind == KIND_ZERO || kind == KIND_IDENTITY;
    struct source source = known && !plain
                               ? source_with_values(test->dtype, d.m, d.n, d.values, &test->random)
                               : source_of_kind(kind, test->dtype, d.m, d.n, &test->random);
    if (kind == KIND_SINGULAR && inner > 0)
        clear_column(&source, 1 + random_below(&test->random, d.n));
    if (!known) {
        free(d.values);
        d.values = NULL;
    }
    d.a = stored(test, &source, 'A');
    d.s = array_vector(accel_is_double(test->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32, inner,
                       &test->random);
    source_free(&source);
    return d;
}

static void release(struct decomposition *d)
{
    free(d->values);
    array_free(&d->a);
    array_free(&d->s);
    array_free(&d->u);
    array_free(&d->vt);
}

static enum region own_region(char job)
{
    return job == 'A' || job == 'S' ? WHOLE : UNTOUCHED;
}

static void finish(struct test *test, struct decomposition *d, int64_t info)
{
    expect(test, is_spoilt(test->kind) ? ANY_INFO : 0);
    /* Where there are no singular values, nothing is said of the vectors. */
    bool judged = !is_spoilt(test->kind) && info == 0 && least(d->m, d->n) > 0;
    judge(test, judged ? decomposition_ratio(test, d) : 0);
    release(d);
}

static void gesvd(struct test *test)
{
    PICK_KIND(test, KIND_UNIFORM, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
              KIND_LARGE, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    if (is_spoilt(test->kind) && has_fault(test, FAULT_ENDLESS))
        test->kind = KIND_WELL;
    struct decomposition d = make(test);
    int64_t inner = least(d.m, d.n), outer = most(d.m, d.n);
    d.jobu = letter_of(test, "NSAO");
    d.jobvt = letter_of(test, d.jobu == 'O' ? "NSA" : "NSAO");
    d.u = make_vectors(test, d.jobu, false, d.m, inner);
    d.vt = make_vectors(test, d.jobvt, true, d.n, inner);
    int64_t work = is_complex(test) ? 2 * inner + outer : most(3 * inner + outer, 5 * inner);
    int64_t info = call(test, "gesvd", is_complex(test) ? "cciiMVMMWq" : "cciiMVMMW", d.jobu,
                        d.jobvt, d.m, d.n, &d.a, WHOLE, &d.s, WHOLE, &d.u, own_region(d.jobu),
                        &d.vt, own_region(d.jobvt), most(work, 1), 5 * inner);
    finish(test, &d, info);
}

static int64_t least_work(char job, bool is_pair, int64_t inner, int64_t outer)
{
    int64_t square = inner * inner, work = 3 * inner + most(outer, 7 * inner);
    if (job == 'O')
        work = 3 * inner + most(outer, 5 * square + 4 * inner);
    if (job == 'S')
        work = 4 * square + 7 * inner;
    if (job == 'A')
        work = 4 * square + 6 * inner + outer;
    if (is_pair && job == 'N')
        work = 2 * inner + outer;
    if (is_pair && job == 'O')
        work = 2 * square + 2 * inner + outer;
    if (is_pair && job == 'S')
        work = square + 3 * inner;
    if (is_pair && job == 'A')
        work = square + 2 * inner + outer;
    return most(work, 1);
}

static void gesdd(struct test *test)
{
    PICK_KIND(test, KIND_UNIFORM, KIND_WELL, KIND_BAD, KIND_WORSE, KIND_SINGULAR, KIND_SMALL,
              KIND_LARGE, KIND_ZERO, KIND_IDENTITY, KIND_NAN, KIND_INF);
    /* It does look for NaN. */
    if (test->kind == KIND_INF && has_fault(test, FAULT_ENDLESS))
        test->kind = KIND_NAN;
    struct decomposition d = make(test);
    int64_t inner = least(d.m, d.n), outer = most(d.m, d.n);
    char job = letter_of(test, "NSAO");
    /* O: the vectors of the longer side come into A, all of the others into their own matrix. */
    d.jobu = job != 'O' ? job : d.m >= d.n ? 'O' : 'A';
    d.jobvt = job != 'O' ? job : d.m >= d.n ? 'A' : 'O';
    d.u = make_vectors(test, d.jobu, false, d.m, inner);
    d.vt = make_vectors(test, d.jobvt, true, d.n, inner);
    int64_t real = job == 'N' ? 7 * inner
                              : most(5 * inner * inner + 5 * inner,
                                     2 * outer * inner + 2 * inner * inner + inner);
    int64_t work = least_work(job, is_complex(test), inner, outer), info;
    if (is_complex(test))
        info = call(test, "gesdd", "ciiMVMMWqj", job, d.m, d.n, &d.a, WHOLE, &d.s, WHOLE, &d.u,
                    own_region(d.jobu), &d.vt, own_region(d.jobvt), work, real, 8 * inner);
    else
        info = call(test, "gesdd", "ciiMVMMWj", job, d.m, d.n, &d.a, WHOLE, &d.s, WHOLE, &d.u,
                    own_region(d.jobu), &d.vt, own_region(d.jobvt), work, 8 * inner);
    finish(test, &d, info);
}

const struct lapack_case singular_cases[] = {
    {"gesvd", false, gesvd}, {"gesdd", false, gesdd}, {NULL, false, NULL}};
