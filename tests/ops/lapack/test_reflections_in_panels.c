/*
 * ormqr and orgqr above the memory of the test GPU: every side, transposition and type, beside the
 * reflections one after the other; numbers that are not finite, where they are read and where not.
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

/* Each matrix alone is above the memory, which has so many elements. */
enum {
    ORDER = 190,
    REFLECTORS = 170,
    SIDES = 160,
    MEMORY = 27 << 10,
    LD = ORDER + 3,
    UNTOUCHED = 77
};

static struct gpu_device *device;
static struct accel_call call;
static _Alignas(16) char memory[ACCEL_SPANS][LD * ORDER * sizeof(number)];

static number get(enum accel_matrix which, int64_t i)
{
    const char *at = memory[which];
    switch (call.routine->dtype) {
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
    switch (call.routine->dtype) {
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

static number some(void)
{
    const double re = (double)rand() / RAND_MAX - 0.5, im = (double)rand() / RAND_MAX - 0.5;
    return is_complex() ? CMPLX(re, im) : re;
}

/* ---- The call ---- */

/* The reflectors below A's diagonal, and their scalars, so that Q is unitary. Elements of A
 * that ormqr must not read are NaN. */
static void set_reflectors(void)
{
    const struct accel_span *a = &call.span[ACCEL_a];
    for (int64_t j = 0; j < REFLECTORS; j++) {
        double square = 1;
        for (int64_t i = 0; i < LD; i++) {
            const bool is_read = i > j && i < a->rows;
            put(ACCEL_a, i + j * LD, is_read ? some() / 4 : NAN);
            const number z = is_read ? get(ACCEL_a, i + j * LD) : 0;
            square += creal(z * conj(z));
        }
        put(ACCEL_x, j, 2 / square);
    }
}

static void set_spans(void)
{
    shape_operands(&call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        call.span[i].ptr = call.span[i].rows > 0 ? memory[i] : NULL;
        call.span[i].ld = LD;
    }
    for (int64_t i = 0; i < LD * ORDER; i++) {
        put(ACCEL_a, i, UNTOUCHED);
        put(ACCEL_c, i, UNTOUCHED);
    }
    set_reflectors();
}

static const char *name_of(char type, bool multiplies)
{
    static char name[8];
    const bool is = type == 'c' || type == 'z';
    name[0] = type;
    strcpy(name + 1, multiplies ? is ? "unmqr" : "ormqr" : is ? "ungqr" : "orgqr");
    return name;
}

/* C := op(Q) C, or C op(Q). */
static void set_product(char type, char side, char trans)
{
    const bool left = side == 'L';
    shape_typical(&call, routine(name_of(type, true)),
                  (int64_t[ACCEL_DIMENSIONS]){[ACCEL_m] = left ? ORDER : SIDES,
                                              [ACCEL_n] = left ? SIDES : ORDER,
                                              [ACCEL_k] = REFLECTORS});
    call.blas.flag[ACCEL_side] = side;
    call.blas.flag[ACCEL_trans] = trans == 'N' ? 'N' : is_complex() ? 'C' : 'T';
    set_spans();
    const struct accel_span *c = &call.span[ACCEL_c];
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++)
            put(ACCEL_c, i + j * LD, some());
}

/* A := Q's first columns, more of them than there are reflectors */
static void set_generation(char type)
{
    shape_typical(&call, routine(name_of(type, false)),
                  (int64_t[ACCEL_DIMENSIONS]){
                      [ACCEL_m] = ORDER, [ACCEL_n] = REFLECTORS + 9, [ACCEL_k] = REFLECTORS});
    set_spans();
}

static enum gpu_status run(void)
{
    struct gpu_host host = {0};
    assert_true(accel_bytes(&call.span[ACCEL_a]) > gpu_info(device)->memory_bytes);
    return gpu_run(device, &call, &host);
}

/* ---- One reflection after the other ---- */

static number vector[REFLECTORS][ORDER];
static number scalar[REFLECTORS];
static number expected[ORDER][ORDER]; /* by columns */

static void take_reflectors(void)
{
    for (int k = 0; k < REFLECTORS; k++) {
        scalar[k] = get(ACCEL_x, k);
        for (int i = 0; i < ORDER; i++)
            vector[k][i] = i < k ? 0 : i == k ? 1 : get(ACCEL_a, i + k * LD);
    }
}

/* x := x - (tau or its conjugate) v (v^H x), for x of every `step` number */
static void reflect(int k, bool adjoint, number *x, int64_t step)
{
    number sum = 0;
    for (int i = k; i < ORDER; i++)
        sum += conj(vector[k][i]) * x[i * step];
    for (int i = k; i < ORDER; i++)
        x[i * step] -= (adjoint ? conj(scalar[k]) : scalar[k]) * vector[k][i] * sum;
}

/* x := Q x, or Q^H x */
static void reflect_by_all(bool adjoint, number *x, int64_t step)
{
    for (int k = 0; k < REFLECTORS; k++)
        reflect(adjoint ? k : REFLECTORS - 1 - k, adjoint, x, step);
}

static void expect_product(void)
{
    const struct accel_span *c = &call.span[ACCEL_c];
    const bool left = call.blas.flag[ACCEL_side] == 'L',
               adjoint = call.blas.flag[ACCEL_trans] != 'N';
    take_reflectors();
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++)
            expected[j][i] = get(ACCEL_c, i + j * LD);
    for (int64_t j = 0; left && j < c->cols; j++)
        reflect_by_all(adjoint, expected[j], 1);
    /* C Q is the adjoint of Q^H C^H. */
    for (int64_t i = 0; !left && i < c->rows; i++) {
        number row[ORDER];
        for (int64_t j = 0; j < c->cols; j++)
            row[j] = conj(expected[j][i]);
        reflect_by_all(!adjoint, row, 1);
        for (int64_t j = 0; j < c->cols; j++)
            expected[j][i] = conj(row[j]);
    }
}

static void expect_generation(void)
{
    take_reflectors();
    for (int64_t j = 0; j < call.span[ACCEL_a].cols; j++) {
        for (int64_t i = 0; i < ORDER; i++)
            expected[j][i] = i == j;
        reflect_by_all(false, expected[j], 1);
    }
}

static void assert_expected(enum accel_matrix which)
{
    const struct accel_span *x = &call.span[which];
    const double most =
        200 * (accel_is_double(call.routine->dtype) ? DBL_EPSILON : (double)FLT_EPSILON);
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            if (!(cabs(get(which, i + j * LD) - expected[j][i]) <= most))
                fail_msg("%s %c%c: element %d, %d", call.routine->name, call.blas.flag[ACCEL_side],
                         call.blas.flag[ACCEL_trans], (int)i, (int)j);
    for (int64_t j = x->cols; j < ORDER; j++)
        for (int64_t i = 0; i < LD; i++)
            assert_true(get(which, i + j * LD) == UNTOUCHED);
}

/* ---- Tests ---- */

static int stop(void **state)
{
    (void)state;
    gpu_stop(device);
    device = NULL;
    return 0;
}

static void start(char type)
{
    const int64_t size = type == 's' ? 4 : type == 'z' ? 16 : 8;
    if (device)
        gpu_stop(device);
    device = start_device(tested_gpu(), (struct gpu_config){.memory_bytes = MEMORY * size});
    assert_non_null(device);
}

static void products_by_q(void **state)
{
    (void)state;
    for (const char *type = "sdcz"; *type; type++) {
        start(*type);
        for (const char *side = "LR"; *side; side++)
            for (const char *trans = "NT"; *trans; trans++) {
                set_product(*type, *side, *trans);
                expect_product();
                assert_int_equal(run(), GPU_OK);
                assert_expected(ACCEL_c);
            }
    }
}

static void columns_of_q(void **state)
{
    (void)state;
    for (const char *type = "sdcz"; *type; type++) {
        start(*type);
        set_generation(*type);
        expect_generation();
        assert_int_equal(run(), GPU_OK);
        assert_expected(ACCEL_a);
    }
}

/* A number that is not finite, wherever the call reads it: LAPACK has the call, and finds its
 * matrices as they were. Elsewhere every matrix here has some. */
static void assert_is_left_to_lapack(enum accel_matrix which, int64_t at, number bad)
{
    static char before[sizeof memory];
    const number kept = get(which, at);
    put(which, at, bad);
    memcpy(before, memory, sizeof memory);
    assert_int_equal(run(), GPU_UNSUPPORTED);
    assert_memory_equal(before, memory, sizeof memory);
    put(which, at, kept);
}

static void what_is_not_finite_is_left_to_lapack(void **state)
{
    /* In the first panel, in the last, and between them. */
    static const int64_t of_a[] = {1, ORDER - 1, 90 + 80 * LD, ORDER - 1 + (REFLECTORS - 1) * LD},
                         of_tau[] = {0, 80, REFLECTORS - 1},
                         of_c[] = {0, 90 + 80 * LD, SIDES - 1 + (SIDES - 1) * LD};
    (void)state;
    for (const char *type = "sz"; *type; type++) {
        start(*type);
        for (int generates = 0; generates < 2; generates++) {
            if (generates)
                set_generation(*type);
            else
                set_product(*type, 'L', 'N');
            for (int i = 0; i < 4; i++)
                assert_is_left_to_lapack(ACCEL_a, of_a[i], i % 2 ? NAN : INFINITY);
            for (int i = 0; i < 3; i++)
                assert_is_left_to_lapack(ACCEL_x, of_tau[i], i % 2 ? NAN : -INFINITY);
            for (int i = 0; i < 3 && !generates; i++)
                assert_is_left_to_lapack(ACCEL_c, of_c[i], i % 2 ? NAN : INFINITY);
            assert_int_equal(run(), GPU_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_by_q),
        cmocka_unit_test(columns_of_q),
        cmocka_unit_test(what_is_not_finite_is_left_to_lapack),
    };
    return cmocka_run_group_tests(tests, NULL, stop);
}
