/*
 * gecon and pocon on the test GPU: of matrices whose inverse has no negative element the estimate
 * is exact; of random ones it is that of LAPACK's reference, with the vector that it leaves in
 * WORK. Matrices that are left to LAPACK, and host memory that is short.
 */
#include <complex.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "call/shape.h"
#include "gpu/device/gpu.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"
#include "tests/lib/routine.h"

typedef double complex number;

enum { MOST = 33, LD = MOST + 2, UNTOUCHED = 77 };

/* ---- Host memory ---- */

static bool counts;
static int asked,
    refused;     /* how often memory has been asked for; the time at which there is none */
static int held; /* blocks that have not been given back */

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void __real_free(void *memory);
void __wrap_free(void *memory);

static bool is_refused(void)
{
    const bool is = counts && ++asked == refused;
    held += counts && !is;
    return is;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_refused() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_malloc(size_t bytes)
{
    return is_refused() ? NULL : __real_malloc(bytes);
}

void __wrap_free(void *memory)
{
    held -= counts && memory;
    __real_free(memory);
}

/* ---- The call ---- */

static struct gpu_device *device;
static struct accel_call call;
static _Alignas(16) char factors[LD * MOST * sizeof(number)], rcond[sizeof(number)],
    work[4 * MOST * sizeof(number)];

static int start(void **state)
{
    *state = device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    return device ? 0 : -1;
}

static void put(char *at, int64_t i, enum accel_dtype dtype, number z)
{
    switch (dtype) {
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

static number get(const char *at, int64_t i, enum accel_dtype dtype)
{
    switch (dtype) {
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

static double estimated(void)
{
    return creal(
        get(rcond, 0, accel_is_double(call.routine->dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32));
}

static int64_t work_elements(void)
{
    return (int64_t)sizeof work / (int64_t)accel_dtype_size(call.routine->dtype);
}

/* The factors, and what is nowhere read, are set later. letter: of the norm, or the triangle. */
static void set_call(char type, bool definite, char letter, int n, double anorm)
{
    char name[8] = {type};
    strcpy(name + 1, definite ? "pocon" : "gecon");
    shape_typical(&call, routine(name), (int64_t[ACCEL_DIMENSIONS]){[ACCEL_n] = n});
    call.blas.flag[definite ? ACCEL_uplo : ACCEL_norm] = letter;
    call.blas.scalar[ACCEL_anorm].re = anorm;
    call.span[ACCEL_a].ptr = factors;
    call.span[ACCEL_a].ld = LD;
    call.span[ACCEL_x].ptr = rcond;
    call.blas.has_work = true;
    for (int i = call.routine->args - 1; i >= 0; i--)
        if (call.routine->arg[i].kind == ACCEL_ARG_WORK)
            call.blas.given[i] = (int64_t)(uintptr_t)work;
    for (int64_t i = 0; i < LD * MOST; i++)
        put(factors, i, call.routine->dtype, NAN);
    for (int64_t i = 0; i < work_elements(); i++)
        put(work, i, call.routine->dtype, UNTOUCHED);
    memset(rcond, 0, sizeof rcond);
}

static void set(int i, int j, number z)
{
    put(factors, i + j * LD, call.routine->dtype, z);
}

static enum gpu_status run(void)
{
    struct gpu_host host = {0};
    counts = true;
    asked = held = 0;
    const enum gpu_status status = gpu_run(device, &call, &host);
    counts = false;
    return status;
}

static double tolerance(void)
{
    return 1000 * (accel_is_double(call.routine->dtype) ? DBL_EPSILON : (double)FLT_EPSILON);
}

static void assert_near(double x, double expected)
{
    if (!(fabs(x - expected) <= tolerance() * fabs(expected)))
        fail_msg("%s n %d: %.17g, not %.17g", call.routine->name, (int)call.blas.size[ACCEL_n], x,
                 expected);
}

/* ---- Inverses without a negative element ---- */

/* A factor of an M-matrix: its inverse has none. */
static double m_matrix(int i, int j)
{
    return i == j ? 1.25 + 0.25 * (i % 3) : -0.25 / (1 << abs(i - j) % 4);
}

static void set_factors(bool definite, char letter, int n, number unit)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (!definite || (letter == 'L' ? i >= j : i <= j))
                set(i, j, m_matrix(i, j) * (!definite && i > j ? 1 : unit));
}

/* x := T^-1 x, or by its transpose, for a factor as it is stored, without `unit`. */
static void substitute(int n, bool lower, bool transposed, bool unit_diagonal, double *x)
{
    const bool down = lower != transposed;
    for (int k = 0; k < n; k++) {
        const int i = down ? k : n - 1 - k;
        for (int j = down ? 0 : i + 1; j < (down ? i : n); j++)
            x[i] -= (transposed ? m_matrix(j, i) : m_matrix(i, j)) * x[j];
        x[i] /= unit_diagonal ? 1 : m_matrix(i, i);
    }
}

/* The norm of the inverse, and the column that has it; of the infinity norm, the row. */
static double inverse_norm(bool definite, char letter, int n, double *vector)
{
    double most = 0;
    for (int k = 0; k < n; k++) {
        double x[MOST] = {0}, sum = 0;
        x[k] = 1;
        if (definite && letter == 'L') {
            substitute(n, true, false, false, x);
            substitute(n, true, true, false, x);
        } else if (definite) {
            substitute(n, false, true, false, x);
            substitute(n, false, false, false, x);
        } else if (letter == 'I') {
            substitute(n, false, true, false, x);
            substitute(n, true, true, true, x);
        } else {
            substitute(n, true, false, true, x);
            substitute(n, false, false, false, x);
        }
        for (int i = 0; i < n; i++)
            sum += x[i];
        if (sum > most)
            memcpy(vector, x, sizeof x);
        most = fmax(most, sum);
    }
    return most;
}

static const int sizes[] = {1, 2, 3, 8, MOST};

#define EACH_CALL                                                                                  \
    for (const char *type = "sdcz"; *type; type++)                                                 \
        for (int s = 0; s < 5; s++)                                                                \
            for (int definite = 0; definite < 2; definite++)                                       \
                for (const char *letter = definite ? "UL" : "1OI"; *letter; letter++)
#define UNIT (*type == 'c' || *type == 'z' ? I : 1)

static void exact_where_no_element_is_negative(void **state)
{
    (void)state;
    EACH_CALL
    {
        const int n = sizes[s];
        double vector[MOST];
        const double anorm = 1.5 + s, norm = inverse_norm(definite, *letter, n, vector);
        set_call(*type, definite, *letter, n, anorm);
        set_factors(definite, *letter, n, UNIT);
        assert_int_equal(run(), GPU_OK);
        assert_near(estimated(), 1 / norm / anorm);
        for (int i = 0; i < n; i++)
            assert_near(cabs(get(work, n + i, call.routine->dtype)), vector[i]);
        for (int64_t i = 2 * n; i < work_elements(); i++)
            assert_true(get(work, i, call.routine->dtype) == UNTOUCHED);
        memset(rcond, 0, sizeof rcond);
        call.blas.has_work = false;
        assert_int_equal(run(), GPU_OK);
        assert_near(estimated(), 1 / norm / anorm);
    }
}

/* ---- LAPACK's reference ---- */

static void *lapack;

/* Compares what is left in WORK, and returns RCOND. */
static double of_reference(char letter, int n, double anorm)
{
    void (*function)(const char *, const int *, const void *, const int *, const void *, void *,
                     void *, void *, int *, size_t);
    static _Alignas(16) char more[2 * MOST * sizeof(number)], own[sizeof work];
    const int ld = LD;
    const bool is_double = accel_is_double(call.routine->dtype);
    const float single = (float)anorm;
    char name[64];
    int info = -1;
    snprintf(name, sizeof name, "%s_", call.routine->name);
    *(void **)&function = dlsym(lapack, name);
    assert_non_null(function);
    function(&letter, &n, factors, &ld, is_double ? (const void *)&anorm : &single, rcond, own,
             more, &info, 1);
    assert_int_equal(info, 0);
    const double expected = estimated();
    memset(rcond, 0, sizeof rcond);
    assert_int_equal(run(), GPU_OK);
    for (int i = n; i < 2 * n; i++) {
        const number x = get(own, i, call.routine->dtype), y = get(work, i, call.routine->dtype);
        if (!(cabs(x - y) <= tolerance() / expected / anorm))
            fail_msg("%s %c n %d: element %d of WORK is %g + %gi, not %g + %gi", name, letter, n, i,
                     creal(y), cimag(y), creal(x), cimag(x));
    }
    return expected;
}

static double random_number(void)
{
    return (double)rand() / RAND_MAX - 0.5;
}

static number some(char type)
{
    return random_number() + (type == 'c' || type == 'z' ? random_number() * I : 0);
}

static void as_the_reference(void **state)
{
    (void)state;
    if (!lapack)
        skip(); /* it is not installed */
    srand(3);
    EACH_CALL for (int round = 0; round < 4; round++)
    {
        const int n = sizes[s];
        set_call(*type, definite, *letter, n, 2.5);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                if (!definite || (*letter == 'L' ? i >= j : i <= j))
                    set(i, j, i == j ? 0.75 + random_number() : some(*type) * 2 / (n + round));
        const double expected = of_reference(*letter, n, 2.5);
        assert_near(estimated(), expected);
    }
}

/* ---- A vector of alternating signs ---- */

/* By columns, A = U^T U with the inverse diag(3/2, 1, 1 ...) + k y y^T, y = (0, 1, -1, 1, -1):
 * what the estimate tries first is 3/2, which is less than half of what the alternating vector
 * shows. */
static void alternating_signs_find_what_columns_miss(void **state)
{
    enum { N = 5 };
    const double y[N] = {0, 1, -1, 1, -1}, k = 7.75, t = k / (1 + 4 * k);
    double found = 0, of_y = 0;
    (void)state;
    for (int i = 0; i < N; i++)
        of_y += y[i] * (i % 2 ? -1 : 1) * (1 + i / 4.0);
    for (int i = 0; i < N; i++)
        found += fabs((i % 2 ? -1 : 1) * (1 + i / 4.0) * (i ? 1 : 1.5) + k * y[i] * of_y);
    for (const char *type = "sdcz"; *type; type++) {
        double u[N][N] = {{0}};
        set_call(*type, true, 'U', N, 1);
        for (int j = 0; j < N; j++)
            for (int i = 0; i <= j; i++) {
                double sum = (i == j ? i ? 1 : 2 / 3.0 : 0) - t * y[i] * y[j];
                for (int l = 0; l < i; l++)
                    sum -= u[l][i] * u[l][j];
                u[i][j] = i == j ? sqrt(sum) : sum / u[i][i];
                set(i, j, u[i][j]);
            }
        assert_int_equal(run(), GPU_OK);
        assert_near(estimated(), 1 / (2 * found / (3 * N)));
        for (int i = 0; i < N; i++) {
            const double v = (i % 2 ? -1 : 1) * (1 + i / 4.0) * (i ? 1 : 1.5) + k * y[i] * of_y;
            assert_near(creal(get(work, N + i, call.routine->dtype)), v);
        }
    }
}

/* ---- What is left to LAPACK ---- */

static void what_overflows_is_left_to_lapack(void **state)
{
    (void)state;
    for (const char *type = "sdcz"; *type; type++) {
        const double bad[] = {0, NAN, INFINITY, -INFINITY,
                              *type == 's' || *type == 'c' ? FLT_MIN / 4 : DBL_MIN / 4};
        for (int b = 0; b < 5; b++) {
            set_call(*type, false, '1', 3, 1);
            set_factors(false, '1', 3, 1);
            set(b % 3, b % 3, bad[b]);
            assert_int_equal(run(), GPU_UNSUPPORTED);
            assert_true(estimated() == 0);
        }
        /* The inverse of the norm times that of the matrix is no number of the type. */
        set_call(*type, false, '1', 3, *type == 's' || *type == 'c' ? FLT_MIN / 4 : DBL_MIN / 4);
        set_factors(false, '1', 3, 1);
        assert_int_equal(run(), GPU_UNSUPPORTED);
        assert_true(estimated() == 0);
    }
}

/* Each time that memory is asked for. All that was had is given back. */
static void no_host_memory(void **state)
{
    (void)state;
    EACH_CALL
    {
        const int n = sizes[s];
        set_call(*type, definite, *letter, n, 1);
        set_factors(definite, *letter, n, UNIT);
        refused = 0;
        assert_int_equal(run(), GPU_OK);
        const int times = asked;
        assert_true(times > 0);
        for (refused = 1; refused <= times; refused++) {
            set_call(*type, definite, *letter, n, 1);
            set_factors(definite, *letter, n, UNIT);
            assert_int_equal(run(), GPU_NO_MEMORY);
            assert_int_equal(held, 0);
            assert_true(estimated() == 0);
        }
        refused = 0;
        assert_int_equal(run(), GPU_OK);
        assert_int_equal(held, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_where_no_element_is_negative),
        cmocka_unit_test(as_the_reference),
        cmocka_unit_test(alternating_signs_find_what_columns_miss),
        cmocka_unit_test(what_overflows_is_left_to_lapack),
        cmocka_unit_test(no_host_memory),
    };
#ifdef __aarch64__
    lapack = dlopen("/usr/lib/aarch64-linux-gnu/lapack/liblapack.so.3", RTLD_NOW);
#else
    lapack = dlopen("/usr/lib/x86_64-linux-gnu/lapack/liblapack.so.3", RTLD_NOW);
#endif
    return cmocka_run_group_tests(tests, start, stop_device);
}
