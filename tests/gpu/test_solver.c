/*
 * A solver's arrays, workspaces and outcomes, its steps between arrays, and what runs: the steps of
 * a call, those in panels in their place, or nothing behind a failure.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>

#include "gpu/exec/lapack/solver_parts.h"
#include "tests/lib/in_solver.h"
#include "tests/lib/watched_memory.h"

static const char *const routines[] = {"sgels_", "dgels_", "cgels_", "zgels_"};

static void in_each_type(void (*steps)(struct solver *s))
{
    for (int type = 0; type < 4; type++)
        assert_int_equal(in_solver(routines[type], steps), GPU_OK);
}

/* Puts numbers in an array; returns them, with memory that the caller frees. */
static struct accel_span put(struct solver *s, struct array x)
{
    struct accel_span from = operand(x.rows, x.cols, x.rows, x.dtype);
    solver_put(s, x, from.ptr);
    return from;
}

/* ---- The first failure stays ---- */

static void failures_are_noted(struct solver *s)
{
    assert_true(solver_note(s, GPU_OK) && solver_is_well(s));
    assert_false(solver_note(s, GPU_NO_MEMORY) || solver_is_well(s));
    assert_false(solver_note(s, GPU_OK));
    assert_false(solver_note(s, GPU_LOST));
    assert_int_equal(s->status, GPU_NO_MEMORY);
    s->status = GPU_OK;
}

static int calls_of_driver;
static CUresult counts_zeros(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    calls_of_driver++;
    return real.cuMemsetD8Async_p(to, value, bytes, stream);
}
static CUresult counts_ups(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    calls_of_driver++;
    return real.cuMemcpyHtoDAsync_p(to, from, bytes, stream);
}
static CUresult counts_downs(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    calls_of_driver++;
    return real.cuMemcpyDtoHAsync_p(to, from, bytes, stream);
}
static CUresult counts_2d(const CUDA_MEMCPY2D *plane, CUstream stream)
{
    calls_of_driver++;
    return real.cuMemcpy2DAsync_p(plane, stream);
}

/* Nothing is asked of the device behind a failure. */
static void nothing_is_done(struct solver *s)
{
    struct accel_span x = operand(6, 6, 6, s->dtype);
    struct array a = solver_array(s, 6, 6), b = solver_array(s, 6, 6);
    char bytes[6 * 6 * 16];
    const int blocks = s->work->blocks;
    solver_put(s, a, x.ptr);
    gpu_work_settle(s->work);
    s->status = GPU_ERROR;
    s->work->launched = false;
    calls_of_driver = 0;
    CUDA(cuMemsetD8Async) = counts_zeros;
    CUDA(cuMemcpyHtoDAsync) = counts_ups;
    CUDA(cuMemcpyDtoHAsync) = counts_downs;
    CUDA(cuMemcpy2DAsync) = counts_2d;
    assert_int_equal(solver_array(s, 3, 3).at.ptr, 0);
    assert_int_equal(solver_zeros(s, 3, 3).at.ptr, 0);
    assert_int_equal(solver_work(s, 64).at.ptr, 0);
    assert_null(solver_host_work(s, 64));
    solver_put(s, a, x.ptr);
    solver_get(s, bytes, a);
    solver_copy(s, b, a);
    solver_transpose(s, b, a);
    solver_gemm(s, 'N', 'N', a, a, b);
    solver_trsm(s, 'L', 'N', 'N', a, b);
    solver_upper(s, a);
    solver_set_diagonal(s, a, NULL);
    solver_get_diagonal(s, bytes, a);
    solver_keep_pivot(s, a);
    solver_require_finite(s, a);
    solver_refuse_small_pivots(s, a);
    solver_upload(s, &x, 'L');
    assert_false(solver_has_succeeded(s));
    cuda_api = real;
    assert_int_equal(calls_of_driver, 0);
    assert_int_equal(s->work->blocks, blocks);
    assert_false(s->work->launched);
    assert_int_equal(s->status, GPU_ERROR);
    s->status = GPU_OK;
    free(x.ptr);
}

static void behind_a_failure(void **state)
{
    (void)state;
    in_each_type(failures_are_noted);
    in_each_type(nothing_is_done);
}

/* ---- Arrays ---- */

static void arrays_have_shapes(struct solver *s)
{
    const struct array a = solver_array(s, 37, 5), none = solver_array(s, 5, 0),
                       real = solver_reals(s, 9), vector = solver_vector(s, 4, ACCEL_INT64);
    assert_true(a.rows == 37 && a.cols == 5 && a.at.ld == gpu_device_ld(37, s->dtype) && a.at.ptr);
    assert_int_equal(a.dtype, s->dtype);
    assert_true(none.rows == 5 && none.cols == 0 && !none.at.ptr);
    assert_true(real.dtype == accel_real_dtype(s->dtype) && real.rows == 9 && real.cols == 1);
    assert_true(vector.dtype == ACCEL_INT64 && vector.rows == 4);
    const struct array part = solver_part(a, 3, 2, 10, 1);
    assert_int_equal(part.at.ptr - a.at.ptr,
                     (2 * a.at.ld + 3) * (int64_t)accel_dtype_size(s->dtype));
    assert_true(part.rows == 10 && part.cols == 1 && part.at.ld == a.at.ld &&
                part.dtype == a.dtype);
    assert_true(solver_is_well(s));
    /* Sizes beyond 64 bits. */
    solver_array(s, INT64_MAX / 2, 4);
    assert_int_equal(s->status, GPU_NO_MEMORY);
    s->status = GPU_OK;
    solver_array(s, 1 << 20, INT64_MAX >> 20);
    assert_int_equal(s->status, GPU_NO_MEMORY);
    s->status = GPU_OK;
    solver_work(s, SIZE_MAX);
    assert_int_equal(s->status, GPU_NO_MEMORY);
    s->status = GPU_OK;
    const struct array work = solver_work(s, 100);
    assert_true(work.at.ptr && work.rows == 100 && work.cols == 1);
}

static void arrays_of_zeros(struct solver *s)
{
    struct array x = solver_array(s, 12, 12);
    struct accel_span numbers = put(s, x);
    gpu_work_settle(s->work);
    gpu_memory(s->work)->drop(s->work); /* the memory that the next one gets */
    struct accel_span zeros = fetched(s, solver_zeros(s, 12, 12));
    for (int64_t i = 0; i < 144; i++)
        assert_true(get(&zeros, i % 12, i / 12) == 0);
    assert_true(solver_is_well(s));
    /* Of none, nothing. */
    calls_of_driver = 0;
    CUDA(cuMemsetD8Async) = counts_zeros;
    solver_zeros(s, 3, 0);
    cuda_api = real;
    assert_int_equal(calls_of_driver, 0);
    assert_true(solver_is_well(s));
    free(numbers.ptr);
    free(zeros.ptr);
}

static void arrays(void **state)
{
    (void)state;
    in_each_type(arrays_have_shapes);
    in_each_type(arrays_of_zeros);
}

/* ---- Workspaces ---- */

static void workspaces_of_the_host(struct solver *s)
{
    assert_null(solver_host_work(s, 0));
    watch(0);
    char *first = solver_host_work(s, 100);
    assert_non_null(first);
    memset(first, 1, 100);
    char *second = solver_host_work(s, 200); /* in the place of the first */
    assert_non_null(second);
    memset(second, 2, 200);
    stop_watching();
    assert_int_equal(live, 1);
    assert_ptr_equal(s->host, second);
    watch(1);
    assert_null(solver_host_work(s, 300));
    stop_watching();
    assert_int_equal(s->status, GPU_NO_MEMORY);
    assert_int_equal(live, -1);
    s->status = GPU_OK;
}

static void workspaces_of_steps(struct solver *s)
{
    struct array device;
    void *on_host = s;
    assert_true(solver_take_work(s, 0, 0, &device, &on_host));
    assert_true(!device.at.ptr && !on_host);
    assert_true(solver_take_work(s, 64, 32, &device, &on_host));
    assert_true(device.at.ptr && on_host == s->host && on_host);
    s->status = GPU_ERROR;
    assert_false(solver_take_work(s, 64, 32, &device, &on_host));
    s->status = GPU_OK;
}

/* While they are measured, the largest of the device, all of the host; then each takes its part. */
static void workspaces_of_a_reserve(struct solver *s)
{
    static const size_t sizes[][2] = {{100, 10}, {300, 64}, {200, 65}, {0, 0}};
    struct solver_reserve reserve = {.measuring = true};
    struct array device;
    void *on_host;
    char room[256];
    s->reserve = &reserve;
    for (int i = 0; i < 4; i++) {
        assert_false(solver_take_work(s, sizes[i][0], sizes[i][1], &device, &on_host));
        assert_true(solver_is_well(s) && !device.at.ptr && !on_host);
    }
    assert_int_equal(reserve.device_bytes, 300);
    assert_int_equal(reserve.host_bytes, 256); /* whole lines of 64 bytes */
    reserve.measuring = false;
    reserve.device = 0x1000;
    reserve.host = room;
    static const size_t places[] = {0, 64, 128};
    for (int i = 0; i < 4; i++) {
        assert_true(solver_take_work(s, sizes[i][0], sizes[i][1], &device, &on_host));
        assert_int_equal(device.at.ptr, 0x1000);
        assert_ptr_equal(on_host, i < 3 ? room + places[i] : NULL);
    }
    assert_int_equal(reserve.host_used, 256);
    /* More than there is. */
    assert_false(solver_take_work(s, 300, 1, &device, &on_host));
    assert_int_equal(s->status, GPU_NO_MEMORY);
    s->status = GPU_OK;
    assert_false(solver_take_work(s, 301, 0, &device, &on_host));
    assert_int_equal(s->status, GPU_NO_MEMORY);
    s->status = GPU_OK;
    reserve.measuring = true;
    s->status = GPU_ERROR;
    assert_false(solver_take_work(s, 900, 900, &device, &on_host));
    assert_int_equal(reserve.device_bytes, 300);
    s->status = GPU_OK;
    s->reserve = NULL;
}

static void workspaces(void **state)
{
    (void)state;
    in_each_type(workspaces_of_the_host);
    in_each_type(workspaces_of_steps);
    in_each_type(workspaces_of_a_reserve);
}

/* ---- Outcomes ---- */

static void put_outcome(struct solver *s, struct array at, int32_t info, double pivot)
{
    struct solver_outcome outcome = {.info = info};
    if (accel_is_double(s->dtype))
        outcome.pivot.full = pivot;
    else
        outcome.pivot.single = (float)pivot;
    solver_put(s, at, &outcome);
}

static void outcomes_are_judged(struct solver *s)
{
    static const struct {
        int32_t info;
        double pivot;
        bool good;
    } cases[] = {{0, 4, true},   {1, 4, false},   {-1, 4, false}, {0, 0, false},
                 {0, -1, false}, {0, NAN, false}, {7, 0, false}};
    const struct array outcomes = solver_outcomes(s, 3);
    const gpu_address own = s->info;
    assert_int_equal(solver_outcome_at(outcomes, 2).at.ptr - outcomes.at.ptr,
                     2 * (int)sizeof(struct solver_outcome));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int n = 0; n < 3; n++) {
            const struct array at = solver_outcome_at(outcomes, n);
            struct solver_outcome outcome;
            s->info = at.at.ptr;
            put_outcome(s, at, cases[i].info, cases[i].pivot);
            solver_get(s, &outcome, at);
            assert_int_equal(solver_is_definite(s, &outcome), cases[i].good);
            assert_int_equal(solver_has_succeeded(s), cases[i].info == 0);
            solver_require_success(s);
            assert_int_equal(s->status, cases[i].info == 0 ? GPU_OK : GPU_UNSUPPORTED);
            s->status = GPU_OK;
            solver_require_definite(s);
            assert_int_equal(s->status, cases[i].good ? GPU_OK : GPU_UNSUPPORTED);
            s->status = GPU_OK;
            /* With a reserve, nobody waits. */
            struct solver_reserve reserve = {0};
            s->reserve = &reserve;
            solver_require_success(s);
            solver_require_definite(s);
            assert_true(solver_is_well(s));
            s->reserve = NULL;
        }
    s->info = own;
}

static void pivots_are_kept(struct solver *s)
{
    const struct array a = solver_array(s, 11, 11);
    struct accel_span numbers = put(s, a);
    struct solver_outcome outcome;
    const struct array at = {{s->info, 4}, 4, 1, ACCEL_INT32};
    struct solver_reserve reserve = {.measuring = true};
    put_outcome(s, at, 0, 5);
    s->reserve = &reserve;
    solver_keep_pivot(s, a);
    s->reserve = NULL;
    solver_get(s, &outcome, at);
    assert_true((accel_is_double(s->dtype) ? outcome.pivot.full : (double)outcome.pivot.single) ==
                5);
    solver_keep_pivot(s, a);
    solver_get(s, &outcome, at);
    assert_true((accel_is_double(s->dtype) ? outcome.pivot.full : (double)outcome.pivot.single) ==
                creal(get(&numbers, 10, 10)));
    assert_int_equal(outcome.info, 0);
    free(numbers.ptr);
}

static void must_be_finite(struct solver *s)
{
    struct array x = solver_reals(s, 5);
    struct accel_span numbers = put(s, x);
    solver_require_finite(s, x);
    solver_require_finite(s, solver_reals(s, 0));
    assert_true(solver_is_well(s));
    for (int64_t i = 0; i < 5; i++) {
        const number kept = get(&numbers, i, 0);
        set(&numbers, i, 0, i % 2 ? NAN : INFINITY);
        solver_put(s, x, numbers.ptr);
        if (i == 4) {
            solver_require_finite(s, solver_part(x, 0, 0, 4, 1));
            assert_true(solver_is_well(s));
        }
        solver_require_finite(s, x);
        assert_int_equal(s->status, GPU_UNSUPPORTED);
        s->status = GPU_OK;
        set(&numbers, i, 0, kept);
    }
    watch(1);
    solver_require_finite(s, x);
    stop_watching();
    assert_int_equal(s->status, GPU_NO_MEMORY);
    assert_int_equal(live, 0);
    s->status = GPU_OK;
    free(numbers.ptr);
}

static void outcomes(void **state)
{
    (void)state;
    in_each_type(outcomes_are_judged);
    in_each_type(pivots_are_kept);
    in_each_type(must_be_finite);
}

/* LAPACK divides by the pivots of LU: the least is the least normal number; of a complex one, its
 * larger part counts. */
static void small_pivots_are_refused(struct solver *s)
{
    const double least = accel_is_double(s->dtype) ? DBL_MIN : (double)FLT_MIN;
    const double most = accel_is_double(s->dtype) ? DBL_MAX : (double)FLT_MAX;
    const bool is_complex = accel_is_complex(s->dtype);
    const struct {
        number pivot;
        bool good;
    } cases[] = {{least, true},
                 {-least, true},
                 {least / 2, false},
                 {0, false},
                 {most, true},
                 {-most, true},
                 {INFINITY, false},
                 {-INFINITY, false},
                 {NAN, false},
                 {is_complex ? CMPLX(0, -least) : least, true},
                 {is_complex ? CMPLX(least / 2, least / 2) : 0, false},
                 {is_complex ? CMPLX(1, NAN) : NAN, false},
                 {is_complex ? CMPLX(NAN, 1) : NAN, false},
                 {is_complex ? CMPLX(-INFINITY, 1) : NAN, false}};
    const struct array lu = solver_array(s, 4, 5);
    struct accel_span numbers = operand(4, 5, 4, s->dtype);
    const char *at = numbers.ptr;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t n = 0; n < 4; n++) {
            const number kept = get(&numbers, n, n);
            set(&numbers, n, n, cases[i].pivot);
            solver_put(s, lu, numbers.ptr);
            solver_refuse_small_pivots_of(s, at, 4, n);
            assert_true(solver_is_well(s));
            solver_refuse_small_pivots_of(s, at, 4, n + 1);
            assert_int_equal(s->status, cases[i].good ? GPU_OK : GPU_UNSUPPORTED);
            s->status = GPU_OK;
            if (i < 3) {
                solver_refuse_small_pivots(s, solver_part(lu, 0, 0, n == 3 ? 4 : n + 1, 4));
                assert_int_equal(s->status, cases[i].good ? GPU_OK : GPU_UNSUPPORTED);
                s->status = GPU_OK;
            }
            set(&numbers, n, n, kept);
        }
    solver_refuse_small_pivots(s, solver_array(s, 0, 5));
    assert_true(solver_is_well(s));
    watch(1);
    solver_refuse_small_pivots(s, lu);
    stop_watching();
    assert_int_equal(s->status, GPU_NO_MEMORY);
    assert_int_equal(live, 0);
    s->status = GPU_OK;
    free(numbers.ptr);
}

static void small_pivots(void **state)
{
    (void)state;
    in_each_type(small_pivots_are_refused);
}

/* ---- Between arrays ---- */

static number conjugate_of(number x, bool is_complex)
{
    return is_complex ? conj(x) : x;
}

static void arrays_are_copied(struct solver *s)
{
    const bool is_complex = accel_is_complex(s->dtype);
    const struct array a = solver_array(s, 9, 6), to = solver_array(s, 14, 14),
                       across = solver_array(s, 6, 9);
    struct accel_span x = put(s, a), before = put(s, to);
    solver_copy(s, solver_part(to, 2, 3, 9, 6), a);
    solver_copy(s, to, solver_part(a, 0, 0, 0, 6));
    solver_copy(s, to, solver_part(a, 0, 0, 9, 0));
    struct accel_span there = fetched(s, to);
    for (int64_t j = 0; j < 14; j++)
        for (int64_t i = 0; i < 14; i++)
            assert_true(is_same_number(get(&there, i, j), i >= 2 && i < 11 && j >= 3 && j < 9
                                                              ? get(&x, i - 2, j - 3)
                                                              : get(&before, i, j)));
    solver_transpose(s, across, a);
    struct accel_span turned = fetched(s, across);
    for (int64_t j = 0; j < 9; j++)
        for (int64_t i = 0; i < 6; i++)
            assert_true(
                is_same_number(get(&turned, i, j), conjugate_of(get(&x, j, i), is_complex)));
    free(x.ptr);
    free(before.ptr);
    free(there.ptr);
    free(turned.ptr);
}

static void diagonals(struct solver *s)
{
    const double values[] = {3, -4, 5.5, 6};
    const struct array zeros = solver_zeros(s, 6, 4), ones = solver_zeros(s, 4, 6),
                       a = solver_array(s, 4, 7);
    struct accel_span x = put(s, a);
    double diagonal[8];
    solver_set_diagonal(s, zeros, values);
    solver_set_diagonal(s, ones, NULL);
    struct accel_span of_values = fetched(s, zeros), of_ones = fetched(s, ones);
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < 4; j++) {
            assert_true(get(&of_values, i, j) == (i == j ? values[i] : 0));
            assert_true(get(&of_ones, j, i) == (i == j ? 1 : 0));
        }
    solver_get_diagonal(s, diagonal, a);
    const struct accel_span got = {
        .ptr = diagonal, .rows = 4, .cols = 1, .ld = 4, .dtype = s->dtype};
    for (int64_t i = 0; i < 4; i++)
        assert_true(is_same_number(get(&got, i, 0), get(&x, i, i)));
    assert_true(solver_is_well(s));
    watch(1);
    solver_set_diagonal(s, zeros, values);
    stop_watching();
    assert_int_equal(s->status, GPU_NO_MEMORY);
    assert_int_equal(live, 0);
    s->status = GPU_OK;
    free(x.ptr);
    free(of_values.ptr);
    free(of_ones.ptr);
}

static number sum_of(const struct accel_span *a, bool turned, const struct accel_span *b, int64_t i,
                     int64_t j)
{
    number sum = 0;
    for (int64_t k = 0; k < b->rows; k++)
        sum += (turned ? get(a, k, i) : get(a, i, k)) * get(b, k, j);
    return sum;
}

/* Of small whole numbers: to the last digit. */
static void products(struct solver *s)
{
    const struct array a = solver_array(s, 5, 3), b = solver_array(s, 3, 4),
                       c = solver_array(s, 5, 4), turned = solver_array(s, 3, 5),
                       triangle = solver_array(s, 3, 3), x = solver_array(s, 3, 4);
    struct accel_span of_a = put(s, a), of_b = put(s, b), of_turned = put(s, turned);
    for (int way = 0; way < 2; way++) {
        solver_gemm(s, way ? 'T' : 'N', 'N', way ? turned : a, b, c);
        struct accel_span of_c = fetched(s, c);
        for (int64_t j = 0; j < 4; j++)
            for (int64_t i = 0; i < 5; i++)
                assert_true(is_same_number(get(&of_c, i, j),
                                           sum_of(way ? &of_turned : &of_a, way, &of_b, i, j)));
        free(of_c.ptr);
    }
    solver_gemm(s, 'N', 'N', solver_part(a, 0, 0, 0, 3), b, solver_part(c, 0, 0, 0, 4));
    /* T X = B: the triangle has powers of two on its diagonal. */
    struct accel_span of_t = operand(3, 3, 3, s->dtype), of_x = operand(3, 4, 3, s->dtype);
    for (int64_t j = 0; j < 3; j++)
        for (int64_t i = 0; i < 3; i++)
            set(&of_t, i, j, i == j ? 2 << i : i > j ? i + j : 0);
    for (int64_t j = 0; j < 4; j++)
        for (int64_t i = 0; i < 3; i++)
            set(&of_b, i, j, sum_of(&of_t, false, &of_x, i, j));
    solver_put(s, triangle, of_t.ptr);
    solver_put(s, x, of_b.ptr);
    solver_trsm(s, 'L', 'N', 'N', triangle, x);
    solver_trsm(s, 'L', 'N', 'N', triangle, solver_part(x, 0, 0, 3, 0));
    struct accel_span solved = fetched(s, x);
    for (int64_t j = 0; j < 4; j++)
        for (int64_t i = 0; i < 3; i++)
            assert_true(is_same_number(get(&solved, i, j), get(&of_x, i, j)));
    assert_true(solver_is_well(s));
    void *const memory[] = {of_a.ptr, of_b.ptr, of_turned.ptr, of_t.ptr, of_x.ptr, solved.ptr};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
}

static void between_arrays(void **state)
{
    (void)state;
    in_each_type(arrays_are_copied);
    in_each_type(diagonals);
    in_each_type(products);
}

/* ---- What runs ---- */

static int steps_run, panels_run;
static enum gpu_status of_steps;

static void plain_steps(struct solver *s)
{
    steps_run++;
    s->largest = 5;
    solver_note(s, of_steps);
}

static void steps_in_panels(struct solver *s)
{
    panels_run++;
    assert_true(solver_is_well(s) && s->largest == 0 && s->results == 0);
}

/* An operand of so many bytes, on which nothing is done. */
static enum gpu_status runs(int64_t bytes, enum accel_place place)
{
    static char memory[8];
    call = accel_call_of(accel_name_routine((uint32_t)accel_name_find("dgels_")));
    call.span[ACCEL_a] = (struct accel_span){.ptr = memory,
                                             .rows = bytes / 8,
                                             .cols = 1,
                                             .ld = bytes / 8,
                                             .dtype = ACCEL_FLOAT64,
                                             .place = place};
    steps_run = panels_run = 0;
    const enum gpu_status status = solver_run(&work, plain_steps, steps_in_panels);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return status;
}

/* In panels: what is larger than the memory; or for which there was too little, unless it is a
 * small part of it. */
static void in_panels(void **state)
{
    const int64_t all = gpu_info(&device->common)->memory_bytes / 8 * 8;
    (void)state;
    of_steps = GPU_OK;
    assert_int_equal(runs(all, ACCEL_HOST), GPU_OK);
    assert_true(steps_run == 1 && panels_run == 0);
    assert_int_equal(runs(all + 8, ACCEL_HOST), GPU_OK);
    assert_true(steps_run == 0 && panels_run == 1);
    assert_int_equal(runs(all + 8, ACCEL_DEVICE), GPU_OK);
    assert_true(steps_run == 1 && panels_run == 0);
    of_steps = GPU_NO_MEMORY;
    assert_int_equal(runs(all / 2, ACCEL_HOST), GPU_OK);
    assert_true(steps_run == 1 && panels_run == 1);
    assert_int_equal(runs(all / 5, ACCEL_HOST), GPU_NO_MEMORY);
    assert_true(steps_run == 1 && panels_run == 0);
    assert_int_equal(runs(all / 2, ACCEL_DEVICE), GPU_NO_MEMORY);
    assert_true(steps_run == 1 && panels_run == 0);
    of_steps = GPU_UNSUPPORTED;
    assert_int_equal(runs(all / 2, ACCEL_HOST), GPU_UNSUPPORTED);
    assert_true(steps_run == 1 && panels_run == 0);
}

#define TEST(TEST) cmocka_unit_test_setup_teardown(TEST, begin_work, end_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(behind_a_failure), TEST(arrays),         TEST(workspaces), TEST(outcomes),
        TEST(small_pivots),     TEST(between_arrays), TEST(in_panels),
    };
    return cmocka_run_group_tests(tests, start_with_solver, stop_device);
}
