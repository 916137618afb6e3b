/*
 * LAPACK on matrices that are larger than the device's memory: factorisations, solutions, inverses
 * and products by factors, in panels. A matrix made of small factors gives these factors back;
 * other results are those of a device with enough memory. The original gets untouched the calls
 * that fail.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/exec/lapack/panel_copies.h"
#include "gpu/exec/lapack/panel_steps.h"
#include "gpu/exec/lapack/solver_panels.h"
#include "tests/lib/lapack_calls.h"
#include "tests/lib/watched_memory.h"

/* Bytes of the device's memory; the larger ones where workspaces are large, too. */
enum { SMALL = 76 << 10, LESS_SMALL = 216 << 10 };

static int restart(int64_t memory_bytes)
{
    if (device)
        gpu_stop(&device->common);
    device = cuda_device_of(
        start_device(tested_gpu(), (struct gpu_config){.memory_bytes = memory_bytes}));
    return device ? 0 : -1;
}

static enum gpu_status run(struct lapack *l)
{
    return lapack_run_on(l, &device->common);
}

/* Orders of matrices of about 140 KB. */
static int64_t order_of(const char *name)
{
    return name[0] == 's' ? 185 : name[0] == 'z' ? 94 : 132;
}

/* ---- Of small factors ---- */

static void make_lu(struct lapack *l, const char *name, int64_t m, int64_t n, int64_t nrhs)
{
    lapack_make(l, name, m, n, 0, nrhs);
    lapack_take(l);
    lapack_fill_lu(l);
}

static void make_cholesky(struct lapack *l, const char *name, char uplo, int64_t n, int64_t nrhs)
{
    lapack_make(l, name, n, n, 0, nrhs);
    l->call.blas.flag[ACCEL_uplo] = uplo;
    lapack_take(l);
    lapack_fill_cholesky(l);
}

/* It went up in panels, some of it more than once, and came down once. */
static void assert_in_panels(const struct lapack *l, int64_t down_bytes)
{
    assert_true(l->parts_up > 4);
    assert_true(l->host.up_bytes >
                accel_bytes(&l->call.span[ACCEL_a]) + accel_bytes(&l->call.span[ACCEL_b]));
    assert_int_equal(l->host.down_bytes, down_bytes);
}

static void lu_factors(void **state)
{
    static const struct {
        const char *name;
        int64_t m, n, nrhs;
    } cases[] = {{"dgetrf_", 190, 190, 0}, {"sgetrf_", 300, 240, 0}, {"zgetrf_", 110, 160, 0},
                 {"cgetrf_", 190, 190, 0}, {"dgesv_", 190, 190, 7},  {"zgesv_", 135, 135, 40}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lapack l;
        make_lu(&l, cases[i].name, cases[i].m, cases[i].n, cases[i].nrhs);
        assert_int_equal(run(&l), GPU_OK);
        assert_in_panels(&l, accel_bytes(&l.call.span[ACCEL_a]) +
                                 accel_bytes(&l.call.span[ACCEL_b]) +
                                 8 * l.call.span[ACCEL_x].cols);
        lapack_end(&l);
    }
}

static void cholesky_factors(void **state)
{
    static const char *const names[] = {"dpotrf_", "spotrf_", "zpotrf_", "dposv_", "zposv_"};
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof names / sizeof *names); i++) {
        struct lapack l;
        make_cholesky(&l, names[i / 2], i % 2 ? 'U' : 'L', order_of(names[i / 2]), 6);
        const int64_t a = accel_bytes(&l.call.span[ACCEL_a]),
                      b = accel_bytes(&l.call.span[ACCEL_b]);
        assert_int_equal(run(&l), GPU_OK);
        assert_true(l.parts_up > 4);
        /* A panel begins at its diagonal. */
        assert_true(l.host.down_bytes - b > a / 2 && l.host.down_bytes - b < a * 9 / 10);
        lapack_end(&l);
    }
}

/* A is what ?getrf leaves. */
static void make_getrs(struct lapack *l, const char *name, char trans, int64_t n, int64_t nrhs)
{
    struct lapack factors;
    char getrf[] = "?getrf_";
    getrf[0] = name[0];
    make_lu(&factors, getrf, n, n, 0);
    lapack_make(l, name, n, n, 0, nrhs);
    l->call.blas.flag[ACCEL_trans] = trans;
    lapack_take(l);
    struct numbers matrix = numbers_new(n, n);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            *number_at(&matrix, i, j) = get(&factors.first[ACCEL_a], i, j);
            set(&l->call.span[ACCEL_a], i, j, get(&factors.expected[ACCEL_a], i, j));
        }
    for (int64_t i = 0; i < n; i++)
        put_integer(&l->call.span[ACCEL_x], i, integer_at(&factors.expected[ACCEL_x], i));
    lapack_fill_right_sides(l, matrix, trans);
    lapack_end(&factors);
}

static void solutions_by_lu(void **state)
{
    static const char letters[] = "NTC";
    (void)state;
    for (int i = 0; i < 6; i++) {
        const char *name = i % 2 ? "zgetrs_" : "dgetrs_";
        struct lapack l;
        make_getrs(&l, name, letters[i / 2], order_of(name), i < 2 ? 70 : 9);
        assert_int_equal(run(&l), GPU_OK);
        assert_true(l.parts_up > 1);
        assert_int_equal(l.host.down_bytes, accel_bytes(&l.call.span[ACCEL_b]));
        /* Pivots must be rows. */
        for (int wrong = 0; wrong < 2; wrong++) {
            put_integer(&l.first[ACCEL_x], 40, wrong ? order_of(name) + 1 : 0);
            assert_int_equal(run(&l), GPU_UNSUPPORTED);
        }
        lapack_end(&l);
    }
}

static void solutions_by_triangles(void **state)
{
    (void)state;
    for (int i = 0; i < 36; i++) {
        const char *name = i % 3 == 0 ? "dtrtrs_" : i % 3 == 1 ? "ztrtrs_" : "dpotrs_";
        const char uplo = i / 3 % 2 ? 'U' : 'L', trans = "NTC"[i / 6 % 3],
                   diag = i / 18 ? 'U' : 'N';
        struct lapack l;
        const bool triangle = i % 3 != 2;
        if (!triangle && i >= 6)
            continue;
        lapack_make(&l, name, order_of(name), order_of(name), 0, i % 4 ? 5 : 90);
        l.call.blas.flag[ACCEL_uplo] = uplo;
        if (triangle) {
            l.call.blas.flag[ACCEL_trans] = trans;
            l.call.blas.flag[ACCEL_diag] = diag;
        }
        lapack_take(&l);
        struct numbers factor = lapack_fill_triangle(&l, uplo, triangle ? diag : 'N'),
                       other = transposed(&factor, true);
        struct numbers matrix =
            uplo == 'L' ? product_of(&factor, &other) : product_of(&other, &factor);
        lapack_fill_right_sides(&l, triangle ? factor : matrix, triangle ? trans : 'N');
        free(triangle ? matrix.at : factor.at);
        free(other.at);
        assert_int_equal(run(&l), GPU_OK);
        assert_true(l.parts_up > 1);
        assert_int_equal(l.host.down_bytes, accel_bytes(&l.call.span[ACCEL_b]));
        if (triangle && diag == 'N') { /* LAPACK says where a triangle is singular */
            set(&l.first[ACCEL_a], 77, 77, 0);
            assert_int_equal(run(&l), GPU_UNSUPPORTED);
        }
        lapack_end(&l);
    }
}

/* ---- As with memory for all of it ---- */

static const struct whole_case {
    const char *name, *flags; /* uplo and diag, or side and trans, or trans */
    int64_t m, n, k, nrhs;
} whole_cases[] = {
    {"dtrtri_", "LN", 132, 132, 0, 0},  {"dtrtri_", "UN", 132, 132, 0, 0},
    {"ztrtri_", "LU", 94, 94, 0, 0},    {"dtrtri_", "UU", 132, 132, 0, 0},
    {"dpotri_", "L", 132, 132, 0, 0},   {"dpotri_", "U", 132, 132, 0, 0},
    {"zpotri_", "L", 94, 94, 0, 0},     {"zpotri_", "U", 94, 94, 0, 0},
    {"dlauum_", "L", 132, 132, 0, 0},   {"dlauum_", "U", 132, 132, 0, 0},
    {"zlauum_", "L", 94, 94, 0, 0},     {"zlauum_", "U", 94, 94, 0, 0},
    {"dgetri_", "", 132, 132, 0, 0},    {"zgetri_", "", 94, 94, 0, 0},
    {"dgeqrf_", "", 180, 180, 0, 0},    {"cgeqrf_", "", 120, 260, 0, 0},
    {"dgeqrf_", "", 220, 160, 0, 0},    {"dorgqr_", "", 200, 180, 130, 0},
    {"cungqr_", "", 180, 170, 170, 0},  {"dormqr_", "LN", 190, 20, 170, 0},
    {"dormqr_", "LT", 190, 80, 170, 0}, {"dormqr_", "RN", 20, 190, 170, 0},
    {"dormqr_", "RT", 80, 190, 170, 0}, {"cunmqr_", "LC", 180, 10, 180, 0},
    {"cunmqr_", "RC", 10, 180, 180, 0}, {"dgels_", "N", 220, 150, 0, 5},
    {"dgels_", "T", 220, 150, 0, 5},    {"dgels_", "N", 150, 220, 0, 5},
    {"cgels_", "C", 140, 210, 0, 3},    {"dgels_", "N", 210, 170, 0, 60},
};
enum { WHOLE_CASES = sizeof whole_cases / sizeof *whole_cases };
enum { FIRST_REFLECTORS = 14 };
static struct lapack whole[WHOLE_CASES];

static bool is_op(const struct lapack *l, const char *end)
{
    return strstr(l->call.routine->name, end) != NULL;
}

static void fill_at_random(const struct accel_span *x)
{
    const bool is_complex = accel_is_complex(x->dtype);
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            set(x, i, j, rand() % 19 - 9 + (is_complex ? CMPLX(0, rand() % 19 - 9) : 0));
}

/* Reflectors, and scalars: as the device computes them of numbers at random. */
static void fill_reflectors(struct lapack *l)
{
    struct lapack qr;
    char geqrf[] = "?geqrf_";
    const struct accel_span *a = &l->call.span[ACCEL_a], *x = &l->call.span[ACCEL_x];
    geqrf[0] = l->call.routine->name[0];
    lapack_make(&qr, geqrf, a->rows, x->cols, 0, 0);
    lapack_take(&qr);
    fill_at_random(&qr.call.span[ACCEL_a]);
    assert_int_equal(gpu_run(&device->common, &qr.call, &qr.host), GPU_OK);
    for (int64_t j = 0; j < x->cols; j++) {
        for (int64_t i = j + 1; i < a->rows; i++)
            set(a, i, j, get(&qr.call.span[ACCEL_a], i, j));
        for (int64_t i = 0; i <= j; i++)
            set(a, i, j, NAN); /* R is not read */
        set(x, 0, j, get(&qr.call.span[ACCEL_x], 0, j));
    }
    lapack_end(&qr);
}

static void fill_whole(struct lapack *l)
{
    const char uplo = l->call.blas.flag[ACCEL_uplo];
    if (is_op(l, "trtri"))
        free(lapack_fill_triangle(l, uplo, l->call.blas.flag[ACCEL_diag]).at);
    else if (is_op(l, "potri") || is_op(l, "lauum"))
        free(lapack_fill_triangle(l, uplo, 'N').at);
    else if (is_op(l, "gqr") || is_op(l, "mqr"))
        fill_reflectors(l);
    else
        fill_at_random(&l->call.span[ACCEL_a]);
    if (l->call.span[ACCEL_b].ptr)
        fill_at_random(&l->call.span[ACCEL_b]);
    if (l->call.span[ACCEL_c].ptr)
        fill_at_random(&l->call.span[ACCEL_c]);
    for (int64_t i = 0; is_op(l, "getri") && i < l->call.span[ACCEL_a].rows; i++) {
        set(&l->call.span[ACCEL_a], i, i, 64);
        put_integer(&l->call.span[ACCEL_x], i, i + 1 + rand() % (l->call.span[ACCEL_a].rows - i));
    }
    for (int64_t j = 0; is_op(l, "getri") && j < l->call.span[ACCEL_a].cols; j++)
        for (int64_t i = j + 1; i < l->call.span[ACCEL_a].rows; i++)
            set(&l->call.span[ACCEL_a], i, j, get(&l->call.span[ACCEL_a], i, j) / 256);
}

static void set_flags(struct lapack *l, const char *flags)
{
    const enum accel_flag first = is_op(l, "mqr")    ? ACCEL_side
                                  : is_op(l, "gels") ? ACCEL_trans
                                                     : ACCEL_uplo;
    if (flags[0])
        l->call.blas.flag[first] = flags[0];
    if (flags[0] && flags[1])
        l->call.blas.flag[is_op(l, "mqr") ? ACCEL_trans : ACCEL_diag] = flags[1];
}

/* Setup and teardown of tests of larger matrices. */
static int begin_less_small(void **state)
{
    (void)state;
    return restart(LESS_SMALL);
}

static int end_less_small(void **state)
{
    (void)state;
    return restart(SMALL);
}

/* Runs each case where there is memory for it, then leaves a device that has little. */
static int start_small(void **state)
{
    srand(2);
    if (restart((int64_t)64 << 20) != 0)
        return -1;
    for (int i = 0; i < WHOLE_CASES; i++) {
        const struct whole_case *c = &whole_cases[i];
        struct lapack *l = &whole[i];
        lapack_make(l, c->name, c->m, c->n, c->k, c->nrhs);
        set_flags(l, c->flags);
        lapack_take(l);
        fill_whole(l);
        lapack_filled(l);
        if (gpu_run(&device->common, &l->call, &l->host) != GPU_OK)
            return -1;
        for (int s = 0; s < ACCEL_SPANS; s++)
            if (l->call.span[s].ptr)
                memcpy(l->expected[s].ptr, l->call.span[s].ptr, lapack_bytes(&l->expected[s]));
    }
    (void)state;
    return restart(SMALL);
}

static int end_whole(void **state)
{
    (void)state;
    for (int i = 0; i < WHOLE_CASES; i++)
        lapack_end(&whole[i]);
    gpu_stop(&device->common);
    return 0;
}

static void as_with_more_memory(int from, int end)
{
    for (int i = from; i < end; i++) {
        assert_true(accel_bytes(&whole[i].call.span[ACCEL_a]) > device->common.info.memory_bytes);
        if (run(&whole[i]) != GPU_OK)
            fail_msg("%s %s", whole_cases[i].name, whole_cases[i].flags);
        assert_true(whole[i].parts_up > 1);
    }
}

static void inverses(void **state)
{
    (void)state;
    as_with_more_memory(0, FIRST_REFLECTORS);
}

static void reflectors(void **state)
{
    (void)state;
    as_with_more_memory(FIRST_REFLECTORS, WHOLE_CASES);
}

/* ---- What is left to the original ---- */

static void not_to_factor(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct lapack l;
        const int64_t n = order_of("d"), at[] = {0, 1, n / 3, n / 2, n - 1}, col = at[i / 4];
        if (i % 4 < 2)
            make_lu(&l, "dgesv_", n, n, 3);
        else
            make_cholesky(&l, "dposv_", i % 4 == 2 ? 'L' : 'U', n, 3);
        const struct accel_span *a = &l.first[ACCEL_a];
        if (i % 4 < 2)
            for (int64_t r = 0; r < n; r++)
                set(a, r, col, i % 4 ? get(a, r, col) * 0x1p-1060 : 0);
        else
            set(a, col, col, -1);
        assert_int_equal(run(&l), GPU_UNSUPPORTED);
        lapack_end(&l);
    }
}

/* Of A, which is factored or applied; of B. */
static void not_finite(void **state)
{
    static const double numbers[] = {NAN, INFINITY};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct lapack l;
        make_lu(&l, "dgesv_", 132, 132, 3);
        set(&l.first[i / 2 ? ACCEL_b : ACCEL_a], 131, i / 2 ? 2 : 100, numbers[i % 2]);
        assert_int_equal(run(&l), GPU_UNSUPPORTED);
        lapack_end(&l);
    }
}

static void not_finite_in(int from, int end)
{
    for (int i = from; i < end; i++) {
        struct lapack *l = &whole[i];
        const bool upper = l->call.blas.flag[ACCEL_uplo] == 'U';
        const struct accel_span *a = &l->first[ACCEL_a];
        const int64_t row = upper ? 3 : 59, col = upper ? 59 : 3;
        const number kept = get(a, row, col);
        set(a, row, col, INFINITY);
        assert_int_equal(run(l), GPU_UNSUPPORTED);
        set(a, row, col, kept);
        if (is_op(l, "gqr") || is_op(l, "mqr")) {
            const number scalar = get(&l->first[ACCEL_x], 0, 88);
            set(&l->first[ACCEL_x], 0, 88, NAN);
            assert_int_equal(run(l), GPU_UNSUPPORTED);
            set(&l->first[ACCEL_x], 0, 88, scalar);
        }
        assert_int_equal(run(l), GPU_OK);
    }
}

static void not_finite_inverses(void **state)
{
    (void)state;
    not_finite_in(0, FIRST_REFLECTORS);
}

static void not_finite_reflectors(void **state)
{
    (void)state;
    not_finite_in(FIRST_REFLECTORS, WHOLE_CASES);
}

/* ---- Memory ---- */

static void too_little_memory(void **state)
{
    struct lapack l;
    (void)state;
    make_lu(&l, "dgetrf_", 1000, 1000, 0);
    assert_int_equal(run(&l), GPU_NO_MEMORY);
    lapack_end(&l);
}

/* A copy of the matrix is made, to stay for later calls; then there is too little memory for the
 * right-hand sides, and the call goes in panels, whose memory that of the copy becomes. Nobody
 * takes it for the matrix then; a copy of a later call's is found. */
static void copies_that_were_to_stay(void **state)
{
    struct lapack l, factors;
    (void)state;
    make_lu(&l, "dgesv_", 380, 380, 1700);
    const int64_t memory = device->common.info.memory_bytes, a = accel_bytes(&l.call.span[ACCEL_a]),
                  b = accel_bytes(&l.call.span[ACCEL_b]);
    assert_true(a >= GPU_LEAST_CACHED_BYTES && 6 * a < memory && a + b < memory &&
                2 * a + b > memory);
    make_lu(&factors, "dgetrf_", 380, 380, 0);
    memcpy(factors.first[ACCEL_a].ptr, l.first[ACCEL_a].ptr, lapack_bytes(&l.first[ACCEL_a]));
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (factors.expected[i].ptr)
            memcpy(factors.expected[i].ptr, l.expected[i].ptr, lapack_bytes(&l.expected[i]));
    l.host.caches = l.host.digests = factors.host.caches = factors.host.digests = true;
    /* At the same address: what stays is looked for there first. */
    free(factors.call.span[ACCEL_a].ptr);
    factors.call.span[ACCEL_a].ptr = l.call.span[ACCEL_a].ptr;
    int in_panels = 0;
    for (int n = 0; n < 3; n++) {
        assert_int_equal(run(&l), GPU_OK);
        in_panels += l.parts_up > 1;
    }
    assert_true(in_panels > 0);
    for (int n = 0; n < 2; n++)
        assert_int_equal(run(&factors), GPU_OK);
    assert_int_equal(factors.host.cached_bytes, a);
    factors.call.span[ACCEL_a].ptr = NULL;
    lapack_end(&factors);
    lapack_end(&l);
}

static int begin_with_room(void **state)
{
    (void)state;
    return restart((int64_t)7 << 20);
}

/* Each request of the host's fails in turn: then the call is the original's, and nothing is left.
 */
static void without_host_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct lapack l;
        if (i == 0)
            make_lu(&l, "dgesv_", 132, 132, 3);
        else if (i == 1)
            make_cholesky(&l, "dposv_", 'U', 132, 3);
        else
            make_getrs(&l, "dgetrs_", i == 2 ? 'N' : 'T', 132, 3);
        l.host.event = NULL;
        int failures = 0;
        bool short_of_memory = true;
        assert_int_equal(gpu_run(&device->common, &l.call, &l.host), GPU_OK);
        for (int n = 1; short_of_memory; n++) {
            lapack_again(&l);
            watch(n);
            const enum gpu_status status = gpu_run(&device->common, &l.call, &l.host);
            stop_watching();
            short_of_memory = requests >= n;
            assert_int_equal(live, 0);
            if (status == GPU_OK) {
                assert_spans(&l.call, l.expected);
                continue;
            }
            assert_int_equal(status, GPU_NO_MEMORY);
            lapack_is_untouched(&l);
            failures++;
        }
        assert_true(failures > 1);
        lapack_end(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lu_factors, begin_less_small, end_less_small),
        cmocka_unit_test(cholesky_factors),
        cmocka_unit_test(solutions_by_lu),
        cmocka_unit_test(solutions_by_triangles),
        cmocka_unit_test(inverses),
        cmocka_unit_test_setup_teardown(reflectors, begin_less_small, end_less_small),
        cmocka_unit_test(not_to_factor),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(not_finite_inverses),
        cmocka_unit_test_setup_teardown(not_finite_reflectors, begin_less_small, end_less_small),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test_setup_teardown(copies_that_were_to_stay, begin_with_room, end_less_small),
        cmocka_unit_test(without_host_memory),
    };
    return cmocka_run_group_tests(tests, start_small, end_whole);
}
