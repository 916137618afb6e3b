/*
 * The check of ?geev (ops/lapack/geev.c): eigenvalues and right vectors that are known, with one
 * number changed, of matrices of every type and size; graded matrices, whose vectors LAPACK's
 * balancing moves.
 */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "call/shape.h"
#include "cpu_ref/verify.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

typedef long double complex number;

enum { MOST = 7, LD = MOST + 2 };

/* A matrix, its eigenvalues, and vectors of unit length; by columns. Real matrices have conjugate
 * eigenvalues in pairs, the one above the real axis first, and the vector of that one is given. */
struct known {
    int n;
    number a[MOST][MOST], w[MOST], v[MOST][MOST];
};

/* ---- The call ---- */

static struct accel_call call;
static _Alignas(16) char memory[ACCEL_SPANS][LD * MOST * 16];

static void put(enum accel_matrix which, int64_t i, number z)
{
    char *at = memory[which];
    switch (call.routine->dtype) {
    case ACCEL_FLOAT32:
        ((float *)(void *)at)[i] = (float)creall(z);
        break;
    case ACCEL_FLOAT64:
        ((double *)(void *)at)[i] = (double)creall(z);
        break;
    case ACCEL_COMPLEX64:
        ((float complex *)(void *)at)[i] = (float complex)z;
        break;
    default:
        ((double complex *)(void *)at)[i] = (double complex)z;
    }
}

static number get(enum accel_matrix which, int64_t i)
{
    const char *at = memory[which];
    switch (call.routine->dtype) {
    case ACCEL_FLOAT32:
        return (number)((const float *)(const void *)at)[i];
    case ACCEL_FLOAT64:
        return (number)((const double *)(const void *)at)[i];
    case ACCEL_COMPLEX64:
        return ((const float complex *)(const void *)at)[i];
    default:
        return ((const double complex *)(const void *)at)[i];
    }
}

static bool is_complex(void)
{
    return accel_is_complex(call.routine->dtype);
}

/* The call as it is when the routine has run. Memory beside the matrices is NaN. */
static void set_call(char type, char jobvr, const struct known *k)
{
    const char name[] = {type, 'g', 'e', 'e', 'v', 0};
    const int64_t size[ACCEL_DIMENSIONS] = {[ACCEL_n] = k->n};
    shape_typical(&call, routine(name), size);
    call.blas.flag[ACCEL_jobvl] = 'N';
    call.blas.flag[ACCEL_jobvr] = jobvr;
    shape_operands(&call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        call.span[i].ptr = call.span[i].rows > 0 ? memory[i] : NULL;
        call.span[i].ld = LD;
    }
    for (int i = 0; i < LD * MOST; i++)
        for (int which = 0; which < ACCEL_SPANS; which++)
            put((enum accel_matrix)which, i, NAN);
    for (int j = 0; j < k->n; j++) {
        const bool first = !is_complex() && cimagl(k->w[j]) > 0,
                   second = !is_complex() && cimagl(k->w[j]) < 0;
        put(ACCEL_x, j, k->w[j]);
        put(ACCEL_y, j, cimagl(k->w[j]));
        for (int i = 0; i < k->n; i++) {
            put(ACCEL_a, i + j * LD, k->a[j][i]);
            put(ACCEL_c, i + j * LD, second ? cimagl(k->v[j - 1][i]) : k->v[j][i]);
        }
        assert_true(!first || k->w[j + 1] == conjl(k->w[j]));
    }
}

static double judged(uint64_t seed)
{
    static const void *const before[ACCEL_SPANS];
    return cpu_ref_verify(&call, before, seed, 0);
}

static void assert_right(void)
{
    for (uint64_t seed = 1; seed < 4; seed++)
        assert_true(judged(seed) >= 0 && judged(seed) <= 1);
}

static void assert_wrong(void)
{
    for (uint64_t seed = 1; seed < 4; seed++)
        assert_true(judged(seed) > 1);
}

static void assert_not_judged(void)
{
    for (uint64_t seed = 1; seed < 4; seed++)
        assert_true(judged(seed) == CPU_REF_NOT_JUDGED);
}

/* ---- Matrices ---- */

static void multiply(int n, number x[MOST][MOST], number y[MOST][MOST], number to[MOST][MOST])
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            to[j][i] = 0;
            for (int k = 0; k < n; k++)
                to[j][i] += x[k][i] * y[j][k];
        }
}

/* A block of the diagonal and its eigenvalues: of a pair, [re im; -im re]. */
static void put_value(struct known *k, number t[MOST][MOST], number q[MOST][MOST], int i, number w)
{
    k->w[i] = t[i][i] = w;
    q[i][i] = 1;
}

static void put_pair(struct known *k, number t[MOST][MOST], number q[MOST][MOST], int i, number w)
{
    const number half = sqrtl(0.5L);
    t[i][i] = t[i + 1][i + 1] = creall(w);
    t[i + 1][i] = cimagl(w);
    t[i][i + 1] = -cimagl(w);
    k->w[i] = w;
    k->w[i + 1] = conjl(w);
    q[i][i] = q[i + 1][i] = half;
    q[i][i + 1] = half * I;
    q[i + 1][i + 1] = -half * I;
}

/* A = H T H with a reflection H and blocks T, times `scale`: no element is zero. */
static struct known known_of(char type, int n, long double scale)
{
    const bool real = type == 's' || type == 'd';
    struct known k = {.n = n};
    number t[MOST][MOST] = {{0}}, q[MOST][MOST] = {{0}}, h[MOST][MOST], u[MOST], ht[MOST][MOST];
    long double square = 0;
    for (int i = 0; i < n; i++) {
        const bool pair = real && i % 3 == 1 && i + 1 < n;
        if (pair)
            put_pair(&k, t, q, i, scale * (i + (2 - 0.25L * i) * I));
        else
            put_value(&k, t, q, i, scale * (i - 1.5L + (real ? 0 : (3 - i) * I)));
        i += pair;
    }
    for (int i = 0; i < n; i++) {
        u[i] = 1 + 0.25L * (i % 3) + (real ? 0 : (0.5L - 0.125L * i) * I);
        square += creall(u[i] * conjl(u[i]));
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            h[j][i] = (i == j) - 2 * u[i] * conjl(u[j]) / square;
    multiply(n, h, t, ht);
    multiply(n, ht, h, k.a);
    multiply(n, h, q, k.v);
    return k;
}

/* ---- Tests ---- */

static const long double scales[] = {1, 0x1p-30L, 0x1p30L};

#define EACH_MATRIX                                                                                \
    for (const char *type = "sdcz"; *type; type++)                                                 \
        for (int n = 1; n <= MOST; n++)                                                            \
            for (int s = 0; s < 3; s++)

/* Changes one number by a hundredth of `size`, puts it back, and says so for an imaginary part,
 * too. */
static void assert_counts(enum accel_matrix which, int64_t i, long double size)
{
    const number kept = get(which, i);
    put(which, i, kept + size / 100);
    assert_wrong();
    if (is_complex()) {
        put(which, i, kept + size / 100 * I);
        assert_wrong();
    }
    put(which, i, NAN);
    assert_wrong();
    put(which, i, kept);
}

static void each_number_counts(void **state)
{
    (void)state;
    EACH_MATRIX
    {
        const struct known k = known_of(*type, n, scales[s]);
        set_call(*type, 'V', &k);
        assert_right();
        for (int j = 0; j < n; j++) {
            assert_counts(ACCEL_x, j, scales[s]);
            if (!is_complex())
                assert_counts(ACCEL_y, j, scales[s]);
            for (int i = 0; i < n; i++)
                assert_counts(ACCEL_c, i + j * LD, 1);
        }
    }
}

static void exchange(enum accel_matrix which, int64_t i, int64_t j)
{
    const number kept = get(which, i);
    put(which, i, get(which, j));
    put(which, j, kept);
}

/* Each of the right values in another place is wrong with vectors, and right without. */
static void values_are_those_of_their_vectors(void **state)
{
    (void)state;
    EACH_MATRIX for (int vectors = 0; vectors < 2 && n > 1; vectors++)
    {
        const struct known k = known_of(*type, n, scales[s]);
        set_call(*type, vectors ? 'V' : 'N', &k);
        for (int i = 0; i + 1 < n; i++) {
            exchange(ACCEL_x, i, i + 1);
            if (!is_complex())
                exchange(ACCEL_y, i, i + 1);
            if (vectors)
                assert_wrong();
            else
                assert_right();
            exchange(ACCEL_x, i, i + 1);
            if (!is_complex())
                exchange(ACCEL_y, i, i + 1);
        }
        assert_right();
    }
}

/* Without vectors, values are judged by their sum and by that of their squares. */
static void values_alone_have_the_traces(void **state)
{
    (void)state;
    EACH_MATRIX
    {
        const struct known k = known_of(*type, n, scales[s]);
        const enum accel_matrix parts[] = {ACCEL_x, ACCEL_y};
        set_call(*type, 'N', &k);
        assert_right();
        for (int part = 0; part < (is_complex() ? 1 : 2); part++)
            for (int j = 0; j < n; j++) {
                assert_counts(parts[part], j, scales[s]);
                if (j == 0 || (part == 1 && k.w[j] == k.w[j - 1]))
                    continue;
                const number one = get(parts[part], j), other = get(parts[part], j - 1);
                if (part == 1 && one == 0 && other == 0)
                    continue;
                put(parts[part], j, one + scales[s] / 100);
                put(parts[part], j - 1, other - scales[s] / 100);
                assert_wrong(); /* the sum is the same */
                put(parts[part], j, one);
                put(parts[part], j - 1, other);
            }
    }
}

/* A vector of another length is an eigenvector, too, but not LAPACK's: each, or both columns of a
 * pair. */
static void vectors_have_unit_length(void **state)
{
    (void)state;
    EACH_MATRIX
    {
        const struct known k = known_of(*type, n, scales[s]);
        for (int j = 0; j < n; j++) {
            const int columns = !is_complex() && cimagl(k.w[j]) > 0 ? 2 : 1;
            set_call(*type, 'V', &k);
            for (int i = 0; i < columns * LD; i++)
                put(ACCEL_c, i + j * LD, get(ACCEL_c, i + j * LD) * 1.01L);
            assert_wrong();
            j += columns - 1;
        }
    }
}

/* [1 1; e^2 1/2], which balancing makes [1 e; e 1/2], and 3 on the diagonal; `order` says which row
 * and column is which. A step in the plane of the second vector, which then has unit length again,
 * moves it by `step`. */
static struct known graded(const int order[3], long double e, long double step, number factor)
{
    struct known k = {.n = 3};
    const int i = order[0], j = order[1], l = order[2];
    const long double root = sqrtl(0.25L + 4 * e * e), w[] = {(1.5L + root) / 2, (1.5L - root) / 2};
    k.a[i][i] = k.a[j][i] = factor;
    k.a[i][j] = factor * e * e;
    k.a[j][j] = factor / 2;
    k.a[l][l] = 3 * factor;
    k.w[l] = 3 * factor;
    k.v[l][l] = 1;
    for (int vector = 0; vector < 2; vector++) {
        const int column = vector ? j : i;
        const long double below = w[vector] - 1, length = sqrtl(1 + below * below),
                          moved = vector ? step : 0, all = length * sqrtl(1 + moved * moved);
        k.w[column] = factor * w[vector];
        k.v[column][i] = (1 - below * moved) / all;
        k.v[column][j] = (below + moved) / all;
    }
    return k;
}

/* An error that is small beside the balanced matrix is LAPACK's own, and neither right nor wrong;
 * a larger one is wrong, and so is the small one where rows and columns are about as long. */
static void balancing_moves_vectors(void **state)
{
    static const int orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1}};
    (void)state;
    for (const char *type = "sdcz"; *type; type++)
        for (int o = 0; o < 5; o++) {
            const bool single = *type == 's' || *type == 'c';
            const number factor = *type == 'c' || *type == 'z' ? 0.6L + 0.8L * I : 1;
            const long double e = single ? 0x1p-8L : 0x1p-20L, small = single ? 1e-3L : 1e-8L,
                              large = single ? 0.1L : 1e-5L;
            struct known k = graded(orders[o], e, 0, factor);
            set_call(*type, 'V', &k);
            assert_right();
            k = graded(orders[o], e, small, factor);
            set_call(*type, 'V', &k);
            assert_not_judged();
            k = graded(orders[o], e, large, factor);
            set_call(*type, 'V', &k);
            assert_wrong();
            k = graded(orders[o], 0.5L, small, factor);
            set_call(*type, 'V', &k);
            assert_wrong();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_counts),
        cmocka_unit_test(values_are_those_of_their_vectors),
        cmocka_unit_test(values_alone_have_the_traces),
        cmocka_unit_test(vectors_have_unit_length),
        cmocka_unit_test(balancing_moves_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
