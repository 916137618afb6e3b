/* tests/lib/residual.h: an exact result has ratio 0 or nearly, one wrong element is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cpu_ref/judge.h"
#include "tests/lib/residual.h"

#define N   4
#define LD  6
#define ALL (LD * 2 * N)

/* Numbers of any of the four types. */
union memory {
    float f[2 * ALL];
    double d[2 * ALL];
};

static void put(union memory *x, int64_t i, value z, enum accel_dtype dtype)
{
    if (dtype == ACCEL_FLOAT32)
        x->f[i] = (float)creall(z);
    if (dtype == ACCEL_FLOAT64)
        x->d[i] = (double)creall(z);
    if (dtype == ACCEL_COMPLEX64) {
        x->f[2 * i] = (float)creall(z);
        x->f[2 * i + 1] = (float)cimagl(z);
    }
    if (dtype == ACCEL_COMPLEX128) {
        x->d[2 * i] = (double)creall(z);
        x->d[2 * i + 1] = (double)cimagl(z);
    }
}

static struct view view(const union memory *x, int64_t rows, int64_t cols, enum accel_dtype dtype)
{
    return (struct view){x, rows, cols, LD, dtype, GENERAL, 0};
}

static struct view structured(const union memory *x, int64_t n, enum accel_dtype dtype,
                              enum structure structure, char uplo)
{
    return (struct view){x, n, n, LD, dtype, structure, uplo};
}

/* A small whole number, with an imaginary part where the type has one. */
static value whole(int seed, enum accel_dtype dtype)
{
    int re = (seed * 7 + 3) % 5 - 2, im = (seed * 5 + 1) % 7 - 3;
    return accel_is_complex(dtype) ? re + im * (value)_Complex_I : re;
}

/* A matrix in long double, beside its bytes. */
struct exact {
    value at[N][N]; /* row, column */
};

static void store(union memory *x, const struct exact *z, enum accel_dtype dtype)
{
    memset(x, 0xff, sizeof *x);
    for (int col = 0; col < N; col++)
        for (int row = 0; row < N; row++)
            put(x, col * LD + row, z->at[row][col], dtype);
}

static struct exact product(const struct exact *x, const struct exact *y)
{
    struct exact z = {0};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int p = 0; p < N; p++)
                z.at[i][j] += x->at[i][p] * y->at[p][j];
    return z;
}

static struct exact adjoint(const struct exact *x)
{
    struct exact z;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            z.at[i][j] = conjl(x->at[j][i]);
    return z;
}

static struct exact transpose(const struct exact *x)
{
    struct exact z = adjoint(x);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            z.at[i][j] = conjl(z.at[i][j]);
    return z;
}

static struct exact general(int seed, enum accel_dtype dtype)
{
    struct exact z;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            z.at[i][j] = whole(seed + 3 * i + 11 * j, dtype);
    return z;
}

/* A triangle with a diagonal of 1, or of powers of 2. */
static struct exact triangle(int seed, char uplo, bool unit, enum accel_dtype dtype)
{
    struct exact z = general(seed, dtype);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            z.at[i][j] = i == j                    ? (unit ? 1 : 1 << (i % 3))
                         : in_triangle(uplo, i, j) ? z.at[i][j]
                                                   : 0;
    return z;
}

static struct exact diagonal(const double *w)
{
    struct exact z = {0};
    for (int i = 0; i < N; i++)
        z.at[i][i] = w[i];
    return z;
}

/* Exactly orthogonal: half of Hadamard's, its columns turned. */
static struct exact orthogonal(int seed, enum accel_dtype dtype)
{
    struct exact z;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            z.at[i][j] = __builtin_popcount((unsigned)(i & j)) % 2 ? -0.5L : 0.5L;
            if (accel_is_complex(dtype) && (j + seed) % 2)
                z.at[i][j] *= (value)_Complex_I;
        }
    return z;
}

static void reals(union memory *x, const double *w, enum accel_dtype dtype)
{
    for (int i = 0; i < N; i++)
        put(x, i, w[i], accel_is_double(dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32);
}

/* An element off by 1 / 64: more than any rounding of small numbers. */
static void spoil(union memory *x, int row, int col, enum accel_dtype dtype)
{
    int64_t i = col * LD + row;
    put(x, i, load_value(x, i, dtype) + 0x1p-6L, dtype);
}

#define SMALL(ratio) assert_true((ratio) < 1)
#define LARGE(ratio) assert_true((ratio) > CPU_REF_RESIDUAL_THRESHOLD)
#define EACH_TYPE                                                                                  \
    for (enum accel_dtype dtype = ACCEL_FLOAT32; dtype < ACCEL_DTYPES; dtype = dtype + 1)
#define EACH_UPLO for (char uplo = 'L'; uplo; uplo = uplo == 'L' ? 'U' : 0)

static void lu(void **state)
{
    static const int64_t pivots[] = {3, 2, 4, 4}, outside[] = {3, 5, 4, 4}, back[] = {3, 1, 4, 4};
    (void)state;
    EACH_TYPE
    {
        union memory a, factors;
        struct exact l = triangle(1, 'L', true, dtype), u = triangle(2, 'U', false, dtype);
        struct exact before = product(&l, &u), both = u;
        for (int i = N; i-- > 0;)
            for (int j = 0; j < N; j++) {
                value old = before.at[i][j];
                before.at[i][j] = before.at[pivots[i] - 1][j];
                before.at[pivots[i] - 1][j] = old;
            }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                both.at[i][j] = l.at[i][j];
        store(&a, &before, dtype);
        store(&factors, &both, dtype);
        struct view x = view(&a, N, N, dtype), y = view(&factors, N, N, dtype);
        SMALL(residual_lu(&x, &y, pivots));
        LARGE(residual_lu(&x, &y, outside));
        LARGE(residual_lu(&x, &y, back));
        struct view wide = view(&a, N, N - 1, dtype), few = view(&factors, N, N - 1, dtype);
        SMALL(residual_lu(&wide, &few, pivots));
        for (int i = 0; i < N * N; i++) {
            union memory wrong = factors;
            spoil(&wrong, i % N, i / N, dtype);
            struct view z = view(&wrong, N, N, dtype);
            LARGE(residual_lu(&x, &z, pivots));
        }
        put(&factors, 0, NAN, dtype);
        LARGE(residual_lu(&x, &y, pivots));
        struct view none = view(&a, 0, 0, dtype);
        assert_true(residual_lu(&none, &none, NULL) == 0);
    }
}

static void cholesky(void **state)
{
    (void)state;
    EACH_TYPE EACH_UPLO
    {
        union memory a, factor;
        struct exact l = triangle(3, uplo, false, dtype), h = adjoint(&l);
        struct exact before = uplo == 'L' ? product(&l, &h) : product(&h, &l);
        store(&a, &before, dtype);
        store(&factor, &l, dtype);
        /* The other triangle is not looked at. */
        put(&factor, uplo == 'L' ? 2 * LD : 2, NAN, dtype);
        struct view x = structured(&a, N, dtype, HERMITIAN, uplo),
                    y = structured(&factor, N, dtype, TRIANGULAR, uplo);
        SMALL(residual_cholesky(&x, &y));
        spoil(&factor, uplo == 'L' ? 3 : 1, uplo == 'L' ? 1 : 3, dtype);
        LARGE(residual_cholesky(&x, &y));
        before = uplo == 'U' ? product(&l, &h) : product(&h, &l);
        store(&a, &before, dtype);
        store(&factor, &l, dtype);
        SMALL(residual_triangle_square(&y, &x));
        spoil(&a, 1, 1, dtype);
        LARGE(residual_triangle_square(&y, &x));
    }
}

/* One block of 2 and two of 1, with exchanges. */
static void ldl(void **state)
{
    static const int64_t upper[] = {1, -1, -1, 2}, lower[] = {2, -4, -4, 4};
    static const int64_t unequal[] = {1, -1, -2, 2};
    (void)state;
    EACH_TYPE EACH_UPLO for (enum structure structure = SYMMETRIC; structure <= HERMITIAN;
                             structure = structure + 1)
    {
        union memory a, factor;
        const int64_t *ipiv = uplo == 'U' ? upper : lower;
        struct exact stored = general(4, dtype), d = {0}, u = {0};
        bool hermitian = structure == HERMITIAN;
        for (int i = 0; i < N; i++) {
            u.at[i][i] = 1;
            stored.at[i][i] = hermitian ? creall(stored.at[i][i]) + 3 : stored.at[i][i] + 3;
            d.at[i][i] = stored.at[i][i];
        }
        /* Columns 1 and 2 are the block, in either triangle. */
        d.at[1][2] = uplo == 'U' ? stored.at[1][2] : stored.at[2][1];
        d.at[2][1] = d.at[1][2];
        if (hermitian)
            d.at[uplo == 'U' ? 2 : 1][uplo == 'U' ? 1 : 2] = conjl(d.at[1][2]);
        if (hermitian && uplo == 'L') {
            d.at[2][1] = stored.at[2][1];
            d.at[1][2] = conjl(stored.at[2][1]);
        }
        /* A = P(k) U(k) ( ... ) in LAPACK's order, block by block, from the inside out. */
        struct exact middle = d;
        for (int b = 0; b < 3; b++) {
            static const int firsts[] = {0, 1, 3}, sizes[] = {1, 2, 1};
            int which = uplo == 'U' ? b : 2 - b, first = firsts[which], size = sizes[which];
            struct exact part = {0}, exchange = {0};
            int pivot = uplo == 'U' ? first : first + size - 1;
            int row = (int)(ipiv[pivot] > 0 ? ipiv[pivot] : -ipiv[pivot]) - 1;
            for (int i = 0; i < N; i++) {
                part.at[i][i] = 1;
                exchange.at[i][i == pivot ? row : i == row ? pivot : i] = 1;
                for (int j = first; j < first + size; j++)
                    if (uplo == 'U' ? i < first : i >= first + size)
                        part.at[i][j] = stored.at[i][j];
            }
            part = product(&exchange, &part);
            u = product(&part, &u);
        }
        struct exact other = hermitian ? adjoint(&u) : transpose(&u);
        middle = product(&u, &middle);
        middle = product(&middle, &other);
        store(&a, &middle, dtype);
        store(&factor, &stored, dtype);
        struct view x = structured(&a, N, dtype, structure, uplo),
                    y = structured(&factor, N, dtype, GENERAL, uplo);
        SMALL(residual_ldl(&x, &y, ipiv));
        LARGE(residual_ldl(&x, &y, unequal));
        spoil(&factor, uplo == 'U' ? 0 : 3, uplo == 'U' ? 3 : 0, dtype);
        LARGE(residual_ldl(&x, &y, ipiv));
    }
}

static void solutions(void **state)
{
    (void)state;
    EACH_TYPE for (const char *op = "NTC"; *op; op++)
    {
        union memory a, x, b;
        struct exact m = general(5, dtype), y = general(6, dtype), turned = m;
        if (*op != 'N')
            turned = *op == 'T' ? transpose(&m) : adjoint(&m);
        struct exact right = product(&turned, &y);
        store(&a, &m, dtype);
        store(&x, &y, dtype);
        store(&b, &right, dtype);
        struct view va = view(&a, N, N, dtype), vx = view(&x, N, N, dtype),
                    vb = view(&b, N, N, dtype);
        SMALL(residual_solution(&va, *op, &vx, &vb));
        spoil(&x, 2, 3, dtype);
        LARGE(residual_solution(&va, *op, &vx, &vb));
        put(&x, 0, INFINITY, dtype);
        assert_true(residual_solution(&va, *op, &vx, &vb) == INFINITY);
    }
}

static void inverses(void **state)
{
    (void)state;
    EACH_TYPE EACH_UPLO
    {
        union memory a, b;
        /* (I + E)^-1 = I - E where E has one element. */
        struct exact m = {0}, inverse = {0};
        for (int i = 0; i < N; i++)
            m.at[i][i] = inverse.at[i][i] = 1;
        int row = uplo == 'U' ? 0 : 3, col = 3 - row;
        m.at[row][col] = whole(1, dtype);
        inverse.at[row][col] = -m.at[row][col];
        store(&a, &m, dtype);
        store(&b, &inverse, dtype);
        struct view x = view(&a, N, N, dtype), y = view(&b, N, N, dtype);
        struct view tx = structured(&a, N, dtype, UNIT_TRIANGULAR, uplo),
                    ty = structured(&b, N, dtype, UNIT_TRIANGULAR, uplo);
        SMALL(residual_inverse(&x, &y));
        SMALL(residual_inverse(&tx, &ty));
        spoil(&b, row, col, dtype);
        LARGE(residual_inverse(&x, &y));
        LARGE(residual_inverse(&tx, &ty));
    }
}

/* Reflectors of two equal elements, which turn them: tau = 1. */
static void qr(void **state)
{
    (void)state;
    EACH_TYPE
    {
        union memory a, factors, tau, q, c, after;
        struct exact r = triangle(7, 'U', false, dtype), stored = r, unit = {0};
        for (int i = 0; i < N; i++)
            unit.at[i][i] = 1;
        struct exact all = unit;
        for (int i = 0; i < N; i++) {
            bool last = i == N - 1;
            struct exact h = unit;
            value turn = accel_is_complex(dtype) && i == 1 ? (value)_Complex_I : 1;
            for (int j = i + 1; j < N; j++)
                stored.at[j][i] = 0;
            if (!last) {
                stored.at[i + 1][i] = turn;
                h.at[i][i] = h.at[i + 1][i + 1] = 0;
                h.at[i][i + 1] = -conjl(turn);
                h.at[i + 1][i] = -turn;
            }
            put(&tau, i, last ? 0 : 1, dtype);
            all = product(&all, &h);
        }
        struct exact before = product(&all, &r), some = general(8, dtype);
        store(&a, &before, dtype);
        store(&factors, &stored, dtype);
        store(&q, &all, dtype);
        store(&c, &some, dtype);
        struct view x = view(&a, N, N, dtype), y = view(&factors, N, N, dtype),
                    vq = view(&q, N, N, dtype), vc = view(&c, N, N, dtype),
                    result = view(&after, N, N, dtype);
        SMALL(residual_qr(&x, &y, &tau));
        SMALL(residual_generated(&y, &tau, &vq));
        SMALL(residual_orthogonal(&vq, false));
        SMALL(residual_orthogonal(&vq, true));
        struct view some_rows = view(&q, N, 2, dtype);
        SMALL(residual_orthogonal(&some_rows, false));
        LARGE(residual_orthogonal(&some_rows, true));
        struct exact h = adjoint(&all);
        for (int i = 0; i < 4; i++) {
            const struct exact *op = i & 1 ? &h : &all;
            struct exact expected = i & 2 ? product(&some, op) : product(op, &some);
            store(&after, &expected, dtype);
            char side = i & 2 ? 'R' : 'L', letter = i & 1 ? 'C' : 'N';
            SMALL(residual_applied(side, letter, &y, &tau, &vc, &result));
            LARGE(residual_applied(side, i & 1 ? 'N' : 'C', &y, &tau, &vc, &result));
            spoil(&after, 1, 2, dtype);
            LARGE(residual_applied(side, letter, &y, &tau, &vc, &result));
        }
        spoil(&q, 0, 1, dtype);
        LARGE(residual_generated(&y, &tau, &vq));
        LARGE(residual_orthogonal(&vq, false));
        spoil(&factors, 0, 3, dtype);
        LARGE(residual_qr(&x, &y, &tau));
        store(&factors, &stored, dtype);
        put(&tau, 1, 1.02L, dtype);
        LARGE(residual_qr(&x, &y, &tau));
    }
}

static void eigen(void **state)
{
    static const double values[] = {-3, -1, 0.5, 8}, wrong_order[] = {-3, 0.5, -1, 8};
    (void)state;
    EACH_TYPE EACH_UPLO
    {
        union memory a, z, w;
        struct exact v = orthogonal(0, dtype), h = adjoint(&v), d = diagonal(values);
        struct exact m = product(&v, &d);
        m = product(&m, &h);
        store(&a, &m, dtype);
        store(&z, &v, dtype);
        reals(&w, values, dtype);
        struct view x = structured(&a, N, dtype, HERMITIAN, uplo), y = view(&z, N, N, dtype),
                    few = view(&z, N, 2, dtype);
        SMALL(residual_eigen(&x, &y, &w));
        SMALL(residual_eigen(&x, &few, &w));
        long double expected[] = {-3, -1, 0.5, 8};
        SMALL(residual_values(dtype, N, &w, expected, 8));
        expected[2] = 0.52;
        LARGE(residual_values(dtype, N, &w, expected, 8));
        reals(&w, wrong_order, dtype);
        LARGE(residual_eigen(&x, &y, &w));
        reals(&w, values, dtype);
        spoil(&z, 1, 1, dtype);
        LARGE(residual_eigen(&x, &y, &w));
    }
}

/* A = T D T^H and B = T T^H for itype 1 have eigenvectors T^-H; for 2 and 3 A has T^-1. */
static void generalized(void **state)
{
    static const double values[] = {-2, 1, 3, 4};
    (void)state;
    EACH_TYPE for (int itype = 1; itype <= 3; itype++)
    {
        union memory a, b, z, w;
        struct exact t = {0}, inverse = {0}, d = diagonal(values);
        for (int i = 0; i < N; i++)
            t.at[i][i] = inverse.at[i][i] = 1;
        t.at[2][1] = whole(1, dtype) / 4;
        inverse.at[2][1] = -t.at[2][1];
        struct exact h = adjoint(&t), inverse_h = adjoint(&inverse);
        struct exact m = product(itype == 1 ? &t : &inverse_h, &d);
        m = product(&m, itype == 1 ? &h : &inverse);
        struct exact p = product(&t, &h);
        store(&a, &m, dtype);
        store(&b, &p, dtype);
        /* 2: A B z = inverse_h D h z, z = inverse_h. 3: B A z = t D inverse z, z = t. */
        store(&z, itype == 3 ? &t : &inverse_h, dtype);
        reals(&w, values, dtype);
        struct view x = structured(&a, N, dtype, HERMITIAN, 'U'),
                    y = structured(&b, N, dtype, HERMITIAN, 'L'), v = view(&z, N, N, dtype);
        SMALL(residual_generalized(itype, &x, &y, &v, &w));
        struct view few = view(&z, N, 3, dtype);
        SMALL(residual_generalized(itype, &x, &y, &few, &w));
        LARGE(residual_generalized(itype % 3 + 1, &x, &y, &v, &w));
        spoil(&z, 2, 2, dtype);
        LARGE(residual_generalized(itype, &x, &y, &v, &w));
        /* The right direction, the wrong length. */
        struct exact longer = itype == 3 ? t : inverse_h;
        for (int i = 0; i < N; i++)
            longer.at[i][1] *= 1.02L;
        store(&z, &longer, dtype);
        LARGE(residual_generalized(itype, &x, &y, &v, &w));
    }
}

/* C = D, A = L D L^H for itype 1; for 2 and 3 A = D, C = L^H D L. The factor is L, or U = L^H. */
static void reduced(void **state)
{
    static const double values[] = {-2, 1, 3, 4};
    (void)state;
    EACH_TYPE for (int itype = 1; itype <= 3; itype++)
    {
        union memory a, b, c;
        struct exact l = {0}, d = diagonal(values);
        for (int i = 0; i < N; i++)
            l.at[i][i] = 1;
        l.at[2][1] = whole(1, dtype) / 4;
        const struct exact h = adjoint(&l);
        struct exact m = product(itype == 1 ? &l : &h, &d);
        m = product(&m, itype == 1 ? &h : &l);
        store(&a, itype == 1 ? &m : &d, dtype);
        store(&c, itype == 1 ? &d : &m, dtype);
        for (int upper = 0; upper < 2; upper++) {
            store(&b, upper ? &h : &l, dtype);
            const char uplo = upper ? 'U' : 'L';
            const struct view x = structured(&a, N, dtype, HERMITIAN, uplo),
                              y = structured(&c, N, dtype, HERMITIAN, uplo),
                              f = structured(&b, N, dtype, TRIANGULAR, uplo);
            SMALL(residual_reduced(itype, &x, &f, &y));
            LARGE(residual_reduced(itype == 1 ? 2 : 1, &x, &f, &y));
        }
        spoil(&c, 2, 2, dtype);
        const struct view x = structured(&a, N, dtype, HERMITIAN, 'U'),
                          y = structured(&c, N, dtype, HERMITIAN, 'U'),
                          f = structured(&b, N, dtype, TRIANGULAR, 'U');
        LARGE(residual_reduced(itype, &x, &f, &y));
    }
}

static void svd(void **state)
{
    static const double values[] = {8, 3, 3, 0}, rising[] = {8, 3, 0, 3},
                        negative[] = {8, 3, 3, -1};
    (void)state;
    EACH_TYPE
    {
        union memory a, left, right, s;
        struct exact u = orthogonal(0, dtype), v = orthogonal(1, dtype), d = diagonal(values);
        struct exact vt = adjoint(&v), m = product(&u, &d);
        m = product(&m, &vt);
        store(&a, &m, dtype);
        store(&left, &u, dtype);
        store(&right, &vt, dtype);
        reals(&s, values, dtype);
        struct view x = view(&a, N, N, dtype), vu = view(&left, N, N, dtype),
                    vv = view(&right, N, N, dtype);
        SMALL(residual_svd(&x, &vu, &s, &vv));
        SMALL(residual_svd(&x, &vu, &s, NULL));
        SMALL(residual_svd(&x, NULL, &s, &vv));
        SMALL(residual_svd(&x, NULL, &s, NULL));
        reals(&s, rising, dtype);
        LARGE(residual_svd(&x, NULL, &s, NULL));
        reals(&s, negative, dtype);
        LARGE(residual_svd(&x, NULL, &s, NULL));
        reals(&s, values, dtype);
        spoil(&left, 3, 1, dtype);
        LARGE(residual_svd(&x, &vu, &s, &vv));
        LARGE(residual_svd(&x, &vu, &s, NULL));
        spoil(&right, 3, 1, dtype);
        LARGE(residual_svd(&x, NULL, &s, &vv));
        store(&left, &u, dtype);
        store(&right, &vt, dtype);
        put(&s, 0, 8.02L, accel_is_double(dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32);
        LARGE(residual_svd(&x, &vu, &s, &vv));
        LARGE(residual_svd(&x, &vu, &s, NULL));
        LARGE(residual_svd(&x, NULL, &s, &vv));
    }
}

/* A turn by a right angle, times 2, and two real eigenvalues. */
static void geev_real(void **state)
{
    static const double re[] = {0, 0, 3, 5}, im[] = {2, -2, 0, 0}, turned[] = {-2, 2, 0, 0};
    (void)state;
    for (enum accel_dtype dtype = ACCEL_FLOAT32; dtype <= ACCEL_FLOAT64; dtype = dtype + 1) {
        union memory a, v, wr, wi;
        struct exact m = {0}, vectors = {0};
        const long double half = sqrtl(0.5L);
        m.at[0][1] = 2;
        m.at[1][0] = -2;
        m.at[2][2] = 3;
        m.at[3][3] = 5;
        vectors.at[0][0] = half;
        vectors.at[1][1] = half;
        vectors.at[2][2] = vectors.at[3][3] = 1;
        store(&a, &m, dtype);
        store(&v, &vectors, dtype);
        reals(&wr, re, dtype);
        reals(&wi, im, dtype);
        struct view x = view(&a, N, N, dtype), y = view(&v, N, N, dtype);
        /* Normal: its left eigenvectors are the right ones. */
        SMALL(residual_geev(&x, &wr, &wi, &y, &y));
        SMALL(residual_geev(&x, &wr, &wi, NULL, NULL));
        reals(&wi, turned, dtype);
        LARGE(residual_geev(&x, &wr, &wi, NULL, NULL));
        reals(&wi, im, dtype);
        spoil(&v, 0, 3, dtype);
        LARGE(residual_geev(&x, &wr, &wi, NULL, &y));
        LARGE(residual_geev(&x, &wr, &wi, &y, NULL));
        store(&v, &vectors, dtype);
        put(&wr, 2, 3.02L, dtype);
        LARGE(residual_geev(&x, &wr, &wi, NULL, NULL));
        LARGE(residual_geev(&x, &wr, &wi, NULL, &y));
    }
}

static void geev_complex(void **state)
{
    (void)state;
    for (enum accel_dtype dtype = ACCEL_COMPLEX64; dtype <= ACCEL_COMPLEX128; dtype = dtype + 1) {
        union memory a, v, left, w;
        struct exact m = {0}, right = {0}, other = {0};
        for (int i = 0; i < N; i++) {
            m.at[i][i] = i + 1 - i * (value)_Complex_I;
            put(&w, i, m.at[i][i], dtype);
            right.at[i][i] = other.at[i][i] = 1;
        }
        /* One element beside the diagonal: the eigenvectors are no longer alike. */
        value difference = m.at[1][1] - m.at[0][0];
        m.at[0][1] = difference * 0.75L;
        right.at[0][1] = 0.6L;
        right.at[1][1] = 0.8L;
        other.at[0][0] = 0.8L;
        other.at[1][0] = -0.6L;
        store(&a, &m, dtype);
        store(&v, &right, dtype);
        store(&left, &other, dtype);
        struct view x = view(&a, N, N, dtype), y = view(&v, N, N, dtype),
                    z = view(&left, N, N, dtype);
        SMALL(residual_geev(&x, &w, NULL, &z, &y));
        LARGE(residual_geev(&x, &w, NULL, &y, &z));
        /* An eigenvector as good as any, but its largest element is not real. */
        put(&v, 2 * LD + 2, (value)_Complex_I, dtype);
        LARGE(residual_geev(&x, &w, NULL, &z, &y));
        put(&v, 2 * LD + 2, 1.02L, dtype);
        LARGE(residual_geev(&x, &w, NULL, &z, &y));
    }
}

/* Two equal columns: rank 3. The least solution has equal elements there. */
static void least_squares(void **state)
{
    (void)state;
    EACH_TYPE for (const char *op = "NC"; *op; op++)
    {
        union memory a, x, b;
        struct exact m = triangle(9, 'U', true, dtype), y = {0}, right = {0};
        for (int i = 0; i < N; i++) {
            m.at[i][3] = m.at[i][2];
            m.at[3][i] = 0;
            right.at[3][i] = 7; /* beyond reach */
        }
        for (int j = 0; j < N; j++) {
            y.at[0][j] = whole(j, dtype);
            y.at[1][j] = 2;
            y.at[2][j] = y.at[3][j] = whole(j + 1, dtype);
        }
        struct exact part = product(&m, &y), stored = *op == 'N' ? m : adjoint(&m);
        for (int i = 0; i < N * N; i++)
            right.at[i / N][i % N] += part.at[i / N][i % N];
        store(&a, &stored, dtype);
        store(&x, &y, dtype);
        store(&b, &right, dtype);
        struct view va = view(&a, N, N, dtype), vx = view(&x, N, N, dtype),
                    vb = view(&b, N, N, dtype);
        SMALL(residual_least_squares(&va, *op, &vx, &vb));
        SMALL(residual_minimum_norm(&va, *op, 3, &vx));
        /* Another solution, longer than needed. */
        put(&x, 2, load_value(&x, 2, dtype) + 0.5L, dtype);
        put(&x, 3, load_value(&x, 3, dtype) - 0.5L, dtype);
        SMALL(residual_least_squares(&va, *op, &vx, &vb));
        LARGE(residual_minimum_norm(&va, *op, 3, &vx));
        store(&x, &y, dtype);
        spoil(&x, 1, 0, dtype);
        LARGE(residual_least_squares(&va, *op, &vx, &vb));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lu),
        cmocka_unit_test(cholesky),
        cmocka_unit_test(ldl),
        cmocka_unit_test(solutions),
        cmocka_unit_test(inverses),
        cmocka_unit_test(qr),
        cmocka_unit_test(eigen),
        cmocka_unit_test(generalized),
        cmocka_unit_test(reduced),
        cmocka_unit_test(svd),
        cmocka_unit_test(geev_real),
        cmocka_unit_test(geev_complex),
        cmocka_unit_test(least_squares),
    };
    return cmocka_run_group_tests_name("residual", tests, NULL, NULL);
}
