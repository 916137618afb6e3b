/*
 * Calls of Level 3 with small integers for unit tests of gpu/, and plain loops that compute them,
 * exactly, in any type: so that every order of operations gives the same bits. What a call must
 * not read is no number.
 */
#ifndef ACCEL_TEST_LEVEL3_H
#define ACCEL_TEST_LEVEL3_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "call/shape.h"
#include "ops/typical.h"
#include "tests/lib/cmplx.h"
#include "tests/lib/device_work.h"

typedef double complex number;

/* ---- Elements ---- */

static inline number get(const struct accel_span *x, int64_t i, int64_t j)
{
    const void *at = gpu_element(x, i, j);
    switch (x->dtype) {
    case ACCEL_FLOAT32:
        return (double)*(const float *)at;
    case ACCEL_FLOAT64:
        return *(const double *)at;
    case ACCEL_COMPLEX64:
        return *(const float complex *)at;
    default:
        return *(const double complex *)at;
    }
}

static inline void set(const struct accel_span *x, int64_t i, int64_t j, number value)
{
    void *at = gpu_element(x, i, j);
    switch (x->dtype) {
    case ACCEL_FLOAT32:
        *(float *)at = (float)creal(value);
        break;
    case ACCEL_FLOAT64:
        *(double *)at = creal(value);
        break;
    case ACCEL_COMPLEX64:
        *(float complex *)at = (float complex)value;
        break;
    default:
        *(double complex *)at = value;
    }
}

/* ---- Plain loops ---- */

static inline bool is_kind(const struct accel_call *c, const char *kind)
{
    return strcmp(c->routine->name + 1, kind) == 0;
}

static inline bool is_hermitian(const struct accel_call *c)
{
    return c->routine->name[1] == 'h';
}

static inline bool has_triangular_a(const struct accel_call *c)
{
    return c->routine->name[1] == 't';
}

static inline bool is_updated_triangle(const struct accel_call *c)
{
    return strstr(c->routine->name, "rk") || strstr(c->routine->name, "r2k") ||
           strstr(c->routine->name, "gemmt");
}

static inline bool is_side(const struct accel_call *c, int64_t i, int64_t j)
{
    return c->blas.flag[ACCEL_uplo] == 'L' ? i >= j : i <= j;
}

/* Element (i, j) of the matrix that A stands for, of a triangular or symmetric one. */
static inline number of_triangle(const struct accel_call *c, int64_t i, int64_t j)
{
    const struct accel_span *a = &c->span[ACCEL_a];
    if (has_triangular_a(c))
        return i == j && c->blas.flag[ACCEL_diag] == 'U' ? 1 : is_side(c, i, j) ? get(a, i, j) : 0;
    if (i == j && is_hermitian(c))
        return creal(get(a, i, i));
    return is_side(c, i, j) ? get(a, i, j) : is_hermitian(c) ? conj(get(a, j, i)) : get(a, j, i);
}

static inline number op(char trans, number straight, number across)
{
    return trans == 'N' ? straight : trans == 'C' ? conj(across) : across;
}

static inline number op_of(const struct accel_span *x, char trans, int64_t i, int64_t j)
{
    return trans == 'N' ? get(x, i, j) : op(trans, 0, get(x, j, i));
}

static inline number alpha_of(const struct accel_call *c)
{
    return CMPLX(c->blas.scalar[ACCEL_alpha].re, c->blas.scalar[ACCEL_alpha].im);
}

static inline number beta_of(const struct accel_call *c)
{
    return CMPLX(c->blas.scalar[ACCEL_beta].re, c->blas.scalar[ACCEL_beta].im);
}

/* C := sum + beta C; of a Hermitian update, the diagonal is real. */
static inline void put_sum(const struct accel_call *c, int64_t i, int64_t j, number sum)
{
    const struct accel_span *to = &c->span[ACCEL_c];
    const bool real = is_hermitian(c) && is_updated_triangle(c) && i == j;
    const number old = beta_of(c) == 0 ? 0
                       : real          ? beta_of(c) * creal(get(to, i, j))
                                       : beta_of(c) * get(to, i, j);
    set(to, i, j, real ? creal(sum + old) : sum + old);
}

static inline void plain_gemm(const struct accel_call *c)
{
    const struct accel_span *a = &c->span[ACCEL_a], *b = &c->span[ACCEL_b], *to = &c->span[ACCEL_c];
    const char ta = c->blas.flag[ACCEL_transa], tb = c->blas.flag[ACCEL_transb];
    for (int64_t j = 0; j < to->cols; j++)
        for (int64_t i = 0; i < to->rows; i++) {
            number sum = 0;
            if (is_kind(c, "gemmt") && !is_side(c, i, j))
                continue;
            for (int64_t p = 0; p < (ta == 'N' ? a->cols : a->rows); p++)
                sum += op_of(a, ta, i, p) * op_of(b, tb, p, j);
            put_sum(c, i, j, alpha_of(c) * sum);
        }
}

static inline void plain_symm(const struct accel_call *c)
{
    const struct accel_span *b = &c->span[ACCEL_b], *to = &c->span[ACCEL_c];
    const bool left = c->blas.flag[ACCEL_side] == 'L';
    for (int64_t j = 0; j < to->cols; j++)
        for (int64_t i = 0; i < to->rows; i++) {
            number sum = 0;
            for (int64_t p = 0; p < (left ? to->rows : to->cols); p++)
                sum += left ? of_triangle(c, i, p) * get(b, p, j)
                            : get(b, i, p) * of_triangle(c, p, j);
            put_sum(c, i, j, alpha_of(c) * sum);
        }
}

/* Of rank k or 2 k. */
static inline void plain_rank(const struct accel_call *c)
{
    const bool twice = strchr(c->routine->name, '2');
    const struct accel_span *a = &c->span[ACCEL_a], *to = &c->span[ACCEL_c];
    const struct accel_span *b = twice ? &c->span[ACCEL_b] : a;
    const char trans = c->blas.flag[ACCEL_trans], adjoint = is_hermitian(c) ? 'C' : 'T';
    const bool across = trans == 'N';
    const number alpha = alpha_of(c), other = is_hermitian(c) ? conj(alpha) : alpha;
    for (int64_t j = 0; j < to->cols; j++)
        for (int64_t i = 0; i < to->rows; i++) {
            number sum = 0;
            if (!is_side(c, i, j))
                continue;
            for (int64_t p = 0; p < (across ? a->cols : a->rows); p++) {
                const number a_i = across ? get(a, i, p) : op_of(a, adjoint, i, p),
                             b_i = across ? get(b, i, p) : op_of(b, adjoint, i, p),
                             a_j = across ? op_of(a, adjoint, p, j) : get(a, p, j),
                             b_j = across ? op_of(b, adjoint, p, j) : get(b, p, j);
                sum += alpha * a_i * b_j + (twice ? other * b_i * a_j : 0);
            }
            put_sum(c, i, j, sum);
        }
}

static inline number op_triangle(const struct accel_call *c, int64_t i, int64_t j)
{
    const char trans = c->blas.flag[ACCEL_trans];
    return trans == 'N' ? of_triangle(c, i, j) : op(trans, 0, of_triangle(c, j, i));
}

/* B := alpha op(A) B or its inverse, a column after the other; at the right, a row. */
static inline void plain_triangle(const struct accel_call *c)
{
    const struct accel_span *b = &c->span[ACCEL_b];
    const bool left = c->blas.flag[ACCEL_side] == 'L', solves = is_kind(c, "trsm");
    const bool lower =
        (c->blas.flag[ACCEL_uplo] == 'L') == ((c->blas.flag[ACCEL_trans] == 'N') == left);
    const int64_t n = left ? b->rows : b->cols, vectors = left ? b->cols : b->rows;
    for (int64_t v = 0; v < vectors; v++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t i = lower == solves ? k : n - 1 - k;
            const number alpha = alpha_of(c), diagonal = op_triangle(c, i, i),
                         old = left ? get(b, i, v) : get(b, v, i);
            number sum = 0;
            for (int64_t p = lower ? 0 : i + 1; p < (lower ? i : n); p++)
                sum += left ? op_triangle(c, i, p) * get(b, p, v)
                            : get(b, v, p) * op_triangle(c, p, i);
            /* those before it have been multiplied by alpha, or not yet */
            const number value =
                solves ? (alpha * old - sum) / diagonal : alpha * (old * diagonal + sum);
            set(b, left ? i : v, left ? v : i, value);
        }
}

static inline void plain_level3(const struct accel_call *c)
{
    if (is_kind(c, "trmm") || is_kind(c, "trsm"))
        plain_triangle(c);
    else if (is_kind(c, "symm") || is_kind(c, "hemm"))
        plain_symm(c);
    else if (strncmp(c->routine->name + 1, "gemm", 4) == 0)
        plain_gemm(c);
    else
        plain_rank(c);
}

/* ---- Calls ---- */

/* With memory of its own, all of which is compared. */
struct level3 {
    struct accel_call call;
    struct gpu_host host;
    void *first[ACCEL_SPANS]; /* the memory as it was at the start */
    int originals;            /* calls of the original */
};

static inline bool level3_original(void *context, const struct accel_call *part)
{
    ((struct level3 *)context)->originals++;
    plain_level3(part);
    return true;
}

/* Begins a call; its flags and scalars may be set then, before level3_fill(). */
static inline void level3_make(struct level3 *l, const char *name, int64_t m, int64_t n, int64_t k)
{
    memset(l, 0, sizeof *l);
    shape_typical(&l->call, accel_name_routine((uint32_t)accel_name_find(name)),
                  (int64_t[ACCEL_DIMENSIONS]){m, n, k, 0});
    l->host = (struct gpu_host){.original = level3_original, .context = l};
    const bool is_complex = accel_is_complex(l->call.routine->dtype),
               real = is_hermitian(&l->call) && is_kind(&l->call, "herk");
    l->call.blas.scalar[ACCEL_alpha] = (struct accel_complex){-2, is_complex && !real ? 1 : 0};
    l->call.blas.scalar[ACCEL_beta] =
        (struct accel_complex){3, is_complex && !is_hermitian(&l->call) ? -1 : 0};
}

/* The bytes of a span with the gaps between its columns, and of memory before it: so it does not
 * begin with a page. */
enum { LEVEL3_GAP = 3, LEVEL3_BEFORE = 64 };
static inline size_t level3_bytes(const struct accel_span *x)
{
    return (size_t)(x->ld * x->cols * gpu_size_of(x));
}

static inline number small_number(const struct accel_span *x)
{
    const double re = rand() % 3 - 1;
    return accel_is_complex(x->dtype) ? CMPLX(re, rand() % 3 - 1) : re;
}

static inline void level3_fill_a(const struct accel_call *c)
{
    const struct accel_span *a = &c->span[ACCEL_a];
    const bool symmetric = is_kind(c, "symm") || is_kind(c, "hemm"),
               triangular = has_triangular_a(c);
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            if ((symmetric || triangular) && !is_side(c, i, j))
                set(a, i, j, NAN);
            else if (triangular && i == j)
                set(a, i, i, c->blas.flag[ACCEL_diag] == 'U' ? NAN : i % 3 ? 1 : -1);
            else if (triangular && rand() % 4) /* so that products stay small */
                set(a, i, j, 0);
}

static inline void level3_fill(struct level3 *l)
{
    shape_operands(&l->call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &l->call.span[i];
        if (x->rows == 0)
            continue;
        x->ld = x->rows + LEVEL3_GAP;
        char *memory = mmap(NULL, level3_bytes(x) + LEVEL3_BEFORE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        x->ptr = memory + LEVEL3_BEFORE;
        for (int64_t j = 0; j < x->cols; j++)
            for (int64_t r = 0; r < x->ld; r++)
                set(x, r, j, small_number(x));
    }
    level3_fill_a(&l->call);
    if (is_kind(&l->call, "trsm")) { /* so that its solution is of small integers */
        struct accel_call product = l->call;
        char name[] = "?trmm_";
        name[0] = l->call.routine->name[0];
        product.routine = accel_name_routine((uint32_t)accel_name_find(name));
        product.blas.scalar[ACCEL_alpha] = (struct accel_complex){1, 0};
        plain_level3(&product);
    }
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].ptr) {
            l->first[i] = malloc(level3_bytes(&l->call.span[i]));
            assert_non_null(l->first[i]);
            memcpy(l->first[i], l->call.span[i].ptr, level3_bytes(&l->call.span[i]));
        }
}

static inline void level3_end(struct level3 *l)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].ptr) {
            munmap((char *)l->call.span[i].ptr - LEVEL3_BEFORE,
                   level3_bytes(&l->call.span[i]) + LEVEL3_BEFORE);
            free(l->first[i]);
        }
}

/* Puts back what the call has written, and what it has counted. */
static inline void level3_again(struct level3 *l)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].access & ACCEL_WRITE)
            memcpy(l->call.span[i].ptr, l->first[i], level3_bytes(&l->call.span[i]));
    l->host.up_bytes = l->host.down_bytes = l->host.cached_bytes = 0;
    l->originals = 0;
}

static inline bool is_same_number(number a, number b)
{
    return (creal(a) == creal(b) || (isnan(creal(a)) && isnan(creal(b)))) &&
           (cimag(a) == cimag(b) || (isnan(cimag(a)) && isnan(cimag(b))));
}

/* Leaves the memory as plain loops do, from what it was at the start: *expected has operands of
 * its own then. */
static inline void level3_expect(const struct level3 *l, struct accel_call *expected)
{
    *expected = l->call;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].access & ACCEL_WRITE) {
            const size_t bytes = level3_bytes(&l->call.span[i]);
            expected->span[i].ptr = malloc(bytes);
            assert_non_null(expected->span[i].ptr);
            memcpy(expected->span[i].ptr, l->first[i], bytes);
        }
    plain_level3(expected);
}

static inline void level3_end_expected(struct accel_call *expected)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (expected->span[i].access & ACCEL_WRITE)
            free(expected->span[i].ptr);
}

/* All that could be written is as expected, gaps, too. */
static inline void level3_assert(const struct level3 *l, const struct accel_call *expected)
{
    for (int x = 0; x < ACCEL_SPANS; x++) {
        const struct accel_span *there = &l->call.span[x];
        struct accel_span gaps = *there, other = expected->span[x];
        if (!(there->access & ACCEL_WRITE))
            continue;
        for (int64_t j = 0; j < gaps.cols; j++)
            for (int64_t i = 0; i < gaps.ld; i++)
                if (!is_same_number(get(&gaps, i, j), get(&other, i, j)))
                    fail_msg("%s %.*s: element (%d, %d) of %s is %g, not %g", l->call.routine->name,
                             8, l->call.blas.flag, (int)i, (int)j, there->name,
                             creal(get(&gaps, i, j)), creal(get(&other, i, j)));
    }
}

/* All that could be written is as it was. */
static inline void level3_assert_untouched(const struct level3 *l)
{
    struct accel_call first = l->call;
    for (int i = 0; i < ACCEL_SPANS; i++)
        first.span[i].ptr = l->first[i];
    level3_assert(l, &first);
}

static inline enum gpu_status level3_run(struct level3 *l)
{
    return gpu_run(&device->common, &l->call, &l->host);
}

/* Runs it, and fails the test unless it succeeds and computes as plain loops do. */
static inline void level3_succeeds(struct level3 *l)
{
    struct accel_call expected;
    level3_again(l);
    assert_int_equal(level3_run(l), GPU_OK);
    level3_expect(l, &expected);
    level3_assert(l, &expected);
    level3_end_expected(&expected);
    assert_int_equal(l->originals, 0);
}

#endif
