/*
 * Factorisations of a matrix that fits on the device, behind a slow link: it comes up in panels,
 * each element once, and what comes out is known to the last digit, with right-hand sides, and
 * where the matrix is there already. The original gets a matrix untouched if it has no factors, or
 * if the host has too little memory.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/exec/lapack/panel_steps.h"
#include "gpu/exec/lapack/solver_in_core.h"
#include "tests/lib/lapack_calls.h"
#include "tests/lib/rates.h"
#include "tests/lib/watched_memory.h"

static const struct schedule_rates slow =
    RATES_WITH(1e-5, 0, 0.05, 0.05, 1, 1, 0.002, 0.005, 0.005);

static enum gpu_status run(struct lapack *l)
{
    return lapack_run_on(l, &device->common);
}

static bool is_cholesky(const struct lapack *l)
{
    return strncmp(l->call.routine->name + 1, "po", 2) == 0;
}

/* Makes a call of one of these routines, by the rates of a slow link. */
static void make(struct lapack *l, const char *name, char uplo, int64_t m, int64_t n, int64_t nrhs)
{
    lapack_make(l, name, m, n, 0, nrhs);
    if (is_cholesky(l))
        l->call.blas.flag[ACCEL_uplo] = uplo;
    l->host.rates = slow;
    lapack_take(l);
    if (is_cholesky(l))
        lapack_fill_cholesky(l);
    else
        lapack_fill_lu(l);
}

/* What the panels of the matrix are. */
static void panels_of(const struct lapack *l, struct panels *panels)
{
    const struct accel_span *a = &l->call.span[ACCEL_a];
    const bool cholesky = is_cholesky(l);
    const struct panels_call call = {.kind = cholesky ? PANELS_CHOLESKY : PANELS_LU,
                                     .across = cholesky && l->call.blas.flag[ACCEL_uplo] == 'U',
                                     .m = a->rows,
                                     .n = a->cols,
                                     .size = gpu_size_of(a),
                                     .per_term = lapack_is_complex(l) ? 8 : 2};
    if (!panels_make_in_core(panels, &call, &slow))
        fail_msg("%s: not in panels, %g ms", l->call.routine->name, panels_whole_ms(&call, &slow));
}

static int64_t down_bytes_of(const struct lapack *l)
{
    int64_t bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].access & ACCEL_WRITE) /* pivots as the device has them */
            bytes += i == ACCEL_x ? 8 * l->call.span[i].cols : accel_bytes(&l->call.span[i]);
    return bytes;
}

/* ---- What comes out ---- */

static const struct {
    const char *name;
    char uplo;
    int64_t m, n, nrhs;
} cases[] = {
    {"dgetrf_", 0, 150, 150, 0},   {"sgetrf_", 0, 230, 140, 0},   {"zgetrf_", 0, 70, 130, 0},
    {"cgetrf_", 0, 120, 120, 0},   {"dgetrf_", 0, 64, 200, 0},    {"dgesv_", 0, 140, 140, 5},
    {"zgesv_", 0, 90, 90, 3},      {"dpotrf_", 'L', 170, 170, 0}, {"dpotrf_", 'U', 170, 170, 0},
    {"spotrf_", 'L', 220, 220, 0}, {"zpotrf_", 'U', 120, 120, 0}, {"cpotrf_", 'L', 150, 150, 0},
    {"dposv_", 'U', 130, 130, 4},  {"zposv_", 'L', 100, 100, 2},
};
enum { CASES = sizeof cases / sizeof *cases };

static void make_case(struct lapack *l, int i)
{
    make(l, cases[i].name, cases[i].uplo, cases[i].m, cases[i].n, cases[i].nrhs);
}

static void factors(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct lapack l;
        struct panels panels;
        make_case(&l, i);
        panels_of(&l, &panels);
        assert_true(panels.count > 2);
        assert_int_equal(run(&l), GPU_OK);
        assert_int_equal(l.parts_up, panels.count);
        assert_int_equal(l.host.up_bytes,
                         (int64_t)panels.up_bytes + accel_bytes(&l.call.span[ACCEL_b]));
        assert_int_equal(l.host.down_bytes, down_bytes_of(&l));
        panels_free(&panels);
        lapack_end(&l);
    }
}

/* Of reflectors, what the device computes of the whole matrix. */
static void reflectors(void **state)
{
    static const struct {
        const char *name;
        int64_t m, n, nrhs;
    } of[] = {{"dgeqrf_", 150, 150, 0}, {"cgeqrf_", 100, 170, 0}, {"dgels_", 180, 120, 3}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct lapack l;
        lapack_make(&l, of[i].name, of[i].m, of[i].n, 0, of[i].nrhs);
        lapack_take(&l);
        const struct accel_span *a = &l.call.span[ACCEL_a], *b = &l.call.span[ACCEL_b];
        struct numbers x = random_numbers(a->rows, a->cols, lapack_is_complex(&l)),
                       y = random_numbers(b->rows, b->cols, lapack_is_complex(&l));
        put_numbers(a, &x, 0);
        put_numbers(b, &y, 0);
        lapack_filled(&l);
        assert_int_equal(gpu_run(&device->common, &l.call, &l.host), GPU_OK);
        assert_int_equal(l.parts_up, 1);
        for (int s = 0; s < ACCEL_SPANS; s++)
            if (l.call.span[s].ptr)
                memcpy(l.expected[s].ptr, l.call.span[s].ptr, lapack_bytes(&l.expected[s]));
        l.host.rates = slow;
        l.host.rates.compute = 4; /* reflectors take twice the operations */
        assert_int_equal(run(&l), GPU_OK);
        assert_true(l.parts_up > 2);
        assert_int_equal(l.host.up_bytes, accel_bytes(a) + accel_bytes(b));
        free(x.at);
        free(y.at);
        lapack_end(&l);
    }
}

/* Where rates are not known, or the matrix is too small, it comes up as one chunk. */
static void as_a_whole(void **state)
{
    static const int64_t orders[] = {1, 2, 63};
    (void)state;
    for (int i = 0; i < CASES + 6; i++) {
        struct lapack l;
        if (i < CASES) {
            make_case(&l, i);
            l.host.rates.up = 0;
        } else {
            make(&l, i % 2 ? "dgesv_" : "dposv_", 'L', orders[(i - CASES) / 2],
                 orders[(i - CASES) / 2], 1);
        }
        assert_int_equal(run(&l), GPU_OK);
        assert_int_equal(l.parts_up, 1);
        assert_int_equal(l.host.up_bytes,
                         accel_bytes(&l.call.span[ACCEL_a]) + accel_bytes(&l.call.span[ACCEL_b]));
        assert_int_equal(l.host.down_bytes, down_bytes_of(&l));
        lapack_end(&l);
    }
}

/* ---- A matrix that is there already ---- */

/* A matrix that comes again is digested, on its way up as one chunk, and then found: what comes out
 * is the same, and it does not go up. */
static void found_on_the_device(void **state)
{
    static const char *const names[] = {"dgetrf_", "dpotrf_"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct lapack l;
        make(&l, names[i], 'L', 400, 400, 0);
        l.host.caches = l.host.digests = true;
        for (int n = 0; n < 4; n++) {
            assert_int_equal(run(&l), GPU_OK);
            assert_true(l.host.cached_bytes == 0 ||
                        (l.host.up_bytes == 0 &&
                         l.host.cached_bytes == accel_bytes(&l.call.span[ACCEL_a])));
            assert_true(n > 0 || l.parts_up > 2);
        }
        assert_true(l.host.cached_bytes > 0);
        lapack_end(&l);
    }
}

/* ---- What cannot be factored ---- */

enum trouble { NOT_A_NUMBER, INFINITE, NOT_TO_FACTOR, SMALL_PIVOT, TROUBLES };

static void scale_column(const struct accel_span *a, int64_t col, number by)
{
    for (int64_t i = 0; i < a->rows; i++)
        set(a, i, col, get(a, i, col) * by);
}

static void spoil(struct lapack *l, enum trouble trouble, int64_t col)
{
    const struct accel_span *a = &l->first[ACCEL_a];
    const int64_t last = l->call.blas.flag[ACCEL_uplo] == 'U' ? 0 : a->rows - 1;
    if (trouble == NOT_A_NUMBER)
        set(a, last, col, NAN);
    else if (trouble == INFINITE)
        set(a, last, col, -INFINITY);
    else if (is_cholesky(l))
        set(a, col, col, trouble == NOT_TO_FACTOR ? -1 : 0);
    else
        scale_column(a, col, trouble == NOT_TO_FACTOR ? 0 : 0x1p-1060);
}

/* In each panel, in its first column and in its last. */
static void in_each_panel(struct lapack *l, const struct panels *panels, enum trouble trouble)
{
    struct accel_span kept = copy_of_span(&l->first[ACCEL_a]);
    for (int j = 0; j < panels->count; j++)
        for (int end = 0; end < 2; end++) {
            spoil(l, trouble, end ? panels->first[j + 1] - 1 : panels->first[j]);
            assert_int_equal(run(l), GPU_UNSUPPORTED);
            memcpy(l->first[ACCEL_a].ptr, kept.ptr, lapack_bytes(&kept));
        }
    free(kept.ptr);
}

static void what_cannot_be_factored(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        for (enum trouble trouble = 0; trouble < TROUBLES; trouble++) {
            struct lapack l;
            struct panels panels;
            make(&l, i ? "dpotrf_" : "dgetrf_", i == 2 ? 'U' : 'L', 100, 100, 0);
            panels_of(&l, &panels);
            in_each_panel(&l, &panels, trouble);
            assert_int_equal(run(&l), GPU_OK);
            panels_free(&panels);
            lapack_end(&l);
        }
}

/* Only the columns that have pivots count. */
static void wide_and_singular_beside(void **state)
{
    struct lapack l;
    (void)state;
    make(&l, "dgetrf_", 0, 70, 160, 0);
    for (int64_t col = 70; col < 160; col++) {
        scale_column(&l.first[ACCEL_a], col, 0);
        scale_column(&l.expected[ACCEL_a], col, 0);
    }
    assert_int_equal(run(&l), GPU_OK);
    lapack_end(&l);
}

/* ---- Memory ---- */

/* Each request fails in turn: then the call is the original's, and nothing is left. */
static void without_host_memory(void **state)
{
    static const int tried[] = {0, 5, 7, 12};
    (void)state;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        struct lapack l;
        make_case(&l, tried[i]);
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

/* Panels of Cholesky come up beside the matrix; without room for that, it comes up as one chunk. */
static void without_room_beside_the_matrix(void **state)
{
    const int64_t left = 12 << 20;
    struct lapack l;
    struct panels panels;
    gpu_address taken;
    (void)state;
    make(&l, "dpotrf_", 'L', 1000, 1000, 0);
    panels_of(&l, &panels);
    for (int64_t room = 0; (room = gpu_memory(&work)->available(&work)) > left + (1 << 20);)
        assert_int_equal(gpu_memory(&work)->take(&work, (room - left) / 9 * 8, &taken), GPU_OK);
    assert_int_equal(run(&l), GPU_OK);
    assert_int_equal(l.parts_up, 1);
    gpu_memory(&work)->drop(&work);
    assert_int_equal(run(&l), GPU_OK);
    assert_int_equal(l.parts_up, panels.count);
    panels_free(&panels);
    lapack_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors),
        cmocka_unit_test(reflectors),
        cmocka_unit_test(as_a_whole),
        cmocka_unit_test(found_on_the_device),
        cmocka_unit_test(what_cannot_be_factored),
        cmocka_unit_test(wide_and_singular_beside),
        cmocka_unit_test(without_host_memory),
        cmocka_unit_test_setup_teardown(without_room_beside_the_matrix, begin_work, end_work),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
