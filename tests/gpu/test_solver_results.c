/*
 * What a solver gives the program at the end: matrices, triangles of them, pivots and other
 * INTEGERs, from the device and from host memory; all of it or nothing, and inputs last.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>

#include "gpu/exec/lapack/solver_panels.h"
#include "gpu/exec/lapack/solver_parts.h"
#include "tests/lib/in_solver.h"
#include "tests/lib/some_copies.h"
#include "tests/lib/watched_memory.h"

static const char *const routines[] = {"sgels_", "dgels_", "cgels_", "zgels_"};
static const char parts[] = {0, 'U', 'L', 'u', 'l'};

/* Returns an array with other numbers than operand() makes. The memory for that does not count. */
static struct array array_of(struct solver *s, int64_t rows, int64_t cols)
{
    const bool was_watched = watched;
    watched = false;
    struct array x = solver_array(s, rows, cols);
    struct accel_span from = operand(rows, cols, rows, s->dtype);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            set(&from, i, j, -get(&from, i, j));
    solver_put(s, x, from.ptr);
    free(from.ptr);
    watched = was_watched;
    return x;
}

static number number_of(const struct accel_span *x, int64_t i, int64_t j)
{
    const double number = (double)(i * 31 + j * 17 + 1);
    return number + (accel_is_complex(x->dtype) ? CMPLX(0, -number) : 0);
}

/* The first rows and columns of x are the array's where they count; all else is as it was. */
static void assert_given(const struct accel_span *x, int64_t rows, int64_t cols, char part)
{
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->ld; i++) {
            const bool given = i < rows && j < cols && counts(part, i, j);
            const number own = i < x->rows ? number_of(x, i, j) : BESIDE;
            assert_true(is_same_number(get(x, i, j), given ? -own : own));
        }
}

/* ---- Matrices ---- */

static struct accel_span result, other;
static char part;
static int64_t rows, cols;

static void gives_a_matrix(struct solver *s)
{
    solver_return(s, &result, array_of(s, rows, cols), part);
}

static void matrices(void **state)
{
    static const int64_t sizes[][2] = {{13, 13}, {13, 9}, {5, 13}, {1, 1}};
    (void)state;
    for (int type = 0; type < 4; type++)
        for (int n = 0; n < 20; n++) {
            part = parts[n / 4];
            rows = sizes[n % 4][0];
            cols = sizes[n % 4][1];
            result = operand(13, 13, 16, (enum accel_dtype)type);
            assert_int_equal(in_solver(routines[type], gives_a_matrix), GPU_OK);
            assert_given(&result, rows, cols, part);
            assert_int_equal(host.down_bytes, rows * cols * gpu_size_of(&result));
            free(result.ptr);
        }
}

static void gives_to_the_device(struct solver *s)
{
    struct accel_span x = operand(13, 13, 16, s->dtype), there = on_device(s, &x);
    struct array at = {{(gpu_address)(uintptr_t)there.ptr, 16}, 16, 13, s->dtype};
    solver_return(s, &there, array_of(s, 11, 13), part);
    solver_deliver(s);
    assert_true(solver_is_well(s));
    solver_get(s, x.ptr, at);
    assert_given(&x, 11, 13, part);
    free(x.ptr);
}

static void in_device_memory(void **state)
{
    (void)state;
    for (int n = 0; n < 20; n++) {
        part = parts[n / 4];
        assert_int_equal(in_solver(routines[n % 4], gives_to_the_device), GPU_OK);
    }
}

static void gives_nothing(struct solver *s)
{
    for (int n = 0; n < 20; n++) {
        solver_return(s, &result, solver_array(s, 0, 4), 0);
        solver_return(s, &result, solver_array(s, 4, 0), 0);
        solver_return_packed(s, &result, 0, 4, malloc(8), 0);
        solver_return_packed(s, &result, 2, 2, NULL, 0);
        solver_return_integers(s, &other, 0, 1, 2);
    }
    assert_int_equal(s->results, 0);
}

static void nothing_to_give(void **state)
{
    (void)state;
    result = operand(6, 6, 7, ACCEL_FLOAT64);
    other = integers((int64_t[]){5, 6}, 2, ACCEL_INT32);
    watch(0);
    assert_int_equal(in_solver("dgels_", gives_nothing), GPU_OK);
    stop_watching();
    assert_int_equal(live, 0);
    assert_given(&result, 0, 0, 0);
    assert_int_equal(host.down_bytes, 0);
    free(result.ptr);
    free(other.ptr);
}

/* ---- From host memory ---- */

static void gives_packed(struct solver *s)
{
    struct accel_span packed = operand(rows, cols, rows, s->dtype);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            set(&packed, i, j, -get(&packed, i, j));
    solver_return_packed(s, &result, rows, cols, packed.ptr, part);
    int64_t *values = solver_panels_memory(s, 3, 1, sizeof *values);
    for (int i = 0; i < 3; i++)
        values[i] = 10 - i;
    solver_return_packed(s, &other, 3, 1, values, 0);
}

static void packed_in_host_memory(void **state)
{
    (void)state;
    for (int n = 0; n < 20; n++) {
        part = parts[n / 4];
        rows = 12;
        cols = 7;
        result = operand(12, 9, 15, (enum accel_dtype)(n % 4));
        other = integers((int64_t[]){1, 2, 3, 4}, 4, n % 2 ? ACCEL_INT64 : ACCEL_INT32);
        watch(0);
        assert_int_equal(in_solver(routines[n % 4], gives_packed), GPU_OK);
        stop_watching();
        assert_int_equal(live, 0);
        assert_given(&result, 12, 7, part);
        for (int i = 0; i < 4; i++)
            assert_int_equal(accel_integer(&other, i), i < 3 ? 10 - i : 4);
        assert_int_equal(host.down_bytes, 0); /* the host had it */
        free(result.ptr);
        free(other.ptr);
    }
}

/* ---- INTEGERs ---- */

static void gives_integers(struct solver *s)
{
    solver_return_integers(s, &other, 5, -7, INT32_MAX);
}

static void gives_pivots(struct solver *s)
{
    const int64_t values[] = {3, -2, 7};
    struct array pivots = solver_vector(s, 3, ACCEL_INT64);
    solver_put(s, pivots, values);
    solver_return_pivots(s, &other, pivots);
}

static void integers_of_both_widths(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        const int64_t before[] = {91, 92, 93, 94, 95, 96},
                      expected[] = {-7, INT32_MAX, -7, INT32_MAX, -7, 96};
        other = integers(before, 6, wide ? ACCEL_INT64 : ACCEL_INT32);
        watch(0);
        assert_int_equal(in_solver("dgels_", gives_integers), GPU_OK);
        stop_watching();
        assert_int_equal(live, 0);
        assert_int_equal(host.down_bytes, 0);
        for (int i = 0; i < 6; i++)
            assert_int_equal(accel_integer(&other, i), expected[i]);
        assert_int_equal(in_solver("dgels_", gives_pivots), GPU_OK);
        assert_int_equal(accel_integer(&other, 0), 3);
        assert_int_equal(accel_integer(&other, 1), -2);
        assert_int_equal(accel_integer(&other, 2), 7);
        assert_int_equal(accel_integer(&other, 3), INT32_MAX);
        assert_int_equal(host.down_bytes, 24); /* as the device has them */
        free(other.ptr);
    }
}

/* ---- All or nothing ---- */

static int wanted; /* results */

static void gives_many(struct solver *s)
{
    for (int i = 0; i < wanted; i++) {
        if (i % 2)
            solver_return_integers(s, &other, 2, i, i);
        else
            solver_return_packed(s, &other, 2, 1, calloc(2, sizeof(int64_t)), 0);
    }
}

/* More results than there is room for: none of them is given, and all are freed. */
static void many_results(void **state)
{
    (void)state;
    for (wanted = RESULTS_MAX; wanted < RESULTS_MAX + 3; wanted++) {
        const bool too_many = wanted > RESULTS_MAX;
        other = integers((int64_t[]){50, 51}, 2, ACCEL_INT32);
        watch(0);
        assert_int_equal(in_solver("dgels_", gives_many), too_many ? GPU_UNSUPPORTED : GPU_OK);
        stop_watching();
        assert_int_equal(live, 0);
        assert_int_equal(accel_integer(&other, 1), too_many ? 51 : RESULTS_MAX - 1);
        free(other.ptr);
    }
}

static enum gpu_status failure_of_steps;

static void gives_and_fails(struct solver *s)
{
    gives_a_matrix(s);
    solver_return_integers(s, &other, 2, 7, 7);
    solver_note(s, failure_of_steps);
    gives_a_matrix(s);
    solver_return_integers(s, &other, 2, 8, 8);
    solver_return_packed(s, &other, 2, 1, malloc(16), 0);
}

static void after_a_failure(void **state)
{
    static const enum gpu_status failures[] = {GPU_UNSUPPORTED, GPU_NO_MEMORY, GPU_ERROR};
    (void)state;
    part = 0;
    rows = cols = 6;
    for (int n = 0; n < 3; n++) {
        failure_of_steps = failures[n];
        result = operand(6, 6, 7, ACCEL_FLOAT64);
        other = integers((int64_t[]){50, 51}, 2, ACCEL_INT32);
        watch(0);
        assert_int_equal(in_solver("dgels_", gives_and_fails), failure_of_steps);
        stop_watching();
        assert_int_equal(live, 0);
        assert_given(&result, 0, 0, 0);
        assert_int_equal(accel_integer(&other, 0), 50);
        assert_int_equal(host.down_bytes, 0);
        free(result.ptr);
        free(other.ptr);
    }
}

static void gives_three(struct solver *s)
{
    gives_a_matrix(s);
    gives_pivots(s);
    solver_return_integers(s, &other, 2, 8, 8);
}

/* Memory for what waits in host memory. */
static void without_host_memory(void **state)
{
    (void)state;
    part = 'L';
    rows = cols = 6;
    for (int n = 1, short_of_memory = 1; short_of_memory; n++) {
        result = operand(6, 6, 7, ACCEL_FLOAT64);
        other = integers((int64_t[]){50, 51, 52}, 3, ACCEL_INT32);
        watch(n);
        const enum gpu_status status = in_solver("dgels_", gives_three);
        stop_watching();
        short_of_memory = requests >= n;
        assert_int_equal(live, 0);
        assert_int_equal(status, short_of_memory ? GPU_NO_MEMORY : GPU_OK);
        assert_given(&result, short_of_memory ? 0 : 6, 6, 'L');
        free(result.ptr);
        free(other.ptr);
        if (n == 1)
            assert_true(short_of_memory);
    }
}

/* ---- Large results, which come down to their places ---- */

static void gives_both(struct solver *s)
{
    solver_return(s, &result, array_of(s, rows, cols), 0);
    solver_return(s, &other, array_of(s, rows, cols), 0);
}

static bool is_as_it_was(const struct accel_span *x)
{
    bool as_it_was = true;
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            as_it_was = as_it_was && is_same_number(get(x, i, j), number_of(x, i, j));
    return as_it_was;
}

/* So many copies come down; `overwrites`: the operand of the call that is its input, too. */
static enum gpu_status give_both(int copies, struct accel_span *overwrites)
{
    result = operand(rows, cols, rows + 1, ACCEL_FLOAT64);
    other = operand(rows, cols, rows, ACCEL_FLOAT64);
    result.access = other.access = ACCEL_WRITE;
    overwrites->access = ACCEL_READWRITE;
    allow_copies(INT32_MAX, copies);
    const enum gpu_status status = in_solver("dgels_", gives_both);
    cuda_api = real;
    return status;
}

static void end_both(void)
{
    free(result.ptr);
    free(other.ptr);
}

/* One overwrites an input, and comes last: as long as that has not begun, the original can run the
 * call. */
static void inputs_come_last(void **state)
{
    (void)state;
    rows = 1500;
    cols = 1450;
    for (int first = 0; first < 2; first++) {
        struct accel_span *input = first ? &result : &other, *output = first ? &other : &result;
        assert_int_equal(give_both(INT32_MAX, input), GPU_OK);
        const int all = INT32_MAX - downs_left;
        assert_given(&result, rows, cols, 0);
        assert_given(&other, rows, cols, 0);
        assert_int_equal(host.down_bytes, 2 * accel_bytes(&result));
        end_both();
        assert_int_equal(give_both(0, input), GPU_NO_MEMORY);
        assert_true(is_as_it_was(input) && is_as_it_was(output));
        end_both();
        assert_int_equal(give_both(all / 2, input), GPU_NO_MEMORY);
        assert_true(is_as_it_was(input));
        assert_given(output, rows, cols, 0);
        end_both();
        assert_int_equal(give_both(all - 1, input), GPU_LOST);
        assert_false(is_as_it_was(input));
        end_both();
    }
}

/* ---- LU factors ---- */

static double pivot;
static int64_t pivot_at;

static void gives_lu(struct solver *s)
{
    struct array lu = array_of(s, rows, cols);
    struct accel_span one = operand(1, 1, 1, s->dtype);
    set(&one, 0, 0, pivot);
    solver_put(s, solver_part(lu, pivot_at, pivot_at, 1, 1), one.ptr);
    free(one.ptr);
    solver_return_lu(s, &result, lu);
}

/* Staged, and in place: each pivot is looked at, and no other element. */
static void small_pivots(void **state)
{
    static const int64_t shapes[][2] = {{40, 40}, {40, 30}, {30, 40}, {1500, 1450}};
    (void)state;
    for (int n = 0; n < 4; n++)
        for (int way = 0; way < 4; way++) {
            rows = shapes[n][0];
            cols = shapes[n][1];
            const int64_t least = accel_min(rows, cols);
            pivot_at = way == 0 ? 0 : least - 1;
            pivot = way == 3 ? DBL_MIN : DBL_MIN / 2;
            result = operand(rows, cols, rows + 2, ACCEL_FLOAT64);
            assert_int_equal(in_solver("dgels_", gives_lu), way == 3 ? GPU_OK : GPU_UNSUPPORTED);
            if (way != 3)
                assert_given(&result, 0, 0, 0);
            else
                assert_true(get(&result, pivot_at, pivot_at) == DBL_MIN);
            free(result.ptr);
        }
}

#define TEST(TEST) cmocka_unit_test_setup_teardown(TEST, begin_work, end_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(matrices),
        TEST(in_device_memory),
        TEST(nothing_to_give),
        TEST(packed_in_host_memory),
        TEST(integers_of_both_widths),
        TEST(many_results),
        TEST(after_a_failure),
        TEST(without_host_memory),
        TEST(inputs_come_last),
        TEST(small_pivots),
    };
    return cmocka_run_group_tests(tests, start_with_solver, stop_device);
}
