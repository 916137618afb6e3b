/*
 * gels, gelss and gelsd on the test GPU: matrices of known singular values and vectors, tall, wide
 * and square; which values count; what LAPACK leaves in A and below the solution.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "call/shape.h"
#include "gpu/device/gpu.h"
#include "ops/typical.h"
#include "tests/lib/cmplx.h"
#include "tests/lib/devices.h"
#include "tests/lib/routine.h"

typedef double complex number;

enum { MOST = 20, SIDES = 3, LD = MOST + 2, UNTOUCHED = 77 };

static struct gpu_device *device;
static struct accel_call call;
static _Alignas(16) char memory[ACCEL_SPANS][LD * MOST * sizeof(number)];

static int start(void **state)
{
    *state = device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    return device ? 0 : -1;
}

static number get(enum accel_matrix which, int64_t i)
{
    const char *at = memory[which];
    switch (call.span[which].dtype) {
    case ACCEL_FLOAT32:
        return ((const float *)(const void *)at)[i];
    case ACCEL_FLOAT64:
        return ((const double *)(const void *)at)[i];
    case ACCEL_COMPLEX64:
        return ((const float complex *)(const void *)at)[i];
    default:
        return ((const number *)(const void *)at)[i];
    }
}

static void put(enum accel_matrix which, int64_t i, number z)
{
    char *at = memory[which];
    switch (call.span[which].dtype) {
    case ACCEL_FLOAT32:
        ((float *)(void *)at)[i] = (float)creal(z);
        break;
    case ACCEL_FLOAT64:
        ((double *)(void *)at)[i] = creal(z);
        break;
    case ACCEL_COMPLEX64:
        ((float complex *)(void *)at)[i] = (float complex)z;
        break;
    default:
        ((number *)(void *)at)[i] = z;
    }
}

static bool is_complex(void)
{
    return accel_is_complex(call.routine->dtype);
}

static double eps(void)
{
    return accel_is_double(call.routine->dtype) ? DBL_EPSILON : (double)FLT_EPSILON;
}

static number some(void)
{
    const double re = (double)rand() / RAND_MAX - 0.5, im = (double)rand() / RAND_MAX - 0.5;
    return is_complex() ? CMPLX(re, im) : re;
}

/* ---- A problem ---- */

static int m, n, values;
static double value[MOST];                                   /* A's, descending */
static number u[MOST][MOST], v[MOST][MOST];                  /* A = U diag(value) V^H, by columns */
static number a[MOST][MOST], b[SIDES][MOST], x[SIDES][MOST]; /* op(A) X = B; by columns */

/* A unitary matrix: two reflections. */
static void make_unitary(number to[MOST][MOST], int order)
{
    number w[2][MOST];
    double square[2] = {0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < order; i++) {
            w[k][i] = some() + 0.1;
            square[k] += creal(w[k][i] * conj(w[k][i]));
        }
    for (int j = 0; j < order; j++) {
        for (int i = 0; i < order; i++)
            to[j][i] = i == j;
        for (int k = 0; k < 2; k++) {
            number dot = 0;
            for (int i = 0; i < order; i++)
                dot += conj(w[k][i]) * to[j][i];
            for (int i = 0; i < order; i++)
                to[j][i] -= 2 * dot / square[k] * w[k][i];
        }
    }
}

/* Sides: a part that A's columns span, and one that no solution reaches. The solution is the
 * shortest one by the first `rank` values. */
static void make_sides(int rank, bool adjoint)
{
    const int rows = adjoint ? n : m, cols = adjoint ? m : n;
    for (int side = 0; side < SIDES; side++) {
        memset(x[side], 0, sizeof x[side]);
        for (int i = 0; i < MOST; i++)
            b[side][i] = i < rows ? some() : 0;
        for (int k = 0; k < rank; k++) {
            number dot = 0;
            for (int i = 0; i < rows; i++)
                dot += conj(adjoint ? v[k][i] : u[k][i]) * b[side][i];
            for (int i = 0; i < cols; i++)
                x[side][i] += dot / value[k] * (adjoint ? u[k][i] : v[k][i]);
        }
    }
}

/* What is beside the matrices, and in B below the sides, is no number. */
static void put_problem(bool adjoint)
{
    const int rows = adjoint ? n : m;
    for (int64_t i = 0; i < LD * MOST; i++) {
        put(ACCEL_a, i, NAN);
        put(ACCEL_b, i, NAN);
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            put(ACCEL_a, i + j * LD, a[j][i]);
    for (int j = 0; j < SIDES; j++)
        for (int i = 0; i < rows; i++)
            put(ACCEL_b, i + j * LD, b[j][i]);
    for (int64_t i = 0; i < LD * MOST && call.span[ACCEL_x].ptr; i++)
        put(ACCEL_x, i, UNTOUCHED);
    memset(memory[ACCEL_found], 0, sizeof memory[ACCEL_found]);
}

static void set_call(char type, const char *name, char trans)
{
    char all[8] = {type};
    strcpy(all + 1, name);
    shape_typical(&call, routine(all),
                  (int64_t[ACCEL_DIMENSIONS]){[ACCEL_m] = m, [ACCEL_n] = n, [ACCEL_nrhs] = SIDES});
    call.blas.flag[ACCEL_trans] = trans == 'N' ? 'N' : is_complex() ? 'C' : 'T';
    for (int i = 0; i < ACCEL_SPANS; i++) {
        call.span[i].ptr = call.span[i].rows > 0 ? memory[i] : NULL;
        call.span[i].ld = LD;
    }
}

static void make_problem(char type, const char *name, int rows, int cols, int rank, char trans)
{
    m = rows;
    n = cols;
    values = m < n ? m : n;
    set_call(type, name, trans);
    make_unitary(u, m);
    make_unitary(v, n);
    for (int k = 0; k < values; k++)
        value[k] = k < rank ? 3.0 / (1 + k) : 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            a[j][i] = 0;
            for (int k = 0; k < values; k++)
                a[j][i] += value[k] * u[k][i] * conj(v[k][j]);
        }
    make_sides(rank, trans != 'N');
    put_problem(trans != 'N');
}

static enum gpu_status run(void)
{
    struct gpu_host host = {0};
    return gpu_run(device, &call, &host);
}

static void assert_near(number got, number expected)
{
    if (!(cabs(got - expected) <= 1000 * eps()))
        fail_msg("%s %d x %d: %g%+gi, not %g%+gi", call.routine->name, m, n, creal(got), cimag(got),
                 creal(expected), cimag(expected));
}

static void assert_solved(int cols)
{
    for (int side = 0; side < SIDES; side++)
        for (int i = 0; i < cols; i++)
            assert_near(get(ACCEL_b, i + side * LD), x[side][i]);
}

static const int shapes[][2] = {{1, 1}, {2, 1},    {1, 2},    {5, 5}, {6, 4},
                                {4, 6}, {MOST, 7}, {7, MOST}, {9, 8}, {MOST, MOST}};

#define EACH_PROBLEM                                                                               \
    for (const char *type = "sdcz"; *type; type++)                                                 \
        for (int s = 0; s < 10; s++)

/* ---- gels ---- */

/* Below a least-squares solution, LAPACK leaves what the squares add up to the residual's. */
static void assert_residuals(bool adjoint)
{
    const int rows = adjoint ? n : m, cols = adjoint ? m : n;
    for (int side = 0; side < SIDES && rows > cols; side++) {
        double left = 0, residual = 0;
        for (int i = cols; i < rows; i++) {
            const number z = get(ACCEL_b, i + side * LD);
            left += creal(z * conj(z));
        }
        for (int i = 0; i < rows; i++) {
            number z = b[side][i];
            for (int k = 0; k < cols; k++)
                z -= (adjoint ? conj(a[i][k]) : a[k][i]) * x[side][k];
            residual += creal(z * conj(z));
        }
        assert_near(sqrt(left), sqrt(residual));
    }
}

/* A's triangle is R with R^H R = A^H A, or L with L L^H = A A^H. */
static void assert_triangle(void)
{
    for (int i = 0; i < values; i++)
        for (int j = 0; j < values; j++) {
            number product = 0, expected = 0;
            for (int k = 0; k <= (i < j ? i : j); k++)
                product += m < n ? get(ACCEL_a, i + k * LD) * conj(get(ACCEL_a, j + k * LD))
                                 : conj(get(ACCEL_a, k + i * LD)) * get(ACCEL_a, k + j * LD);
            for (int k = 0; k < (m < n ? n : m); k++)
                expected += m < n ? a[k][i] * conj(a[k][j]) : conj(a[i][k]) * a[j][k];
            assert_near(product, expected);
        }
}

static void solutions_by_reflections(void **state)
{
    (void)state;
    EACH_PROBLEM for (const char *trans = "NT"; *trans; trans++)
    {
        const int rows = shapes[s][0], cols = shapes[s][1];
        make_problem(*type, "gels", rows, cols, rows < cols ? rows : cols, *trans);
        assert_int_equal(run(), GPU_OK);
        assert_solved(*trans == 'N' ? cols : rows);
        assert_residuals(*trans != 'N');
        assert_triangle();
    }
}

/* R has a zero on its diagonal. */
static void singular_ones_are_left_to_lapack(void **state)
{
    static char before[sizeof memory];
    (void)state;
    EACH_PROBLEM
    {
        const int rows = shapes[s][0], cols = shapes[s][1], least = rows < cols ? rows : cols;
        make_problem(*type, "gels", rows, cols, least, 'N');
        for (int i = 0; i < (rows < cols ? cols : rows); i++)
            put(ACCEL_a, rows < cols ? least - 1 + i * LD : i + (least - 1) * LD, 0);
        memcpy(before, memory, sizeof memory);
        assert_int_equal(run(), GPU_UNSUPPORTED);
        assert_memory_equal(before, memory, sizeof memory);
    }
}

/* ---- gelss, gelsd ---- */

static void assert_rank(int rank)
{
    assert_int_equal(accel_integer(&call.span[ACCEL_found], 0), rank);
}

/* The rows of A are now orthogonal unit vectors, and row k is the right singular vector v of value
 * k, up to its sign. */
static void assert_right_vectors(void)
{
    for (int k = 0; k < values; k++)
        for (int other = 0; other <= k; other++) {
            number dot = 0;
            for (int j = 0; j < n; j++)
                dot += get(ACCEL_a, k + j * LD) * conj(get(ACCEL_a, other + j * LD));
            assert_near(dot, k == other);
        }
    for (int k = 0; k < values; k++) {
        number dot = 0;
        for (int j = 0; j < n; j++)
            dot += get(ACCEL_a, k + j * LD) * v[k][j];
        assert_near(cabs(dot), 1);
    }
}

static void solutions_by_singular_values(void **state)
{
    (void)state;
    EACH_PROBLEM for (int divides = 0; divides < 2; divides++)
    {
        const int rows = shapes[s][0], cols = shapes[s][1], rank = rows < cols ? rows : cols;
        make_problem(*type, divides ? "gelsd" : "gelss", rows, cols, rank, 'N');
        assert_int_equal(run(), GPU_OK);
        assert_solved(cols);
        assert_rank(rank);
        for (int k = 0; k < values; k++)
            assert_near(get(ACCEL_x, k), value[k]);
        assert_true(get(ACCEL_x, values) == UNTOUCHED);
        if (!divides)
            assert_right_vectors();
    }
}

/* Values above the largest times RCOND count. */
static void small_values_do_not_count(void **state)
{
    (void)state;
    EACH_PROBLEM for (int divides = 0; divides < 2; divides++)
    {
        const int rows = shapes[s][0], cols = shapes[s][1], all = rows < cols ? rows : cols;
        for (int rank = 1; rank < all; rank += 3) {
            make_problem(*type, divides ? "gelsd" : "gelss", rows, cols, all, 'N');
            make_sides(rank, false);
            put_problem(false);
            /* The values are the largest one over 1, 2, 3 ... */
            call.blas.scalar[ACCEL_rcond].re = (1.0 / rank + 1.0 / (rank + 1)) / 2;
            assert_int_equal(run(), GPU_OK);
            assert_rank(rank);
            assert_solved(cols);
        }
    }
}

/* diag(2, 1, 2 eps small) */
static int rank_of_diagonal(char type, const char *name, double rcond, double small)
{
    make_problem(type, name, 3, 3, 3, 'N');
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++)
            put(ACCEL_a, i + j * LD, i != j ? 0 : i < 2 ? 2 - i : 2 * eps() * small);
    call.blas.scalar[ACCEL_rcond].re = rcond;
    assert_int_equal(run(), GPU_OK);
    return (int)accel_integer(&call.span[ACCEL_found], 0);
}

/* gelss takes a negative RCOND for the distance of 1 to the next number of the type; gelsd one that
 * is not between 0 and 1 for the half of it. */
static void precision_takes_the_place_of_rcond(void **state)
{
    (void)state;
    for (const char *type = "sdcz"; *type; type++) {
        assert_int_equal(rank_of_diagonal(*type, "gelss", -1, 1.2), 3);
        assert_int_equal(rank_of_diagonal(*type, "gelss", -1, 0.8), 2);
        assert_int_equal(rank_of_diagonal(*type, "gelss", 0, 0.1), 3);
        assert_int_equal(rank_of_diagonal(*type, "gelss", 0.5, 1), 1);
        assert_int_equal(rank_of_diagonal(*type, "gelss", 1, 1), 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(rank_of_diagonal(*type, "gelsd", i - 1, 0.6), 3);
            assert_int_equal(rank_of_diagonal(*type, "gelsd", i - 1, 0.4), 2);
        }
        assert_int_equal(rank_of_diagonal(*type, "gelsd", 0.5, 1), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solutions_by_reflections),
        cmocka_unit_test(singular_ones_are_left_to_lapack),
        cmocka_unit_test(solutions_by_singular_values),
        cmocka_unit_test(small_values_do_not_count),
        cmocka_unit_test(precision_takes_the_place_of_rcond),
    };
    return cmocka_run_group_tests(tests, start, stop_device);
}
